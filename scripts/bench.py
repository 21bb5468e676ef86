#!/usr/bin/env python3
"""Measures the speed of robustgen, and compares it with that of the codecs it uses.

    python scripts/bench.py [--only NAME] [--quick] [--folder DIR] [--json FILE]
    python scripts/bench.py --tables FILE
    python scripts/bench.py --compare BEFORE AFTER

Prints a table of all corruptions with the times of the published functions, and
the ratios of make-c to its JPEG codec, of training shards to theirs, of files to
plain ones, of make-p to x264, of two workers to one, and of photographs to images
of 224 pixels; also the time of CIFAR per image, and peak memory. Most figures are
measured twice: on the machine as it is, and beside a neighbour, a process that
copies an array of 1 GB all the time. Each ratio is taken in one run, because
machines are shared; the times of the published functions are from another day.
All files are written below DIR, because file systems differ in speed by a factor
of ten. `--tables` prints the tables of docs/background/performance.md from the figures that
an earlier run wrote with `--json`; `--compare` prints
the figures of two such files with their ratios. `bench_scale.py` measures the cost of a run
without its workers.
"""

import argparse
import json
import os
import pickle
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import robustgen
from robustgen.files.storage import open_store
from robustgen.files.storage.host import collect_garbage_rarely, keep_freed_memory
from robustgen.lab.evaluation import evaluating
from robustgen.lab.inspection.verify import verify
from robustgen.lab.models.base import Images, Model
from robustgen.lab.models.preprocessing import Preprocessing
from robustgen.pixels.benchmarks.kinds import IMAGENET_C, Kind
from robustgen.pixels.imaging import video
from robustgen.pixels.imaging.geometry import resize
from robustgen.sets.dataset.plan import Plan
from robustgen.sets.dataset.planning import plan_benchmark
from robustgen.sets.dataset.run import run_plan
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.dataset.unit_jobs import UnitJob, write_unit
from robustgen.sets.executors.progress import NOBODY
from robustgen.sets.formats.videos import Mp4Encoder
from robustgen.sets.sources.folder import Photographs
from robustgen.settings.config import Config
from robustgen.settings.loading import load
from robustgen.settings.models import ModelInput, OnTheFly

# Milliseconds for the five severities together at 224 x 224, by the published functions.
PUBLISHED = {
    "gaussian_noise": 19, "shot_noise": 45, "impulse_noise": 14, "defocus_blur": 16, "glass_blur": 3106,
    "motion_blur": 319, "zoom_blur": 355, "snow": 186, "frost": 12, "fog": 15.5, "brightness": 93,
    "contrast": 7, "elastic_transform": 143, "pixelate": 2, "jpeg_compression": 1, "speckle_noise": 14,
    "gaussian_blur": 12, "spatter": 18, "saturate": 86,
}  # fmt: skip


