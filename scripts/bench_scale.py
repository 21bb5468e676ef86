"""Measures the cost of a run over many images without its workers, on a store with 30 ms per request.

    python scripts/bench_scale.py [--images 1300000] [--latency 0.03]

Workers are simulated: their records are written to a store in memory. The script measures how long a run
takes that has nothing to do, how long finishing takes, and how many requests an image needs.
"""

import argparse
import io
import json
import resource
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from robustgen.files.ledger import Record
from robustgen.files.set_files import WrittenFile
from robustgen.files.storage import Entry, Store
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from robustgen.sets.dataset.manifest import finish as write_manifest
from robustgen.sets.dataset.manifest import source_digest
from robustgen.sets.dataset.plan import Plan, assemble_plan
from robustgen.sets.dataset.recipes import CorruptionRecipe
from robustgen.sets.dataset.run import run_plan
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.formats import open_writer
from robustgen.sets.formats.base import EncoderChoices, SetContent
from robustgen.sets.sources.base import Items
from robustgen.settings.config import Choices


class SlowStore(Store):
    """Store in memory with slow requests; large files have a size but no content."""

    is_local = False

    def __init__(
        self, latency: float, files: dict[str, bytes | int], counts: Counter[str], prefix: str = ""
    ) -> None:
        self.location, self._latency = f"memory://scale/{prefix}".rstrip("/"), latency
        self._files, self._counts, self._prefix = files, counts, prefix

    def _request(self, verb: str) -> None:
        self._counts[verb] += 1
        time.sleep(self._latency)

    def read(self, path: str, start: int = 0, size: int | None = None) -> bytes:
        self._request("read")
        data = self._files.get(self._prefix + path)
        if not isinstance(data, bytes):
            raise FileNotFoundError(2, "no such file", path)
        return data

    def open(self, path: str) -> BinaryIO:
        return io.BytesIO(self.read(path))

    def put(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        self._request("put")
        if exclusive and self._prefix + path in self._files:
            raise FileExistsError(17, "already exists", path)
        self._files[self._prefix + path] = data

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        file = io.BytesIO()
        yield file
        self.put(path, file.getvalue())

    def list(self, prefix: str = "") -> Iterator[Entry]:
        inside = f"{self._prefix}{prefix}/" if prefix else self._prefix
        found = sorted(path for path in self._files if path.startswith(inside))
        # A request lists a thousand names.
        for _ in range(0, len(found) or 1, 1000):
            self._request("list")
        for path in found:
            data = self._files[path]
            yield self._describe(path.removeprefix(self._prefix), data)

    def stat(self, path: str) -> Entry:
        self._request("stat")
        if self._prefix + path not in self._files:
            raise FileNotFoundError(2, "no such file", path)
        return self._describe(path, self._files[self._prefix + path])

    def _describe(self, path: str, data: bytes | int) -> Entry:
        return Entry(path, data if isinstance(data, int) else len(data), str(hash(data)))

    def delete(self, path: str) -> None:
        self._request("delete")
        self._files.pop(self._prefix + path, None)

    def folder(self, path: str) -> "SlowStore":
        return SlowStore(
            self._latency, self._files, self._counts, f"{self._prefix}{path}/" if path else self._prefix
        )


class ManyImages(Items[Any]):
    """Images with names but without content."""

    def __init__(self, count: int) -> None:
        super().__init__("memory://source")
        self._keys = tuple(f"n{i // 1300:08d}/image_{i:08d}.JPEG" for i in range(count))

    def keys(self) -> tuple[str, ...]:
        return self._keys

    def load(self, key: str) -> Any:
        raise NotImplementedError

    def size(self, key: str) -> int:
        return 110_000

    def identify(self, key: str) -> str:
        return "0" * 16

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key.partition("/")[0] for key in self._keys))

    def label(self, key: str) -> int:
        return int(key[1:9])


def make_plan(store: Store, images: int) -> Plan:
    source = ManyImages(images)
    variants = IMAGENET_C.variants(IMAGENET_C.common, IMAGENET_C.levels, clean=True)
    content = SetContent(benchmark=IMAGENET_C, variants=variants, keys=source.keys(), source=source)
    writer = open_writer("webdataset", content, EncoderChoices())
    choices = Choices(dataset="scale", source_kind="demo", jobs=1)
    return assemble_plan(
        CorruptionRecipe("imagenet"), source, source.keys(), variants, writer, store, choices
    )


def put_everything(plan: Plan, state: SetLedger, files: dict[str, Any]) -> int:
    """Write the sizes of shards and the record of each unit, as workers would; return the number of units."""
    units = 0
    for unit in plan.cut():
        name = f"{unit.start // 1000:06d}.tar"
        written = [WrittenFile(variant.path(name), 21_000_000, "0" * 64) for variant in unit.variants]
        images = dict.fromkeys(unit.keys, (110000, "0" * 16))
        files |= {file.path: file.size for file in written}
        state.put_record(unit.name, Record(images, [v.folder for v in unit.variants], written))
        units += 1
    return units


def timed(what: Any) -> float:
    started = time.monotonic()
    what()
    return time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--images", type=int, default=1_300_000)
    parser.add_argument("--latency", type=float, default=0.03, help="seconds per request")
    options = parser.parse_args()
    files: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    fast, slow = (SlowStore(latency, files, counts) for latency in (0.0, options.latency))
    plan = make_plan(fast, options.images)
    settings, manifest = plan.settings(), plan.manifest()
    parameters = settings.pop("parameters")
    state = SetLedger(fast)
    manifest["source"]["digest"] = source_digest(dict.fromkeys(plan.keys, 110_000))
    state.agree(settings)
    state.add_plan(manifest, parameters)
    units = put_everything(plan, state, files)
    counts.clear()

    def finish() -> None:
        write_manifest(SetLedger(slow))

    finishing = timed(finish)
    of_finish = dict(counts)
    counts.clear()
    plan = make_plan(slow, options.images)
    # The first run writes the companions and finishes again.
    run_plan(plan)
    counts.clear()
    nothing = timed(lambda: run_plan(plan))
    # Each unit needs a claim, a record, and its shards.
    per_unit = 2 + 76
    figures = {
        "images": options.images,
        "units": units,
        "finish_seconds": round(finishing, 1),
        "finish_requests": of_finish,
        "nothing_to_do_seconds": round(nothing, 1),
        "nothing_to_do_requests": dict(counts),
        "requests_per_image": round(per_unit * units / options.images, 3),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
