"""The examples in the docstrings of public names."""

import doctest
import importlib
import inspect
from importlib.util import find_spec

import pytest

from robustgen.cli import main

MODULES = (
    "robustgen",
    "robustgen.compat.imagecorruptions",
    "robustgen.metrics",
    "robustgen.plugins",
    "robustgen.torch",
)
HAS_TORCH = find_spec("torch") is not None


def list_public():
    """Each public function and class, and the name of its module."""
    for module in map(importlib.import_module, MODULES):
        for name in getattr(module, "__all__", dir(module)):
            # Most of PyTorch's data sets need the package to be imported.
            if module.__name__ == "robustgen.torch" and not HAS_TORCH:
                yield pytest.param(None, id=name, marks=pytest.mark.skip("needs PyTorch"))
                continue
            found = inspect.unwrap(getattr(module, name)) if not name.startswith("_") else None
            is_error = inspect.isclass(found) and issubclass(found, Exception)
            is_own = getattr(found, "__module__", "").startswith("robustgen")
            if is_own and (inspect.isfunction(found) or inspect.isclass(found)) and not is_error:
                yield pytest.param(found, id=f"{module.__name__.removeprefix('robustgen.')}-{name}")


@pytest.mark.parametrize("found", [*list_public()])
def test_examples_of_public_names_give_what_they_show(found, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    declared = {*main.commands}
    try:
        example = doctest.DocTestParser().get_doctest(found.__doc__, {}, found.__qualname__, None, 0)
        assert example.examples
        assert not doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example).failed
    finally:
        for name in {*main.commands} - declared:
            del main.commands[name]
