"""The shape of the package: who imports whom, what starts quickly, and that operations are described."""

import ast
import dataclasses
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

import click
import pytest

import robustgen
from robustgen import CORRUPTIONS, PERTURBATIONS
from robustgen.cli import main
from robustgen.errors import MissingDependencyError
from robustgen.files.registry import FORMAT_ROWS
from robustgen.pixels.benchmarks.corruptions import LATER
from robustgen.pixels.benchmarks.registry import SCALES

PACKAGE = Path(robustgen.__file__).parent


def module_name(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


@pytest.fixture(scope="module")
def modules():
    """The tree of each module by its name."""
    return {module_name(path): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}


# The wings and the front door, lowest first, and what each may import; so the graph of wings has no circle.
WINGS = {
    "errors": "",
    "files": "errors",
    "pixels": "errors files",
    "metrics": "errors files pixels",
    "settings": "errors files pixels",
    "display": "errors files pixels",
    "sets": "errors files pixels settings display",
    "lab": "errors files pixels settings display metrics sets",
    "api": "errors files pixels",
    "compat": "errors files pixels",
    "torch": "errors files pixels settings display metrics sets lab api",
    "commands": "errors files pixels settings display metrics sets lab",
    "cli": "errors files pixels settings display metrics sets lab api",
    "plugins": "errors files pixels settings sets lab cli",
    "related": "errors files pixels settings display metrics sets lab torch cli",
    "__main__": "cli",
}
# The groups of entry points have names like modules.
GROUPS = {f"robustgen.{name}" for name in ("corruptions", "sources", "formats", "executors", "wings")}
# The rooms, or parts of them, that may import a library.
OWNERS = {
    "cv2": {"pixels.imaging.third_party"},
    "numba": {"pixels.imaging.kernels"},
    "llvmlite": {"pixels.imaging.kernels"},
    "jpeglib": {"pixels.imaging.jpeg"},
    "av": {"pixels.imaging.video"},
    "joblib": {"sets.executors"},
    "distributed": {"sets.executors.clusters"},
    "ray": {"sets.executors.clusters"},
    "tqdm": {"display.progress"},
    "jinja2": {"display.html"},
    "matplotlib": {"display.charts"},
    "pandas": {"lab.scores.public"},
    "click": {"cli"},
    "yaml": {"settings"},
    "pydantic": {
        "settings",
        "related.settings",
        "related.streams.settings",
        "cli.flags",
    },
    "fsspec": {"files.storage.remote"},
    "pyarrow": {"files.containers.tables"},
    "onnxruntime": {"lab.models.onnx"},
    "torch": {"torch"},
    "pycocotools": {"lab.models.masks"},
    "openpyxl": {"lab.scores.answer_files"},
    "skimage": {"pixels.imaging.cleaning"},
    "imagecorruptions": set(),
}


# The only names across the wall around `related`, which may be missing: the row of its rows.
EXEMPT = {"files.wings": {"robustgen.related", "robustgen.related.rows.RELATED"}}
# Modules that import by names which they do not write themselves, and whose names these are.
BY_NAME = {
    "files.wings": "public names",
    "files.registry": "rows of plug-ins, and of those who open a registry",
    "cli.app": "rows of commands",
    "lab.plans": "rows of sets",
    "lab.models.pytorch": "models and libraries of users",
    "pixels.imaging.kernels": "its own modules",
}
IMPORTERS = {"import_module", "__import__", "load_row", "exec", "eval"}


@cache
def walk(tree):
    return [*ast.walk(tree)]


@cache
def imports(tree):
    """Full names of what a module imports anywhere in it."""
    found = []
    for node in walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


@cache
def typed(tree):
    """Full names of what a module imports for type checkers alone."""
    blocks = [node for node in walk(tree) if isinstance(node, ast.If)]
    blocks = [node for node in blocks if ast.unparse(node.test) == "TYPE_CHECKING"]
    found = [each for block in blocks for each in imports(ast.Module(block.body))]
    return [each for each in found if imports(tree).count(each) == found.count(each)]


@cache
def rows(tree):
    """Full names in the strings of a module, which name rows of tables, and the beginnings of such names."""
    texts = [node.value for node in walk(tree) if isinstance(node, ast.Constant)]
    texts = [text for text in texts if isinstance(text, str) and text not in GROUPS]
    return [
        text.replace(":", ".")
        for text in texts
        if re.fullmatch(r"robustgen\.((\w+\.)*\w+(:\w*)?|(\w+\.)*)", text)
    ]


@cache
def takes_the_front_door(tree):
    """Whether a module of robustgen imports the package itself, for more than its version."""
    named = {alias.name for node in walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    asked = (
        getattr(node, "func", getattr(node, "value", node))
        for node in walk(tree)
        if isinstance(node, ast.Call | ast.Subscript)
        for argument in (node.args if isinstance(node, ast.Call) else [node.slice])
        if isinstance(argument, ast.Constant) and argument.value == "robustgen"
    )
    return any(each.split(".")[0] == "robustgen" for each in named) or any(
        re.search("import|load_row|modules", ast.unparse(each)) for each in asked
    )


@cache
def imports_by_name(tree):
    """Whether a module imports what it does not name."""
    named = {
        alias.asname: alias.name
        for node in walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    known = IMPORTERS | {new for new, old in named.items() if old in IMPORTERS}
    written = {
        node.func
        for node in walk(tree)
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
    }
    used = [node for node in walk(tree) if isinstance(node, ast.Name | ast.Attribute) and node not in written]
    return any(
        each.id in known if isinstance(each, ast.Name) else each.attr in known - {"eval", "exec"}
        for each in used
    )


class Graph:
    """Who imports whom among `modules`, trees by name."""

    def __init__(self, modules):
        self.modules = modules

    def find_module(self, full):
        """The module of robustgen in a full name."""
        parts = full.split(".")[1:]
        candidates = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
        return next((each for each in candidates if each in self.modules), "__init__")

    def own_imports(self, name, without=()):
        """The modules of robustgen that a module imports."""
        named = [full for full in imports(self.modules[name]) if full not in without]
        named = [
            full for full in named if full.split(".")[0] == "robustgen" and full != "robustgen.__version__"
        ]
        return {self.find_module(full) for full in named} - {name}

    def all_imports(self, name):
        """The modules of robustgen that a module imports or names, and the packages around them."""
        tree = self.modules[name]
        related = [each for each in typed(tree) if each.startswith("robustgen.related.")]
        named = {*rows(tree)} - EXEMPT.get(name, set())
        found = self.own_imports(name, related) | {*map(self.find_module, named)}
        found |= {"__init__"} if takes_the_front_door(tree) else set()
        return found | {each.rsplit(".", n)[0] for each in found for n in range(1, each.count(".") + 1)} - {
            name
        }

    def everything_below(self, *names):
        """The modules that these modules import, directly or through others, lazily or at once."""
        found, left = set(), [*names]
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += self.all_imports(name)
        return found

    def find_breaks(self):
        """What breaks one of the five nevers, or keeps a test from seeing it."""
        allowed = {name: {name, *below.split()} for name, below in WINGS.items()}
        walled = self.modules.keys() - {"__init__"}
        found = {(name, each) for name in walled for each in self.all_imports(name)}
        breaks = {f"{a} imports {b}" for a, b in found if wing(b) not in allowed[wing(a)]}
        breaks |= {
            f"{a} imports {b}"
            for a, b in found
            if wing(a) == "related" and is_in(b, "cli") and b not in OF_CLI
        }
        scores = [name for name in walled if name.startswith(("lab.scores", "metrics"))]
        breaks |= {f"scores need {b}" for b in self.everything_below(*scores) if wing(b) == "sets"}
        by_name = {name for name, tree in self.modules.items() if imports_by_name(tree)}
        return breaks | {f"{name} imports by name" for name in by_name - BY_NAME.keys()}


@pytest.fixture(scope="module")
def graph(modules):
    return Graph(modules)


OF_CLI = {"cli", "cli.app", "cli.flags", "cli.execution"}


def wing(name):
    return name.split(".")[0]


def is_in(name, room):
    return f"{name}.".startswith(f"{room}.")


def test_a_wing_imports_only_what_it_may(modules, graph):
    wings = {wing(name) for name in modules}
    assert wings - WINGS.keys() == {"__init__"} and WINGS.keys() - wings <= {"related"}
    done = set()
    for name, below in WINGS.items():
        assert {*below.split()} <= done, f"{name}: not after what it may import"
        done.add(name)
    assert graph.find_breaks() == set()
    assert {name for name, tree in modules.items() if imports_by_name(tree)} == BY_NAME.keys()


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("pixels.imaging.blur", "from robustgen.settings import config"),
        ("sets.dataset.run", "def f():\n    from robustgen.lab.plans import read_plan"),
        ("sets.dataset.run", "if TYPE_CHECKING:\n    from robustgen.lab.plans import read_plan"),
        ("metrics.flips", "from robustgen.sets.sources import SOURCES"),
        ("lab.scores.results", "from robustgen.lab.evaluation import evaluating"),
        ("settings.config", "ROW = 'robustgen.sets.formats.encoders:PNG'"),
        ("lab.plans", "from robustgen.related import cleaned_sets"),
        ("sets.dataset.run", "import robustgen\nrobustgen.evaluate"),
        ("sets.dataset.run", "import robustgen.files\nrobustgen.evaluate"),
        ("sets.dataset.run", "from robustgen import evaluate"),
        ("sets.dataset.run", "import_module('robustgen').evaluate"),
        ("pixels.imaging.blur", "def f(x):\n    import_module(f'robustgen.sets.{x}')"),
        ("pixels.imaging.blur", "def f(x):\n    import_module('robustgen.' + x)"),
        ("pixels.imaging.blur", "def f(x):\n    import_module(x)"),
        ("pixels.imaging.blur", "load_row(f'robustgen.{SETS[0].planner}')"),
        ("pixels.imaging.blur", "load_row(SETS[0].planner)"),
        ("files.ledger", "load_row(f'robustgen.sets.formats.{FORMAT_ROWS[0]}')"),
        ("files.registry", "load_row(f'robustgen.sets.formats.{FORMAT_ROWS[0]}')"),
        ("files.registry", "load_row(f'robustgen.{FORMAT_ROWS[0]}')"),
        ("files.wings", "from robustgen.related import cleaned_sets"),
        ("related.cleaned_sets", "from robustgen.cli import score"),
    ],
)
def test_a_break_is_noticed(modules, module, code):
    if module in modules:
        tree = ast.Module([*modules[module].body, *ast.parse(code).body])
        assert Graph(modules | {module: tree}).find_breaks()


def reach_over(module, tree):
    """Yield private names of other wings that a module uses, and paths that lead out of its folder."""
    rooms = {}
    for node in ast.walk(tree):
        room = (getattr(node, "module", None) or "").partition("robustgen.")[2]
        if isinstance(node, ast.ImportFrom) and room and wing(room) != wing(module):
            yield from (each.name for each in node.names if re.match("_[a-zA-Z]", each.name))
            rooms |= {each.asname or each.name: room for each in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in rooms:
            yield from [node.attr] * (re.match("_[a-z]", node.attr) is not None and node.attr != "_fields")
        if isinstance(node, (ast.Attribute, ast.BinOp, ast.Call)):
            text = ast.unparse(node)
            above = re.fullmatch(r"Path\(__file__\)\.(parents|parent\.parent|parent / '\.\.)\b.*", text)
            beside = re.match(r"files\('robustgen\.(\w+)", text)
            yield from [text] * bool(above or (beside and beside[1] != wing(module)))


def test_no_module_reaches_into_another_wing(modules):
    """By a private name, or by the path of a file; only the configs lie beside the wings."""
    found = {name: {*reach_over(name, tree)} for name, tree in modules.items()}
    found["settings.yaml_files"] -= {"Path(__file__).parents"}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    [
        "from robustgen.sets.dataset.run import _name_outputs",
        "from robustgen.sets.dataset import run\nrun._name_outputs",
        "Path(__file__).parents[2] / 'metrics' / 'laion_c.json'",
        "(Path(__file__).parent.parent / 'scores').exists()",
        "files('robustgen.metrics') / 'laion_c.json'",
    ],
)
def test_a_reach_is_noticed(code):
    assert [*reach_over("lab.plans", ast.parse(code))]


def test_nothing_built_in_imports_what_plug_ins_import(modules, graph):
    assert not {name for name in modules.keys() - {"plugins"} if "plugins" in graph.all_imports(name)}


def test_the_front_door_loads_nothing_before_it_is_asked(modules):
    at_once = {
        f"{node.module}.{alias.name}"
        for node in modules["__init__"].body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert at_once == {
        "typing.TYPE_CHECKING",
        *(f"robustgen.files.wings.{each}" for each in ("list_public", "load_lazily")),
    }


@pytest.mark.parametrize("name", ["__init__", "plugins", "torch"])
def test_public_names_have_types_and_are_found(modules, name):
    public = import_module("robustgen" if name == "__init__" else f"robustgen.{name}")
    there = [
        each for each in typed(modules[name]) if wing(each.removeprefix("robustgen.")) in map(wing, modules)
    ]
    assert {each.rpartition(".")[2] for each in there} == {*public.__all__} - {"__version__"}
    for each in public.__all__:
        with suppress(MissingDependencyError):
            getattr(public, each)


def test_there_is_no_circle_of_imports(modules, graph):
    left = {name: set(graph.own_imports(name)) - {"__init__"} for name in modules}
    while leaves := [name for name, others in left.items() if not others & left.keys()]:
        for name in leaves:
            del left[name]
    assert not left


def test_a_library_is_imported_in_one_place(modules):
    for library, rooms in OWNERS.items():
        owners = {room for room in rooms if wing(room) in map(wing, modules)}
        importers = {
            name for name in modules if library in {full.split(".")[0] for full in imports(modules[name])}
        }
        found = {name: {each for each in owners if is_in(name, each)} for name in importers}
        assert all(found.values()), found
        assert set().union(*found.values()) == owners


def test_commands_print_through_one_function_that_escapes_names(modules):
    printing = {
        name
        for name in modules
        for node in walk(modules[name])
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("click.echo", "click.secho", "print")
    }
    assert printing == {"cli.app"}


# What only POSIX has, or what only a local disk can do.
SYSTEM = re.compile(
    r"\b(fcntl|termios|os\.(pread|pwrite|O_[A-Z]+|open|rename|replace|link|symlink|sync|getuid)"
    r"|dir_fd|CDLL|pthread_sigmask|/proc)\b"
)


def test_only_storage_knows_the_operating_system():
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line in path.read_text().splitlines()
        if path.parent.name != "storage" and SYSTEM.search(line)
    ]
    assert not found


def test_the_help_lists_every_command():
    done = subprocess.run(
        [sys.executable, "-m", "robustgen", "--help"], capture_output=True, text=True, check=True
    )
    listed = dict(re.findall(r"^  ([a-z][a-z-]*)  +(\S.*)", done.stdout, re.MULTILINE))
    commands = {name: main.get_command(click.Context(main), name) for name in main.list_commands(None)}
    assert listed == {name: command.help.splitlines()[0] for name, command in commands.items()}


@pytest.mark.parametrize(
    ("code", "unloaded"),
    [
        ("import robustgen", "numpy PIL yaml click"),
        (
            "import robustgen; robustgen.corrupt, robustgen.perturb, robustgen.augmix, robustgen.prepare",
            "numba cv2 scipy torch pydantic av",
        ),
        (
            "from robustgen.torch import AugMixDataset, CorruptedDataset, SourceDataset",
            "numba cv2 scipy torch pydantic av",
        ),
        ("import robustgen.settings.config, robustgen.sets.dataset.run", "av joblib fsspec"),
        ("import robustgen; robustgen.score, robustgen.evaluate", "numba torch onnxruntime"),
        ("import robustgen; [*robustgen.FAMILIES.values()], [*robustgen.EDITIONS]", "numba cv2 av joblib"),
        (
            "import numpy, robustgen; robustgen.corrupt(numpy.zeros((32, 32, 3), 'uint8'), 'contrast', 1)\n"
            "assert 'numba' in sys.modules",
            "av joblib skimage pydantic click",
        ),
    ],
)
def test_libraries_wait_until_they_are_needed(code, unloaded):
    check_unloaded(code, unloaded)


def check_unloaded(code, unloaded):
    """Hold a process that runs `code` to load none of these libraries."""
    script = f"import sys\n{code}\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {*done.stdout.splitlines()} & {*unloaded.split()}


def test_a_call_opens_what_it_uses(tmp_path):
    words = (
        "make-c --dataset demo --corruptions contrast --severities 1 --limit 1 --format png --jobs 1 --quiet"
    )
    code = (
        f"import os; os.chdir({str(tmp_path)!r}); from robustgen.cli import main\n"
        f"try: main({words.split()})\nexcept SystemExit: pass"
    )
    families = [*LATER.values(), "c_bar", "imagecorruptions"]
    formats = {row.partition(":")[0] for row in FORMAT_ROWS.values()} - {"encoders"}
    unloaded = [f"robustgen.pixels.benchmarks.corruptions.{each}" for each in families]
    unloaded += [f"robustgen.sets.formats.{each}" for each in formats]
    check_unloaded(code, " ".join(unloaded))
    assert (tmp_path / "out/demo-c/contrast/1/astronaut/astronaut.png").exists()
    check_unloaded(
        "import robustgen.cli.score, robustgen.lab.scores.scoring", "robustgen.pixels.imaging.blur"
    )


def test_an_opencv_that_cannot_load_is_named_with_the_remedy(tmp_path):
    (tmp_path / "cv2.py").write_text("raise ImportError('libGL.so.1: cannot open shared object file')")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import numpy, robustgen\n"
        "try: robustgen.corrupt(numpy.zeros((64, 64, 3), 'uint8'), 'frost', 1)\n"
        "except ImportError as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MissingDependencyError OpenCV cannot be imported (")
    assert "pip install --force-reinstall --no-deps 'opencv-python-headless>=4.10.0.84'" in done.stdout


