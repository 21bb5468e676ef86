"""Conformance tests of families, formats, sources and executors: those of robustgen, and those of plug-ins.

    from robustgen.plugins.conformance import check_format

    def test_bmp():
        check_format("bmp")

Each function raises an AssertionError that names the first requirement that is not met.
"""

import os
import pickle
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from robustgen.errors import ArgumentError, ImageError, SourceError
from robustgen.files.set_files import STATE
from robustgen.files.storage import Store, open_store
from robustgen.files.storage.local import TemporaryFolder
from robustgen.lab.inspection.verify import verify
from robustgen.pixels.benchmarks.kinds import Kind
from robustgen.pixels.benchmarks.registry import Family
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import as_grey, as_rgb
from robustgen.pixels.imaging.frames import as_pixels, take_first
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.dataset.plan import Plan
from robustgen.sets.dataset.planning import plan_benchmark
from robustgen.sets.dataset.run import run_plan
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.executors import Executor, Job, Launcher, parse_executor, submit_jobs
from robustgen.sets.executors.progress import NOBODY, Progress, Reporter
from robustgen.sets.formats import FORMATS, list_encodings, parse_format
from robustgen.sets.formats.encoders import encode_lossless
from robustgen.sets.sources.base import Source
from robustgen.sets.sources.opening import open_source
from robustgen.settings.config import Config
from robustgen.settings.running import Running

WriteSource = Callable[[Path, Sequence[Rgb]], str | Path]
"""Function that writes images as a source into a folder, and returns the location of the source."""

# Largest mean difference between an image and the same image after lossy compression.
_LOSS: Final = 32
_JOBS: Final = 20
# Frames of a clip.
_FRAMES: Final = 3


def write_folder(folder: Path, images: Sequence[Rgb]) -> Path:
    """Write `images` as PNG files into two class folders, and return `folder`."""
    for number, image in enumerate(images):
        name = f"{('10', '2')[number % 2]}/{number}.a.png"
        open_store(folder).put(name, encode_lossless(image, ".png"))
    return folder


def draw_images(count: int, shape: tuple[int, int] = (32, 32), *, grey: bool = False) -> list[Rgb]:
    """Return smooth images of random colours, uint8 (H, W, 3); if `grey`, with equal channels."""
    y, x, _ = np.ogrid[0 : 1 : shape[0] * 1j, 0 : 1 : shape[1] * 1j, 0:1]
    corners = np.random.default_rng(0).uniform(0, 255, (count, 4, 1 if grey else 3))
    images = [(a * y + b * (1 - y)) * x + (c * y + d * (1 - y)) * (1 - x) for a, b, c, d in corners]
    return [np.array(np.broadcast_to(image, (*shape, 3)), np.uint8) for image in images]


def _require(condition: object, requirement: str) -> None:
    if not condition:
        raise AssertionError(requirement)


