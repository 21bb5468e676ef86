"""The public surface: every public name, with its signature, stands in `surface.txt`.

`python -m tests.test_surface` writes the file after a change that is meant.
"""

import inspect
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from robustgen.files.wings import list_public

MODULES = ("robustgen", "robustgen.errors", "robustgen.metrics", "robustgen.torch")
FILE = Path(__file__).with_name("surface.txt")


def names_of(module):
    return sorted({name for name in dir(import_module(module)) if name[0] != "_"} - {*list_public(module)})


def describe(module):
    """Yield a line for each name: constants alone, functions and classes with their parameters."""
    for name in names_of(module):
        value = getattr(import_module(module), name)
        shown = ""
        if inspect.isfunction(value) or (inspect.isclass(value) and not issubclass(value, BaseException)):
            parameters = inspect.signature(inspect.unwrap(value)).parameters.values()
            shown = f"({', '.join(str(each.replace(annotation=each.empty)) for each in parameters)})"
        yield f"{module}.{name}{shown}"


@pytest.mark.parametrize("module", MODULES)
def test_the_public_surface_is_the_listed_one(module):
    if module == "robustgen.torch":
        pytest.importorskip("torchvision")
    listed = [
        line for line in FILE.read_text().splitlines() if line.partition("(")[0].rpartition(".")[0] == module
    ]
    assert [*describe(module)] == listed


@pytest.mark.parametrize("module", ["robustgen.errors", "robustgen.metrics"])
def test_a_module_shows_its_own_names_alone(module):
    assert names_of(module) == sorted(import_module(module).__all__)


if __name__ == "__main__":
    assert find_spec("torchvision"), "the surface of robustgen.torch needs torchvision"
    FILE.write_text("".join(f"{line}\n" for module in MODULES for line in describe(module)))
