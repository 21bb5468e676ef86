"""Stores and files by their paths and URLs."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from robustgen.errors import OutputError
from robustgen.storage.base import Store
from robustgen.storage.local import LocalStore

_URL = re.compile(r"[A-Za-z][\w+.:-]+://")


def is_url(text: object) -> bool:
    """Return True if `text` is a URL rather than a path; ``file://`` counts as one."""
    return bool(_URL.match(str(text)))


def open_store(location: str | os.PathLike[str], temporary: str | Path | None = None) -> Store:
    """Open a folder, which may not exist yet.

    Parameters
    ----------
    location : path or URL
    temporary : path, optional
        Folder for the temporary files of a local store, on the same file system; by default
        ``.robustgen/tmp`` in it.

    Raises
    ------
    ArgumentError
        The scheme of the URL is unknown.
    MissingDependencyError
        The package for it is not installed.
    """
    text = _text_of(location)
    if not is_url(text):
        return LocalStore(text, temporary)
    from robustgen.storage.remote import RemoteStore

    return RemoteStore(text)


def locate(location: str | os.PathLike[str]) -> tuple[Store, str]:
    """Open the folder that a single file lies in, and return it with the name of the file."""
    text = _text_of(location)
    if not is_url(text):
        folder, name = os.path.split(os.path.abspath(text))
        return LocalStore(folder), name
    folder, _, name = text.rstrip("/").rpartition("/")
    # A bucket or a host is a folder.
    return (open_store(text), "") if folder.endswith("/") else (open_store(folder), name)


def _text_of(location: str | os.PathLike[str]) -> str:
    """Return a path or URL as text: of ``file://`` the path, and of a `Path` the URL that it was made of."""
    text = os.fspath(location)
    if not isinstance(location, str) and not os.path.lexists(location):
        # A Path makes one slash of two.
        text = re.sub(r"^([A-Za-z][\w+.-]+):/(?=[^/])", r"\1://", text)
    if not text.lower().startswith("file://"):
        return text
    path = unquote(text[len("file://") :])
    # file:///C:/data names C:/data.
    return path[1:] if re.match(r"/[A-Za-z]:/", path) else path.removeprefix("localhost")


@contextmanager
def open_log(path: str | os.PathLike[str], called: str) -> Iterator[Callable[[str], None]]:
    """Open a file of this machine and give what appends a line to it, at once; messages call it `called`.

    Raises
    ------
    OutputError
        It cannot be written.
    """

    def append(text: str) -> None:
        try:
            file.write(text.encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise OutputError(f"{called}: {error.strerror or error}") from error

    try:
        # Unbuffered: the lines of several processes do not mix.
        file = open(path, "ab", buffering=0)  # noqa: SIM115
    except OSError as error:
        raise OutputError(f"{called}: {error.strerror or error}") from error
    with file:
        yield lambda line: append(f"{line}\n")


def save(location: str | os.PathLike[str], data: bytes | Iterable[bytes], called: str = "") -> None:
    """Write a file of the user's choosing, whole or not at all; messages call it `called`.

    A device or a pipe is written to, not replaced.

    Raises
    ------
    OutputError
        It cannot be written.
    """
    parts = [data] if isinstance(data, bytes) else data
    try:
        store, name = locate(location)
        path = Path(store.location, name)
        if store.is_local and path.exists() and not path.is_file():
            with path.open("wb") as special:
                special.writelines(parts)
            return
        if isinstance(store, LocalStore):
            store = LocalStore(store.location, temporary=store.location)
        with store.create(name) as file:
            for part in parts:
                file.write(part)
    except OSError as error:
        raise OutputError(f"{called or location}: {error.strerror or error}") from error
