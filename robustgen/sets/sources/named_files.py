"""Small files of known names in a folder or in a tar of any compression."""

from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Final

from robustgen.files.containers.archives import open_compressed
from robustgen.sets.sources.places import Place

# CIFAR unpacks to 186 MB; skipping the rest of a larger archive would only take time.
_MOST_UNPACKED: Final = 2 << 30


def read_named_files(
    place: Place, names: Collection[str], folders: Collection[str], most: int
) -> dict[str, bytes]:
    """Read the files called `names` in a folder or in `folders` below it, or in `folders` of a tar.

    Raises
    ------
    OSError
        `place` cannot be read.
    ValueError
        A file has more than `most` bytes, or the tar is far larger than such files.
    """
    found: dict[str, bytes] = {}
    if place.is_folder:
        for path in (prefix + name for prefix in ("", *(f"{each}/" for each in folders)) for name in names):
            if place.folder.exists(path):
                found.setdefault(PurePosixPath(path).name, place.folder.read(path, 0, most + 1))
    else:
        with place.store.open(place.name) as packed, open_compressed(packed) as archive:
            for member in archive:
                if member.offset_data + member.size > _MOST_UNPACKED:
                    raise ValueError(f"unpacks to more than {_MOST_UNPACKED} bytes")
                folder, _, name = member.name.rpartition("/")
                wanted = name in names and PurePosixPath(folder).name in folders
                if wanted and member.isreg() and (file := archive.extractfile(member)):
                    found.setdefault(name, file.read(most + 1))
    for name, content in found.items():
        if len(content) > most:
            raise ValueError(f"{name} has more than {most} bytes")
    return found
