"""From the name of a model to the model."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from robustgen.errors import ArgumentTypeError, ConfigError
from robustgen.models.base import Model
from robustgen.models.functions import FunctionModel
from robustgen.models.onnx import OnnxModel
from robustgen.models.pytorch import borrow_module, open_exported, open_factory, open_timm, open_torchvision
from robustgen.settings.models import Runtime

FORMS: Final = "model.onnx, model.pt2, timm:NAME, torchvision:NAME@FILE or package.module:function"
"""Forms of the names of models."""

_LIBRARIES: Final[Mapping[str, Callable[[str, Runtime], Model]]] = {
    "timm": open_timm,
    "torchvision": open_torchvision,
}


def open_model(name: str, runtime: Runtime) -> Model:
    """Load the model called `name`, one of `FORMS`; a file of any other suffix is read as ONNX.

    Raises
    ------
    MissingDependencyError
        The required library is not installed.
    ConfigError
        There is no such model, or it is not a classifier of images.
    """
    library, colon, rest = name.partition(":")
    if colon and library in _LIBRARIES:
        return _LIBRARIES[library](rest, runtime)
    if Path(name).suffix == ".pt2":
        return open_exported(Path(name), runtime)
    if re.fullmatch(r"[A-Za-z_][\w.]*(?<!\.py):[A-Za-z_]\w*", name) and not Path(name).exists():
        return open_factory(name, runtime)
    if Path(name).suffix in (".pt", ".pth", ".safetensors"):
        raise ConfigError(f"--model {name}: a file of weights needs a network; use one of {FORMS}")
    if factory := _guess_factory(name):
        raise ConfigError(f"--model {name}: not a model; did you mean {factory}? Forms: {FORMS}")
    return OnnxModel(Path(name), runtime)


@contextmanager
def borrow_model(model: Any, runtime: Runtime, name: str | None = None) -> Iterator[Model]:
    """Yield a model from an object of the user; `name` replaces its own in tables and folders.

    The object is a `torch.nn.Module`, a function that `FunctionModel` describes, or a name for `open_model`.

    Raises
    ------
    ArgumentTypeError
        It is something else.
    """
    torch = sys.modules.get("torch")
    if isinstance(model, (str, os.PathLike)):
        opened = open_model(os.fspath(model), runtime)
        opened.label = name or opened.label
        yield opened
    elif torch and isinstance(model, torch.nn.Module):
        with borrow_module(model, runtime, name or type(model).__name__) as borrowed:
            yield borrowed
    elif callable(model):
        yield FunctionModel(model, name or str(getattr(model, "__name__", type(model).__name__)))
    else:
        raise ArgumentTypeError(
            f"model must be a torch.nn.Module, a function of arrays, or one of {FORMS}, not {model!r}"
        )


def _guess_factory(name: str) -> str | None:
    """Return the ``module:function`` that is probably meant by a module, its file, or a dotted name."""
    place, _, function = name.partition(":")
    if place.endswith(".py"):
        path = Path(place)
        module = ".".join(path.with_suffix("").parts) if re.fullmatch(r"\w+(/\w+)*\.py", place) else path.stem
        return f"{module}:{function or 'build'}"
    known = Path(name).is_file() or name.endswith(".onnx")
    if known or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", name):
        return None
    module, dot, function = name.rpartition(".")
    return f"{module}:{function}" if dot else f"{name}:build"