@contextmanager
def _forbid_errors(what: str) -> Iterator[None]:
    """Turn an exception into an AssertionError that says `what` raised it."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{what} raises {error!r}") from error


def _read_files(store: Store) -> dict[str, bytes]:
    paths = (entry.path for entry in store.list())
    return {path: store.read(path) for path in paths if not path.startswith(f"{STATE}/")}


def _differ(one: Any, other: Any) -> float:
    """Return the mean difference of two images; infinity if their shapes differ."""
    same = one.shape == other.shape
    return float(np.abs(np.subtract(one, other, dtype=np.int64)).mean()) if same else float("inf")


# --- families ------------------------------------------------------------------------------------


def check_family(family: Family) -> None:
    """Check the corruptions of a family: the same image and stream must always give the same result.

    Corruptions that need an ingredient without installed files, or clips, are not checked.
    """
    (image,) = draw_images(1, (224, 224))
    for each in family.corruptions.values():
        if each.over_time == "whole" or (each.needs and each.needs.default != "installed"):
            continue
        for scale, severity in product(each.table, each.levels):
            with _forbid_errors(each.name):
                one, other = (
                    each.apply(
                        as_grey(image) if each.grey else image,
                        each.parameters(severity, scale),
                        np.random.default_rng(1) if each.random else None,
                    )
                    for _ in range(2)
                )
            _require(np.array_equal(one, other), f"{each.name} must draw from rng alone")


# --- formats -------------------------------------------------------------------------------------


def check_format(name: str, write: WriteSource = write_folder, source_kind: str = "auto") -> None:
    """Check a format, for corruptions and for perturbations if it supports both.

    A set must be read back with the pixels, names and labels that were written; become complete again after
    files were lost; have the same bytes for any number of workers; omit failed images; and pass `verify`.

    Parameters
    ----------
    name : str
        A value of ``--format``.
    write : callable
        Writes the source of the set; the default writes a folder of PNG files.
    source_kind : str
        `source_kind` of this source.
    """
    form, encoding = parse_format(name)
    for content in FORMATS[form].encoders:
        if encoding and encoding not in list_encodings(content):
            continue
        folder = TemporaryFolder()
        place, images = folder.path / "source", draw_images(6)
        kind: Kind = "p" if content == "p" else "c"
        put, source = {"clip": (_write_clips, "clips")}.get(content, (write, source_kind))
        _FormatCheck(name, kind, put(place, images), source, folder.path).check()


def _write_clips(folder: Path, images: Sequence[Rgb]) -> Path:
    """Write each of the `images` as a clip of a few frames, a folder of PNG files, and return `folder`."""
    for number, image in enumerate(images):
        for frame in range(_FRAMES):
            data = encode_lossless(np.roll(image, frame, axis=1), ".png")
            open_store(folder).put(f"{'ab'[number % 2]}/{number}/{frame}.png", data)
    return folder


@dataclass(frozen=True)
class _FormatCheck:
    """Check of a format for sets of one benchmark."""

    name: str
    kind: Kind
    source: str | Path
    source_kind: str
    folder: Path

    def check(self) -> None:
        plan, shared, failing = self._plan("one", 1), self._plan("shared", 2), self._plan("failing", 1)
        failures = run_plan(plan).failures
        self._require(not failures, f"images failed: {failures}")
        self._check_content(plan, plan.keys)
        problems = verify(plan.store.location, deep="all").problems
        self._require(not problems, f"verify found {problems}")
        files = _read_files(plan.store)
        for shard in (2, 1):
            run_plan(shared, Running(shard=f"{shard}/2"))
        self._compare(_read_files(shared.store), files, "written by several workers")
        records = (record for _, record in SetLedger(plan.store).read_records() if record)
        for file in [file for record in records for file in record.files][::2]:
            plan.store.delete(file.path)
        run_plan(plan)
        self._compare(_read_files(plan.store), files, "written again after files were lost")
        self._check_failure(failing, failing.keys[1])

    def _plan(self, output: str, jobs: int) -> Plan:
        choices = {
            "source": str(self.source),
            "source_kind": self.source_kind,
            "output": str(self.folder / output),
            "format": self.name,
            "jobs": jobs,
            "shard_size": 4,
            "corruptions": "contrast,gaussian_noise",
            "severities": "1,4",
            "perturbations": "brightness,gaussian_noise",
        }
        return plan_benchmark(Config.model_validate(choices), self.kind)

    def _check_content(self, plan: Plan, keys: Sequence[str]) -> None:
        """Require that the set contains the images `keys`, and no others."""
        dataset = open_set(plan.store)
        self._require({*dataset} == {*plan.variants}, f"the variants are {[*dataset]}")
        named = {str(plan.writer.output_name(key) or key): key for key in keys}
        # The keys of sequences lack the suffix.
        names = {name.removesuffix(".mp4") if self.kind == "p" else name: key for name, key in named.items()}
        for variant in plan.variants:
            images, labels = dataset[variant], dataset.labels(variant)
            found = images.keys()
            self._require(sorted(found) == sorted(names), f"names are {found}, not {[*names]}")
            for index, name in enumerate(found):
                key, where = names[name], f"{variant.folder}, {name}: "
                if labels is not None and any(plan.source.classes):
                    label = plan.source.label(key)
                    self._require(labels[index] == label, f"{where}label is {labels[index]}, not {label}")
                made = plan.recipe.make(variant, key, plan.recipe.prepare(plan.source.open(key)))
                # The frames of a clip can be read once.
                made, _ = take_first(made, _FRAMES)
                kept = plan.writer.encoder.as_read(variant, key, made)
                same = np.array_equal(images.load(name), kept)
                self._require(same, f"{where}the pixels are not those of `Encoder.as_read`")
                self._require(
                    _differ(as_pixels(made), kept) < _LOSS, f"{where}the pixels are not those of the image"
                )

    def _check_failure(self, plan: Plan, failing: str) -> None:
        """Require that a set lacks the image `failing`, which cannot be read, and no others."""
        read = plan.source.read

        def fail(key: str) -> tuple[Any, str]:
            if key == failing:
                raise ImageError("damaged", key)
            return read(key)

        with patch.object(plan.source, "read", fail):
            result = run_plan(plan)
        keys = {failure["key"] for failure in result.failures}
        self._require(keys == {failing}, f"{failing} failed, but the failures are {keys}")
        if plan.writer.file_per == "operation":
            written = {*plan.writer.arrays} & _read_files(plan.store).keys()
            self._require(not written and result.incomplete, f"written without a failed image: {written}")
        else:
            self._check_content(plan, [key for key in plan.keys if key != failing])

    def _compare(self, files: Mapping[str, bytes], expected: Mapping[str, bytes], what: str) -> None:
        others = [path for path in {**files, **expected} if files.get(path) != expected.get(path)]
        self._require(not others, f"files {what} have other bytes: {', '.join(others[:3])}")

    def _require(self, condition: object, requirement: str) -> None:
        _require(condition, f"format {self.name}, kind {self.kind}: {requirement}")


# --- sources -------------------------------------------------------------------------------------


def check_source(
    write: WriteSource,
    open_location: Callable[[str | Path], Source] = open_source,
    *,
    shape: tuple[int, int] = (32, 32),
    grey: bool = False,
    lossless: bool = True,
) -> None:
    """Check a source.

    Its keys must be unique and stable. Loading must return a new, writeable array each time, also from
    a pickled source. The identity of an image must change with its content. Damaged images and unknown keys
    must raise errors that name them.

    Parameters
    ----------
    write : callable
        Writes such a source.
    open_location : callable
        Opens the source at a location; the default recognises its `source_kind`.
    shape : (int, int)
        Height and width of the images.
    grey : bool
        Whether the images are grey, because the source has no colours.
    lossless : bool
        Whether the source stores pixels unchanged.
    """
    folder, loss = TemporaryFolder(), 0 if lossless else _LOSS
    *images, another = draw_images(6, shape, grey=grey)
    source = open_location(write(folder.path / "a", images))
    keys = source.keys()
    _require([*keys] == sorted({*keys}), f"keys are not unique and sorted: {keys}")
    _require(len(keys) == len(images), f"{len(images)} images have {len(keys)} keys: {keys}")
    with _forbid_errors("pickling the source"):
        copy = pickle.loads(pickle.dumps(source))
    for each in (source, copy, open_location(source.location)):
        _require(each.keys() == keys, f"keys are {each.keys()} when opened again, not {keys}")
        found = set()
        for key in keys:
            _check_image(each, key, shape)
            image = each.load(key)
            nearest = min(range(len(images)), key=lambda number: _differ(images[number], image))
            _require(_differ(images[nearest], image) <= loss, f"{key!r}: loads pixels that were not written")
            found.add(nearest)
        _require(len(found) == len(keys), f"{len(keys)} keys load only {len(found)} of {len(images)} images")
    images[2] = another
    changed = open_location(write(folder.path / "b", images))
    _require(changed.keys() == keys, f"keys depend on the pixels: {changed.keys()}, not {keys}")
    others = [key for key in keys if changed.read(key)[1] != source.read(key)[1]]
    _require(len(others) == 1, f"one image has changed, but the identities of {others}")
    for action in ("load", "size", "label"):
        with _forbid_errors(f"`{action}` of an unknown key"):
            try:
                result = getattr(source, action)("no/such.png")
            except ImageError as error:
                _require("no/such.png" in str(error), f"`{action}`: the error does not name the key: {error}")
            else:
                raise AssertionError(f"`{action}` of an unknown key returns {result!r}")
    location, store = write(folder.path / "c", images), open_store(folder.path / "c")
    known, noticed = {key: changed.load(key) for key in keys}, False
    for path, data in _read_files(store).items():
        store.put(path, data[: len(data) // 2])
        with _forbid_errors(f"a source whose file {path} was cut in half"):
            noticed |= _notices_damage(lambda: open_location(location), known, path)
        store.put(path, data)
    _require(noticed, "files were cut in half, and the source loads all images without an error")


def _check_image(source: Source, key: str, shape: tuple[int, int]) -> None:
    """Check what a source returns for one image of this `shape`."""
    image = source.load(key)
    fits = image.dtype == np.uint8 and image.shape == (*shape, 3)
    _require(fits, f"{key!r}: loads {image.dtype} {image.shape}, not uint8 {(*shape, 3)}")
    _require(image.flags.c_contiguous and image.flags.writeable, f"{key!r}: is not contiguous and writeable")
    before = image.copy()
    image[:] = 255 - image
    _require(np.array_equal(source.load(key), before), f"{key!r}: `load` returns an earlier array again")
    pixels, identity = source.read(key)
    _require(np.array_equal(as_rgb(pixels), before), f"{key!r}: `read` returns other pixels than `load`")
    _require(re.fullmatch("[0-9a-f]{16}", identity), f"{key!r}: the identity is {identity!r}")
    _require(source.size(key) > 0, f"{key!r}: the size is {source.size(key)} bytes")
    width, height = source.dimensions(key)
    _require((height, width) == shape, f"{key!r}: the dimensions are {width} x {height}")
    label, count = source.label(key), len(source.classes)
    _require(0 <= label < count, f"{key!r}: the label {label} is not one of {count} classes")


def _notices_damage(open_again: Callable[[], Source], known: Mapping[str, Rgb], path: str) -> bool:
    """Return whether a source of the images `known` notices that the file at `path` was cut in half."""
    try:
        source = open_again()
        keys = source.keys()
    except SourceError:
        return True
    noticed = bool(source.refused()) or keys != tuple(known)
    for key in keys:
        try:
            image = source.load(key)
        except ImageError as error:
            _require(key in str(error), f"{key!r}: the error of a damaged image does not name it: {error}")
            noticed = True
        else:
            same = key not in known or np.array_equal(image, known[key])
            _require(same, f"{key!r}: loads other pixels, without an error, after {path} was cut in half")
    return noticed


# --- executors -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Double:
    """Job that doubles its number."""

    number: int

    def run(self, reporter: Reporter) -> int:
        reporter.tell(1)
        return 2 * self.number


@dataclass(frozen=True)
class _Raise:
    """Job that fails."""

    error: Exception

    def run(self, reporter: Reporter) -> int:
        raise self.error


@dataclass(frozen=True)
class _Die(_Double):
    """Job that kills its worker once, unless the worker is the process that checks."""

    store: Store
    checker: int

    def run(self, reporter: Reporter) -> int:
        if self.number == _JOBS // 2 and os.getpid() != self.checker and not self.store.exists("died"):
            self.store.put("died", b"")
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(reporter)


def check_executor(executor: Executor | Launcher | str) -> None:
    """Check an executor, or a launcher of shards.

    An executor must yield the result of each job once, in any order; raise the error of a job; be usable
    again; and yield all results although a worker died. A launcher must start the given shards once each.

    Parameters
    ----------
    executor : Executor, Launcher or str
        An executor, or a value of ``--on``. Workers must see the temporary folder of this process.
    """
    executor = parse_executor(executor) if isinstance(executor, str) else executor
    if isinstance(executor, Launcher):
        _check_launcher(executor)
        return
    expected = [2 * number for number in range(_JOBS)]
    for count in (0, _JOBS, _JOBS):
        results = sorted(executor.map([_Double(number) for number in range(count)], NOBODY))
        _require(results == expected[:count], f"{count} jobs have the results {results}")
    for error in (ArgumentError("the reason"), ZeroDivisionError("the reason")):
        failing: list[Job[int]] = [_Double(1), _Raise(error)]
        try:
            results = [*executor.map(failing, NOBODY)]
        except Exception as raised:
            same = isinstance(raised, ArgumentError) or not isinstance(error, ArgumentError)
            _require(same and "the reason" in str(raised), f"{error!r} of a job becomes {raised!r}")
        else:
            raise AssertionError(f"a job raises {error!r}, and the executor yields {results}")
    folder = TemporaryFolder()
    store = open_store(folder.path)
    jobs = {2 * number: _Die(number, store, os.getpid()) for number in range(_JOBS)}
    with Progress() as progress, _forbid_errors("the executor whose worker died"):
        results = sorted(submit_jobs(jobs, lambda result: result, 2, progress, executor))
    _require(results == expected, f"a worker died, and the results are {results}")


# Appends a letter to a file that is named after the shard.
_NOTE: Final = """
import sys
folder, *flags = sys.argv[1:]
shard = flags[flags.index("--shard") + 1]
int(flags[flags.index("--jobs") + 1])
with open(f"{folder}/shard {shard.replace('/', ' of ')}", "a") as file:
    file.write("x")
"""


def _check_launcher(launcher: Launcher) -> None:
    last = launcher.shards
    _require(launcher.wait and last > 1, "the launcher must wait for its shards, and have more than one")
    folder = TemporaryFolder()
    store, command = open_store(folder.path), [sys.executable, "-c", _NOTE, str(folder.path)]
    store.put("script.sh", launcher.compose_script(command, [1, last], str(folder.path)).encode())
    _require(launcher.submit(f"{folder.path}/script.sh"), "the job has no number")
    started = {path: data for path, data in _read_files(store).items() if path.startswith("shard ")}
    expected = dict.fromkeys((f"shard 1 of {last}", f"shard {last} of {last}"), b"x")
    _require(started == expected, f"jobs were started for {started}, not once for each of {[*expected]}")
