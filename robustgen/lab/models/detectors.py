"""Detectors: those of torchvision with given weights, and user functions."""

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from robustgen.errors import ConfigError
from robustgen.files.storage import locate
from robustgen.lab.models.base import first_line
from robustgen.lab.models.masks import encode_mask
from robustgen.lab.models.pytorch import (
    choose_device,
    find_function,
    import_library,
    import_torch,
    name_model_in_errors,
    read_weights,
)
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.sets.dataset.outputs import file_digest
from robustgen.settings.models import Runtime

DETECTOR_FORMS: Final = "torchvision:NAME@FILE or module:function"
_MASK_THRESHOLD: Final = 0.5
# Attribute in which torchvision's region-based detectors keep one output per class.
_CLASS_BIASES: Final = "roi_heads.box_predictor.cls_score.bias"

Detection = dict[str, Any]


class Detector(ABC):
    """Finds objects in an image.

    Attributes
    ----------
    name : str
        Name as given by the user.
    digest : str
        SHA-256 of its weights or its module; empty if it has no file.
    """

    name: str
    digest: str

    @property
    def label(self) -> str:
        """Return the name of its folder."""
        return Path(self.name.partition("@")[0].replace(":", "-")).name

    @abstractmethod
    def detect(self, image: Rgb) -> list[Detection]:
        """Return ``category_id``, ``bbox``, ``score`` of each object, and ``segmentation`` for masks."""

    def settings(self) -> dict[str, str]:
        """Return its identity, for settings."""
        return {"model": self.name.partition("@")[0], "sha256": self.digest}


class TorchvisionDetector(Detector):
    """A detector of torchvision, whose labels are COCO's category ids.

    Parameters
    ----------
    name : str
    module : torch.nn.Module
    weights : Path
    runtime : Runtime
    """

    def __init__(self, name: str, module: Any, weights: Path, runtime: Runtime) -> None:
        self.name = name
        self._device = choose_device(runtime.device)
        self._module, self.digest = module.eval().to(self._device), file_digest(*locate(weights))
        if runtime.threads:
            import_torch().set_num_threads(runtime.threads)

    def detect(self, image: Rgb) -> list[Detection]:
        """Return the detections, as `Detector.detect`."""
        torch = import_torch()
        pixels = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))).to(self._device) / 255
        with torch.inference_mode():
            (found,) = self._module([pixels])
        arrays = {name: value.float().cpu().numpy() for name, value in found.items()}
        left, top, right, bottom = arrays["boxes"].astype(np.float64).T
        boxes = np.stack([left, top, right - left, bottom - top], axis=1).round(3)
        detections = []
        for index, (box, label, score) in enumerate(
            zip(boxes.tolist(), arrays["labels"].tolist(), arrays["scores"].tolist(), strict=True)
        ):
            detections.append({"category_id": int(label), "bbox": box, "score": score})
            if "masks" in arrays:
                detections[-1]["segmentation"] = encode_mask(arrays["masks"][index, 0] >= _MASK_THRESHOLD)
        return detections


class FunctionDetector(Detector):
    """A user function from uint8 pixels (H, W, 3) to a list of detections.

    Parameters
    ----------
    name : str
    function : callable
    """

    def __init__(self, name: str, function: Callable[[Rgb], Any]) -> None:
        self.name, self._function = name, function
        path = getattr(sys.modules[function.__module__], "__file__", None)
        self.digest = hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else ""

    def detect(self, image: Rgb) -> list[Detection]:
        """Return the detections, as `Detector.detect`."""
        with name_model_in_errors(self.name):
            found = self._function(image)
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise ConfigError(f"--model {self.name}: must return a list, not {type(found).__name__}")
        return [{**each} for each in found]


def open_detector(name: str, runtime: Runtime) -> Detector:
    """Load the detector called `name`, one of `DETECTOR_FORMS`.

    Raises
    ------
    MissingDependencyError
        The required library is not installed.
    ConfigError
        There is no such detector.
    """
    library, _, rest = name.partition(":")
    if library == "torchvision" and rest:
        return _open_torchvision(rest, runtime)
    if rest and not Path(name).exists():
        with name_model_in_errors(name):
            found = find_function(name)
        if not callable(found):
            raise ConfigError(f"--model {name}: is {type(found).__name__}, not a function")
        return FunctionDetector(name, found)
    raise ConfigError(f"--model {name}: a detector is {DETECTOR_FORMS}")


def _open_torchvision(name: str, runtime: Runtime) -> TorchvisionDetector:
    models = import_library("torchvision", "torch").models
    known, _, checkpoint = name.partition("@")
    listed = models.list_models(models.detection)
    if known not in listed:
        raise ConfigError(f"--model torchvision:{known}: torchvision's detectors are {', '.join(listed)}")
    if not checkpoint:
        raise ConfigError(f"--model torchvision:{known}: name its weights: torchvision:{known}@FILE")
    weights = read_weights(Path(checkpoint))
    classes = {"num_classes": len(weights[_CLASS_BIASES])} if _CLASS_BIASES in weights else {}
    try:
        module = models.get_model(known, weights=None, weights_backbone=None, **classes)
        module.load_state_dict(weights)
    except Exception as error:
        raise ConfigError(f"{checkpoint}: not weights of {known}: {first_line(error)}") from error
    return TorchvisionDetector(f"torchvision:{name}", module, Path(checkpoint), runtime)


def check_detections(detector: Detector, detections: list[Detection]) -> None:
    """Raise a ConfigError unless every detection has a category, a box and a score.

    Further checks follow when the result files are read.
    """
    for each in detections:
        if missing := {"category_id", "bbox", "score"} - each.keys():
            raise ConfigError(f"--model {detector.name}: a detection lacks {min(missing)}")
