"""Models of PyTorch: exported ones, those of timm and torchvision, and results of user functions.

PyTorch and the others are imported on demand. Nothing is trained, and nothing in a file is executed: weights
are read only as tensors.
"""

import hashlib
import importlib
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.dataset.outputs import file_digest
from robustgen.errors import ConfigError, MissingDependencyError
from robustgen.files.storage import locate
from robustgen.models.base import Model, OutOfDeviceMemoryError, first_line
from robustgen.models.exported import find_danger
from robustgen.models.preprocessing import Preprocessing, check_fields
from robustgen.settings.models import Runtime

# Keys of the weights in checkpoints that also contain the state of the training.
_NESTED: Final = ("state_dict", "model_state_dict", "model")
_NAMED: Final = 3


class TorchModel(Model):
    """A `torch.nn.Module` that takes images (n, 3, H, W) and returns logits.

    Parameters
    ----------
    name : str
    module : torch.nn.Module
    runtime : Runtime
    preprocessing : Preprocessing, optional
        Its own preprocessing.
    shape : tuple of int or None
        Its input shape.
    identity : str, optional
        SHA-256 of its file; default that of its weights.
    """

    def __init__(
        self,
        name: str,
        module: Any,
        runtime: Runtime,
        preprocessing: Preprocessing | None = None,
        shape: tuple[int | None, ...] = (None, 3, None, None),
        identity: str | None = None,
    ) -> None:
        torch = import_torch()
        self.name, self.label, self.preprocessing = name, name, preprocessing
        self._device = choose_device(runtime.device)
        self._mixed, self._shape = runtime.mixed_precision, shape
        self._identity = identity or _digest_weights(module)
        self.dtype = np.dtype(np.float32)
        if runtime.threads:
            torch.set_num_threads(runtime.threads)
        # The same model should give the same numbers on every run.
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.allow_tf32 = False
        try:
            self._module = module.to(self._device)
        except Exception as error:
            raise ConfigError(f"{name}: cannot be put on {self._device}: {first_line(error)}") from error

    def settings(self) -> dict[str, Any]:
        """Return its identity, as `Model.settings`."""
        precision = {"precision": "mixed"} if self._mixed else {}
        return {"file": self.name, "sha256": self._identity, **precision}

    def versions(self) -> dict[str, str]:
        """Return the versions of the libraries, as `Model.versions`."""
        return {"torch": str(import_torch().__version__)}

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Return the shape of its input, as `Model.shape`."""
        return self._shape

    def run(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return the logits of a batch, as `Model.run`."""
        torch = import_torch()
        try:
            device = self._device.partition(":")[0]
            half = torch.bfloat16 if device == "cpu" else torch.float16
            with torch.inference_mode(), torch.autocast(device, dtype=half, enabled=self._mixed):
                logits = self._module(torch.from_numpy(images).to(self._device))
                # Half precision is converted: it makes NumPy's other functions slow.
                return np.asarray(self._check_output(logits, torch).float().cpu().numpy())
        except RuntimeError as error:
            # CUDA has its own error class for this, MPS does not.
            if isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in str(error):
                if self._device.startswith("cuda"):
                    torch.cuda.empty_cache()
                raise OutOfDeviceMemoryError from error
            raise

    def _check_output(self, output: Any, torch: Any) -> Any:
        # Models of Hugging Face return their logits under this name.
        logits = getattr(output, "logits", output)
        if not isinstance(logits, torch.Tensor):
            raise ConfigError(f"{self.name}: returns {type(output).__name__}, not a tensor of logits")
        return logits


# --- PyTorch itself ------------------------------------------------------------------------------


def import_torch() -> Any:
    """Return the module torch; raise a MissingDependencyError if it is not installed."""
    return import_library("torch", "torch")


def import_library(library: str, extra: str) -> Any:
    """Return a module that belongs to an `extra`; raise a MissingDependencyError if it is not installed."""
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise MissingDependencyError(
            f"such a model needs {library}: pip install 'robustgen[{extra}]'"
        ) from error


def choose_device(wanted: str) -> str:
    """Return the device to compute on, such as ``"cuda"`` or ``"cuda:1"``.

    Raises
    ------
    ConfigError
        The device is not available.
    """
    torch = import_torch()
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return next(name for name, is_there in there.items() if is_there)
    if not there.get(wanted.partition(":")[0]):
        listed = ", ".join(name for name, is_there in there.items() if is_there)
        raise ConfigError(f"--device {wanted}: not available to PyTorch; it has {listed}")
    return wanted


