"""Object stores and web servers through fsspec; credentials and endpoints come from the environment."""

import errno
import io
import os
import posixpath
import random
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache, partial
from tempfile import gettempdir
from threading import Lock
from typing import Any, BinaryIO, Final

from robustgen.errors import ArgumentError, MissingDependencyError
from robustgen.files.storage.base import AT_ONCE, Entry, Store
from robustgen.files.storage.flight import Flight
from robustgen.files.storage.local import TemporaryFolder

_EXTRAS: Final = {"s3": "s3", "gs": "gcs", "hf": "hub"}
_SAME: Final = {"s3a": "s3", "gcs": "gs", "abfss": "abfs"}
_WEB: Final = ("http", "https")
# Libraries with their own exceptions for lost connections.
_TRANSPORTS: Final = frozenset(["aiohttp", "botocore", "requests", "urllib3", "httpx", "httpcore", "http"])
_STAMPS: Final = ["ETag", "etag", "blob_id", "md5Hash", "mtime", "LastModified", "last_modified", "created"]
_PASSING: Final = {408, 409, 425, 429, 500, 502, 503, 504}
_WAITS: Final = (0.2, 0.6, 2.0, 5.0)
# Listing a tar reads the headers between images; one request fetches many of them.
_BLOCK: Final = 2 << 20
_MOST_BLOCKS: Final = 8
# Bytes of a name, below the bucket, in S3, Google Cloud and Azure.
_LONGEST_NAME: Final = 1024


