"""An install with only what one needs: files that other packages carry, libraries that are extras."""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import robustgen
from robustgen.errors import MissingDependencyError
from robustgen.pixels.benchmarks.corruptions import CORRUPTIONS
from robustgen.pixels.imaging import kernels, third_party
from robustgen.pixels.imaging.third_party import EVERYTHING, FROST_FILES
from tests.helpers import FEW, cli, cli_error, put_photo, without_beginning


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """An environment and a user that hold no fetched files, and where no package carries them."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    monkeypatch.setattr("site.getuserbase", lambda: str(tmp_path / "user"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    return tmp_path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel with the photographs, and nothing else."""
    path = tmp_path_factory.mktemp("wheels") / "imagecorruptions-1.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in FROST_FILES.digests:
            archive.write(FROST_FILES.find() / name, f"imagecorruptions/frost/{name}")
    return path


@pytest.mark.slow("runs pip")
def test_photographs_are_fetched_from_a_wheel_and_found(elsewhere, wheel):
    with pytest.raises(MissingDependencyError, match="robustgen fetch frost"):
        FROST_FILES.find()
    result = cli("fetch", "--wheel", wheel)
    folder = elsewhere / "environment" / "share" / "robustgen" / "frost"
    assert result.stdout == f"frost: {folder}\n"
    assert FROST_FILES.find() == folder
    assert sorted(path.name for path in folder.iterdir()) == sorted(FROST_FILES.digests)


def test_where_the_environment_cannot_be_written_the_user_has_the_files(elsewhere, wheel):
    (elsewhere / "environment").write_text("in the way")
    assert (
        FROST_FILES.fetch(str(wheel))
        == elsewhere / "user" / "share" / "robustgen" / "frost"
        == FROST_FILES.find()
    )
    (elsewhere / "user" / "share").rename(elsewhere / "share")
    (elsewhere / "user" / "share").write_text("in the way")
    with pytest.raises(MissingDependencyError, match=r"frost cannot be stored: .*/user/share"):
        FROST_FILES.fetch(str(wheel))


def test_another_wheel_is_refused(elsewhere, tmp_path):
    other = tmp_path / "other.whl"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("imagecorruptions/frost/frost1.png", b"")
    assert f"{other}: not a wheel of imagecorruptions 1.1.2" in cli_error("fetch", "--wheel", other)
    with zipfile.ZipFile(other, "a") as archive:
        for name in [*FROST_FILES.digests][1:]:
            archive.writestr(f"imagecorruptions/frost/{name}", b"")
    assert "frost1.png is not the published file" in cli_error("fetch", "--wheel", other)
    assert not (elsewhere / "environment").exists()


@pytest.fixture
def installers(elsewhere, monkeypatch, wheel):
    """Programs that download: their command lines, and why each fails; None if it does not."""
    asked, fails = [], {"pip": None, "uv": None}

    def run(command, **_):
        asked.append(list(map(str, command)))
        if reason := fails["uv" if "--target" in command else "pip"]:
            return subprocess.CompletedProcess(command, 1, "", f"WARNING: retrying\n  {reason}\n")
        folder = Path(asked[-1][-2])
        if "--target" in command:
            zipfile.ZipFile(wheel).extractall(folder)
        else:
            shutil.copy(wheel, folder)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(third_party.subprocess, "run", run)
    monkeypatch.delenv("UV", raising=False)
    return asked, fails


def have(monkeypatch, *programs, module=False):
    """Let the programs be found on PATH, and pip in the environment if `module`."""
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}" if name in programs else None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: True if name == "pip" and module else None)


def test_pip_of_the_environment_is_asked_first(installers, monkeypatch):
    have(monkeypatch, "pip", "uv", module=True)
    assert FROST_FILES.fetch() == FROST_FILES.find()
    (command,) = installers[0]
    assert command[:3] == [sys.executable, "-m", "pip"] and command[-1] == "imagecorruptions==1.1.2"


@pytest.mark.parametrize("program", ["uv", "pip", "pip3"])
def test_without_pip_in_the_environment_other_programs_are_asked(installers, monkeypatch, program):
    have(monkeypatch, program)
    assert FROST_FILES.fetch() == FROST_FILES.find()
    assert [command[0] for command in installers[0]] == [f"/bin/{program}"]


