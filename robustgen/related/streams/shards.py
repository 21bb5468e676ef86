"""Runs of CCC as WebDatasets, in the layout of the published ones: ``<run>/serial_00000.tar`` and so on.

A sample has the members ``.info``, ``.input.jpg`` and ``.output.cls``. A shard is a work unit: the shard is
written first, then its record. Any number of runs can work on one output at once.
"""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from robustgen.display.progress import Meter
from robustgen.errors import MissingDependencyError, explain_failure
from robustgen.files.containers.archives import END, member_bytes
from robustgen.files.ledger import Record
from robustgen.files.set_files import WrittenFile
from robustgen.files.storage import host, measure
from robustgen.files.storage.host import keep_freed_memory
from robustgen.pixels.benchmarks.corruptions.ccc import FAMILY
from robustgen.pixels.imaging.decode import warn_of_few_greys
from robustgen.pixels.imaging.jpeg import encode_jpeg
from robustgen.related.streams.ccc import (
    IMAGES_PER_FILE,
    QUALITY,
    CccRun,
    format_info,
    make_image,
    name_sample,
)
from robustgen.sets.dataset.manifest import source_digest
from robustgen.sets.dataset.outputs import open_output
from robustgen.sets.dataset.run import clear
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.dataset.unit_jobs import Outcome
from robustgen.sets.executors import count_cores, submit_jobs
from robustgen.sets.executors.progress import Progress, Reporter
from robustgen.sets.formats.base import list_versions
from robustgen.sets.sources.base import Items, class_of


@dataclass(frozen=True)
class ShardJob:
    """One shard, with everything needed to write it: a job for an executor.

    Attributes
    ----------
    stream : CccRun
    source : Items
    keys : tuple of str
        Keys of the source's images, in the order of their numbers in the run.
    state : SetLedger
    number : int
        Number of the shard.
    """

    stream: CccRun
    source: Items[Any]
    keys: tuple[str, ...]
    state: SetLedger
    number: int

    @property
    def images(self) -> range:
        """Return the numbers of its images in the run."""
        return range(len(self.stream))[self.number * IMAGES_PER_FILE :][:IMAGES_PER_FILE]

    @property
    def name(self) -> str:
        """Return the name of the file."""
        return name_sample(self.images[0])[0]

    def run(self, reporter: Reporter) -> Outcome:
        """Write the shard and its record, unless another run has claimed it."""
        started = time.monotonic()
        if not self.state.claim(self.name):
            return Outcome(self.name, claimed=True)
        keep_freed_memory()
        record = self._write(reporter)
        self.state.put_record(self.name, record)
        made, size = len(self.images) - len(record.failures), record.files[0].size
        return Outcome(self.name, made, size, tuple(record.failures), time.monotonic() - started)

    def _write(self, reporter: Reporter) -> Record:
        failures = []
        with self.state.root.create(self.name) as file:
            for done, index in enumerate(self.images):
                reporter.tell(done)
                try:
                    members = self._make(index)
                except MissingDependencyError:
                    raise
                # A bad image does not stop the others, whatever its error.
                except Exception as error:
                    host.check()
                    key = self.keys[self.stream[index].image]
                    reason = explain_failure(error, key)
                    failures.append({"key": key, "sample": name_sample(index)[1], "reason": reason})
                    continue
                for name, content in members.items():
                    file.write(member_bytes(f"{name_sample(index)[1]}.{name}", content))
            file.write(END)
            written = WrittenFile(self.name, *measure(file))
        reporter.tell(0)
        return Record({}, [""], [written], failures)

    def _make(self, index: int) -> dict[str, bytes]:
        """Return the members of a sample."""
        step = self.stream[index]
        key = self.keys[step.image]
        pixels = make_image(step, self.source.read(key)[0])
        info = format_info(class_of(key), key.rpartition("/")[2], step.cell)
        return {
            "info": info.encode("utf-8", "surrogateescape"),
            "input.jpg": encode_jpeg(pixels, QUALITY, optimise=True),
            "output.cls": b"%d" % self.source.label(key),
        }


