#!/usr/bin/env python3
"""Measures round trips to an object store: requests and seconds of each command, behind a slow line.

    python scripts/bench_remote.py [--latency 60] [--jobs 1] [--format jpeg] [--corruptions fog] [--trace]

The store is moto's S3 on this machine. A proxy before it delays all bytes by half of the latency in each
direction, and counts requests. Each command runs without and with the delay; the difference, divided by the
latency, is the number of round trips that it waits for. With --trace, all requests are printed.
"""

import argparse
import asyncio
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.helpers import free_port, until_open
from tests.servers import describe_s3

BUCKET = "bench"
MODEL = """
import numpy as np

def build():
    return lambda pixels: np.stack([pixels.mean(axis=(1, 2, 3)), pixels.std(axis=(1, 2, 3))], axis=1)
"""
_REQUEST = re.compile(rb"(GET|PUT|HEAD|POST|DELETE) (\S+) HTTP/1\.1\r\n")


class SlowLine:
    """Proxy for one server, with a delay.

    Attributes
    ----------
    latency : float
        Seconds of a round trip.
    requests : list of (str, str)
        Method and path of each request.
    """

    def __init__(self, port: int) -> None:
        self.latency, self.requests, self._server_port = 0.0, list[tuple[str, str]](), port
        self.port = free_port()
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        until_open(self.port)

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connect, "127.0.0.1", self.port)
        await server.serve_forever()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", self._server_port)
        # Connecting takes no time here, because stores keep connections open and moto does not.
        await asyncio.gather(
            self._pass(reader, there[1], count=True),
            self._pass(there[0], writer),
        )

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, count: bool = False
    ) -> None:
        """Pass on what arrives, so much later, without holding back what comes after it."""
        waiting: collections.deque[tuple[float, bytes]] = collections.deque()
        arrived = asyncio.Event()

        async def send() -> None:
            while True:
                while not waiting:
                    arrived.clear()
                    await arrived.wait()
                due, data = waiting.popleft()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    break
                writer.write(data)
                await writer.drain()
            writer.close()

        async def receive() -> None:
            while True:
                try:
                    data = await reader.read(1 << 18)
                except ConnectionError:
                    data = b""
                if count and (found := _REQUEST.match(data)):
                    self.requests.append((found[1].decode(), found[2].decode()))
                waiting.append((time.monotonic() + self.latency / 2, data))
                arrived.set()
                if not data:
                    break

        await asyncio.gather(send(), receive(), return_exceptions=True)


def put_photographs(root: Path, count: int) -> Path:
    """Write `count` photographs of noise on gradients in two classes."""
    rng = np.random.default_rng(0)
    for number in range(count):
        gradient = np.linspace(0, 200, 300)[None, :, None]
        pixels = gradient + rng.integers(0, 55, (260, 1, 3)) + rng.integers(0, 9, (260, 300, 3))
        path = root / f"class{number % 2}" / f"{number:04d}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)
    return root


def measure(line: SlowLine, latency: float, *arguments: object, trace: bool = False) -> dict[str, Any]:
    """Run a command behind the line; return its seconds, and its requests by method."""
    line.latency = latency
    line.requests.clear()
    started = time.monotonic()
    command = [sys.executable, "-m", "robustgen", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.monotonic() - started
    requests = [*line.requests]
    if trace:
        for method, path in requests:
            print(f"  {method:6} {path}", flush=True)
    return {"seconds": seconds, "requests": Counter(method for method, _ in requests)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--latency", type=float, default=60, help="milliseconds of a round trip")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--format", default="jpeg")
    parser.add_argument("--corruptions", help="some, for a shorter run")
    parser.add_argument("--photographs", type=int, default=12, help="of the larger set; the smaller has four")
    parser.add_argument("--trace", action="store_true")
    options = parser.parse_args()
    port, latency = free_port(), options.latency / 1000
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until_open(port)
        line = SlowLine(port)
        os.environ |= describe_s3(f"http://127.0.0.1:{line.port}")
        import s3fs

        s3fs.S3FileSystem().mkdir(BUCKET)
        with tempfile.TemporaryDirectory() as folder:
            few = put_photographs(Path(folder, "few"), 4)
            many = put_photographs(Path(folder, "many"), options.photographs)
            s3fs.S3FileSystem().put(str(many), f"{BUCKET}/photographs", recursive=True)
            photographs = f"s3://{BUCKET}/photographs"
            Path(folder, "guess.py").write_text(MODEL)
            os.environ["PYTHONPATH"] = f"{Path(__file__).parents[1]}:{folder}"
            model = ["--model", "guess:build", "--batch-size", 8, "--output"]
            some = ["--corruptions", options.corruptions] if options.corruptions else []

            def make(source: object, output: object) -> list[object]:
                flags = ["--edition", "imagenet", "--jobs", options.jobs, "--format", options.format]
                return ["make-c", "--source", source, "--output", output, *flags, *some]

            measure(line, 0, *make(few, Path(folder, "warm")))
            rows: dict[str, Callable[[str], list[object]]] = {
                "make-c, 4 photographs": lambda to: make(few, f"{to}/few"),
                f"make-c, {options.photographs} photographs": lambda to: make(many, f"{to}/many"),
                "the same with nothing to do": lambda to: make(many, f"{to}/many"),
                "make-c, source on the server": lambda to: make(photographs, f"{to}/both"),
                "verify": lambda to: ["verify", f"{to}/many"],
                "verify --deep all": lambda to: ["verify", f"{to}/both", "--deep", "all"],
                "verify --against": lambda to: ["verify", f"{to}/many", "--against", f"{to}/both"],
                "compare": lambda to: ["compare", f"{to}/many", f"{to}/both"],
                "predict": lambda to: ["predict", f"{to}/many", *model, f"{to}/predicted"],
                "evaluate": lambda to: (
                    ["evaluate", "--source", photographs, "--edition", "imagenet", *some, *model]
                    + [f"{to}/evaluated", "--jobs", options.jobs]
                ),
                "score": lambda to: (
                    ["score", f"{to}/predicted", "--partial", "--replicates", 0]
                    + ["--output", Path(folder, "scores.html")]
                ),
                "preprocess": lambda to: (
                    ["preprocess", "clahe", f"{to}/many", f"{to}/cleaned", "--jobs", options.jobs]
                ),
                "calibrate": lambda to: ["calibrate", "--source", photographs, *some],
                "report": lambda to: ["report", f"{to}/many", "--output", Path(folder, "page.html")],
            }
            found = list[dict[str, Any]]()
            for name, command in rows.items():
                near, far = (
                    measure(
                        line, delay, *command(f"s3://{BUCKET}/{delay}"), trace=options.trace and not delay
                    )
                    for delay in (0.0, latency)
                )
                trips = (far["seconds"] - near["seconds"]) / latency
                methods = dict(sorted(far["requests"].items()))
                found.append(
                    {
                        "command": name,
                        "requests": sum(methods.values()),
                        **methods,
                        "seconds_near": round(near["seconds"], 1),
                        "seconds": round(far["seconds"], 1),
                        "round_trips": round(trips),
                    }
                )
                print(json.dumps(found[-1]), flush=True)
            hundreds = (options.photographs - 4) * 75 / 100
            more = {
                name: round((found[1][name] - found[0][name]) / hundreds, 1)
                for name in ("requests", "seconds", "round_trips")
            }
            print(json.dumps({"command": "each further 100 files", **more}))
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