OPERATIONS = [*CORRUPTIONS.values(), *PERTURBATIONS.values()]


def test_operations_are_described_and_have_fixed_constants_for_every_scale():
    for operation in OPERATIONS:
        summary = operation.function.__doc__.splitlines()[0]
        assert summary.endswith(".") and len(summary) > 15
        assert set(operation.table) == set(SCALES) == {224, 299, 64, 32}
        (parameters,) = {type(row) for rows in operation.table.values() for row in rows}
        assert dataclasses.is_dataclass(parameters) and parameters.__doc__
        assert {len(rows) for rows in operation.table.values()} == {len(operation.levels)}
        row = operation.parameters(1, 224)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(row, dataclasses.fields(row)[0].name, 1)
        with pytest.raises(TypeError):
            operation.table[224] = ()


def test_every_module_begins_with_what_it_is_for(modules):
    assert {name for name, tree in modules.items() if not ast.get_docstring(tree)} <= {"__init__", "__main__"}


# Tests of what several modules do together; all others are named after a module or room beside theirs.
TOGETHER = {
    "cli": "before_a_run effects help",
    "files": "memory",
    "lab/evaluation": "class_order outputs sharing",
    "lab/inspection": "pages preview_page",
    "related": "clips effects layouts schemas sharing",
    "related/streams": "ccc_commands",
    "pixels/benchmarks": "calibrated_sizes families finer_severities golden properties",
    "pixels/imaging": "distributions effects processors",
    "sets": "depth tiles",
    "sets/dataset": "clips completeness detection durability hostile levels planted remote_outputs schemas"
    " sharding",
    "sets/executors": "guest",
    "sets/sources": "source_urls",
    "torch": "torch_docs",
}