@dataclass(frozen=True)
class ShardsResult:
    """Result of a run.

    Attributes
    ----------
    location : str
        Path or URL of the folder.
    made, kept : int
        Number of images written by this run, and by other runs.
    size : int
        Bytes written.
    seconds : float
    failures : list of dict
        ``key``, ``sample`` and ``reason`` of the samples that this run omitted.
    """

    location: str
    made: int
    kept: int
    size: int
    seconds: float
    failures: list[dict[str, str]]


def write_shards(
    stream: CccRun,
    source: Items[Any],
    keys: Sequence[str],
    output: str,
    *,
    jobs: int | None = None,
    overwrite: bool = False,
) -> ShardsResult:
    """Write a run below `output`, or its missing shards.

    Parameters
    ----------
    stream : CccRun
    source : Items
    keys : sequence of str
        Keys of the source's images, in the order of their numbers in the run.
    output : path or URL
        Parent of the folder, which is named like the published run.
    jobs : int, optional
        Number of worker processes; default one per core.
    overwrite : bool
        Start over if the folder was created with other settings.

    Raises
    ------
    OutputError
        The output is invalid.
    WriteError
        The output can no longer be written; finished shards stay.
    """
    started, sizes = time.monotonic(), {key: source.size(key) for key in keys}
    with open_output(f"{output.rstrip('/')}/{stream.name}", source.location) as store:
        state = SetLedger(store, beside=True)
        manifest: dict[str, Any] = {"images": len(stream), "variants": [], "arrays": []}
        manifest |= {
            "dataset": stream.name,
            "title": "CCC",
            "licence": [FAMILY.licence],
            "citation": FAMILY.citation,
        }
        manifest["source"] = {"images": len(keys), "digest": source_digest(sizes)}
        walk = hashlib.sha256(repr(stream.cells).encode()).hexdigest()
        run = {"recipe": "CCC", "name": stream.name, "images": len(stream), "walk": walk, "quality": QUALITY}
        settings = {"output": run, "source": manifest["source"], "versions": list_versions()}
        settings |= {"levels": [*source.levels]} if source.levels else {}
        state.agree(settings, start_over=(lambda _: clear(state)) if overwrite else None)
        state.add_plan(manifest, {})
        shards = [
            ShardJob(stream, source, tuple(keys), state, number)
            for number in range(-(-len(stream) // IMAGES_PER_FILE))
        ]
        pending = {shard.name: shard for shard in shards if not _is_done(shard)}
        if pending:
            # An image that cannot be read, whatever its error, is a failure of its samples.
            with suppress(Exception):
                warn_of_few_greys(source.read(keys[0])[0])
        done = _write_shards(pending, state, jobs or count_cores())
        state.mark_finished(state.fingerprints())
        state.store.clean()
    made = sum(outcome.made for outcome in done)
    failures = [failure for outcome in done for failure in outcome.failures]
    seconds, size = time.monotonic() - started, sum(outcome.size for outcome in done)
    kept = len(stream) - made - len(failures)
    return ShardsResult(store.location, made, kept, size, seconds, failures)


def _is_done(shard: ShardJob) -> bool:
    record = shard.state.read_record(shard.name)
    if not record or not record.files:
        return False
    sizes = shard.state.root.sizes([shard.name])
    return [*sizes] == [record.files[0].size]


def _write_shards(pending: Mapping[str, ShardJob], state: SetLedger, workers: int) -> list[Outcome]:
    """Have the `pending` shards written by this run or others; return the outcomes of this run."""
    done = list[Outcome]()
    total = sum(len(shard.images) for shard in pending.values())
    with Meter(total, "images") as meter, Progress(meter) as progress:

        def write(names: Sequence[str]) -> Iterator[str]:
            jobs = {name: pending[name] for name in names}
            for outcome in submit_jobs(jobs, lambda outcome: outcome.name, workers, progress):
                if not outcome.claimed:
                    done.append(outcome)
                    yield outcome.name

        for name in state.share(pending, write, lambda name: _is_done(pending[name]), at_once=workers):
            progress.finish(len(pending[name].images))
    return done
