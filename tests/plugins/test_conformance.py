"""The conformance tests find formats, sources and executors that break a requirement."""

import itertools
import shlex
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from robustgen.errors import ImageError
from robustgen.files import registry
from robustgen.plugins.conformance import check_executor, check_format, check_source, write_folder
from robustgen.sets.executors.base import Launcher, WorkersLostError, run_job
from robustgen.sets.executors.processes import Processes
from robustgen.sets.formats import FORMATS, Format
from robustgen.sets.formats.arrays import NPY, ArraySet, ArrayWriter
from robustgen.sets.formats.encoders import LosslessEncoder
from robustgen.sets.formats.trees import TreeSet, TreeWriter
from robustgen.sets.sources.folder import ImageFolder

# --- formats -------------------------------------------------------------------------------------


class Trial(LosslessEncoder):
    """A format like PNG."""

    def __init__(self):
        super().__init__(".png")

    def settings(self):
        return {"format": "trial"}


class OtherPixels(Trial):
    def encode(self, variant, key, pixels):
        return super().encode(variant, key, 255 - pixels)


class Inverted(OtherPixels):
    def as_read(self, variant, key, pixels):
        return 255 - pixels


class OtherNames(Trial):
    def encode(self, variant, key, pixels):
        return [file._replace(name=f"{file.name}.PNG") for file in super().encode(variant, key, pixels)]


class Numbered(Trial):
    """Adds a number to each file, which readers skip."""

    numbers = itertools.count()

    def encode(self, variant, key, pixels):
        files = super().encode(variant, key, pixels)
        return [file._replace(data=file.data + b"%d" % next(self.numbers)) for file in files]


class Credulous(TreeWriter):
    """Finds each file to be as it should be."""

    def find_output(self, root, variant, index, key, encoded):
        return variant.path(encoded.name), True


class OtherLabels(TreeSet):
    def labels(self, variant):
        return 1 - super().labels(variant)


class Careless(ArrayWriter):
    """Writes arrays whose failed images are zeros."""

    @contextmanager
    def open(self, root, unit, label):
        with super().open(root, unit, label) as writer:
            finish, writer.finish = writer.finish, lambda failed: finish(())
            yield writer


def trial(encoder=Trial, writer=TreeWriter, reader=None):
    return Format("Trial", {"c": lambda choices: encoder()}, writer, reader)


ARRAYS = Format("Trial", NPY.encoders, Careless, ArraySet)


def check_row(monkeypatch, row):
    monkeypatch.setitem(FORMATS._rows, "trial", row)
    monkeypatch.setattr(registry, "FORMAT_ROWS", {**registry.FORMAT_ROWS, "trial": "trial"})
    check_format("trial")


def test_a_format_that_meets_all_requirements_conforms(monkeypatch):
    check_row(monkeypatch, trial())