class RemoteStore(Store):
    """Files below a URL, for instance ``s3://bucket/folder`` or ``https://host/folder``, which is read-only.

    Throttled requests and lost connections are retried for about ten seconds.

    Raises
    ------
    ArgumentError
        The scheme of the URL is unknown.
    MissingDependencyError
        The package for the scheme is not installed.
    """

    is_local = False

    def __init__(self, location: str) -> None:
        scheme, _, rest = location.partition("://")
        self._scheme = _SAME.get(scheme.lower(), scheme.lower())
        path = posixpath.normpath(f"/{rest}").strip("/")
        self.location = f"{self._scheme}://{path}"
        # Reading on needs few requests; another store, even of this location, sees the current content.
        self._open_block = lru_cache(_MOST_BLOCKS)(partial(_Block, self.location))
        self._opening = Lock()
        _connect(self.location, os.getpid())

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteStore, (self.location,)

    def folder(self, path: str) -> "RemoteStore":
        """Return the store of a folder of this store."""
        return RemoteStore(f"{self.location}/{path}")

    # --- reading

    def read(self, path: str, start: int = 0, size: int | None = None) -> bytes:
        """Read a file, or a part of it; blocks around small parts are kept."""
        if size is None:
            data: bytes = self._call("cat_file", path, **({"start": start} if start else {}))
            return data
        if size > _BLOCK:
            return _fetch(self.location, path, start, size)
        first, end = start // _BLOCK * _BLOCK, start + size
        data = b"".join(self._read_block(path, offset) for offset in range(first, end, _BLOCK))
        return data[start - first : end - first]

    def _read_block(self, path: str, start: int) -> bytes:
        with self._opening:
            block = self._open_block(path, start)
        return block.read()

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading with range requests; one request reads the whole of a small file."""
        try:
            head = _fetch(self.location, path, 0, _BLOCK)
        except (FileNotFoundError, PermissionError, ConnectionError):
            raise
        except OSError:
            # The file is empty, or the server does not support ranges.
            head = b""
        if 0 < len(head) < _BLOCK:
            return io.BytesIO(head)
        size = self.stat(path).size
        if size <= _BLOCK:
            return io.BytesIO(self.read(path))
        from fsspec.spec import AbstractBufferedFile

        def fetch(start: int, end: int) -> bytes:
            first = max(start, len(head))
            rest = _fetch(self.location, path, first, end - first) if first < end else b""
            return head[start:end] + rest

        file = AbstractBufferedFile(None, path, "rb", _BLOCK, cache_type="readahead", size=size)
        file.cache.fetcher = fetch
        return io.BufferedReader(file)

    def stat(self, path: str) -> Entry:
        """Look up one file."""
        if self._scheme == "s3":
            # Where `info` finds no file, it looks for a folder too.
            bucket, key = self._split(path)
            info = self._call("call_s3", path, "head_object", Bucket=bucket, Key=key)
            return _entry(path, info | {"size": info["ContentLength"]})
        info = self._call("info", path)
        if info.get("type") != "file":
            raise FileNotFoundError(errno.ENOENT, "no such file", self._url(path))
        return _entry(path, info)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Yield all files below a folder, from one listing."""
        if self._scheme in _WEB:
            raise OSError(errno.EOPNOTSUPP, "folders on web servers cannot be listed", self._url(prefix))
        files = _connect(self.location, os.getpid())
        try:
            if self._scheme == "s3" and (key := self._split(prefix)[1]):
                # Where `find` finds nothing without its own prefix, it looks for a file too.
                above, last = self._url(prefix).removesuffix(key), f"{key}/"
                found = _call(self.location, "find", above, detail=True, prefix=last)
            else:
                found = self._call("find", prefix, detail=True)
        except FileNotFoundError as error:
            if "bucket" in str(error.strerror):
                raise
            return
        url = self._url(prefix)
        root = files.resolve_path(url).unresolve() if self._scheme == "hf" else files._strip_protocol(url)
        before = f"{prefix}/" if prefix else ""
        for path, info in sorted(found.items()):
            name = path[len(root.rstrip("/")) + 1 :]
            if info.get("type") == "file" and name:
                yield _entry(before + name, info)

    # --- writing

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Write a file completely or not at all."""
        self._check_writable(path)
        self._check_name(path)
        if exclusive:
            # Reading a missing file takes one request everywhere.
            with suppress(FileNotFoundError):
                self.read(path)
                raise FileExistsError(errno.EEXIST, "already exists", self._url(path))
        # Other file systems do not support exclusive creation, or not yet.
        condition = {"mode": "create"} if exclusive and self._scheme in ("s3", "gs", "memory") else {}
        try:
            self._call("pipe_file", path, data, **condition)
        except FileExistsError:
            # The first attempt may have succeeded even if its response was lost.
            if self.read(path) != data:
                raise
        except OSError as error:
            if not condition or error.errno != errno.ENOSYS:
                raise
            self._call("pipe_file", path, data)

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """Write a file in pieces to a temporary file (in `TMPDIR`), then upload it."""
        self._check_writable(path)
        try:
            folder = TemporaryFolder()
            temporary = folder.path / "file"
            with temporary.open("x+b") as file:
                yield file
                size = file.seek(0, os.SEEK_END)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            where = f"in the folder for temporary files, {gettempdir()}; set TMPDIR to another"
            raise OSError(error.errno, f"{os.strerror(error.errno)} {where}", self._url(path)) from error
        self._upload(path, size, folder)

    def _upload(self, path: str, size: int, folder: TemporaryFolder) -> None:
        self._call("put_file", path, str(folder.path / "file"))
        folder.remove()

    def open_flight(self) -> AbstractContextManager[Store]:
        """Open this store for a block that writes many files at once; see `Store.open_flight`."""
        return _Flight(self.location).fly()

    def delete(self, path: str) -> None:
        """Delete a file if it exists."""
        self._check_writable(path)
        with suppress(FileNotFoundError):
            self._call("rm_file", path)

    def _check_name(self, path: str) -> None:
        """Raise an OSError if the name of a file is too long for all object stores, or for this one."""
        _, _, key = self._url(path).partition("://")[2].partition("/")
        if len(key.encode("utf-8", "surrogatepass")) > _LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), self._url(path))

    def _check_writable(self, path: str) -> None:
        self._open_block.cache_clear()
        if self._scheme in _WEB:
            raise OSError(errno.EROFS, "web servers are read-only", self._url(path))

    def _split(self, path: str) -> tuple[str, str]:
        """Return the bucket and the key of a path in S3."""
        bucket, key, _ = _connect(self.location, os.getpid()).split_path(self._url(path))
        return bucket, key

    def _url(self, path: str) -> str:
        return f"{self.location}/{path}" if path else self.location

    def _call(self, verb: str, path: str, *arguments: Any, **options: Any) -> Any:
        return _call(self.location, verb, self._url(path), *arguments, **options)


class _Block:
    """Part of a file, which is fetched once however many threads read it."""

    def __init__(self, location: str, path: str, start: int) -> None:
        self._place, self._data = (location, path, start, _BLOCK), b""
        self._fetching = Lock()

    def read(self) -> bytes:
        """Return the bytes; a thread that asks meanwhile waits for them, or tries again after a failure."""
        with self._fetching:
            self._data = self._data or _fetch(*self._place)
        return self._data


class _Flight(Flight, RemoteStore):
    """Store of which several files are written at once."""

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """Begin to write a file; write it at once if `exclusive`."""
        if exclusive:
            super().put(path, data, exclusive=True)
        else:
            self._check_name(path)
            self.begin(path, len(data), super().put, data)

    def _upload(self, path: str, size: int, folder: TemporaryFolder) -> None:
        self.begin(path, size, super()._upload, size, folder)


# --- calling fsspec ------------------------------------------------------------------------------


def _call(location: str, verb: str, url: str, *arguments: Any, **options: Any) -> Any:
    """Call a method of fsspec, with retries for passing failures; raise failures as OSErrors."""
    parts = {"put_file": (*arguments, url), "call_s3": arguments}.get(verb, (url, *arguments))
    for pause in (*_WAITS, None):
        try:
            return getattr(_connect(location, os.getpid()), verb)(*parts, **options)
        except Exception as error:
            failure = _translate(error, url)
            if pause is None or not isinstance(failure, ConnectionError):
                raise failure from error
        # Workers that were throttled together retry at different times.
        time.sleep(pause * random.uniform(0.5, 1.5))


def _fetch(location: str, path: str, start: int, size: int) -> bytes:
    """Read a part of a file; raise an OSError if the server sends the whole file."""
    url = f"{location}/{path}"
    data: bytes = _call(location, "cat_file", url, start=start, end=start + size)
    if len(data) > size:
        raise OSError(errno.EOPNOTSUPP, "the server does not support range requests", url)
    return data


@lru_cache(maxsize=1)
def _open_session(process: int) -> Any:
    """Return a session for S3 whose uploads do not wait for the server's consent, one round trip each."""
    from aiobotocore.session import AioSession
    from botocore.handlers import add_expect_header

    session = AioSession()
    session.unregister("before-call.s3", add_expect_header)
    return session


