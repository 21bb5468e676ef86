"""Predictions for candidates: each batch is a record in the state of the output, so that a run resumes."""

import hashlib
from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from robustgen.dataset.records import Origin, ValuesRecord
from robustgen.dataset.state import OutputState
from robustgen.filtration.funnel import Opinions

_FIELDS = tuple(field.name for field in fields(Opinions))


def put_opinions(state: OutputState, images: Mapping[str, Origin], said: Opinions) -> None:
    """Put what the models said of a batch of `images`."""
    parts = [f"{key}\0{size} {identity}\0" for key, (size, identity) in images.items()]
    digest = hashlib.sha256("".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    values = {name: getattr(said, name).tolist() for name in _FIELDS}
    state.put_record(f"opinions/{digest[:32]}", ValuesRecord(images, values=values))


def read_opinions(
    state: OutputState, sizes: Mapping[str, int], models: int
) -> tuple[Opinions, dict[str, str]]:
    """Read what `models` models said of the images in `sizes`, in that order.

    Parameters
    ----------
    state : OutputState
    sizes : mapping of str to int
        Key to bytes of the file; what was said of an image of another size does not count.
    models : int

    Returns
    -------
    said : Opinions
        Zeros for images that the models were not asked about.
    identities : dict of str to str
        Key to identity of all others, as they were read.
    """
    places = {key: place for place, key in enumerate(sizes)}
    said, identities = Opinions.blank(models, len(sizes)), dict[str, str]()
    for _, record in state.read_records():
        if isinstance(record, ValuesRecord):
            batch = Opinions(*(np.array(record.values[name]) for name in _FIELDS))
            for index, (key, (size, identity)) in enumerate(record.images.items()):
                if sizes.get(key) == size:
                    said.put(places[key], batch, index)
                    identities[key] = identity
    return said, identities


def forget_opinions(state: OutputState, key: str | None = None) -> None:
    """Delete all records of opinions, or those of batches with the image `key`."""
    for name, record in [*state.read_records()]:
        if key is None or record is None or key in record.images:
            state.delete_record(name)