@pytest.mark.parametrize(
    ("row", "requirement"),
    [
        (trial(OtherPixels), "clean, 10/0.a.png: the pixels are not those of `Encoder.as_read`"),
        (trial(Inverted), "clean, 10/0.a.png: the pixels are not those of the image"),
        (trial(OtherNames), "names are ("),
        (trial(Numbered), "verify found [Finding(fault='differs'"),
        (trial(Numbered, Credulous), "files written by several workers have other bytes: "),
        (trial(reader=OtherLabels), "clean, 10/0.a.png: label is 0, not 1"),
        (ARRAYS, "written without a failed image: "),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_a_format_that_breaks_a_requirement_is_found(monkeypatch, row, requirement):
    with pytest.raises(AssertionError) as raised:
        check_row(monkeypatch, row)
    assert str(raised.value).startswith(f"format trial, kind c: {requirement}")


# --- sources -------------------------------------------------------------------------------------


class FloatSource(ImageFolder):
    def load(self, key):
        return super().load(key) / 255


class CachedSource(ImageFolder):
    _cache = None

    def load(self, key):
        self._cache = self._cache or {}
        return self._cache.setdefault(key, super().load(key))


class ReadOnlySource(ImageFolder):
    def load(self, key):
        image = super().load(key)
        image.flags.writeable = False
        return image


class OneImage(ImageFolder):
    def load(self, key):
        return super().load(self.keys()[0] if key in self.keys() else key)

    def read(self, key):
        return super().read(self.keys()[0])


class OneIdentity(ImageFolder):
    def read(self, key):
        return super().read(key)[0], "0" * 16


class NoIdentity(ImageFolder):
    def read(self, key):
        return super().read(key)[0], ""


class NewKeys(ImageFolder):
    openings = itertools.count()

    def __init__(self, *args):
        super().__init__(*args)
        self._number = next(self.openings)

    def keys(self):
        return tuple(f"{self._number}/{key}" for key in sorted(self.listing.places))

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if name not in ("load", "read", "size", "label", "dimensions"):
            return found
        return lambda key: found(key.partition("/")[2])


class Locked(ImageFolder):
    def __init__(self, *args):
        super().__init__(*args)
        self.lock = threading.Lock()


class OtherErrors(ImageFolder):
    def load(self, key):
        try:
            return super().load(key)
        except ImageError as error:
            return self.answer(key, error)


class Forgiving(OtherErrors):
    """Loads a black image in place of a damaged one."""

    def answer(self, key, error):
        if key not in self.keys():
            raise error
        return np.zeros((32, 32, 3), np.uint8)


class Nameless(OtherErrors):
    def answer(self, key, error):
        raise ImageError("damaged" if key in self.keys() else str(error)) from error


class Raw(OtherErrors):
    def answer(self, key, error):
        raise KeyError(key) from error


@pytest.mark.parametrize(
    ("broken", "requirement"),
    [
        (FloatSource, r"'10/0\.a\.png': loads float64 \(32, 32, 3\), not uint8"),
        (CachedSource, r"'10/0\.a\.png': `load` returns an earlier array again"),
        (ReadOnlySource, r"'10/0\.a\.png': is not contiguous and writeable"),
        (OneImage, r"'10/2\.a\.png': .*|5 keys load only 1 of 5 images"),
        (OneIdentity, r"one image has changed, but the identities of \[\]"),
        (NoIdentity, r"'10/0\.a\.png': the identity is ''"),
        (NewKeys, r"keys are .* when opened again, not "),
        (Locked, r"pickling the source raises TypeError"),
        (
            Forgiving,
            r"'10/0\.a\.png': loads other pixels, without an error, after 10/0\.a\.png was cut in half",
        ),
        (Nameless, r"'10/0\.a\.png': the error of a damaged image does not name it: damaged"),
        (Raw, r"`load` of an unknown key raises KeyError"),
    ],
)
def test_a_source_that_breaks_a_requirement_is_found(broken, requirement):
    with pytest.raises(AssertionError, match=f"^{requirement}"):
        check_source(write_folder, broken)


def test_images_of_another_size_are_found():
    with pytest.raises(AssertionError, match=r"loads uint8 \(32, 32, 3\), not uint8 \(32, 40, 3\)"):
        check_source(lambda folder, images: write_folder(folder, [i[:, :32] for i in images]), shape=(32, 40))


# --- executors -----------------------------------------------------------------------------------


class Threads:
    def map(self, jobs, reporter):
        with ThreadPoolExecutor(2) as pool:
            yield from pool.map(lambda job: run_job(job, reporter), jobs)


class Forgetful(Threads):
    def map(self, jobs, reporter):
        return itertools.islice(super().map(jobs, reporter), 19)


class Repeating(Threads):
    def map(self, jobs, reporter):
        for result in super().map(jobs, reporter):
            yield result
            yield result


class Silent(Threads):
    """Leaves out jobs that fail."""

    def map(self, jobs, reporter):
        for job in jobs:
            try:
                yield job.run(reporter)
            except Exception:
                continue


class Vague(Threads):
    def map(self, jobs, reporter):
        try:
            yield from super().map(jobs, reporter)
        except Exception as error:
            raise RuntimeError("a job failed") from error


class Fragile(Processes):
    def map(self, jobs, reporter):
        try:
            yield from super().map(jobs, reporter)
        except WorkersLostError as error:
            raise RuntimeError("the pool is broken") from error


def test_threads_conform():
    check_executor(Threads())


@pytest.mark.slow("kills workers")
@pytest.mark.parametrize(
    ("executor", "requirement"),
    [
        (Forgetful(), "20 jobs have the results"),
        (Repeating(), "20 jobs have the results"),
        (Silent(), r"a job raises ArgumentError\('the reason'\), and the executor yields \[2\]"),
        (Vague(), r"ArgumentError\('the reason'\) of a job becomes RuntimeError"),
        (Fragile(2), r"the executor whose worker died raises RuntimeError\('the pool is broken'\)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_executor_that_breaks_a_requirement_is_found(executor, requirement):
    with pytest.raises(AssertionError, match=f"^{requirement}"):
        check_executor(executor)


class Shell(Launcher):
    """Starts the shards one after the other, in a shell."""

    shards, wait = 3, True

    def compose_script(self, command, shards, folder):
        return "".join(f"{shlex.join(command)} --shard {shard}/{self.shards} --jobs 1\n" for shard in shards)

    def submit(self, script):
        return str(subprocess.run(["sh", script], check=True).returncode)


class All(Shell):
    """Starts all shards, also those that are finished."""

    def compose_script(self, command, shards, folder):
        return super().compose_script(command, range(1, self.shards + 1), folder)


class Impatient(Shell):
    wait = False


def test_a_launcher_conforms():
    check_executor(Shell())


@pytest.mark.parametrize(
    ("launcher", "requirement"),
    [
        (All(), "jobs were started for {.*shard 2 of 3.*not once for each"),
        (Impatient(), "the launcher must wait"),
    ],
)
def test_a_launcher_that_breaks_a_requirement_is_found(launcher, requirement):
    with pytest.raises(AssertionError, match=requirement):
        check_executor(launcher)
