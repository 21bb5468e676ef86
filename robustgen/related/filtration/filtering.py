"""`robustgen filter a` and `filter o`: from folders of candidates to a shortlist and its review page.

shortlist.jsonl   images for review: key, class, prediction, prediction of each model, reason
dropped.jsonl     all other candidates, each with the step and the reason
review.html       the shortlist for review; for more than a thousand images also review-2.html, ...
funnel.json       settings, and the number of images after each step, in total and for each class
errors.jsonl      unreadable images, if any

Predictions of the models are kept as records in the output state, of units of whole batches.
"""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from robustgen.display import progress
from robustgen.errors import ImageError, OutputError, SourceError, explain_failure
from robustgen.files.ledger import Differences, Failure, Ledger, Origin, Record
from robustgen.files.set_files import ERRORS, MANIFEST, STATE, WrittenFile
from robustgen.files.storage import Store, measure, prefetch
from robustgen.lab.evaluation.predictions import ABOUT as PREDICTIONS
from robustgen.lab.evaluation.store import choose_unit_size
from robustgen.pixels.imaging.arrays import Decoded
from robustgen.pixels.imaging.decode import as_rgb, name_image_in_errors, warn_of_few_greys
from robustgen.related.filtration import reviewing
from robustgen.related.filtration.ensemble import Crops, Ensemble, open_ensemble
from robustgen.related.filtration.funnel import Opinions, count_left
from robustgen.related.filtration.rules import Case, Rule
from robustgen.related.settings import Filtering
from robustgen.sets.dataset.outputs import open_output
from robustgen.sets.sources.base import SourceOptions, class_of, read_ahead
from robustgen.sets.sources.folder import ImageFolder
from robustgen.settings.models import Runtime

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


def forget_opinions(state: Ledger, key: str | None = None) -> None:
    """Delete all records, or only those of units with the image `key`."""
    for name, record in [*state.read_records()]:
        if key is None or record is None or key in record.images:
            state.delete_record(name)


SHORTLIST, DROPPED, FUNNEL = "shortlist.jsonl", "dropped.jsonl", "funnel.json"
_SHORTLIST = "shortlist"


@dataclass(frozen=True)
class FilterResult:
    """Result of a run.

    Attributes
    ----------
    steps : tuple of (str, int)
        Names of the steps, and the number of images at first and after each.
    passed_over : int
        Images of classes that --only excludes.
    made, kept : int
        Number of images predicted now, and earlier.
    failures : dict of str to str
        Key to reason, for unusable images.
    pages : tuple of str
    seconds : float
    """

    steps: tuple[tuple[str, int], ...]
    passed_over: int
    made: int
    kept: int
    failures: dict[str, str]
    pages: tuple[str, ...]
    seconds: float


def filter_images(rule: Rule, options: Filtering, runtime: Runtime) -> FilterResult:
    """Choose the candidates that fool the models, and write the shortlist.

    Predictions that are still valid are kept, even if a shortlist with other settings is overwritten.

    Raises
    ------
    RobustgenError
        Models, candidates or output are invalid, or do not match.
    """
    started = time.monotonic()
    # Of filter o, folders are no classes of the models.
    source = ImageFolder(options.candidates, SourceOptions(classes=rule.ten))
    for remark in source.remarks():
        progress.print_note(remark)
    ensemble = open_ensemble(options, runtime, source.classes if rule.ten else (), ten=rule.ten)
    words = reviewing.read_words([Path(each) for each in options.classes if each != "imagenet"])
    keys = rule.select_keys(options.candidates, source.keys(), ensemble, options.only is not None)
    if not keys:
        raise SourceError(f"{options.candidates}: no image has one of the classes in {options.only}")
    passed_over = len(source.keys()) - len(keys)
    settings = _settings(rule, ensemble)
    usable = _split_usable(source, keys[: options.limit])
    with open_output(options.output, source.location) as root:
        state = open_shortlist(root)
        state.agree(settings, start_over=partial(_start_over, state) if options.overwrite else None)
        run = _FilterRun(rule, source, ensemble, state, options.batch_size, usable)
        run.ask()
        pages = run.write_once(words, passed_over)
    steps = tuple(zip(rule.labels(), run.left(), strict=True))
    seconds = time.monotonic() - started
    return FilterResult(steps, passed_over, run.made, run.kept, run.failures, pages, seconds)