@lru_cache(maxsize=64)
def _connect(url: str, process: int) -> Any:
    """Return the fsspec file system for `url`; a forked `process` must not use that of its parent."""
    scheme = url.partition("://")[0]
    options: dict[str, Any] = {"use_listings_cache": False}
    if scheme == "s3":
        options["config_kwargs"] = {"connect_timeout": 10, "retries": {"max_attempts": 1}}
        options["config_kwargs"]["max_pool_connections"] = 2 * AT_ONCE
        # Otherwise, fsspec requests the size of each file before reading it.
        options["max_concurrency"] = 1
    try:
        import fsspec

        if scheme == "s3":
            options["session"] = _open_session(process)
        files = fsspec.core.url_to_fs(url, **options)[0]
    except ImportError as error:
        extra = f"; pip install 'robustgen[{_EXTRAS[scheme]}]'" if scheme in _EXTRAS else ""
        raise MissingDependencyError(f"{scheme}:// needs a package: {error}{extra}") from error
    except ValueError as error:
        raise ArgumentError(f"{url}: unknown scheme {scheme!r} ({error})") from error
    except Exception as error:
        raise _translate(error, url) from error
    # `RemoteStore` has its own retries.
    if hasattr(files, "retries"):
        files.retries = 1
    return files


def _leave_connections() -> None:
    """Drop fsspec's request thread in a forked process, because it belongs to the parent."""
    if "fsspec.asyn" in sys.modules:
        sys.modules["fsspec.asyn"].reset_lock()


os.register_at_fork(after_in_child=_leave_connections)


def _translate(error: Exception, url: str) -> OSError:
    """Return an error of fsspec, its backends or a server as an OSError with a one-line message."""
    text = " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split())
    status = _status_of(error)
    names = {each.__name__ for each in type(error).__mro__}
    if isinstance(error, FileExistsError) or status == 412:
        return FileExistsError(errno.EEXIST, "already exists", url)
    if isinstance(error, FileNotFoundError) or status == 404:
        missing = text if "bucket" in text else "no such file"
        return FileNotFoundError(errno.ENOENT, missing, url)
    if isinstance(error, PermissionError) or status in (401, 403) or any("Credential" in n for n in names):
        return PermissionError(errno.EACCES, f"access refused: {text}", url)
    if status == 501:
        return OSError(errno.ENOSYS, text, url)
    # aiohttp gives a body that ends early the status of a bad request.
    foreign = not isinstance(error, OSError) and (status is None or "ClientPayloadError" in names)
    lost = foreign and bool(_TRANSPORTS & {each.__module__.split(".")[0] for each in type(error).__mro__})
    if status in _PASSING or lost or isinstance(error, ConnectionError | TimeoutError):
        return ConnectionError(errno.ECONNABORTED, text, url)
    return OSError(getattr(error, "errno", None) or errno.EIO, text, url)


def _status_of(error: BaseException | None) -> int | None:
    """Return the HTTP status in an exception or one of its causes; None without any."""
    if error is None:
        return None
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):
        known = iter([answer.get("ResponseMetadata", {}).get("HTTPStatusCode")])
    else:
        # In order, because aiohttp warns about its `code`, an alias of `status`.
        names = (answer, "status_code"), (error, "status"), (error, "code")
        known = (getattr(each, name, None) for each, name in names)
    return next((each for each in known if isinstance(each, int)), None) or _status_of(error.__cause__)


def _entry(path: str, info: dict[str, Any]) -> Entry:
    mark: Any = next((info[name] for name in _STAMPS if info.get(name)), "")
    stamp = str(mark.timestamp() if hasattr(mark, "timestamp") else mark)
    size = info.get("size")
    return Entry(path, -1 if size is None else int(size), stamp)
