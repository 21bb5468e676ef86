"""Models in ONNX files, run by ONNX Runtime."""

import hashlib
import re
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import ConfigError, explain_import
from robustgen.files.storage import locate
from robustgen.lab.models.base import TEXTS, Images, Model, OutOfDeviceMemoryError, explain_text, first_line
from robustgen.lab.models.preprocessing import RAW, Preprocessing
from robustgen.sets.dataset.outputs import file_digest
from robustgen.settings.models import Runtime

_DTYPES: Final = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
_INPUTS: Final = {**_DTYPES, "tensor(uint8)": np.uint8}
_PROVIDERS: Final = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "mps": "CoreMLExecutionProvider",
}


class OnnxModel(Model):
    """An ONNX model that takes images and returns logits.

    Parameters
    ----------
    path : Path
    runtime : Runtime

    Raises
    ------
    MissingDependencyError
        ONNX Runtime is not installed.
    ConfigError
        There is no such model or provider, or it is not a classifier of images.
    """

    def __init__(self, path: Path, runtime: Runtime) -> None:
        self.name, self.label, self._path = str(path), path.name, path
        self._session = _open_session(path, runtime)
        self._input, self._output = self._find_input(), self._find_output()
        self.dtype = np.dtype(_INPUTS[self._input.type])
        self.preprocessing = RAW if self.dtype == np.uint8 else None
        if not {1, 3, None} & {*self.shape[1::2]}:
            raise ConfigError(f"{path}: its input {self._input.shape} is not for images, RGB or grey")

    def _find_input(self) -> Any:
        inputs = self._session.get_inputs()
        taken = [each for each in inputs if each.type in _INPUTS and len(each.shape) == 4]
        if texts := [each.name for each in inputs if each.name in TEXTS]:
            raise ConfigError(explain_text(self.name, texts))
        if len(inputs) != 1 or not taken:
            raise ConfigError(f"{self.name}: needs one input of four axes, not {_list(inputs)}")
        return taken[0]

    def _find_output(self) -> Any:
        outputs = self._session.get_outputs()
        floats = [each for each in outputs if each.type in _DTYPES]
        # Some exporters leave the axes open; the outputs are then checked.
        given = [each for each in floats if len(each.shape or "??") == 2] or [
            each for each in floats if len(each.shape) == 1
        ]
        named = [each for each in given if each.name == "logits"] or given
        if len(named) != 1:
            raise ConfigError(f"{self.name}: needs one output, (images, classes), not {_list(outputs)}")
        return named[0]

    def settings(self) -> dict[str, Any]:
        """Return file and digest; the digest includes weights in separate files."""
        store, name = locate(self._path)
        digests = [file_digest(store, each) for each in (name, *list_weights(store.read(name)))]
        sha256 = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
        return {"file": self._path.name, "sha256": sha256}

    def versions(self) -> dict[str, str]:
        """Return the versions of the libraries, as `Model.versions`."""
        import onnxruntime

        return {"onnxruntime": str(onnxruntime.__version__)}

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Return the shape of its input, as `Model.shape`."""
        return tuple(axis if isinstance(axis, int) else None for axis in self._input.shape)

    def run(self, images: Images, preprocessing: Preprocessing) -> NDArray[Any]:
        """Return the logits of a batch, as `Model.run`."""
        inputs = self.normalise(images, preprocessing)
        try:
            (logits,) = self._session.run([self._output.name], {self._input.name: inputs})
        except Exception as error:
            if "Failed to allocate memory" in str(error):
                raise OutOfDeviceMemoryError from error
            raise
        return np.asarray(logits)


def list_weights(model: bytes) -> list[str]:
    """Return the sorted paths, relative to an ONNX `model`, of its weight files."""
    found = set()
    # A TensorProto names its file in a StringStringEntryProto {"location": "model.data"}.
    for match in re.finditer(rb"\n\x08location\x12([\x80-\xff]?)([\x00-\x7f])", model):
        low, high = match.groups()
        size = (low[0] & 0x7F) | high[0] << 7 if low else high[0]
        found.add(model[match.end() : match.end() + size].decode("utf-8", "replace"))
    return sorted(found)


def _open_session(path: Path, runtime: Runtime) -> Any:
    with explain_import("ONNX models need ONNX Runtime", "onnx"):
        import onnxruntime
    if not path.is_file():
        raise ConfigError(f"--model: there is no file {path}")
    if runtime.mixed_precision:
        raise ConfigError(f"--mixed-precision: {path} computes in the precision that it was exported in")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = runtime.threads or 0
    options.log_severity_level = 4
    # Its threads would wait actively for the next batch, on the cores of the workers.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    providers = [_choose_provider(runtime, onnxruntime.get_available_providers())]
    try:
        return onnxruntime.InferenceSession(path, options, providers=providers)
    except Exception as error:
        raise ConfigError(f"{path}: ONNX Runtime cannot load it: {first_line(error)}") from error


def _choose_provider(runtime: Runtime, known: list[str]) -> str:
    if runtime.device == "auto":
        return _PROVIDERS["cuda" if _PROVIDERS["cuda"] in known else "cpu"]
    provider = _PROVIDERS.get(runtime.device, runtime.device)
    if provider not in known:
        listed = ", ".join(known)
        raise ConfigError(f"--device {runtime.device}: ONNX Runtime has no {provider} here; it has {listed}")
    return provider


def _list(values: Any) -> str:
    return ", ".join(f"{each.name} {each.type} {each.shape}" for each in values) or "none"
