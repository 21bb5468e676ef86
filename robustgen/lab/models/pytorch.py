"""Models of PyTorch: exported ones, those of timm and torchvision, and results of user functions.

PyTorch and the others are imported on demand. Nothing is trained, and nothing in a file is executed: weights
are read only as tensors.
"""

import hashlib
import importlib
import inspect
import math
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ConfigError, MissingDependencyError, explain_import
from robustgen.files.storage import locate
from robustgen.lab.models.base import (
    TEXTS,
    FunctionModel,
    Images,
    Model,
    OutOfDeviceMemoryError,
    explain_text,
    first_line,
)
from robustgen.lab.models.hugging_face import list_class_names, read_preprocessing
from robustgen.lab.models.preprocessing import RAW, Preprocessing, check_fields
from robustgen.sets.dataset.outputs import file_digest
from robustgen.settings.models import Axes, Runtime

# Keys of the weights in checkpoints that also contain their mean over the training, or parts.
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
    shape : tuple of int or None, optional
        Its input shape; default (images, channels, any, any), with the channels of its first layer.
    identity : str, optional
        SHA-256 of its file; default that of its weights.
    precision : torch.dtype, optional
        Type of its input; default that of its weights.
    """

    def __init__(
        self,
        name: str,
        module: Any,
        runtime: Runtime,
        preprocessing: Preprocessing | None = None,
        shape: tuple[int | None, ...] | None = None,
        identity: str | None = None,
        precision: Any = None,
    ) -> None:
        torch = import_torch()
        self.name, self.label = name, name
        self.class_names = list_class_names(module)
        self._device = choose_device(runtime.device)
        nn, layers = torch.nn, [*module.modules()]
        convolution = next((each for each in layers if isinstance(each, nn.Conv2d)), None)
        is_grey = convolution is not None and convolution.in_channels == 1
        self._shape = shape or (None, 1 if is_grey else 3, None, None)
        self._mixed = runtime.mixed_precision
        # Number of inputs of a module whose first layer is linear.
        first = next((each for each in layers if isinstance(each, nn.Conv2d | nn.Linear)), None)
        self._flat = first.in_features if isinstance(first, nn.Linear) and not shape else None
        floats = (each.dtype for each in module.parameters() if each.is_floating_point())
        self._input = precision or next(floats, torch.float32)
        self._identity = identity or _digest_weights(module, name)
        # NumPy has no bfloat16.
        dtypes = {torch.float16: np.float16, torch.float64: np.float64, torch.uint8: np.uint8}
        self.dtype = np.dtype(dtypes.get(self._input, np.float32))
        self.preprocessing = RAW if self._input == torch.uint8 else preprocessing
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

    def run(self, images: Images, preprocessing: Preprocessing) -> NDArray[Any]:
        """Return the logits of a batch, as `Model.run`."""
        torch = import_torch()
        if self._flat == math.prod(images[0].shape[:2]):
            # Its first layer takes each pixel once.
            self._shape = (None, 1, None, None)
        try:
            device = self._device.partition(":")[0]
            half = torch.bfloat16 if device == "cpu" else torch.float16
            with torch.inference_mode(), torch.autocast(device, dtype=half, enabled=self._mixed):
                inputs = self._prepare(images, preprocessing, torch)
                logits = self._find_logits(self._module(inputs), torch)
                # Half precision is converted: it makes NumPy's other functions slow.
                return np.asarray(logits.float().cpu().numpy())
        except RuntimeError as error:
            # CUDA has its own error class for this, MPS does not.
            if isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in str(error):
                if self._device.startswith("cuda"):
                    torch.cuda.empty_cache()
                raise OutOfDeviceMemoryError from error
            raise

    def _prepare(self, images: Images, preprocessing: Preprocessing, torch: Any) -> Any:
        """Return the input on the device; other devices than the CPU normalise the pixels themselves."""
        if self._device == "cpu":
            return torch.from_numpy(self.normalise(images, preprocessing)).to(self._input)
        tables = torch.from_numpy(preprocessing.tabulate(self.dtype)).to(self._device, self._input)
        arranged = self.choose_arrangement(preprocessing)(np.asarray(images))
        pixels = torch.from_numpy(arranged).to(self._device)
        return look_up_there(pixels, tables, self.layout(preprocessing.layout))

    @property
    def text_inputs(self) -> Sequence[str]:
        """Return the names of inputs for text, as `Model.text_inputs`."""
        return [name for name in inspect.signature(self._module.forward).parameters if name in TEXTS]

    def _find_logits(self, outputs: Any, torch: Any) -> Any:
        """Return the logits: the only tensor that a module returns, or the one with this name."""
        # Models of Hugging Face return an object with this name.
        if hasattr(outputs, "logits"):
            found, listed = [outputs.logits], type(outputs).__name__
        elif isinstance(outputs, Mapping):
            found = [outputs["logits"]] if "logits" in outputs else [*outputs.values()]
            listed = f"a dict of {', '.join(map(repr, outputs)) or 'nothing'}"
        elif isinstance(outputs, (tuple, list)):
            found, listed = [*outputs], f"{len(outputs)} outputs"
        else:
            found, listed = [outputs], type(outputs).__name__
        if len(found) == 1 and isinstance(found[0], torch.Tensor):
            return found[0]
        if texts := self.text_inputs:
            raise ConfigError(explain_text(self.name, texts))
        way = "wrap it in a module that returns only the logits"
        raise ConfigError(f"{self.name}: returns {listed}, not a tensor of logits: {way}")


def look_up_there(pixels: Any, tables: Any, layout: Axes) -> Any:
    """Return the input for uint8 images (n, H, W, C): the entries of `tables`, (3, 256) on their device.

    A look-up gives the same floats on every device, which arithmetic need not.
    """
    channels, is_planar = pixels.shape[3], layout == "NCHW"
    axis, shape = (1, (len(pixels), channels, *pixels.shape[1:3])) if is_planar else (3, pixels.shape)
    images = tables.new_empty(shape)
    for channel, table in enumerate(tables[:channels]):
        images.select(axis, channel).copy_(table[pixels[..., channel].long()])
    return images


# --- PyTorch itself ------------------------------------------------------------------------------


def import_torch() -> Any:
    """Return the module torch; raise a MissingDependencyError if it is not installed."""
    return import_library("torch", "torch")


def import_library(library: str, extra: str) -> Any:
    """Return a module that belongs to an `extra`; raise a MissingDependencyError if it is not installed."""
    with explain_import(f"such a model needs {library}", extra):
        return importlib.import_module(library)


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


def _digest_weights(module: Any, name: str) -> str:
    digest = hashlib.sha256()
    try:
        for key, value in sorted(module.state_dict().items()):
            _add_weights(digest, key, value)
    except Exception as error:
        # Weights on the device "meta", or not initialised yet.
        raise ConfigError(f"{name}: its weights cannot be read: {first_line(error)}") from error
    return digest.hexdigest()


def _add_weights(digest: Any, key: str, value: Any) -> None:
    """Add an entry of a state_dict to `digest`; those of quantised modules may be tuples, types or None."""
    torch = import_torch()
    if isinstance(value, (tuple, list)):
        for number, each in enumerate(value):
            _add_weights(digest, f"{key}.{number}", each)
    elif isinstance(value, torch.Tensor):
        digest.update(f"{key}\0{value.dtype}\0{tuple(value.shape)}\0".encode())
        plain = value.dequantize() if value.is_quantized else value.to_dense()
        array = plain.detach().cpu().contiguous()
        digest.update(array.reshape(-1).view(torch.uint8).numpy().tobytes())
    else:
        digest.update(f"{key}\0{value}\0".encode())


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
            content = import_library("safetensors.torch", "timm").load_file(path)
        else:
            with warnings.catch_warnings():
                # A warning about programs of TorchScript, which are refused.
                warnings.simplefilter("ignore")
                content = torch.load(path, map_location="cpu", weights_only=True)
    except MissingDependencyError:
        raise
    except Exception as error:
        raise ConfigError(f"{path}: not a file of weights: {_explain_refusal(error)}") from error
    weights = _choose_weights(content if isinstance(content, Mapping) else {}, path)
    return {str(name).removeprefix("module."): tensor for name, tensor in weights.items()}


def _explain_refusal(error: Exception) -> str:
    """Return why PyTorch does not read a file as tensors, and what to do."""
    if "Unsupported global" in str(error) or "Unsupported class" in str(error):
        return (
            "holds Python objects, such as a whole module, which could run any code: "
            "save the weights alone, with torch.save(module.state_dict(), FILE)"
        )
    if "TorchScript" in str(error):
        return "is a program of TorchScript: export the module as ONNX, or with torch.export.save as a .pt2"
    return first_line(error)


def _choose_weights(content: Mapping[Any, Any], path: Path) -> Mapping[Any, Any]:
    """Return the weights by name in the `content` of a checkpoint, which may contain more."""
    tensor, found = import_torch().Tensor, dict[Any, Mapping[Any, Any]]()
    for key, value in {"": content, **content}.items():
        if isinstance(value, Mapping) and value and all(isinstance(each, tensor) for each in value.values()):
            found[key] = value
    if not found:
        raise ConfigError(f"{path}: contains no weights by name (a state_dict)")
    if len(found) == 1:
        return next(iter(found.values()))
    if known := next((key for key in _NESTED if key in found), None):
        return found[known]
    listed = ", ".join(map(repr, found))
    raise ConfigError(f"{path}: contains several sets of weights, {listed}: save one of them in its own file")


def _strip_prefix(weights: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the weights for the names in `own`, without a prefix such as Lightning's ``model.``."""
    first = next(iter(own))
    prefixes = [key.removesuffix(first) for key in weights if key.endswith(f".{first}")]
    if first in weights or len(prefixes) != 1:
        return weights
    (prefix,) = prefixes
    return {key.removeprefix(prefix): each for key, each in weights.items() if key.startswith(prefix)}


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


