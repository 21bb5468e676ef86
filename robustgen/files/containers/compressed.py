"""Decompression of files in pieces."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Any, Final

# Images hardly compress; a file that grows a hundredfold is meant to fill a disk.
MOST_GROWTH: Final = 100
HARMLESS_BYTES = 1 << 30


def unpack(file: IO[bytes], name: str, size: int, write: Callable[[bytes], Any]) -> None:
    """Decompress a file of `size` bytes; the suffix of `name` determines the compression.

    Raises
    ------
    ValueError
        The file is damaged, or the unpacked data are too large.
    OSError
        The file cannot be read, or the data cannot be written.
    """
    kinds: dict[str, Any] = {"bz2": bz2.open, "xz": lzma.open}
    done, most = 0, max(HARMLESS_BYTES, MOST_GROWTH * size)
    try:
        with kinds.get(name.lower().rpartition(".")[2], gzip.open)(file) as packed:
            while piece := packed.read(1 << 20):
                write(piece)
                done += len(piece)
                if done > most:
                    raise ValueError(f"unpacks to more than {most} bytes, too large for images")
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"damaged; decompress what can be saved ({error})") from error
