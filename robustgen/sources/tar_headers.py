"""Headers of tar archives that take no more memory than they should."""

import tarfile

# The extended header of a file with a long name and a few attributes has some hundred bytes.
_MOST_HEADER_BYTES = 1 << 16
_EXTENDED = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)


class BoundedHeader(tarfile.TarInfo):
    """A member for ``tarfile.open(..., tarinfo=BoundedHeader)``: an outsized header ends the reading.

    Left alone, tarfile reads a header of 3 GB into memory because its size field says so.
    """

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.size < 0:
            raise tarfile.HeaderError(f"member of {self.size} bytes")
        if self.type in _EXTENDED and self.size > _MOST_HEADER_BYTES:
            raise tarfile.HeaderError(f"header of {self.size} bytes")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.HeaderError("sparse file")
        member: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return member

    def _apply_pax_info(self, *arguments: object) -> None:
        super()._apply_pax_info(*arguments)  # type: ignore[misc]
        if self.size < 0:
            # The next header would be one that was read already.
            raise tarfile.HeaderError(f"member of {self.size} bytes")

    def _proc_gnusparse_10(self, *_: object) -> None:
        # Its map of holes lies in the data, of any length.
        raise tarfile.HeaderError("sparse file")
