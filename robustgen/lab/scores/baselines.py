"""Baselines that normalise scores: AlexNet's values, or those in a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from robustgen import metrics
from robustgen.errors import ConfigError, UnknownNameError
from robustgen.lab.scores.results import ModelScores
from robustgen.settings.yaml_files import read_yaml


@dataclass(frozen=True)
class Baseline:
    """The values of another model, which normalise scores.

    Attributes
    ----------
    name : str
    clean_error : float or None
    errors : mapping of str to float or sequence of five floats
    flip_probabilities, top5_distances : mapping of str to float
    """

    name: str
    clean_error: float | None = None
    errors: Mapping[str, Any] = field(default_factory=dict)
    flip_probabilities: Mapping[str, float] = field(default_factory=dict)
    top5_distances: Mapping[str, float] = field(default_factory=dict)


ALEXNET: Final = Baseline(
    "AlexNet",
    metrics.ALEXNET_CLEAN_ERROR,
    metrics.ALEXNET_ERROR,
    metrics.ALEXNET_FLIP_PROBABILITY,
    metrics.ALEXNET_TOP5_DISTANCE,
)
"""The baseline of the published ImageNet-C and ImageNet-P numbers."""


def take_baseline(model: ModelScores) -> Baseline:
    """Return the scores of a model as the baseline of others."""
    return Baseline(
        model.model, model.clean_error, model.errors, model.flip_probabilities, model.top5_distances
    )


_BASELINE_KEYS = ("clean_error", "errors", "flip_probabilities", "top5_distances")


def read_baseline(path: Path) -> Baseline:
    """Read a baseline: the JSON of one model from `robustgen score --format json`, or similar YAML.

    Raises
    ------
    ConfigError
        The file cannot be read, or has several models or invalid values; the message names file and key.
    """
    content = read_yaml(path)
    models = content.get("models", [content])
    if not isinstance(models, list) or len(models) != 1 or not isinstance(models[0], dict):
        raise ConfigError(f"{path}: models: a baseline is one model")
    values = {key: models[0][key] for key in _BASELINE_KEYS if models[0].get(key) is not None}
    if not values.keys() - {"clean_error"}:
        raise ConfigError(f"{path}: has none of {', '.join(_BASELINE_KEYS[1:])}")
    if "models" not in content and (unexpected := content.keys() - set(_BASELINE_KEYS) - {"model"}):
        raise ConfigError(f"{path}: {UnknownNameError('key', str(min(unexpected)), _BASELINE_KEYS)}")
    for key, value in values.items():
        _check_values(f"{path}: {key}", value, mapping=key != "clean_error")
    return Baseline(str(models[0].get("model", path.stem)), **values)


def _check_values(where: str, value: Any, *, mapping: bool) -> None:
    if mapping != isinstance(value, dict):
        raise ConfigError(
            f"{where}: must be {'names with numbers' if mapping else 'a number'}, not {value!r}"
        )
    for name, numbers in value.items() if mapping else [("", value)]:
        parts = numbers if isinstance(numbers, list) and where.endswith(": errors") else [numbers]
        if not all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in parts):
            raise ConfigError(f"{where}{'.' if name else ''}{name}: must be a number, not {numbers!r}")