def _digest_weights(module: Any) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        array = tensor.detach().cpu().contiguous()
        digest.update(array.reshape(-1).view(import_torch().uint8).numpy().tobytes())
    return digest.hexdigest()


# --- weights -------------------------------------------------------------------------------------


def read_weights(path: Path) -> dict[str, Any]:
    """Return the tensors of a checkpoint (.pth, .pt, .safetensors), by name.

    Raises
    ------
    ConfigError
        The file cannot be read, or contains something else.
    """
    if not path.is_file():
        raise ConfigError(f"--model: there is no file {path}")
    torch = import_torch()
    try:
        if path.suffix == ".safetensors":
            return dict(import_library("safetensors.torch", "timm").load_file(path))
        content = torch.load(path, map_location="cpu", weights_only=True)
    except MissingDependencyError:
        raise
    except Exception as error:
        raise ConfigError(f"{path}: not a file of weights: {first_line(error)}") from error
    for key in _NESTED:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
            break
    tensors = isinstance(content, Mapping) and all(isinstance(v, torch.Tensor) for v in content.values())
    if not content or not tensors:
        raise ConfigError(f"{path}: contains no weights by name (a state_dict)")
    return {str(name).removeprefix("module."): tensor for name, tensor in content.items()}


def _load_weights(module: Any, weights: Mapping[str, Any], path: Path, name: str) -> None:
    own = module.state_dict()
    wrong = [key for key in own if key in weights and own[key].shape != weights[key].shape]
    problems = {
        "lacks": own.keys() - weights.keys(),
        "has besides": weights.keys() - own.keys(),
        "has in another shape": wrong,
    }
    found = [f"{what} {', '.join(sorted(keys)[:_NAMED])}" for what, keys in problems.items() if keys]
    if found:
        raise ConfigError(f"{path}: the weights are not those of {name}: it {'; '.join(found)}")
    module.load_state_dict(weights)


def _count_outputs(weights: Mapping[str, Any]) -> int:
    """Return the number of classes of the weights: the length of the last layer's bias, the last entry."""
    return int([*weights.values()][-1].shape[0])


def _suggest(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=_NAMED)
    return f" (did you mean {' or '.join(near)}?)" if near else ""


# --- user functions ------------------------------------------------------------------------------


