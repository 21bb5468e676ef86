"""From the name of a model to the model."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from robustgen.errors import ArgumentTypeError, ConfigError
from robustgen.files.storage import is_url
from robustgen.lab.models.base import FunctionModel, Model
from robustgen.lab.models.onnx import OnnxModel
from robustgen.lab.models.pytorch import (
    borrow_module,
    open_exported,
    open_factory,
    open_timm,
    open_torchvision,
)
from robustgen.settings.models import Runtime

FORMS: Final = "model.onnx, model.pt2, timm:NAME, torchvision:NAME@FILE or package.module:function"
"""Forms of the names of models."""

_WEIGHTS: Final = (".pt", ".pth", ".ckpt", ".bin", ".safetensors")
_KERAS: Final = (".keras", ".h5", ".hdf5", ".pb", ".tflite")
_FACTORY: Final = "package.module:function, a function that returns"
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
    if is_url(name):
        raise ConfigError(f"--model {name}: models are read from local files: download it first")
    path = Path(name)
    if path.suffix == ".pt2":
        return open_exported(path, runtime)
    if re.fullmatch(r"[A-Za-z_][\w.]*(?<!\.py):[A-Za-z_]\w*", name) and not path.exists():
        return open_factory(name, runtime)
    if way := _find_way(path):
        raise ConfigError(f"--model {name}: {way}")
    return OnnxModel(path, runtime)


def _find_way(path: Path) -> str | None:
    """Return how to use a model in a file or folder that cannot be opened as it is."""
    if path.suffix.lower() in _WEIGHTS:
        return (
            f"a file of weights needs a network: give timm:NAME@{path} or torchvision:NAME@{path}, or write "
            f"{_FACTORY} your module with these weights"
        )
    if path.suffix.lower() in _KERAS or (path / "saved_model.pb").is_file():
        return (
            "a model of Keras or TensorFlow: export it as ONNX, or give robustgen.evaluate in Python "
            "a function of arrays that calls it"
        )
    if (path / "config.json").is_file():
        call = f"AutoModelForImageClassification.from_pretrained({str(path)!r})"
        return f"a folder of Hugging Face: write {_FACTORY} {call}"
    is_onnx = path.suffix == ".onnx" or (path.is_file() and path.suffix != ".py")
    return None if is_onnx and not path.is_dir() else f"not a model; use one of {FORMS}"


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
        opened.given = name
        yield opened
    elif torch and isinstance(model, torch.nn.Module):
        with borrow_module(model, runtime, name or type(model).__name__) as borrowed:
            borrowed.given = name
            yield borrowed
    elif callable(model):
        function = FunctionModel(model, name or str(getattr(model, "__name__", type(model).__name__)))
        function.given = name
        yield function
    else:
        raise ArgumentTypeError(f"model must be a torch.nn.Module, a function or {FORMS}, not {model!r}")
