"""What several test modules share: images, source folders, and the command line in this process."""

import contextlib
import io
import json
import os
import pickle
import re
import shutil
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image, ImageOps

from robustgen.cli import main
from robustgen.files.storage import open_store

# Seconds until a process counts as stuck, with whatever else the machine does.
PATIENCE = 600
# Without a draw these give the same result for each seed.
FIXED_CORRUPTIONS = {
    *("defocus_blur", "zoom_blur", "gaussian_blur", "brightness", "contrast", "pixelate", "jpeg_compression"),
    "saturate",
}
# A small run, and what it makes.
FEW = ("--corruptions", "contrast,gaussian_noise", "--severities", "1,4", "--jobs", "1")
# The smallest run; and one of three kinds of loop: with random draws, without, and another.
ONE = ("--corruptions", "contrast", "--severities", "1", "--jobs", "1")
THREE = ("--corruptions", "gaussian_noise,contrast,fog", "--severities", "1,4", "--jobs", "1")
FEW_VARIANTS = ("clean", "contrast/1", "contrast/4", "gaussian_noise/1", "gaussian_noise/4")
CIFAR = ("--dataset", "cifar-10", "--corruptions", "contrast,gaussian_noise", "--jobs", "1")
_BEGINNING = re.compile(
    r"\d+ images?(, \d+ class(es)?| of \d+ of the \d+ classes of the source)?, \d+ outputs? of each|"
    r"compiling loops, once|input of .*"
)
_PROGRESS = re.compile(r"\d+ of \d+ (images|sequences|batches)(, .*)?")
RANDOM_PERTURBATIONS = {"gaussian_noise", "shot_noise", "speckle_noise", "snow", "spatter"}


def slow_after(quick, reason, values):
    """The cases `values`, all but the first `quick` of them slow for this reason."""
    return [*values[:quick], *(pytest.param(each, marks=pytest.mark.slow(reason)) for each in values[quick:])]


def photo(height, width, seed=0):
    """A colourful image with smooth areas, edges and texture, uint8 (height, width, 3)."""
    rng = np.random.default_rng(seed)
    y, x, _ = np.ogrid[:height, :width, :3]
    waves = np.sin(x / rng.uniform(3, 12, 3) + rng.uniform(0, 6, 3)) * np.cos(y / rng.uniform(3, 12, 3))
    edge = np.where(x + y > (height + width) / 2, 30, -30)
    grain = rng.normal(0, 12, (height, width, 3))
    return np.clip(125 + 80 * waves + edge + grain, 0, 255).astype(np.uint8)


def put_photo(path, height=36, width=40, seed=0):
    """A JPEG file of a `photo`; the file's own bytes do not matter to any test."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(photo(height, width, seed)).save(path)
    return path


def encode_tagged(pixels, form, orientation=0, profile=b"", exif=None):
    """An image file with an EXIF orientation, unless it is 0, a colour profile, or other EXIF data."""
    own, buffer = Image.Exif(), io.BytesIO()
    own[0x0112] = orientation
    exif = {"exif": own if exif is None else exif} if orientation or exif else {}
    options = {"quality": 95} if form == "JPEG" else {"lossless": True} if form == "WEBP" else {}
    Image.fromarray(pixels).save(buffer, form, icc_profile=profile or None, **exif, **options)
    return buffer.getvalue()


def put_tagged(path, orientation, height=40, width=48, **options):
    """A photograph in the format of its suffix, with an EXIF orientation."""
    path.parent.mkdir(parents=True, exist_ok=True)
    form = Image.registered_extensions()[path.suffix.lower()]
    path.write_bytes(encode_tagged(photo(height, width, orientation), form, orientation, **options))
    return path


def read_upright(file):
    """The pixels as a reader shows them that applies the tag."""
    with Image.open(file) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))


def put_many(root, height=36, width=40):
    """24 photographs in three classes below `root`: enough for a run to be caught in the middle."""
    for i in range(24):
        put_photo(root / f"class{i % 3}" / f"{i}.JPEG", height, width, seed=i)
    return root


def cifar_folder(root, images=20, seed=0):
    """A cifar-10-batches-py with that many test images; returns the folder, the images, their labels."""
    rng = np.random.default_rng(5)
    pictures = np.stack([photo(32, 32, seed + i) for i in range(images)])
    labels = [int(label) for label in rng.integers(0, 10, images)]
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    planes = np.ascontiguousarray(pictures.transpose(0, 3, 1, 2).reshape(images, 3072))
    (folder / "test_batch").write_bytes(pickle.dumps({b"data": planes, b"labels": labels}, protocol=2))
    names = {b"label_names": [b"class%d" % i for i in range(10)]}
    (folder / "batches.meta").write_bytes(pickle.dumps(names, protocol=2))
    return folder, pictures, labels


def cli(*args, status=0):
    """Run the command line in this process and hold it to `status`; a traceback is never right."""
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise AssertionError(f"traceback from {args}") from result.exception
    assert result.exit_code == status, result.output
    return result


def words(text):
    """The words of a command line without quotes."""
    return tuple(text.split())


def cli_error(*args):
    """The one line on stderr of a command that is wrong, without its "Error: "."""
    result = cli(*args, status=2)
    assert result.stdout == ""
    (line,) = without_beginning(result.stderr)
    assert line.startswith("Error: ")
    return line.removeprefix("Error: ")


def without_beginning(text):
    """The lines on stderr of a command, without those that a run begins with, and those of its progress."""
    known = (_BEGINNING, _PROGRESS)
    return [line for line in text.splitlines() if not any(each.fullmatch(line) for each in known)]


def spawn(*args, **environment):
    """Start the command line in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from robustgen.cli import main; main()", *map(str, args)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    give_way(process)
    return process