def test_uv_is_found_where_it_says_that_it_is(installers, monkeypatch):
    have(monkeypatch)
    monkeypatch.setenv("UV", "/opt/uv")
    FROST_FILES.fetch()
    assert installers[0][0][0] == "/opt/uv"


def test_all_programs_that_fail_are_named(installers, monkeypatch):
    asked, fails = installers
    have(monkeypatch, "uv", module=True)
    fails["pip"] = "ERROR: no such index"
    FROST_FILES.fetch()
    assert len(asked) == 2
    fails["uv"] = "no route"
    message = cli_error("fetch", "frost")
    assert "pip: ERROR: no such index; uv: no route" in message
    assert "--wheel" in message and "uvx --with pip" in message
    have(monkeypatch)
    assert "neither pip nor uv" in cli_error("fetch", "frost")


def test_files_outlive_an_environment_in_a_cache(elsewhere, wheel, monkeypatch):
    (elsewhere / "cache").mkdir()
    (elsewhere / "cache" / "CACHEDIR.TAG").touch()
    monkeypatch.setattr(sys, "prefix", str(elsewhere / "cache" / "environments" / "a"))
    assert FROST_FILES.fetch(str(wheel)) == elsewhere / "user" / "share" / "robustgen" / "frost"


def test_a_bare_installation_names_all_that_it_lacks_at_once(elsewhere):
    with pytest.raises(MissingDependencyError) as caught:
        FROST_FILES.find()
    assert "robustgen fetch frost" in str(caught.value) and "robustgen[opencv,video]" in str(caught.value)


def test_only_known_files_are_fetched():
    assert "'frost'" in cli_error("fetch", "forst")
    assert "name either frost or ink" in cli_error("fetch", "frost", "ink", "--wheel", "a.whl")


@pytest.mark.parametrize("files", EVERYTHING.values(), ids=lambda files: files.name)
def test_the_digests_are_those_of_the_files_that_the_tests_use(files):
    for name, digest in files.digests.items():
        assert hashlib.sha256((files.find() / name).read_bytes()).hexdigest() == digest


def without(library, *args):
    """Run the command line where `library` cannot be imported."""
    code = f"import sys; sys.modules[{library!r}] = None; from robustgen.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("library", "command", "remedy"),
    [
        ("av", "make-p", "pip install 'robustgen[video]'"),
        ("cv2", "make-c", "pip install 'robustgen[opencv]'"),
    ],
)
def test_a_command_without_its_extra_names_it(tmp_path, library, command, remedy):
    put_photo(tmp_path / "photos" / "cat" / "a.JPEG")
    done = without(library, command, "--source", tmp_path / "photos", "--output", tmp_path / "out")
    assert done.returncode == 2 and remedy in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.slow("processes without a library")
def test_images_need_no_video_library(tmp_path):
    put_photo(tmp_path / "photos" / "cat" / "a.JPEG")
    flags = ("--source", tmp_path / "photos", "--output", tmp_path / "out", *FEW)
    done = without("av", "make-c", *flags)
    assert done.returncode == 0, done.stderr


def test_a_file_is_previewed_without_the_photographs_of_the_demo(tmp_path):
    photo = put_photo(tmp_path / "photo.jpg")
    few = ("--corruptions", "contrast", "--severities", "1", "--output", tmp_path / "sheet.png")
    done = without("skimage", "preview", photo, *few)
    assert done.returncode == 0 and (tmp_path / "sheet.png").exists(), done.stderr


@pytest.mark.parametrize(
    ("prefix", "way"), [("NUMBA_DISABLE_JIT=1", "unset"), ("ulimit -v 500000;", "ulimit -v unlimited")]
)
def test_what_keeps_loops_from_being_compiled_is_named(tmp_path, prefix, way):
    put_photo(tmp_path / "in" / "a" / "x.png")
    flags = "--corruptions fog --severities 1 --jobs 1"
    command = f"{prefix} {sys.executable} -m robustgen make-c --source in --output out {flags}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    (line,) = without_beginning(done.stderr)
    assert done.returncode == 2 and line.startswith("Error: ") and way in line