def _build_with(
    checkpoint: str, name: str, build: Callable[..., Any], find_layer: Callable[[Any], Any]
) -> Any:
    """Return a network with the weights of a checkpoint, for their number of classes.

    `build` returns the network called `name`, also for a given ``num_classes``; `find_layer` names its last
    layer.
    """
    path, torch = Path(checkpoint), import_torch()
    weights: Mapping[str, Any] = read_weights(path)
    try:
        with torch.device("meta"):
            usual = build()
        own, layer = usual.state_dict(), find_layer(usual)
        weights = _strip_prefix(weights, own)
        counts = [
            len(each) for key, each in weights.items() if key in own and key.rpartition(".")[0] == layer
        ]
        module = build(**({"num_classes": counts[0]} if counts else {}))
    except Exception as error:
        raise ConfigError(f"--model {name}@{checkpoint}: {first_line(error)}") from error
    _load_weights(module, weights, path, name)
    return module


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
        yield TorchModel(name, module.eval(), runtime, read_preprocessing(module))
    finally:
        for each, mode in training.items():
            each.training = mode
        for flag, value in flags.items():
            setattr(cudnn, flag, value)


def open_exported(path: Path, runtime: Runtime) -> TorchModel:
    """Open a ``.pt2`` written by `torch.export.save`, if it is trusted: loading one can run any code."""
    torch = import_torch()
    if not path.is_file():
        raise ConfigError(f"--model: there is no file {path}")
    try:
        if not zipfile.is_zipfile(path):
            raise ConfigError(f"{path}: not an exported program of PyTorch (a zip archive)")
        if not runtime.trust_model:
            raise ConfigError(f"{path}: it can run any code: give --trust-model if you trust its origin")
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
        raise ConfigError(f"{path}: must have one input, images (n, 3, H, W) or (n, 1, H, W), not {shapes}")
    (shape,), precision = shapes, inputs[0].dtype
    if not precision.is_floating_point and precision != torch.uint8:
        raise ConfigError(f"{path}: its input must be of floats or uint8, not {precision}")
    return TorchModel(
        str(path), module, runtime, shape=shape, identity=file_digest(*locate(path)), precision=precision
    )