def install(site, package, entries, modules, group="robustgen.corruptions"):
    """Lay out what pip would: modules, and a dist-info with the entry points."""
    info = site / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in entries]
    (info / "entry_points.txt").write_text(f"[{group}]\n" + "\n".join(lines) + "\n")
    for name, text in modules.items():
        (site / f"{name}.py").write_text(text)


def run_negatives(source, output, *flags, status=0):
    """Run the command of the plug-in in tests/plugin, whose sets have class folders at the root."""
    return cli("make-negatives", "--source", source, "--output", output, "--jobs", 1, *flags, status=status)


def run_with(site, *args, status=0):
    """Run the command line in a process that finds the packages in `site`."""
    done = subprocess.run(
        [sys.executable, "-m", "robustgen", *map(str, args)],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def give_way(process):
    """Let the tests go before the run that they watch, so that they catch it midway on a busy machine too."""
    with contextlib.suppress(ProcessLookupError):
        os.setpriority(os.PRIO_PROCESS, process.pid, 10)


DESCRIPTIONS = ("dataset.json", "croissant.json", "README.md", "MANIFEST.SHA256")


def whole(root):
    """Relative path to bytes of all files below `root`, dataset.json too, but for the run's own state."""
    paths = (path for path in Path(root).rglob("*") if path.is_file())
    names = {path.relative_to(root).as_posix(): path for path in paths}
    return {name: path.read_bytes() for name, path in names.items() if not name.startswith(".robustgen/")}


def tree(root):
    """The files of `whole` but for those that describe the set as a whole."""
    return {name: data for name, data in whole(root).items() if not name.startswith(DESCRIPTIONS)}


def latest(*flags):
    """The flags, each once: a later value replaces one of the same key, but for those that repeat."""
    repeated = ("--set", "--with", "--model", "--preprocessing", "--style")
    found, words = {}, [*map(str, flags)]
    for place, each in enumerate(words):
        if each.startswith("--"):
            value = [word for word in words[place + 1 : place + 2] if not word.startswith("--")]
            key = value[0].partition("=")[0] if each == "--set" and value else ""
            found[f"--set {key}" if key else place if each in repeated else each] = (each, *value)
    return [word for pair in found.values() for word in pair]


def maker(*usual, command="make-c"):
    """A function that runs `command` from a source into an output with these flags, and others instead."""

    def make(source, output, *flags, status=0):
        return cli(command, "--source", source, "--output", output, *latest(*usual, *flags), status=status)

    return make


make_c, make_p = maker(), maker(command="make-p")


def kept(result):
    """The number of outputs, or shards, of a run that found all of them there already; else 0."""
    found = re.match(r"nothing to do: all (\d+) ", result.stdout)
    return int(found[1]) if found else 0


def litter(root):
    """The temporary files below `root`, of which a finished output holds none."""
    return [*(Path(root) / ".robustgen").glob("tmp/**/*"), *Path(root).rglob("*.tmp")]


def manifest(root):
    """The content of dataset.json."""
    return json.loads((Path(root) / "dataset.json").read_text())


def findings(root, *flags, status=1):
    """The lines of `verify` that name a fault of the set; a set that lacks only failed images has none."""
    *lines, _ = cli("verify", root, *flags, status=status).stdout.splitlines()
    return [" ".join(line.split()) for line in lines if not line.startswith("complete but for")]


def published(output, target):
    """A copy of `output` without the run's own state, as one would publish it."""
    return Path(shutil.copytree(output, target, ignore=shutil.ignore_patterns(".robustgen")))


def uploaded(folder, url):
    """Copy a local folder to a URL."""
    store, local = open_store(url), open_store(folder)
    for entry in local.list():
        store.put(entry.path, local.read(entry.path))
    return url


def pictures(root):
    """The names in `tree` that are images."""
    return {name for name in tree(root) if name.lower().endswith((".jpeg", ".jpg", ".png"))}


def errors_of(output):
    """The entries of errors.jsonl."""
    return [json.loads(line) for line in (output / "errors.jsonl").read_text().splitlines()]


def records_of(output, state=".robustgen"):
    """Name to content of the records in the state of an output."""
    folder = Path(output) / state / "records"
    paths = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.json")}
    return {name: json.loads(path.read_bytes().split(b"\n")[1]) for name, path in sorted(paths.items())}


def claim_elsewhere(output, name):
    """Claim the unit `name` as a run on another machine does."""
    path = Path(output) / ".robustgen" / "claims" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("1 elsewhere")
    return path


def pixels_of(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def need_cluster(library):
    """Skip the test without a library for clusters, which CI must have."""
    if not find_spec(library):
        if os.environ.get("CI"):
            pytest.fail(f"CI must test the cluster: pip install {library}")
        pytest.skip(f"pip install {library}")


def free_port():
    """A TCP port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(holds, process=None):
    """Wait until `holds()` is true, while `process` runs; return what it returns."""
    deadline = time.monotonic() + PATIENCE
    while not (found := holds()):
        if time.monotonic() > deadline or (process and process.poll() is not None):
            raise AssertionError(f"it never came to that: {process and process.communicate()}")
        time.sleep(0.01)
    return found


def until_under_way(process, output, files=60):
    """Wait until a run has written some files."""
    wait_until(lambda: sum(1 for _ in output.glob("*/*/*/*.*")) >= files, process)


def until_open(port):
    """Wait until somebody listens at `port`."""

    def is_open():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True

    wait_until(is_open)