@pytest.mark.parametrize(
    "code",
    [
        "from robustgen.cli import main; main(['list'])",
        "from robustgen.cli import main; main(['make-c', '--source', '.', '--output', 'out'])",
        "import robustgen\ntry: robustgen.corrupt\nexcept ImportError as e: raise SystemExit(f'Error: {e}')",
    ],
    ids=["list", "make-c", "corrupt"],
)
def test_a_package_inside_a_zip_archive_is_refused_in_one_line(tmp_path, code):
    package = Path(robustgen.__file__).parent
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        for path in package.rglob("*.py"):
            archive.write(path, path.relative_to(package.parent))
    code = f"import sys; sys.path.insert(0, 'app.pyz')\n{code}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    (line,) = done.stderr.splitlines()
    assert done.returncode and line.startswith("Error: ") and "shiv" in line


COUNTING = """
import sys
import numpy as np
from numba.core import event
import robustgen

compiled = []


class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event)

    def on_end(self, event):
        pass


event.register("numba:compile", Listener())
image = np.random.default_rng(0).integers(0, 256, (224, 224, 3), np.uint8)
for name in sys.argv[1:]:
    for severity in range(1, 6):
        made = robustgen.corrupt(image, name, severity, rng=0)
    print(int(made.astype("int64").sum()))
print(len(compiled), robustgen.__file__)
"""
COMMON = [*CORRUPTIONS][:15]
OLD = {
    "NUMBA_CPU_NAME": "nehalem",
    "NUMBA_CPU_FEATURES": "+cx16,+popcnt,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3",
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A new environment with a wheel with compiled loops: its interpreter, and the folder of the loops."""
    root = tmp_path_factory.mktemp("compiled")
    script = Path(__file__).parents[1] / "scripts" / "build_wheel.py"
    subprocess.run([sys.executable, script, root / "dist"], check=True)
    (wheel,) = (root / "dist").glob("*.whl")
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert wheel.name.endswith(f"-{version}-{version}-manylinux_2_17_{platform.machine()}.whl")
    pinned = (root / "dist" / f"constraints-{version}.txt").read_text()
    assert pinned == f"numba=={metadata.version('numba')}\nllvmlite=={metadata.version('llvmlite')}\n"
    venv.create(root / "environment", symlinks=True)
    (packages,) = (root / "environment").glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(str(Path(np.__file__).parent.parent))
    install = ("install", "--quiet", "--no-deps", "--target", packages, wheel)
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    (root / "environment" / "share" / "robustgen").mkdir(parents=True)
    (root / "environment" / "share" / "robustgen" / "frost").symlink_to(FROST_FILES.find())
    return root / "environment" / "bin" / "python", packages / "robustgen/pixels/imaging/kernels/compiled"


def count_compilations(python, cache, *names, **environment):
    """Return the sums of the corrupted images, the number of compilations, and the lines on stderr."""
    environment |= {"NUMBA_CACHE_DIR": str(cache)}
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | environment
    done = subprocess.run(
        [python, "-c", COUNTING, *names],
        cwd=cache.parent,
        env=own,
        capture_output=True,
        text=True,
        check=True,
    )
    *sums, last = done.stdout.splitlines()
    count, place = last.split()
    assert Path(place).is_relative_to(python.parents[1])
    return sums, int(count), done.stderr.splitlines()


@pytest.mark.slow("compiles all loops, builds and installs a wheel")
@pytest.mark.skipif(
    not (sys.platform == "linux" and kernels.SHIPPED_PROCESSOR), reason="such wheels are for Linux"
)
def test_a_wheel_with_compiled_loops_compiles_nothing(compiled, tmp_path):
    python, folder = compiled
    sums, count, lines = count_compilations(python, tmp_path / "empty", *COMMON)
    assert len(COMMON) == 15 and (count, lines) == (0, [])
    assert not any(
        str(Path(robustgen.__file__).parent).encode() in path.read_bytes() for path in folder.rglob("*.nbc")
    )
    fog = COMMON.index("fog")
    again, count, lines = count_compilations(python, tmp_path / "old", "fog", **OLD)
    assert again == sums[fog : fog + 1] and count > 0 and len(lines) == 1 and "x86-64-v3" in lines[0]
    assert count_compilations(python, tmp_path / "old", "fog", **OLD) == (again, 0, [])
    # Another release of numba looks for another folder.
    (loops,) = folder.iterdir()
    loops.rename(folder / "loops-of-another-numba")
    again, count, lines = count_compilations(python, tmp_path / "numba", "fog")
    assert again == sums[fog : fog + 1] and count > 0 and len(lines) == 1


TYPED = """\
import numpy as np
import robustgen
from robustgen import load_accuracy_table, open_set, write_predictions
from robustgen.errors import ImageError
from robustgen.metrics import mean_corruption_error
from robustgen.torch import StreamDataset

image = np.zeros((224, 224, 3), np.uint8)
robustgen.corrupt(image, "fog", 3, rng=0).shape
open_set("out/demo-c").variants[0].folder.upper()
write_predictions("preds", "fog/3", ["a"], [0], np.zeros((1, 10))).upper()
load_accuracy_table("table.npz").keys(), ImageError("dark").reason.upper()
robustgen.make_c("cifar-10", source="a", severities=[1, 3]).output.upper()
robustgen.evaluate(lambda pixels: pixels, "cifar-10", seed=1, mean=0).mce + 1
robustgen.corrupt(image, 5, 3)  # wrong
robustgen.corrupt(image, "fog", 3).shap  # wrong
robustgen.corupt(image)  # wrong
robustgen.make_p("cifar-10", seed="one")  # wrong
robustgen.evaluate("a.onnx", severites=3)  # wrong
"""
WRONG = {number for number, line in enumerate(TYPED.splitlines(), 1) if line.endswith("# wrong")}
PLUGIN = Path(__file__).parent / "plugin"


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    """A folder with an environment, a script of a user, and the plug-in."""
    root = tmp_path_factory.mktemp("typed")
    venv.create(root / "environment", symlinks=True)
    (packages,) = (root / "environment").glob("lib/python*/site-packages")
    package = Path(robustgen.__file__).parent
    shutil.copytree(package, packages / "robustgen", ignore=shutil.ignore_patterns("__pycache__"))
    (packages / "dependencies.pth").write_text(str(Path(np.__file__).parent.parent))
    (root / "script.py").write_text(TYPED)
    for path in PLUGIN.glob("*.py"):
        shutil.copy(path, root)
    return root


def check_types(root, *words):
    """Run a type checker in a folder, with its environment; return what it prints."""
    path = f"{root / 'environment' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=root,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    ).stdout


@pytest.mark.slow("runs mypy")
def test_mypy_accepts_a_script_of_a_user_and_a_plugin(typed):
    python = typed / "environment" / "bin" / "python"
    words = ("--strict", "--no-pretty", "--python-executable", python, "--cache-dir", typed / "cache", ".")
    found = re.findall(r"^(\S+\.py):(\d+): error: ", check_types(typed, "mypy", *words), re.MULTILINE)
    assert {(file, int(line)) for file, line in found} == {("script.py", line) for line in WRONG}


@pytest.mark.slow("runs pyright")
def test_pyright_accepts_a_script_of_a_user_and_a_plugin(typed):
    pytest.importorskip("pyright", reason="pyright is in the extra dev alone, for its size")
    printed = json.loads(check_types(typed, "pyright", "--outputjson"))
    found = {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1)
        for each in printed["generalDiagnostics"]
        if each["severity"] == "error"
    }
    assert found == {("script.py", line) for line in WRONG}


@pytest.mark.slow("runs pyright")
def test_every_public_name_has_a_type(typed):
    pytest.importorskip("pyright", reason="pyright is in the extra dev alone, for its size")
    words = ("--verifytypes", "robustgen", "--ignoreexternal", "--outputjson")
    symbols = json.loads(check_types(typed, "pyright", *words))["typeCompleteness"]["symbols"]
    rooms = "api|commands|compat|errors|metrics|plugins|torch"
    public = [each for each in symbols if re.match(rf"robustgen\.(({rooms})\b|\w+$)", each["name"])]
    assert len(public) > 500
    assert [each["name"] for each in public if each["isExported"] and not each["isTypeKnown"]] == []