def open_timm(name: str, runtime: Runtime) -> TorchModel:
    """Return ``timm:NAME`` with timm's pretrained weights, or ``timm:NAME@checkpoint.pth``."""
    timm = import_library("timm", "timm")
    known, _, checkpoint = name.partition("@")
    if known.partition(".")[0] not in timm.list_models():
        hint = _suggest(known, timm.list_models())
        raise ConfigError(f"--model timm:{known}: timm {timm.__version__} has no such model{hint}")
    if checkpoint:
        build = partial(timm.create_model, known)
        module = _build_with(checkpoint, f"timm:{known}", build, _find_timm_classifier)
    else:
        try:
            module = timm.create_model(known, pretrained=True)
        except Exception as error:
            hint = f"timm:{known}@FILE loads your own weights"
            raise ConfigError(f"--model timm:{known}: {first_line(error)} ({hint})") from error
    own = timm.data.resolve_model_data_config(module)
    preprocessing = _gather(own["mean"], own["std"], own["input_size"][1:], own.get("interpolation"))
    return TorchModel(f"timm:{name}", module.eval(), runtime, preprocessing)


def _find_timm_classifier(module: Any) -> Any:
    """Return the name of the last layer of a network of timm; the first one of several."""
    found = module.pretrained_cfg.get("classifier")
    return found[0] if isinstance(found, (tuple, list)) else found


def _gather(mean: Any, std: Any, size: Any, interpolation: Any) -> Preprocessing:
    method: Any = "bicubic" if interpolation == "bicubic" else "bilinear"
    return Preprocessing(tuple(mean), tuple(std), input_size=tuple(size), interpolation=method)


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
    build = partial(torchvision.models.get_model, known, weights=None)
    module = _build_with(
        checkpoint, f"torchvision:{known}", build, lambda usual: [*usual.state_dict()][-1].rpartition(".")[0]
    )
    own = torchvision.models.get_model_weights(known).DEFAULT.transforms()
    preprocessing = _gather(own.mean, own.std, 2 * own.crop_size[:1], own.interpolation.value)
    return TorchModel(f"torchvision:{name}", module.eval(), runtime, preprocessing)


def open_factory(name: str, runtime: Runtime) -> Model:
    """Return the model that ``package.module:factory``, a function without arguments, returns.

    It returns a module, or (module, its preprocessing), or a function that `FunctionModel` describes.
    """
    with name_model_in_errors(name):
        made = find_function(name)()
    module, own = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    torch = sys.modules.get("torch")
    if not torch or not isinstance(module, torch.nn.Module):
        if callable(made):
            place = sys.modules[name.partition(":")[0]].__file__
            return FunctionModel(made, name, file_digest(*locate(Path(place))) if place else "")
        if callable(module):
            what = "returns a function with preprocessing: return it alone, as it gets the pixels themselves"
        else:
            what = f"returns {type(module).__name__}, neither a torch.nn.Module nor a function of arrays"
        raise ConfigError(f"--model {name}: {what}")
    if own is not None and not isinstance(own, Preprocessing):
        own = check_fields(own, f"--model {name}: its preprocessing")
    return TorchModel(name, module.eval(), runtime, own or read_preprocessing(module))
