"""Masks of objects in COCO's form, by pycocotools."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import explain_import


def import_pycocotools() -> tuple[Any, Any, Any]:
    """Return the modules coco, cocoeval and mask of pycocotools; raise MissingDependencyError without it."""
    with explain_import("scores of detectors need pycocotools", "detection"):
        from pycocotools import coco, cocoeval, mask
    return coco, cocoeval, mask


def encode_mask(mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Return a mask (H, W) as COCO's compressed run lengths, in a form for JSON."""
    *_, tools = import_pycocotools()
    made = tools.encode(np.asfortranarray(mask, dtype=np.uint8))
    return {"size": [int(side) for side in made["size"]], "counts": made["counts"].decode("ascii")}