def photographs(folder: Path, count: int) -> Path:
    """Write `count` JPEG files of 500 x 375 pixels, the usual size in ImageNet, cut from real photographs."""
    source, rng = Photographs(), np.random.default_rng(0)
    images = list(map(source.load, source.keys()))
    target = folder / "photographs" / "class"
    target.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        image = images[i % len(images)]
        height = min(image.shape[0], int(rng.integers(280, 420)))
        width = min(image.shape[1], height * 4 // 3)
        top = rng.integers(0, image.shape[0] - height + 1)
        left = rng.integers(0, image.shape[1] - width + 1)
        cut = resize(np.ascontiguousarray(image[top : top + height, left : left + width]), 500, 375)
        Image.fromarray(cut).save(target / f"{i:04d}.JPEG", quality=92)
    return target.parent


def cifar(folder: Path, count: int) -> Path:
    """Write a CIFAR-10 test batch of `count` patches of photographs."""
    source, rng = Photographs(), np.random.default_rng(0)
    images = list(map(source.load, source.keys()))
    rows = []
    for i in range(count):
        image = images[i % len(images)]
        top, left = rng.integers(0, image.shape[0] - 128), rng.integers(0, image.shape[1] - 128)
        cut = np.ascontiguousarray(image[top : top + 128, left : left + 128])
        rows.append(resize(cut, 32, 32).transpose(2, 0, 1).reshape(-1))
    target = folder / "cifar-10-batches-py"
    target.mkdir(parents=True)
    batch = {b"data": np.stack(rows), b"labels": [i % 10 for i in range(count)]}
    (target / "test_batch").write_bytes(pickle.dumps(batch, protocol=2))
    return target


def planned(kind: Kind, **choices: object) -> Plan:
    return plan_benchmark(load(Config, None, choices), kind)


def timed(plan: Plan) -> float:
    return run_plan(plan).seconds


def per_corruption(only: str | None) -> dict[str, list[float]]:
    """Return the milliseconds of each severity: the least of several, which noise cannot lower."""
    image = robustgen.prepare(Photographs().load("chelsea/chelsea.png"))
    keep_freed_memory()
    times = {}
    for name in [only] if only else robustgen.CORRUPTIONS:
        times[name] = [_least(partial(robustgen.corrupt, image, name, level, rng=0)) for level in range(1, 6)]
    return times


def _least(call: Callable[[], object], repeats: int = 7) -> float:
    """Return milliseconds of processor time, which depends less on other programs than wall time."""
    call()
    took = []
    for _ in range(repeats):
        started = time.process_time()
        call()
        took.append(time.process_time() - started)
    return 1000 * min(took)


def codec_share(plan: Plan) -> tuple[float, float]:
    """Return the time (`_clocks`) to decode and prepare each source image once and to encode all outputs."""
    outputs = [
        [
            np.asarray(Image.open(Path(plan.store.location, variant.path(str(plan.writer.output_name(key))))))
            for variant in plan.variants
        ]
        for key in plan.keys
    ]

    def code() -> None:
        for key, images in zip(plan.keys, outputs, strict=True):
            robustgen.prepare(plan.source.load(key))
            for pixels in images:
                Image.fromarray(pixels).save(BytesIO(), "JPEG", quality=85, optimize=True)

    return _clocks(code)


def make_c(folder: Path, count: int) -> dict[str, float]:
    """Measure make-c with one worker and its codec alternately; return the least of five of each."""
    plan, shares, wholes = _make_c_plan(folder, count, "warm", limit=2), [], []
    timed(plan)
    for i in range(5):
        plan = _make_c_plan(folder, count, f"c{i}")
        wholes.append(_clocks(partial(run_plan, plan))[1])
        shares.append(codec_share(plan)[1])
    return {
        "codec_ms_per_image": 1000 * min(shares) / count,
        "make_c_ms_per_image": 1000 * min(wholes) / count,
        "ratio_to_codec_processor": min(wholes) / min(shares),
    }


def _make_c_plan(folder: Path, count: int, name: str, **choices: object) -> Plan:
    return planned(
        "c",
        **{"edition": "imagenet", "jobs": 1, "clean": False} | choices,
        source=str(photographs(folder, count)),
        output=str(folder / name),
    )


def two_workers(folder: Path, count: int) -> dict[str, float]:
    """Return the speed of two workers relative to one, and the cost of runs with nothing to do."""
    timed(_make_c_plan(folder, count, "warm2", jobs=2, limit=2))
    one, two = [], []
    for i in range(3):
        plan = _make_c_plan(folder, count, f"one{i}")
        one.append(timed(plan))
        two.append(timed(_make_c_plan(folder, count, f"two{i}", jobs=2)))
    return {"two_workers_to_one": min(one) / min(two)} | nothing_to_do(plan)


def nothing_to_do(plan: Plan) -> dict[str, float]:
    """Return the processor time per file of a run on a finished output, and of `verify`."""
    files = len(plan.keys) * len(plan.variants)

    def microseconds(call: Callable[[], object]) -> float:
        started = time.process_time()
        call()
        return 1e6 * (time.process_time() - started) / files

    return {
        "nothing_to_do_us_per_file": min(microseconds(lambda: run_plan(plan)) for _ in range(3)),
        "verify_us_per_file": min(microseconds(lambda: verify(plan.store.location)) for _ in range(3)),
    }


FILE = bytes(range(250)) * 40


def tree_of_files(folder: Path, count: int = 20) -> dict[str, float]:
    """Return the time to put files of 10 kB into a store, with digests, relative to plain files."""
    plain, ours = folder / "plain", folder / "ours"
    seconds = np.zeros((count, 3, 2))
    for i in range(count):
        paths = [f"fog/{level}/{i * 4 + k}" for level in range(75) for k in range(4)]
        for path in paths:
            (plain / path).parent.mkdir(parents=True, exist_ok=True)
            (ours / path).parent.mkdir(parents=True, exist_ok=True)
        seconds[i, 0] = _clocks(partial(write_plain, plain, paths))
        seconds[i, 1] = _clocks(partial(write_ours, ours, paths))
        seconds[i, 2] = _clocks(partial(digest_files, len(paths)))
    wall, processor = np.median(seconds[:, 1] / seconds[:, 0], axis=0)
    digested = np.median(seconds[:, 1, 1] / (seconds[:, 0, 1] + seconds[:, 2, 1]))
    return {
        "files_to_plain": float(wall),
        "files_to_plain_processor": float(processor),
        "files_to_plain_and_digest_processor": float(digested),
    }


def write_plain(folder: Path, paths: list[str]) -> None:
    for path in paths:
        with open(f"{folder}/{path}", "wb") as file:  # noqa: PTH123
            file.write(FILE)


def write_ours(folder: Path, paths: list[str]) -> None:
    store = open_store(folder)
    for path in paths:
        store.put(path, FILE)
        sha256(FILE).hexdigest()


def digest_files(count: int) -> None:
    for _ in range(count):
        sha256(FILE).hexdigest()


def _clocks(call: Callable[[], object]) -> tuple[float, float]:
    """Return the wall time and the processor time of `call` in seconds."""
    clock, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - clock, time.process_time() - processor


def large_photographs(milliseconds: dict[str, list[float]]) -> dict[str, Any]:
    """Return milliseconds per megapixel of 2000 x 1500 pixels, all severities, and the ratio to 224."""
    image = resize(Photographs().load("chelsea/chelsea.png"), 2000, 1500)
    per_pixel, ratios = 0.0, dict[str, float]()
    for name in IMAGENET_C.common:
        large = sum(
            _least(partial(robustgen.corrupt, image, name, level, edition="folder", rng=0), 1)
            for level in range(1, 6)
        )
        per_pixel += large / 3.0
        ratios[name] = large / 3.0 / (sum(milliseconds[name]) / 0.050176)
    small = sum(sum(milliseconds[name]) for name in ratios) / 0.050176
    return {
        "photographs_ms_per_megapixel": per_pixel,
        "photographs_to_224": per_pixel / small,
        "ratios_to_224": ratios,
    }


# The files of `photographs` are in one folder.
CLASSES = 1


class FreeModel(Model):
    """A model that takes no time."""

    name, label, dtype, shape = "free", "free", np.dtype(np.float32), (None, 3, None, None)

    def settings(self) -> dict[str, str]:
        return {"file": "free", "sha256": ""}

    def versions(self) -> dict[str, str]:
        return {}

    def run(self, images: Images, preprocessing: Preprocessing) -> np.ndarray:
        return np.zeros((len(images), CLASSES), np.float32)


def evaluate(folder: Path, count: int) -> dict[str, float]:
    """Return the time of `evaluate` with a free model relative to `make-c` for the same images."""
    source = photographs(folder / "e", count)
    choices = {"edition": "imagenet", "source": str(source), "jobs": 1, "clean": False}
    wholes, evaluated = [], []
    for i in range(5):
        plan = planned("c", **choices, output=str(folder / f"ec{i}"))
        wholes.append(_clocks(partial(run_plan, plan))[1])
        source_choices = load(Config, None, choices)
        place = str(folder / f"ev{i}")
        run_models = partial(
            evaluating.evaluate, source_choices, "c", [FreeModel()], place, OnTheFly(), ModelInput()
        )
        evaluated.append(_clocks(run_models)[1])
    return {"evaluate_to_make_c": min(evaluated) / min(wholes)}


def make_cifar(folder: Path, count: int) -> dict[str, float]:
    """Return the milliseconds for the 75 outputs of one image, the least of five."""
    choices = {"edition": "cifar-10", "source": str(cifar(folder, count)), "jobs": 1, "clean": False}
    timed(planned("c", **choices, output=str(folder / "cw"), limit=8))
    seconds = []
    for i in range(5):
        plan = planned("c", **choices, output=str(folder / f"cc{i}"))
        seconds.append(_clocks(partial(run_plan, plan))[1])
        # Fresh pages of memory take a machine four times as long as reused ones.
        shutil.rmtree(plan.store.location)
    return {"cifar_ms_per_image": 1000 * min(seconds) / count}


def whole_cifar(folder: Path, count: int) -> dict[str, float]:
    """Return processor time and memory of a separate process for `count` images of CIFAR-10."""
    flags = ["--dataset", "cifar-10", "--source", str(cifar(folder, count)), "--no-clean", "--jobs", "1"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = run_measured(["make-c", *flags, "--output", f"{folder}/cp"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cifar_processor_seconds_whole_set": spent * 10_000 / count, "cifar_peak_memory_mb": peak}


def make_p(folder: Path) -> dict[str, Any]:
    """Return the time of `make-p` for one photograph relative to x264 alone for the same frames."""
    source = photographs(folder / "p", 1)
    plan = planned("p", edition="imagenet", source=str(source), jobs=1, output=str(folder / "pp"))
    (key,), encoder = plan.keys, plan.writer.encoder
    assert isinstance(encoder, Mp4Encoder)
    image, totals, ratios = plan.recipe.prepare(plan.source.load(key)), np.zeros(2), {}
    for variant in plan.variants:
        frames = plan.recipe.make(variant, key, image)
        encoding = encoder.noise_encoding if variant.name in encoder.noises else encoder.encoding
        alone = _least(partial(video.encode, frames, encoding), 2)
        (unit,) = plan.writer.cut(plan.keys, (variant,))
        state = SetLedger(plan.store)
        job = UnitJob(plan.recipe, plan.source, plan.writer, state, unit, (plan.source.size(key),))
        whole = _least(partial(write_unit, job, NOBODY), 2)
        totals += whole, alone
        ratios[variant.name] = whole / alone
    return {"ratio_to_x264": float(totals[0] / totals[1]), "ratios_to_x264": ratios}


FORMATS = ("jpeg", "webdataset", "parquet")


def formats(folder: Path, count: int) -> dict[str, float]:
    """Return the milliseconds for the 75 outputs of an image in each format, on disk and in memory."""
    source, figures = photographs(folder / "f", count), {}
    places = {"disk": folder, "memory": Path("/dev/shm")}
    for place, parent in places.items():
        if not parent.is_dir():
            continue
        least = dict.fromkeys(FORMATS, float("inf"))
        for _ in range(3):
            for name in FORMATS:
                with tempfile.TemporaryDirectory(dir=parent) as output:
                    choices = {"edition": "imagenet", "source": str(source), "jobs": 1, "clean": False}
                    plan = planned("c", **choices, format=name, output=f"{output}/set")
                    least[name] = min(least[name], timed(plan))
        for name, seconds in least.items():
            figures[f"{name}_ms_per_image_in_{place}"] = 1000 * seconds / count
    return figures


def training_shards(folder: Path, count: int) -> dict[str, float]:
    """Return the speed of writing shards of 256 pixels, and the ratio to decoding and encoding alone.

    Measured with two cheap and two expensive corruptions at one severity: processor time, the least of five.
    """
    source = Photographs()
    images = [resize(source.load(key), 256, 256) for key in source.keys()]  # noqa: SIM118
    target = folder / "training" / "class"
    target.mkdir(parents=True)
    for i in range(count):
        # Each image is different, as in a real set.
        turned = np.ascontiguousarray(np.roll(images[i % len(images)], i, axis=1))
        Image.fromarray(turned).save(target / f"{i:05d}.jpg", quality=92)
    choices = {"edition": "folder", "source": str(target.parent), "jobs": 1, "clean": False}
    choices |= {"severities": [3], "format": "webdataset", "shard_size": count // 4}
    figures = {}
    for name, pair in (("cheap", ["gaussian_noise", "contrast"]), ("dear", ["defocus_blur", "motion_blur"])):
        output = folder / f"shards_{name}"
        plan = planned("c", **choices, corruptions=pair, output=str(output))
        decoded = [plan.source.load(key) for key in plan.keys]
        made = [robustgen.corrupt(image, c, 3, edition="folder", rng=0) for image in decoded for c in pair]

        def code(plan: Plan = plan, made: list[np.ndarray] = made) -> None:
            for key in plan.keys:
                plan.source.load(key)
            for pixels in made:
                Image.fromarray(pixels).save(BytesIO(), "JPEG", quality=85, optimize=True)

        def write(plan: Plan = plan, output: Path = output) -> None:
            shutil.rmtree(output, ignore_errors=True)
            run_plan(plan)

        write()
        whole, codec = np.min([(_clocks(write)[1], _clocks(code)[1]) for _ in range(5)], axis=0)
        figures[f"training_images_a_second_{name}"] = float(count / whole)
        figures[f"training_to_codec_{name}"] = float(whole / codec)
    return figures


# ru_maxrss of a child includes the memory of its parent at the start; VmHWM does not.
MEASURED = """
import atexit, re
from robustgen.cli import main
status = lambda: open("/proc/self/status").read()
atexit.register(lambda: print("peak", re.search(r"VmHWM:\\s+(\\d+)", status())[1]))
main()
"""


def run_measured(arguments: list[str]) -> float:
    """Run a command; return its peak resident memory in megabytes, including shared libraries."""
    command = [sys.executable, "-c", MEASURED, *arguments]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(said.split()[-1]) / 1000


def peak_memory() -> dict[str, float]:
    """Return the peak memory of make-c with one worker."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ["make-c", "--dataset", "demo", "--jobs", "1", "--output", f"{folder}/m"]
        return {"peak_memory_mb": run_measured(flags)}


def start_up() -> dict[str, float]:
    # An installed package has its bytecode.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def seconds(*arguments: str) -> float:
        command = [sys.executable, "-m", "robustgen", *arguments]
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, env=environment)
        return time.perf_counter() - started

    with tempfile.TemporaryDirectory() as folder:
        one = ["make-c", "--dataset", "demo", "--limit", "1", "--jobs", "1", "--output"]
        return {
            "help_seconds": min(seconds("--help") for _ in range(3)),
            "one_image_seconds": min(seconds(*one, f"{folder}/{i}") for i in range(3)),
        }


def print_corruptions(milliseconds: dict[str, list[float]]) -> None:
    print(f"{'ms at severity':20s}      1      2      3      4      5 |    sum  published")
    for name, row in milliseconds.items():
        published = PUBLISHED.get(name, float("nan"))
        print(f"{name:20s}", " ".join(f"{t:6.2f}" for t in row), f"| {sum(row):6.1f} {published:10.1f}")


def print_figures(figures: dict[str, Any]) -> None:
    for name, value in figures.items():
        if name == "busy":
            print("beside a neighbour:")
            print_corruptions(value["milliseconds"])
            print_figures(value)
        if isinstance(value, float):
            print(f"{name:36s} {value:8.2f}")
        elif isinstance(value, dict) and name.startswith("ratios"):
            print(f"{name}:", ", ".join(f"{n} {ratio:.2f}" for n, ratio in value.items()))


def print_tables(figures: dict[str, Any]) -> None:
    """Print the tables of docs/background/performance.md."""
    busy = figures["busy"]
    print("| corruption | 1 | 2 | 3 | 4 | 5 | sum | beside a neighbour | published |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, row in figures["milliseconds"].items():
        sums = [f"{sum(each['milliseconds'][name]):.1f}" for each in (figures, busy)]
        print("|", " | ".join([name, *(f"{t:.2f}" for t in row), *sums, f"{PUBLISHED[name]:g}"]), "|")
    print("\n| measurement | alone | beside a neighbour |\n|---|---|---|")
    for name, (words, unit) in WORDS.items():
        cells = [
            f"{each[name]:.{0 if each[name] >= 100 else 2}f} {unit}".rstrip() if name in each else ""
            for each in (figures, busy)
        ]
        if any(cells):
            print("|", " | ".join([words, *cells]), "|")


# Names and units of the figures in docs/background/performance.md.
WORDS = {
    "fifteen_ms": ("the 15 common corruptions at 224 x 224, all severities", "ms"),
    "make_c_ms_per_image": ("`make-c`, 15 x 5 outputs of one 500 x 375 photograph, one worker", "ms"),
    "codec_ms_per_image": ("of this, decoding, preparing and encoding", "ms"),
    "ratio_to_codec_processor": ("`make-c` relative to decoding, preparing and encoding", ""),
    "two_workers_to_one": ("speed of two workers relative to one", ""),
    "files_to_plain_processor": ("files of a tree relative to plain ones", ""),
    "files_to_plain_and_digest_processor": ("files of a tree relative to plain ones and their SHA-256", ""),
    "jpeg_ms_per_image_in_memory": ("`--format jpeg` in memory, wall time", "ms"),
    "webdataset_ms_per_image_in_memory": ("`--format webdataset` in memory, wall time", "ms"),
    "parquet_ms_per_image_in_memory": ("`--format parquet` in memory, wall time", "ms"),
    "training_images_a_second_cheap": (
        "shards of images of 256, two cheap corruptions at one severity",
        "/s",
    ),
    "training_to_codec_cheap": ("the same to decoding and encoding alone", ""),
    "training_images_a_second_dear": ("images of 256 to shards, two blurs", "/s"),
    "training_to_codec_dear": ("the same to decoding and encoding alone", ""),
    "cifar_ms_per_image": ("CIFAR-10-C, 75 outputs of one image, one worker", "ms"),
    "cifar_processor_seconds_whole_set": ("CIFAR-10-C, all 10 000", "s of processor time"),
    "cifar_peak_memory_mb": ("peak memory of that process", "MB"),
    "ratio_to_x264": ("`make-p` relative to x264 alone, all ten", ""),
    "evaluate_to_make_c": ("`evaluate` relative to `make-c`, with a model that takes no time", ""),
    "photographs_ms_per_megapixel": ("the 15 common corruptions for 2000 x 1500 pixels, per megapixel", "ms"),
    "photographs_to_224": ("the same relative to 224 x 224, per pixel", ""),
    "nothing_to_do_us_per_file": ("a run on a finished output, per file", "us"),
    "verify_us_per_file": ("`verify`, per file", "us"),
    "peak_memory_mb": ("peak memory of `make-c --jobs 1`", "MB"),
    "help_seconds": ("`robustgen --help`", "s"),
    "one_image_seconds": ("a run for one image", "s"),
}


# Copies 1 GB from one array to another all the time.
NEIGHBOUR = """
import numpy
source, target = numpy.ones(1 << 27), numpy.empty(1 << 27)
print(flush=True)
while True:
    target[:] = source
"""


@contextmanager
def neighbour() -> Iterator[None]:
    """Keep another core and the shared memory bus busy."""
    with subprocess.Popen([sys.executable, "-c", NEIGHBOUR], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            process.stdout.readline()
            yield
        finally:
            process.kill()


def measure_speed(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Measure the figures that other programs can change: processor time, the least of several."""
    figures: dict[str, Any] = {"milliseconds": per_corruption(None)}
    figures["fifteen_ms"] = sum(sum(figures["milliseconds"][name]) for name in IMAGENET_C.common)
    figures |= make_c(folder, 8 if quick else 40) | tree_of_files(folder / "tree")
    figures |= evaluate(folder, 20)
    figures |= make_cifar(folder / "cifar", 100 if quick else 1000)
    figures |= training_shards(folder / "shards", 50 if quick else 300)
    return figures | make_p(folder) | large_photographs(figures["milliseconds"])


def measure_all(folder: Path, *, quick: bool) -> dict[str, Any]:
    figures = measure_speed(folder / "alone", quick=quick)
    print_corruptions(figures["milliseconds"])
    with neighbour():
        figures["busy"] = measure_speed(folder / "busy", quick=quick)
    figures |= two_workers(folder, 8 if quick else 40)
    figures |= whole_cifar(folder / "cifar", 1000 if quick else 10_000)
    return figures | formats(folder, 4 if quick else 20) | peak_memory() | start_up()


def flatten(figures: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of nested figures, with their path."""
    if isinstance(figures, dict | list):
        for key, each in figures.items() if isinstance(figures, dict) else enumerate(figures):
            yield from flatten(each, f"{name}/{key}".lstrip("/"))
    elif isinstance(figures, int | float):
        yield name, figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", metavar="NAME", choices=robustgen.CORRUPTIONS, help="measure only this corruption"
    )
    parser.add_argument("--quick", action="store_true", help="fewer images")
    parser.add_argument(
        "--folder", type=Path, help="folder to write to; default the folder for temporary files"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument(
        "--tables", type=Path, metavar="FILE", help="print the tables of an earlier --json FILE"
    )
    parser.add_argument(
        "--compare", nargs=2, type=Path, metavar="FILE", help="print the figures of two --json files"
    )
    arguments = parser.parse_args()
    if arguments.compare:
        before, after = (dict(flatten(json.loads(path.read_text()))) for path in arguments.compare)
        for name in sorted(before.keys() & after.keys()):
            ratio = after[name] / before[name] if before[name] else float("nan")
            print(f"{name:<60} {before[name]:>12.6g} {after[name]:>12.6g} {ratio:>7.3f}")
        return
    # Commands and workers do the same.
    collect_garbage_rarely()
    if arguments.tables:
        print_tables(json.loads(arguments.tables.read_text()))
        return
    figures: dict[str, Any] = {
        "release": robustgen.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        if arguments.only:
            figures |= {"milliseconds": per_corruption(arguments.only)}
            print_corruptions(figures["milliseconds"])
        else:
            figures |= measure_all(folder, quick=arguments.quick)
    print_figures(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
