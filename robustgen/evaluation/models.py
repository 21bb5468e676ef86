"""ONNX models of images: what they take, what they give, and whether that fits a data set."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robustgen.datasets import Dataset
from robustgen.errors import ConfigError, MissingDependencyError
from robustgen.evaluation.preprocessing import Layout, Pixels, Preprocessing

CPU: Final = "CPUExecutionProvider"
_DTYPES: Final = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}


class Model:
    """An ONNX model that takes images and gives logits.

    Parameters
    ----------
    path : Path
    threads : int
        0 for one a core.
    provider : str
        Of ONNX Runtime, for instance ``"CUDAExecutionProvider"``.

    Raises
    ------
    MissingDependencyError
        ONNX Runtime is not installed.
    ConfigError
        There is no such model or provider, or it is no classifier of images.
    """

    def __init__(self, path: Path, threads: int = 0, provider: str = CPU) -> None:
        self.path = path
        self._session = _session(path, threads, provider)
        self._input, self._output = self._find_input(), self._find_output()
        self.dtype = np.dtype(_DTYPES[self._input.type])
        self.channels_first = self._channels()

    def _find_input(self) -> Any:
        inputs = self._session.get_inputs()
        taken = [each for each in inputs if each.type in _DTYPES and len(each.shape) == 4]
        if len(inputs) != 1 or not taken:
            raise ConfigError(
                f"{self.path}: must have one input, images with four axes of floats, not {_listed(inputs)}"
            )
        return taken[0]

    def _find_output(self) -> Any:
        outputs = self._session.get_outputs()
        floats = [each for each in outputs if each.type in _DTYPES]
        # Some exporters leave the axes open; what comes is looked at then.
        given = [each for each in floats if len(each.shape or "??") == 2]
        if len(given) != 1:
            raise ConfigError(
                f"{self.path}: must have one output of floats with two axes, (images, classes), "
                f"not {_listed(outputs)}"
            )
        return given[0]

    def _channels(self) -> bool | None:
        """Whether the channels come before height and width; None where the model does not say."""
        first, last = self._input.shape[1] == 3, self._input.shape[3] == 3
        if not (first or last) and all(isinstance(self._input.shape[axis], int) for axis in (1, 3)):
            raise ConfigError(f"{self.path}: its input {self._input.shape} is not of RGB images")
        return None if first == last else first

    def layout(self, wanted: Layout | None) -> Layout:
        """The layout that the model says, or else the one `wanted`; a ConfigError where they disagree."""
        own: Layout | None = None
        if self.channels_first is not None:
            own = "NCHW" if self.channels_first else "NHWC"
        if own and wanted and own != wanted:
            raise ConfigError(f"{self.path}: takes {own} ({self._input.shape}), not {wanted}")
        return own or wanted or "NCHW"

    def sides(self, layout: Layout) -> tuple[int | None, int | None]:
        """Height and width of the images that the model takes; None where it takes any."""
        axes = self._input.shape[2:4] if layout == "NCHW" else self._input.shape[1:3]
        height, width = (axis if isinstance(axis, int) else None for axis in axes)
        return height, width

    def check_size(self, height: int, width: int, layout: Layout) -> None:
        """Raise a ConfigError if the model does not take images of this size."""
        axes = self.sides(layout)
        for side, wanted in zip((height, width), axes, strict=True):
            if wanted and side != wanted:
                sides = " x ".join(str(axis) if axis else "any" for axis in axes)
                raise ConfigError(
                    f"{self.path}: takes images of {sides} pixels, these are {height} x {width} "
                    f"(--size resizes them)"
                )

    def __call__(self, images: NDArray[Any]) -> NDArray[Any]:
        """Logits (n, classes) of preprocessed images (n, ...)."""
        fixed = self._input.shape[0]
        if not isinstance(fixed, int):
            return self._run(images)
        parts = [images[start : start + fixed] for start in range(0, len(images), fixed)]
        return np.concatenate([self._run(_filled(part, fixed))[: len(part)] for part in parts])

    def _run(self, images: NDArray[Any]) -> NDArray[Any]:
        try:
            (logits,) = self._session.run([self._output.name], {self._input.name: images})
        # ONNX Runtime's exceptions have no base of their own.
        except Exception as error:
            raise ConfigError(f"{self.path}: fails on images {images.shape}: {_first_line(error)}") from error
        if logits.ndim != 2 or len(logits) != len(images):
            raise ConfigError(f"{self.path}: gives {logits.shape} for {len(images)} images")
        return np.asarray(logits)


def _session(path: Path, threads: int, provider: str) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        message = "ONNX models need ONNX Runtime: pip install 'robustgen[onnx]'"
        raise MissingDependencyError(message) from error
    if not path.is_file():
        raise ConfigError(f"--model: there is no file {path}")
    known = onnxruntime.get_available_providers()
    if provider not in known:
        raise ConfigError(f"--provider: ONNX Runtime has no {provider} here; it has {', '.join(known)}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(path, options, providers=[provider])
    except Exception as error:
        raise ConfigError(f"{path}: ONNX Runtime cannot load it: {_first_line(error)}") from error


def runtime_version() -> str:
    """The version of ONNX Runtime, on which the last digits of predictions depend."""
    import onnxruntime

    return str(onnxruntime.__version__)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _listed(values: Any) -> str:
    return ", ".join(f"{each.name} {each.type} {each.shape}" for each in values) or "none"


def _filled(images: NDArray[Any], count: int) -> NDArray[Any]:
    """`images` and as many copies of the last as make `count`."""
    return np.concatenate([images, np.repeat(images[-1:], count - len(images), axis=0)])


@dataclass(frozen=True)
class Classifier:
    """A model with the preprocessing it was trained with: pixels to logits."""

    model: Model
    preprocessing: Preprocessing

    def __call__(self, images: Pixels) -> NDArray[Any]:
        """Logits (n, K) of uint8 images (n, H, W, 3)."""
        layout = self.model.layout(self.preprocessing.layout)
        self.model.check_size(images.shape[1], images.shape[2], layout)
        return self.model(self.preprocessing.normalise(images, layout, self.model.dtype))

    def classes(self, dataset: Dataset) -> int:
        """How many classes the model tells apart, judged by the first image of `dataset`.

        Raises
        ------
        ConfigError
            The model does not take these images, or its classes are not those of the set.
        """
        pixels = self.preprocessing.resize(dataset.load(dataset.arms[0], 0))
        classes = int(self(pixels.reshape(-1, *pixels.shape[-3:])[:1]).shape[-1])
        named, own = self.preprocessing.classes, f"{self.model.path} has {classes} classes"
        if named and len(named) != classes:
            raise ConfigError(f"the class list has {len(named)} names, {own}")
        if dataset.classes not in (None, classes):
            raise ConfigError(
                f"{dataset.root} has {dataset.classes} class folders, {own}: "
                f"list these, in the order of the model's outputs, with --classes"
            )
        return classes
