"""AlexNet's published values, which normalise scores."""

import json
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final


def read_published(name: str) -> dict[str, Any]:
    """Return a table of published values: title, source, terms, images, and a list of models."""
    text = (files("robustgen.metrics") / "published" / f"{name}.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


_ALEXNET: Final = read_published("alexnet")["models"][0]

ALEXNET_CLEAN_ERROR: Final[float] = _ALEXNET["clean_error"]
"""Top-1 error of AlexNet on clean ImageNet; [C] Table 1."""
ALEXNET_ERROR: Final[Mapping[str, float]] = MappingProxyType(_ALEXNET["errors"])
"""Top-1 error of AlexNet on ImageNet-C, mean over the five severities; [C] appendix D."""
ALEXNET_FLIP_PROBABILITY: Final[Mapping[str, float]] = MappingProxyType(_ALEXNET["flip_probabilities"])
"""Flip probability of AlexNet on ImageNet-P, at difficulty 1; [C] appendix E."""
ALEXNET_TOP5_DISTANCE: Final[Mapping[str, float]] = MappingProxyType(_ALEXNET["top5_distances"])
"""Unnormalised top-5 distance of AlexNet on ImageNet-P, at difficulty 1; [C] appendix E."""
