"""Messages that compiled libraries print to the terminal."""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# All threads of a process share its terminal; jpeglib has global variables besides.
_only_capture: Final = threading.Lock()


@contextmanager
def capture_native_messages(messages: list[str]) -> Iterator[None]:
    """Append the lines that libraries print to the standard error meanwhile, without the names of files."""
    with _only_capture, tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            lines = file.read().decode(errors="backslashreplace").splitlines()
            # libtiff reads all files under one name.
            messages += [line.removeprefix("tempfile.tif: ").rstrip(".") for line in lines if line.strip()]
