import gc
import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import hypothesis
import pytest

from robustgen.files import registry, wings
from tests.browser import Browser
from tests.helpers import (
    CIFAR,
    FEW,
    cifar_folder,
    cli,
    install,
    make_c,
    need_cluster,
    put_many,
    put_photo,
)
from tests.servers import gather, s3, s3_server, web  # noqa: F401

PLUGIN = Path(__file__).parent / "plugin"
# The longest, waiting included: with the slow tests, and without them.
LONGEST = (
    *("docs_console", "guide", "install", "clusters", "planted", "completeness", "sharing", "remote_outputs"),
    *("clips", "compare", "evaluating", "formats", "jobs", "scoring"),
)

# A busy machine takes long for some examples.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

# A shell that starts the tests in the background has them ignore Ctrl-C, and so the runs that they interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Append the processor seconds of each test and its children to the file TEST_SECONDS, if it is set."""
    before = sum(os.times()[:4])
    result = yield
    if name := os.environ.get("TEST_SECONDS"):
        with Path(name).open("a") as file:
            file.write(f"{sum(os.times()[:4]) - before:.2f}\t{item.nodeid}\n")
    return result


def pytest_collection_modifyitems(items):
    """Call the tests slow that start a browser or a cluster, and begin with the longest files."""
    for item in items:
        for fixture, reason in {"browser": "starts Chromium", "dask": "starts a Dask cluster"}.items():
            if fixture in item.fixturenames:
                item.add_marker(pytest.mark.slow(reason))
    # One process runs all tests of a file, and the others would wait for it in the end.
    places = {f"test_{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


@pytest.fixture(scope="module", autouse=True)
def _without_garbage():
    """Free the sessions of ONNX Runtime first: a forked process would wait for ever for their threads."""
    gc.collect()
    # The thousands of tests and all modules stay, and would be looked through again for each file.
    gc.freeze()


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """A folder of five small photographs in two classes: three JPEG, one PNG, one of another size."""
    root = tmp_path_factory.mktemp("photos")
    put_photo(root / "cat" / "a.JPEG", seed=1)
    put_photo(root / "cat" / "b.jpg", seed=2)
    put_photo(root / "cat" / "c.png", seed=3)
    put_photo(root / "dog" / "a.JPEG", seed=4)
    put_photo(root / "dog" / "d.JPEG", height=50, width=33, seed=5)
    return root


@pytest.fixture
def source(photos, tmp_path):
    """A copy of `photos` that a test may change."""
    return Path(shutil.copytree(photos, tmp_path / "src"))


@pytest.fixture(scope="session")
def many(tmp_path_factory):
    """A folder of 24 photographs, enough for a run to be caught in the middle."""
    return put_many(tmp_path_factory.mktemp("many"))


@pytest.fixture(scope="session")
def cifar(tmp_path_factory):
    """A CIFAR-10 folder of 20 images, with its images and labels."""
    return cifar_folder(tmp_path_factory.mktemp("cifar"))


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The classifier of digits as an ONNX file."""
    from tests.digits import put_model

    return put_model(tmp_path_factory.mktemp("model") / "digits.onnx")


@pytest.fixture
def negatives(tmp_path, monkeypatch):
    """The plug-in in tests/plugin, installed for a test: a command, and a set without variants."""
    modules = {path.stem: path.read_text() for path in PLUGIN.glob("robustgen_negatives*.py")}
    entries = [("negatives", "robustgen_negatives:WING")]
    install(tmp_path / "site", "negatives", entries, modules, "robustgen.wings")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(wings, "WINGS", wings.Wings("wing", "robustgen.wings", wings.Wing, wings.OWN))
    registry.read_entry_points.cache_clear()
    yield
    registry.read_entry_points.cache_clear()


@pytest.fixture(scope="module")
def dask():
    """Start parts of a Dask cluster by their command-line arguments; all are ended afterwards."""
    need_cluster("distributed")
    started = []

    def run(*args):
        command = [sys.executable, "-m", "dask", *map(str, args)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(command, **quiet))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def browser(tmp_path):
    started = Browser(tmp_path / "home")
    yield started
    errors = started.errors()
    started.close()
    assert not errors


@pytest.fixture(scope="session")
def small_set(photos, tmp_path_factory):
    """Finished sets of `photos` by benchmark, format and flags: each is made once, and not to be changed."""
    usual = {"c": FEW, "p": ("--perturbations", "translate", "--limit", "2", "--jobs", "1")}

    @cache
    def find(kind, form="", *flags):
        root = tmp_path_factory.mktemp(kind) / "out"
        own = ("--format", form) if form else ()
        cli(f"make-{kind}", "--source", photos, "--output", root, *own, *(flags or usual[kind]))
        return root

    return find


@pytest.fixture(scope="session")
def output(small_set):
    """A finished output; not to be changed."""
    return small_set("c")


@pytest.fixture(scope="session")
def videos(small_set):
    """A finished output of two videos; not to be changed."""
    return small_set("p")


@pytest.fixture
def copied(output, tmp_path):
    """A finished output that a test may change."""
    return Path(shutil.copytree(output, tmp_path / "copied"))


@pytest.fixture(scope="module")
def cifar_output(cifar, tmp_path_factory):
    root = tmp_path_factory.mktemp("finished") / "cifar"
    make_c(cifar[0], root, *CIFAR)
    return root
