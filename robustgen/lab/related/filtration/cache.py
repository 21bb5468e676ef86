"""Cached predictions of models for candidates: records in the output state, of units of whole batches."""

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from robustgen.files.ledger import Failure, Ledger, Origin, Record
from robustgen.lab.related.filtration.funnel import Opinions

_FIELDS = tuple(field.name for field in fields(Opinions))


class Answers:
    """Predictions of the models for the images in `sizes`, in that order; zeros where there are none.

    Parameters
    ----------
    models : int
    sizes : mapping of str to int
        Key to bytes of the file; a prediction for a file of another size is ignored.

    Attributes
    ----------
    said : Opinions
    identities : dict of str to str
        Key to identity, at the time of reading, of each predicted image.
    failures : dict of str to str
        Key to reason for each unreadable image.
    """

    def __init__(self, models: int, sizes: Mapping[str, int]) -> None:
        self._sizes, self._places = sizes, {key: index for index, key in enumerate(sizes)}
        self.said = Opinions.blank(models, len(sizes))
        self.identities: dict[str, str] = {}
        self.failures: dict[str, str] = {}

    def add(self, record: Record | None) -> None:
        """Add the record of a unit."""
        if not record or not record.values:
            return
        batch = Opinions(*(np.array(record.values[name]) for name in _FIELDS))
        for index, (key, (size, identity)) in enumerate(record.images.items()):
            if self._sizes.get(key) == size:
                self.said.put(self._places[key], batch, index)
                self.identities[key] = identity
        self.failures |= {failure["key"]: failure["reason"] for failure in record.failures}


def make_record(images: Mapping[str, Origin], said: list[Opinions], failures: list[Failure]) -> Record:
    """Return the record of the predictions `said` for `images`, batch by batch."""
    values = {
        name: np.concatenate([getattr(each, name) for each in said], axis=-1).tolist() for name in _FIELDS
    }
    return Record(images, failures=failures, values=values)


def forget_opinions(state: Ledger, key: str | None = None) -> None:
    """Delete all records, or only those of units with the image `key`."""
    for name, record in [*state.read_records()]:
        if key is None or record is None or key in record.images:
            state.delete_record(name)