def test_the_test_of_a_module_is_found_by_its_name():
    tests = Path(__file__).parent
    named = {}
    for path in tests.glob("*/**/test_*.py"):
        room = path.parent.relative_to(tests).as_posix()
        known = {each.stem for each in (PACKAGE / room).rglob("*")} | {path.parent.name}
        if path.stem.removeprefix("test_") not in known:
            named.setdefault(room, set()).add(path.stem.removeprefix("test_"))
    there = {room for room in TOGETHER if (PACKAGE / room.split("/")[0]).is_dir()}
    assert named == {room: {*TOGETHER[room].split()} for room in there}


def fields(tree, classes):
    """The parameters of a class: of its constructor, or the fields of it and its bases."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            return parameters(node)
        if isinstance(node, ast.AnnAssign):
            found.add(ast.unparse(node.target))
    bases = (re.match(r"\w+", ast.unparse(base))[0] for base in tree.bases)
    return found.union(*(fields(classes[base], classes) for base in bases if base in classes))


def parameters(tree):
    arguments = tree.args
    every = *arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg
    return {each.arg for each in every if each}


def test_every_parameter_that_a_docstring_names_exists(modules):
    nodes = [(name, node) for name, tree in modules.items() for node in walk(tree)]
    classes = {node.name: node for _, node in nodes if isinstance(node, ast.ClassDef)}
    known = {}
    for name, node in nodes:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        section = re.search(r"^Parameters\n-+\n((?:.+\n?)*)", ast.get_docstring(node) or "", re.MULTILINE)
        lines = re.findall(r"^([\w*][\w*, ]*?)(?: : .*)?$", section[1], re.MULTILINE) if section else ()
        existing = fields(node, classes) if isinstance(node, ast.ClassDef) else parameters(node)
        named = [each.strip(" *") for line in lines for each in line.split(",")]
        known |= {(name, node.name, node.lineno, each): each in existing for each in named}
    assert len(known) > 500 and not [place for place, exists in known.items() if not exists]


# Elsewhere a medium is looked up in a table, or required.
ASKING = {
    "cli.preview",
    "lab.evaluation.rendering",
    "lab.inspection.preview",
    "pixels.imaging.frames",
}
QUESTION = re.compile(
    r"(?:\bis|\bnot|[=!]=|\bin) (?:CLIP|IMAGE)\b|isinstance\([^()]*\bClip\b"
    r"|medium(?:\.\w+)? (?:is|[=!]=)|(?:noun|source_kind) [=!]= .clip"
)


def test_few_modules_ask_what_a_source_contains():
    found = {
        str(path.relative_to(PACKAGE).with_suffix("")).replace("/", ".")
        for path in PACKAGE.rglob("*.py")
        if QUESTION.search(path.read_text())
    }
    assert found == ASKING


def test_docstrings_do_not_open_with_a_question(modules):
    opened = {
        f"{name}: {ast.get_docstring(node).splitlines()[0]}"
        for name, tree in modules.items()
        for node in walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node)
        if ast.get_docstring(node).split()[0] in ("What", "Where", "How", "Whether", "As", "Which", "Why")
    }
    assert not opened