@contextmanager
def name_model_in_errors(name: str) -> Iterator[None]:
    """Turn any error of a user function into a ConfigError that names the model."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"--model {name}: {type(error).__name__}: {first_line(error)}") from error


def find_function(name: str) -> Any:
    """Import ``package.module:function``; also from the current folder, as `python -m` does."""
    place, _, function = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return getattr(importlib.import_module(place), function)


# --- forms of names ------------------------------------------------------------------------------


@contextmanager
def borrow_module(module: Any, runtime: Runtime, name: str) -> Iterator[TorchModel]:
    """Yield a user's `torch.nn.Module` as a model, in evaluation mode; afterwards it trains as before.

    It stays on its device, unless `runtime` names one.
    """
    cudnn = import_torch().backends.cudnn
    flags = {flag: getattr(cudnn, flag) for flag in ("benchmark", "deterministic", "allow_tf32")}
    training = {each: each.training for each in module.modules()}
    weight = next(module.parameters(), None)
    if runtime.device == "auto" and weight is not None:
        runtime = runtime.model_copy(update={"device": str(weight.device)})
    try:
        yield TorchModel(name, module.eval(), runtime)
    finally:
        for each, mode in training.items():
            each.training = mode
        for flag, value in flags.items():
            setattr(cudnn, flag, value)


def open_exported(path: Path, runtime: Runtime) -> TorchModel:
    """Open a ``.pt2`` written by `torch.export.save`; one that could run code only if it is trusted."""
    torch = import_torch()
    if not path.is_file():
        raise ConfigError(f"--model: there is no file {path}")
    try:
        if not zipfile.is_zipfile(path):
            raise ConfigError(f"{path}: not an exported program of PyTorch (a zip archive)")
        if not runtime.trust_model and (danger := find_danger(path, torch)):
            raise ConfigError(
                f"{path}: {danger}: loading it could run any code. Give --trust-model if you trust its origin"
            )
        with warnings.catch_warnings():
            # A warning about weights that share memory, which does not concern users.
            warnings.simplefilter("ignore")
            program = torch.export.load(path)
        inputs = [
            node.meta["val"]
            for node in program.graph.nodes
            if node.op == "placeholder" and node.name in program.graph_signature.user_inputs
        ]
        shapes = [tuple(axis if isinstance(axis, int) else None for axis in each.shape) for each in inputs]
        module = program.module()
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"{path}: not an exported program of PyTorch: {first_line(error)}") from error
    if len(shapes) != 1 or len(shapes[0]) != 4:
        raise ConfigError(f"{path}: must have one input, images (n, 3, H, W), not {shapes}")
    return TorchModel(str(path), module, runtime, shape=shapes[0], identity=file_digest(*locate(path)))


def open_timm(name: str, runtime: Runtime) -> TorchModel:
    """Return ``timm:NAME`` with timm's pretrained weights, or ``timm:NAME@checkpoint.pth``."""
    timm = import_library("timm", "timm")
    known, _, checkpoint = name.partition("@")
    if known.partition(".")[0] not in timm.list_models():
        hint = _suggest(known, timm.list_models())
        raise ConfigError(f"--model timm:{known}: timm {timm.__version__} has no such model{hint}")
    weights = read_weights(Path(checkpoint)) if checkpoint else None
    classes = {} if weights is None else {"num_classes": _count_outputs(weights)}
    try:
        module = timm.create_model(known, pretrained=weights is None, **classes).eval()
    except Exception as error:
        hint = "" if checkpoint else f" (timm:{known}@FILE loads your own weights)"
        raise ConfigError(f"--model timm:{name}: {first_line(error)}{hint}") from error
    if weights is not None:
        _load_weights(module, weights, Path(checkpoint), f"timm:{known}")
    own = timm.data.resolve_model_data_config(module)
    interpolation = own.get("interpolation")
    preprocessing = Preprocessing(
        mean=tuple(own["mean"]),
        std=tuple(own["std"]),
        input_size=tuple(own["input_size"][1:]),
        interpolation="bicubic" if interpolation == "bicubic" else "bilinear",
    )
    return TorchModel(f"timm:{name}", module, runtime, preprocessing)


def open_torchvision(name: str, runtime: Runtime) -> TorchModel:
    """Return ``torchvision:NAME@weights.pth``."""
    torchvision = import_library("torchvision", "torch")
    known, _, checkpoint = name.partition("@")
    listed = torchvision.models.list_models(torchvision.models)
    if known not in listed:
        hint = _suggest(known, listed)
        raise ConfigError(f"--model torchvision:{known}: torchvision has no such classifier{hint}")
    if not checkpoint:
        raise ConfigError(f"--model torchvision:{known}: name its weights: torchvision:{known}@FILE")
    weights = read_weights(Path(checkpoint))
    try:
        module = torchvision.models.get_model(known, weights=None, num_classes=_count_outputs(weights)).eval()
    except Exception as error:
        raise ConfigError(f"--model torchvision:{name}: {first_line(error)}") from error
    _load_weights(module, weights, Path(checkpoint), f"torchvision:{known}")
    own = torchvision.models.get_model_weights(known).DEFAULT.transforms()
    side = own.crop_size[0]
    preprocessing = Preprocessing(
        mean=tuple(own.mean),
        std=tuple(own.std),
        input_size=(side, side),
        interpolation="bicubic" if own.interpolation.value == "bicubic" else "bilinear",
    )
    return TorchModel(f"torchvision:{name}", module, runtime, preprocessing)


def open_factory(name: str, runtime: Runtime) -> TorchModel:
    """Return ``package.module:factory``, a function that returns a module, or (module, its preprocessing)."""
    torch = import_torch()
    with name_model_in_errors(name):
        made = find_function(name)()
    module, own = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(module, torch.nn.Module):
        raise ConfigError(f"--model {name}: returns {type(module).__name__}, not a torch.nn.Module")
    if own is not None and not isinstance(own, Preprocessing):
        own = check_fields(own, f"--model {name}: its preprocessing")
    return TorchModel(name, module.eval(), runtime, own)
