"""Validation of arguments: arrays of the right dtype, shape and range, or an ArgumentError."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustgen.errors import ArgumentError

Floats: TypeAlias = NDArray[np.float64]


Classes: TypeAlias = NDArray[np.intp]


def array_of(value: ArrayLike, name: str, kinds: str, axes: str) -> NDArray[Any]:
    """Return `value` as an array of a dtype kind in `kinds`; `axes` has a word per axis ("..." for any)."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} cannot be converted to an array: {error}") from error
    if array.dtype.kind not in kinds:
        wanted = "numbers" if "f" in kinds else "truth values" if "b" in kinds else "integers"
        raise ArgumentError(f"{name} must contain {wanted}, not {array.dtype}")
    if not _fits(array.shape, axes.split()):
        shape = ", ".join(axes.split())
        raise ArgumentError(f"{name} must have the shape ({shape}), none of them 0, not {array.shape}")
    return array


def _fits(shape: tuple[int, ...], axes: list[str]) -> bool:
    enough = len(shape) >= len(axes) - 1 if "..." in axes else len(shape) == len(axes)
    return enough and 0 not in shape


def logits_of(value: ArrayLike, axes: str = "... classes") -> NDArray[Any]:
    """Return `value` as floating-point logits; minus infinity excludes a class, NaN and infinity raise."""
    array = array_of(value, "logits", "fiu", axes)
    if not np.isfinite(array.max(axis=-1)).all():
        raise ArgumentError("logits contain NaN or infinity")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def labels_of(value: ArrayLike, images: int, classes: int) -> Classes:
    """Return `value` as true classes, (images,), each in 0 .. classes - 1."""
    labels = array_of(value, "labels", "iu", "images")
    if len(labels) != images:
        raise ArgumentError(f"{len(labels)} labels for {images} images")
    if labels.min() < 0 or labels.max() >= classes:
        raise ArgumentError(f"labels must be 0 to {classes - 1}, not {labels.min()} to {labels.max()}")
    return labels.astype(np.intp)


def class_set(value: ArrayLike, classes: int) -> Classes:
    """Return `value` in ascending order, which breaks ties between logits."""
    chosen = np.sort(array_of(value, "classes", "iu", "classes"))
    if chosen[0] < 0 or chosen[-1] >= classes or (chosen[1:] == chosen[:-1]).any():
        raise ArgumentError(f"classes must be distinct indices from 0 to {classes - 1}")
    return chosen.astype(np.intp)


def bounded(value: ArrayLike, name: str, axes: str, most: float = 1.0) -> Floats:
    """Return `value` as float64 numbers from 0 to `most`."""
    array = array_of(value, name, "fiu", axes).astype(np.float64)
    if not (array.min() >= 0 and array.max() <= most):
        hint = " (fractions, not per cent)" if most == 1 else ""
        raise ArgumentError(f"{name} must be 0 to {most:g}{hint}, not {array.min():g} to {array.max():g}")
    return array


def number(value: float, name: str, most: float = 1.0) -> float:
    """Return `value` as one number from 0 to `most`."""
    return float(bounded([value], name, "number", most)[0])


def distributions(value: ArrayLike, axes: str = "... classes") -> Floats:
    """Return `value` as probabilities that sum to 1 over the last axis."""
    rows = bounded(value, "probabilities", axes)
    # Wide enough for float16 outputs, narrow enough to catch logits.
    if np.abs(rows.sum(axis=-1) - 1).max() > 0.01:
        raise ArgumentError("probabilities must sum to 1 over the classes (use softmax on logits)")
    return rows


def flags_of(value: ArrayLike, name: str, count: int) -> NDArray[np.bool_]:
    """Return `value` as `count` truth values."""
    flags = array_of(value, name, "biu", "images")
    if len(flags) != count:
        raise ArgumentError(f"{name} has {len(flags)} entries where {count} are needed")
    if flags.min() < 0 or flags.max() > 1:
        raise ArgumentError(f"{name} must be true or false, 1 or 0")
    return flags.astype(np.bool_)


BLOCK_ELEMENTS = 1 << 18


def blocks(rows: int, row_elements: int) -> Iterator[slice]:
    """Yield slices of `rows` whose elements fit into the cache."""
    step = max(1, BLOCK_ELEMENTS // row_elements)
    return (slice(start, start + step) for start in range(0, rows, step))
