"""Decompression of files in pieces."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Any, Final

# Images hardly compress; a file that grows a hundredfold is meant to fill a disk.
_MOST_GROWTH: Final = 100
_HARMLESS_BYTES = 1 << 30


class TooLargeError(ValueError):
    """The unpacked data are too large for images."""


def unpack(file: IO[bytes], name: str, size: int, write: Callable[[bytes], Any]) -> str | None:
    """Decompress a file of `size` bytes as far as possible; return a description of any damage.

    The suffix of `name` determines the compression. An OSError of `write` propagates.

    Raises
    ------
    TooLargeError
        The unpacked data are too large.
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
            raise TooLargeError(f"unpacks to more than {most} bytes, too large for images")
