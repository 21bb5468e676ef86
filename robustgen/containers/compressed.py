"""Compressed files, unpacked in pieces."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Any, Final

# Images hardly shrink; what unpacks to a hundred times its size and more is there to fill a disk.
_MOST_GROWTH: Final = 100
_HARMLESS_BYTES = 1 << 30


class TooLargeError(ValueError):
    """The unpacked data are larger than images could be."""


def unpack(file: IO[bytes], name: str, size: int, write: Callable[[bytes], Any]) -> str | None:
    """Decompress a file of `size` bytes as far as possible, and return what is wrong with it.

    Its `name` tells how it is compressed. An OSError of `write` is passed on.

    Raises
    ------
    TooLargeError
        It grows beyond measure.
    """
    kinds: dict[str, Any] = {"bz2": bz2.BZ2File, "xz": lzma.LZMAFile}
    packed = kinds.get(name.lower().rpartition(".")[2], gzip.GzipFile)
    packed = packed(fileobj=file) if packed is gzip.GzipFile else packed(file)
    done, most = 0, max(_HARMLESS_BYTES, _MOST_GROWTH * size)
    while True:
        try:
            piece = packed.read1(1 << 16)
        except (ConnectionError, FileNotFoundError, PermissionError):
            raise
        except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
            return f"damaged after {done} unpacked bytes: {error or type(error).__name__}"
        if not piece:
            return None
        write(piece)
        done += len(piece)
        if done > most:
            raise TooLargeError(f"unpacks to more than {most} bytes, which no images do")