def _split_usable(source: ImageFolder, keys: Iterable[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Return sizes in bytes of the candidates' files by key, and keys and reasons of unusable ones."""
    sizes, failures = {}, source.refused()
    for key in keys:
        if "\n" in key or "\r" in key:
            failures[key] = "its name has a line break, and lists have one key a line"
            continue
        try:
            sizes[key] = source.size(key)
        except ImageError as error:
            failures[key] = explain_failure(error, key)
    return sizes, failures


def _settings(rule: Rule, ensemble: Ensemble) -> dict[str, Any]:
    return {
        "set": rule.title,
        "models": [member.settings() for member in ensemble.members],
        "classes": [*ensemble.classes],
        "versions": {
            **{k: v for m in ensemble.members for k, v in m.classifier.model.versions().items()},
            "pillow": version("pillow"),
            "numpy": version("numpy"),
        },
        "thresholds": asdict(rule),
    }


# --- the output ----------------------------------------------------------------------------------


def open_shortlist(root: Store) -> Ledger:
    """Return the ledger of a shortlist; raise an OutputError if the output contains other files."""
    ledger = Ledger(root, f"{STATE}/filter.json", schema=None)
    files = (SHORTLIST, DROPPED, FUNNEL, PREDICTIONS, MANIFEST, f"{STATE}/settings.json")
    if not ledger.exists:
        ledger.refuse_unrecorded(filter(root.exists, files))
    return ledger


def _start_over(ledger: Ledger, differences: Differences) -> None:
    """Delete what other settings make invalid: predictions do not depend on the thresholds."""
    if {name.partition(".")[0] for name in differences} != {"thresholds"}:
        forget_opinions(ledger)
    # The other files are only useful together with it.
    ledger.root.delete(FUNNEL)


def _write_lines(root: Store, name: str, entries: Iterable[dict[str, Any]]) -> str:
    """Write one JSON object per line, as there may be millions, and return the SHA-256 of the file."""
    with root.create(name) as file:
        for entry in entries:
            file.write(json.dumps(entry).encode() + b"\n")
        return measure(file)[1]


# --- a run ---------------------------------------------------------------------------------------

# Key, the input of the models or the reason why there is none, and the identity of the image.
_Read = tuple[str, Crops | str, str]


class _FilterRun:
    """One run over all candidates: first the models predict, then the results are written."""

    def __init__(
        self,
        rule: Rule,
        source: ImageFolder,
        ensemble: Ensemble,
        state: Ledger,
        batch: int,
        usable: tuple[dict[str, int], dict[str, str]],
    ) -> None:
        self._rule, self._source, self._ensemble, self._batch = rule, source, ensemble, batch
        self._state, self._root = state, state.root
        self._sizes, self.failures = usable
        self._places = {key: index for index, key in enumerate(self._sizes)}
        self._answers, self._earlier = Answers(len(ensemble.members), self._sizes), set[str]()
        for name, record in state.read_records():
            self._earlier.add(name)
            self._answers.add(record)
        self._identities = self._answers.identities
        # An unreadable image is tried again.
        self._answers.failures.clear()
        if _SHORTLIST in self._earlier and not state.has_live_claims():
            state.delete_record(_SHORTLIST)
        self.made = 0
        self._judged: Case | None = None

    @property
    def kept(self) -> int:
        """Return the number of images predicted before, or by other runs."""
        return len(self._identities) - self.made

    def ask(self) -> None:
        """Predict all images that are not yet predicted."""
        keys = [key for key in self._sizes if self._rule.asks(self._ensemble, key)]
        members = len(self._ensemble.members)
        _, count = choose_unit_size(len(keys) * members, "c", self._batch * members)
        size = count * self._batch
        units = dict[str, list[list[str]]]()
        for start in range(0, len(keys), size):
            # Batches are always the same, because another batch may change the last digit.
            part = keys[start : start + size]
            batches = [part[at : at + self._batch] for at in range(0, len(part), self._batch)]
            lacking = [[key for key in batch if key not in self._identities] for batch in batches]
            if own := [batch for batch in lacking if batch]:
                images = "".join(f"{key}\0{self._sizes[key]}\0" for batch in own for key in batch)
                digest = hashlib.sha256(images.encode("utf-8", "surrogateescape")).hexdigest()
                units[f"units/{digest[:32]}"] = own

        def make(name: str) -> None:
            self._ask(name, units[name])

        total = sum(len(batch) for batches in units.values() for batch in batches)
        with progress.Meter(total, "images") as bar:
            for name in self._state.share_one_by_one(units, make, self._is_done):
                bar.update(sum(map(len, units[name])))
        self.failures |= self._answers.failures

    def _is_done(self, name: str) -> bool:
        """Return whether another active run has predicted the images of a unit, and load its predictions."""
        if name in self._earlier:
            return False
        record = self._state.read_record(name)
        self._answers.add(record)
        return record is not None

    def _read_all_crops(self, keys: Sequence[str]) -> list[_Read]:
        return [*map(self._read_crops, keys, read_ahead(self._source.location, self._source.read, keys))]

    def _read_crops(self, key: str, read: Callable[[], tuple[Decoded, str]]) -> _Read:
        try:
            image, identity = read()
            warn_of_few_greys(image)
            with name_image_in_errors(key):
                pixels = as_rgb(image).copy()
            return key, self._ensemble.crops(pixels), identity
        except ImageError as error:
            return key, explain_failure(error, key), ""

    def _ask(self, name: str, batches: list[list[str]]) -> None:
        said, images = [Opinions.blank(len(self._ensemble.members), 0)], dict[str, Origin]()
        failures = list[Failure]()
        for read in prefetch(self._read_all_crops, batches):
            failures += [{"key": key, "reason": seen} for key, seen, _ in read if isinstance(seen, str)]
            crops = {key: seen for key, seen, _ in read if not isinstance(seen, str)}
            if crops:
                images |= {key: (self._sizes[key], identity) for key, _, identity in read if key in crops}
                true = self._rule.true_classes(self._ensemble, [*crops])
                said.append(self._ensemble.opinions([*crops], [*crops.values()], true))
        values = {
            field: np.concatenate([getattr(each, field) for each in said], axis=-1).tolist()
            for field in _FIELDS
        }
        record = Record(images, failures=failures, values=values)
        self._state.put_record(name, record)
        self._answers.add(record)
        self.made += len(images)

    # --- results ---

    def _case(self) -> Case:
        if self._judged is None:
            keys = [key for key in self._sizes if key not in self.failures]
            said = self._answers.said.select(np.array([self._places[key] for key in keys], np.intp))
            self._judged = self._rule.judge(self._ensemble, keys, said)
        return self._judged

    def left(self) -> list[int]:
        """Return the number of images at first and after each step."""
        return count_left(self._case().steps, self._rule.order)

    def write_once(self, words: dict[str, str], passed_over: int) -> tuple[str, ...]:
        """Write all files, unless another active run does; return the review pages."""
        state = self._state

        def write(name: str) -> None:
            state.put_record(name, Record({}, [], self._write(words, passed_over)))

        for _ in state.share_one_by_one([_SHORTLIST], write):
            state.delete_claims()
        record = state.read_record(_SHORTLIST)
        return tuple(f"{self._root.location}/{file.path}" for file in (record.files if record else ()))

    def _write(self, words: dict[str, str], passed_over: int) -> list[WrittenFile]:
        """Write all files; return the review pages."""
        case, root = self._case(), self._root
        ranked = self._rule.rank(case)
        entries = [self._describe_shortlisted(case, index) for index in ranked]
        digest = _write_lines(root, SHORTLIST, entries)
        kept = set(ranked)
        dropped = (index for index in range(len(case.keys)) if index not in kept)
        _write_lines(
            root, DROPPED, ({"step": case.step(index)} | self._entry(case, index) for index in dropped)
        )
        if self.failures:
            failures = ({"key": key, "reason": reason} for key, reason in sorted(self.failures.items()))
            _write_lines(root, ERRORS, failures)
        else:
            root.delete(ERRORS)
        pages = reviewing.write_pages(root, self._rule.title, digest, entries, self._source.load, words)
        funnel = json.dumps(self._funnel(case, passed_over, digest), indent=1)
        root.put(FUNNEL, f"{funnel}\n".encode())
        return pages

    def _describe_shortlisted(self, case: Case, index: int) -> dict[str, Any]:
        key = case.keys[index]
        with name_image_in_errors(key):
            sha256 = hashlib.sha256(self._source.read_bytes(key)).hexdigest()
        if not sha256.startswith(self._identities[key]):
            forget_opinions(self._state, key)
            raise OutputError(f"{self._source.location}: {key!r} has changed; run the same command again")
        return self._entry(case, index) | {"sha256": sha256}

    def _entry(self, case: Case, index: int) -> dict[str, Any]:
        key, said, names = case.keys[index], case.said, self._ensemble.classes
        reason = self._rule.reason(case, index)
        manifest: dict[str, Any] = {"key": key, "class": class_of(key), "reason": reason}
        if not self._rule.asks(self._ensemble, key):
            return manifest
        return manifest | {
            "predicted": names[said.predicted[index]],
            "confidence": _round(said.confidence[index]),
            **({"true_confidence": _round(said.truth[:, index].max())} if self._rule.ten else {}),
            "models": [self._model_entry(case, index, i) for i in range(len(self._ensemble.members))],
        }

    def _model_entry(self, case: Case, index: int, member: int) -> dict[str, Any]:
        said = case.said
        own = {
            "model": self._ensemble.members[member].label,
            "predicted": self._ensemble.classes[said.own[member, index]],
            "confidence": _round(said.sure[member, index]),
        }
        if not self._rule.ten:
            return own
        right, truth = int(said.right[member, index]), _round(said.truth[member, index])
        return own | {"right_crops": right, "true_confidence": truth}

    def _funnel(self, case: Case, passed_over: int, digest: str) -> dict[str, Any]:
        folders = defaultdict(list)
        for key, step in zip(case.keys, case.steps.tolist(), strict=True):
            folders[class_of(key)].append(step)
        counts = {
            folder: count_left(np.array(steps), self._rule.order) for folder, steps in sorted(folders.items())
        }
        return {
            "settings": _settings(self._rule, self._ensemble),
            "steps": self._rule.labels(),
            "images": self.left(),
            "classes": counts,
            "passed_over": passed_over,
            "failures": len(self.failures),
            "shortlist_sha256": digest,
        }


def _round(value: Any) -> float:
    """Return six significant digits: further digits of single precision depend on the machine."""
    return float(f"{value:.6g}")
