"""Servers for tests: moto's S3, and a web server with ranges, both with trouble on demand."""

import functools
import hashlib
import http.server
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BUCKET = "robustgen-tests"


class Weather:
    """Trouble for the next requests to a server: each is a function of the request's method and path."""

    def __init__(self) -> None:
        self.trouble: list[str] = []
        self.requests: list[tuple[str, str]] = []


@pytest.fixture(scope="session")
def s3_server() -> Iterator[tuple[str, Weather]]:
    """moto's S3 server, with trouble before it on demand."""
    from moto.moto_server.werkzeug_app import create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    # moto's dispatcher would list the folder of all its services for each request.
    weather, moto = Weather(), create_backend_app("s3")

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        weather.requests.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        trouble = weather.trouble.pop(0) if weather.trouble else ""
        if trouble == "throttle":
            start_response("503 Slow Down", [("Content-Type", "application/xml")])
            return [b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"]
        if trouble == "refuse":
            start_response("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>InvalidAccessKeyId</Code><Message>no such key</Message></Error>"]
        if trouble in ("lose", "lose the answer"):
            if trouble == "lose the answer":
                list(moto(environ, lambda *_, **__: lambda _: None))
            environ["werkzeug.socket"].shutdown(2)
            raise ConnectionAbortedError
        if trouble == "truncate":
            # The server promises the whole body, and the connection ends in the middle of it.
            body = b"".join(moto(environ, start_response))
            return [body[: len(body) // 2]]
        if trouble == "not implemented" and "HTTP_IF_NONE_MATCH" in environ:
            start_response("501 Not Implemented", [("Content-Type", "application/xml")])
            return [b"<Error><Code>NotImplemented</Code><Message>no conditions</Message></Error>"]
        return moto(environ, start_response)

    class Quiet(WSGIRequestHandler):
        def log(self, *_: Any, **__: Any) -> None:
            pass

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", weather
    server.shutdown()
    thread.join()


def describe_s3(endpoint: str) -> dict[str, str]:
    """The environment in which `endpoint` is S3, and no file of the user counts."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@pytest.fixture
def s3(s3_server: tuple[str, Weather], monkeypatch: pytest.MonkeyPatch) -> Iterator[Weather]:
    """S3 in the environment, with an empty bucket."""
    from robustgen.files.storage import remote
    from robustgen.sets.executors.workers import end_idle_workers

    endpoint, weather = s3_server
    # Workers that an earlier test has left know another server.
    end_idle_workers()
    for name, value in describe_s3(endpoint).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remote, "_WAITS", (0.01, 0.01, 0.01, 0.01))
    forget_connections()
    weather.trouble.clear()
    import s3fs

    files = s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
    if files.exists(BUCKET):
        files.rm(BUCKET, recursive=True)
    files.mkdir(BUCKET)
    weather.requests.clear()
    yield weather
    weather.trouble.clear()
    forget_connections()


def forget_connections() -> None:
    """Let the next call find the environment as it is."""
    import fsspec

    from robustgen.files.storage import remote

    remote._connect.cache_clear()
    remote._open_session.cache_clear()
    for each in fsspec.registry.values():
        each.clear_instance_cache()


class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, by ranges if the server is asked to."""

    ranges = True
    requests: list[str]
    trouble: list[int]

    def do_GET(self) -> None:
        self.requests.append(self.headers.get("Range", "all"))
        if self.trouble:
            status = self.trouble.pop(0)
            if status:
                self.send_error(status)
            else:
                self.connection.close()
            return
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        data, wanted = path.read_bytes(), self.headers.get("Range", "")
        if self.ranges and wanted.startswith("bytes="):
            first, _, last = wanted[6:].partition("-")
            piece = data[int(first) : int(last) + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{int(first) + len(piece) - 1}/{len(data)}")
        else:
            piece = data
            self.send_response(200)
        self.send_header("Content-Length", str(len(piece)))
        self.send_header("Accept-Ranges", "bytes" if self.ranges else "none")
        self.send_header("ETag", f'"{hashlib.md5(data).hexdigest()}"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(piece)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path, type[RangeHandler]]]:
    """A web server of the folder ``tmp_path / "web"``."""
    from robustgen.files.storage import remote

    monkeypatch.setattr(remote, "_WAITS", (0.01, 0.01, 0.01, 0.01))
    root = tmp_path / "web"
    root.mkdir()
    handler = type("Handler", (RangeHandler,), {"requests": [], "trouble": []})
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=str(root))
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", root, handler
    server.shutdown()
    server.server_close()
    thread.join()
    remote._connect.cache_clear()
    remote._open_session.cache_clear()


@pytest.fixture
def gather(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], threading.Event]:
    """Let requests of this process whose verb and URL match a pattern wait until so many are under way."""
    from robustgen.files.storage import remote

    def start(pattern: str, count: int) -> threading.Event:
        call, waiting, gathered = remote._call, list[str](), threading.Event()
        alone = list[str]()

        def wait(location: str, verb: str, url: str, *arguments: Any, **options: Any) -> Any:
            if re.search(pattern, f"{verb} {url}"):
                waiting.append(url)
                if len(waiting) == count:
                    gathered.set()
                if not alone and not gathered.wait(20):
                    alone.append(url)
                assert not alone, f"only {len(waiting)} at once: {waiting}"
            return call(location, verb, url, *arguments, **options)

        monkeypatch.setattr(remote, "_call", wait)
        return gathered

    return start
