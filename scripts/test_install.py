"""Build the sdist and the wheel, and use the wheel as strangers do: installed by pip, uv, uvx and pipx.

Usage: test_install.py [--ways pip,uv,uvx,pipx] [PYTHON ...]

Each way has an environment of its own, which contains the wheel, its dependencies from the index of this
machine and nothing else, and runs the commands of the README: fetch, make-c and report of a folder, evaluate
and score. By default the interpreters are the oldest and the newest python3.N that are found here, of those
that robustgen supports. Needs the packages of the extra test.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save_model

from robustgen.files.storage.host import cache_folder
from robustgen.pixels.imaging.kernels import VARIABLE

ROOT = Path(__file__).parents[1]
NEWEST = ROOT / "build" / "newest" / "venv" / "bin"
EXTRAS = "opencv,video,onnx"
PICTURES = ("video-c.jpg", "medmnist-c.jpg")
COMMANDS = (
    "fetch",
    "make-c --source photos --edition imagenet --output out/photos-c --jobs 2",
    "report out/photos-c",
    "evaluate --edition imagenet --source photos --model net.onnx --output preds --jobs 2",
    "score preds/net --output scores.html --compare-with published",
)
FILES = ("out/photos-c/dataset.json", "out/photos-c/frost/3", "out/photos-c-report.html", "scores.html")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        tools = make_tools(root / "tools")
        wheel = build(tools, root / "dist")
        for each in words.pythons or find_pythons():
            # The installers run in other folders; the link of an environment must stay.
            python = str(Path(shutil.which(each) or sys.exit(f"no {each}")).absolute())
            for way in words.ways.split(","):
                begun, place = monotonic(), root / f"{Path(python).name}-{way}"
                put_inputs(place)
                for command in COMMANDS:
                    run([*WAYS[way](tools, wheel, python, place), *command.split()], place)
                missing = [name for name in FILES if not (place / name).exists()]
                if missing:
                    sys.exit(f"{way}, {python}: no {', '.join(missing)}")
                shutil.rmtree(place)
                print(f"{way}, {python}: {monotonic() - begun:.0f} s", flush=True)


def find_pythons() -> Iterator[str]:
    """Yield the oldest and the newest interpreter on PATH, of pyenv, and of scripts/newest_python.sh."""
    folders = [*map(Path, os.environ["PATH"].split(os.pathsep)), *Path.home().glob(".pyenv/versions/*/bin")]
    found = dict[int, str]()
    for path in (each for folder in [*folders, NEWEST] for each in folder.glob("python3.*")):
        number = re.fullmatch(r"python3\.(\d\d)", path.name)
        # A shim may name a release that is switched off.
        if number and not subprocess.run([path, "-c", ""], capture_output=True).returncode:
            found.setdefault(int(number[1]), str(path))
    yield from (found[minor] for minor in sorted({min(found), max(found)}))


def make_tools(folder: Path) -> Path:
    """Install the installers, apart from all environments; return the folder with nothing but them."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run([python, "-m", "pip", "--quiet", "install", "build", "uv", "pipx"], folder)
    (folder / "path").mkdir()
    for name in ("uv", "uvx", "pipx"):
        (folder / "path" / name).symlink_to(folder / "bin" / name)
    return folder


def build(tools: Path, dist: Path) -> Path:
    """Build the sdist, and from it the wheel, which is returned."""
    run([tools / "bin" / "python", "-m", "build", "--outdir", dist, ROOT], tools)
    (wheel,) = dist.glob("*.whl")
    return wheel


def put_inputs(place: Path) -> None:
    """Write two photographs of two classes, and a network that tells them apart by their colour."""
    for number, name in enumerate(PICTURES):
        (place / "photos" / f"class{number}").mkdir(parents=True)
        shutil.copy(ROOT / "docs" / "images" / name, place / "photos" / f"class{number}")
    weights = numpy_helper.from_array(np.eye(3, 2, dtype=np.float32), "weights")
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, 224, 224])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 2])
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["logits"]),
    ]
    graph = helper.make_graph(nodes, "colours", [image], [logits], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save_model(model, place / "net.onnx")


def run(command: list[object], place: Path, *path: Path) -> None:
    """Run a command as a user without a home; what other runs downloaded and compiled is used."""
    dropped = ("PYTHONPATH", "VIRTUAL_ENV", "UV")
    kept = {name: text for name, text in os.environ.items() if name not in dropped}
    caches = {
        "XDG_CACHE_HOME": str(cache_folder("robustgen").parent),
        VARIABLE: str(cache_folder("robustgen")),
    }
    # Only uv's environments find uv on the path.
    own = {"HOME": str(place), "PATH": os.pathsep.join([*map(str, path), "/usr/bin:/bin"])}
    pipx = {"PIPX_HOME": str(place / "pipx"), "PIPX_BIN_DIR": str(place / "bin")}
    done = subprocess.run(
        [*map(str, command)],
        cwd=place,
        env={**kept, **caches, **own, **pipx, "UV_TOOL_DIR": str(place / "tools")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}")


def use_pip(tools: Path, wheel: Path, python: str, place: Path) -> list[object]:
    """Return the command of an environment with pip."""
    bin_folder = place / "venv" / "bin"
    if not bin_folder.exists():
        # As by `python -m venv`, which Debian's Python cannot do without another package.
        run([tools / "path" / "uv", "venv", "--quiet", "--seed", "--python", python, place / "venv"], place)
        run([bin_folder / "python", "-m", "pip", "--quiet", "install", f"{wheel}[{EXTRAS}]"], place)
    return [bin_folder / "robustgen"]


def use_uv(tools: Path, wheel: Path, python: str, place: Path) -> list[object]:
    """Return the command of an environment of uv, which has no pip."""
    bin_folder, uv = place / "venv" / "bin", tools / "path" / "uv"
    if not bin_folder.exists():
        run([uv, "venv", "--quiet", "--python", python, place / "venv"], place)
        run([uv, "pip", "install", "--quiet", "--python", bin_folder / "python", f"{wheel}[{EXTRAS}]"], place)
    return ["env", f"PATH={tools / 'path'}:/usr/bin:/bin", bin_folder / "robustgen"]


def use_uvx(tools: Path, wheel: Path, python: str, place: Path) -> list[object]:
    """Return the command of an environment that uv makes for the call."""
    return [
        tools / "path" / "uvx",
        "--quiet",
        "--python",
        python,
        "--from",
        f"{wheel}[{EXTRAS}]",
        "robustgen",
    ]


def use_pipx(tools: Path, wheel: Path, python: str, place: Path) -> list[object]:
    """Return the command of an application of pipx."""
    if not (place / "bin").exists():
        run([tools / "path" / "pipx", "install", "--quiet", "--python", python, f"{wheel}[{EXTRAS}]"], place)
    return [place / "bin" / "robustgen"]


WAYS: dict[str, Callable[[Path, Path, str, Path], list[object]]] = {
    "pip": use_pip,
    "uv": use_uv,
    "uvx": use_uvx,
    "pipx": use_pipx,
}

if __name__ == "__main__":
    main()
