"""Members of tar archives, whose headers take no more memory than they should."""

import tarfile
from collections.abc import Iterator
from typing import IO

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


def iterate_members(file: IO[bytes]) -> Iterator[tarfile.TarInfo]:
    """The members of a tar that is not compressed, from where `file` stands to its end.

    Raises
    ------
    tarfile.TarError
        It is damaged; all members before that were given.
    """
    with tarfile.open(fileobj=file, mode="r:", tarinfo=BoundedHeader) as archive:
        while member := archive.next():
            # Left alone, it keeps them all.
            archive.members.clear()  # type: ignore[attr-defined]
            yield member
        # It takes a header that is none, and a missing one, for the end.
        file.seek(archive.offset)
        block = file.read(tarfile.BLOCKSIZE)
    if len(block) < tarfile.BLOCKSIZE:
        raise tarfile.ReadError("it ends without the mark of its end")
    if any(block):
        raise tarfile.ReadError("no header where one must be")
