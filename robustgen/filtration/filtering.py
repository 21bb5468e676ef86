"""`robustgen filter-a` and `filter-o`: from folders of candidates to a shortlist and its review page.

shortlist.jsonl   what a human is to look at: key, class, prediction, what each model says, why
dropped.jsonl     all other candidates, each with the step and the reason
review.html       the shortlist to look at; with more than a thousand images also review-2.html, ...
funnel.json       settings, and how many images were left after each step, in all and of each class
errors.jsonl      images that cannot be read, if there are any
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from robustgen.datasets.prefetch import prefetch
from robustgen.display import progress
from robustgen.errors import ImageError, OutputError, SourceError
from robustgen.filtration import reviewing
from robustgen.filtration.cache import OpinionCache
from robustgen.filtration.ensemble import Crops, Ensemble, EnsembleOptions, open_ensemble
from robustgen.filtration.funnel import Opinions, count_left
from robustgen.filtration.rules import Case, Rule
from robustgen.output.files import ERRORS, file_digest, move_into, temporary_folder, write_whole
from robustgen.output.state import OPINIONS, SETTINGS, SHORTLISTED, claim_output, read_object
from robustgen.predictions import ABOUT as PREDICTIONS
from robustgen.sources.base import class_of
from robustgen.sources.folder import ImageFolder
from robustgen.sources.tree import FolderTree

SHORTLIST, DROPPED, FUNNEL, ACCEPTED = "shortlist.jsonl", "dropped.jsonl", "funnel.json", "accepted"
_REMEDY = "choose another --output, or --overwrite"
# What differs, by the key of the settings.
_KINDS = {
    "set": "another kind",
    "models": "other models or preprocessing",
    "classes": "other classes",
    "versions": "other releases of its libraries",
    "thresholds": "other thresholds",
}


@dataclass(frozen=True)
class FilterResult:
    """What a run did.

    Attributes
    ----------
    steps : tuple of (str, int)
        What is left at first and after each step, and how many images.
    passed_over : int
        Images of classes that --only leaves out.
    made, kept : int
        Images that the models were asked about now, and earlier.
    failures : dict of str to str
        Key to reason, of images that cannot be used.
    pages : tuple of Path
    seconds : float
    """

    steps: tuple[tuple[str, int], ...]
    passed_over: int
    made: int
    kept: int
    failures: dict[str, str]
    pages: tuple[Path, ...]
    seconds: float


def filter_images(
    rule: Rule,
    candidates: Path,
    choices: EnsembleOptions,
    output: Path,
    *,
    batch: int = 8,
    limit: int | None = None,
    names: Path | None = None,
    overwrite: bool = False,
) -> FilterResult:
    """Choose the candidates that fool the models, and write the shortlist.

    Parameters
    ----------
    rule : Rule
    candidates, output : Path
        Class folders of images, and where to write.
    choices : EnsembleOptions
        The models and how they are used.
    batch : int
        Images that a model sees at once.
    limit : int, optional
        Only the first few candidates.
    names : Path, optional
        File with words for class folders, for the review page.
    overwrite : bool
        Replace a shortlist with other settings; what the models said is kept where it still holds.

    Raises
    ------
    RobustgenError
        Models, candidates and output do not fit each other.
    """
    started = time.monotonic()
    source = ImageFolder(FolderTree(candidates))
    ensemble = open_ensemble(choices, source.classes if rule.ten else (), ten=rule.ten)
    words = reviewing.read_words([*map(Path, choices.classes), *([names] if names else [])])
    keys = rule.select_keys(candidates, source.keys(), ensemble, choices.only is not None)
    if not keys:
        raise SourceError(f"{candidates}: no image is of a class that {choices.only} names")
    passed_over = len(source.keys()) - len(keys)
    with _hold_shortlist(output, candidates, _settings(rule, ensemble), overwrite):
        run = _Run(rule, source, ensemble, output, batch, _split_usable(source, keys[:limit]))
        run.ask()
        pages = run.write(words, passed_over)
    steps = tuple(zip(rule.labels(), run.left(), strict=True))
    seconds = time.monotonic() - started
    return FilterResult(steps, passed_over, run.made, run.kept, run.failures, pages, seconds)


def _split_usable(source: ImageFolder, keys: Iterable[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Bytes of the files that can be candidates, by key; and key and reason of the others."""
    sizes, failures = {}, source.refused()
    for key in keys:
        if "\n" in key or "\r" in key:
            failures[key] = "its name has a line break, and lists have one key a line"
            continue
        try:
            sizes[key] = source.size(key)
        except ImageError as error:
            failures[key] = _reason(error, key)
    return sizes, failures


def _reason(error: ImageError, key: str) -> str:
    return str(error).removeprefix(f"{key!r}: ")


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
        "thresholds": rule.settings(),
    }


# --- the output ----------------------------------------------------------------------------------


@contextmanager
def _hold_shortlist(
    output: Path, candidates: Path, settings: dict[str, Any], overwrite: bool
) -> Iterator[None]:
    """Hold `output` for the shortlist that `settings` decide, against other runs and other settings."""
    with claim_output(output, candidates, check_foreign):
        held = _read_settings(output)
        other = [name for name in _KINDS if held and held.get(name) != settings[name]]
        if other and not overwrite:
            raise OutputError(f"{output}: holds a shortlist of {_KINDS[other[0]]}; {_REMEDY}")
        if set(other) - {"thresholds"}:
            (output / OPINIONS).unlink(missing_ok=True)
        if other:
            # The others are only worth something beside it.
            (output / FUNNEL).unlink(missing_ok=True)
        write_json(output, SHORTLISTED, settings)
        yield


def check_foreign(output: Path) -> None:
    """Raise an OutputError if `output` holds what no such run wrote."""
    names = (SHORTLIST, DROPPED, FUNNEL, ACCEPTED, SETTINGS, PREDICTIONS)
    foreign = [name for name in names if (output / name).exists()]
    if foreign and not (output / SHORTLISTED).exists():
        raise OutputError(f"{output}: holds a {foreign[0]} that is not of filter-a or filter-o")


def _read_settings(output: Path) -> dict[str, Any]:
    path = output / SHORTLISTED
    return read_object(path) if path.exists() else {}


def write_json(output: Path, name: str, content: dict[str, Any]) -> None:
    """Write `content` as the file `name` below `output`."""
    write_whole(output, name, (json.dumps(content, indent=1) + "\n").encode())


def _write_lines(output: Path, name: str, entries: Iterable[dict[str, Any]]) -> None:
    """Write a JSON object a line; there may be millions of them."""
    temporary = temporary_folder(output) / name
    with temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in entries)
    move_into(output, temporary, name)


# --- a run ---------------------------------------------------------------------------------------

# Key, and what the models are to see or why they cannot.
_Read = tuple[str, Crops | str]


class _Run:
    """One run over all candidates: first the models are asked, then it is written what came of it."""

    def __init__(
        self,
        rule: Rule,
        source: ImageFolder,
        ensemble: Ensemble,
        output: Path,
        batch: int,
        usable: tuple[dict[str, int], dict[str, str]],
    ) -> None:
        self._rule, self._source, self._ensemble, self._output, self._batch = (
            rule,
            source,
            ensemble,
            output,
            batch,
        )
        self._sizes, self.failures = usable
        self._places = {key: place for place, key in enumerate(self._sizes)}
        self._cache = OpinionCache(output / OPINIONS)
        self._said, self._known = self._cache.load(self._sizes, len(ensemble.members), len(ensemble.classes))
        self.kept, self.made = len(self._known), 0
        self._judged: Case | None = None

    def ask(self) -> None:
        """Ask the models about all images that they were not asked about yet."""
        pending = [*filter(None, map(self._pending, self._batches()))]
        total = sum(map(len, pending))
        with progress.open_bar(total, "images") as bar:
            try:
                for read in prefetch(self._read, pending):
                    self._ask(read)
                    bar.update(len(read))
            finally:
                self._cache.close()

    def _batches(self) -> Iterator[list[str]]:
        # Batches begin at the same images whatever is known already: others may differ in the last digit.
        keys = [key for key in self._sizes if self._rule.asks(self._ensemble, key)]
        yield from (keys[start : start + self._batch] for start in range(0, len(keys), self._batch))

    def _pending(self, keys: list[str]) -> list[str]:
        return [key for key in keys if key not in self._known]

    def _read(self, keys: list[str]) -> list[_Read]:
        return [(key, self._read_crops(key)) for key in keys]

    def _read_crops(self, key: str) -> Crops | str:
        try:
            return self._ensemble.crops(self._source.load(key))
        except ImageError as error:
            return _reason(error, key)

    def _ask(self, read: list[_Read]) -> None:
        self.failures |= {key: seen for key, seen in read if isinstance(seen, str)}
        good = {key: seen for key, seen in read if not isinstance(seen, str)}
        if not good:
            return
        keys = [*good]
        said = self._ensemble.opinions(keys, [*good.values()], self._rule.true_classes(self._ensemble, keys))
        self._cache.append(keys, [self._sizes[key] for key in keys], said)
        self._take(keys, said)

    def _take(self, keys: list[str], said: Opinions) -> None:
        for index, key in enumerate(keys):
            self._said.put(self._places[key], said, index)
        self.made += len(keys)

    # --- what came of it ---

    def _case(self) -> Case:
        if self._judged is None:
            keys = [key for key in self._sizes if key not in self.failures]
            said = self._said.select(np.array([self._places[key] for key in keys], np.intp))
            self._judged = self._rule.judge(self._ensemble, keys, said)
        return self._judged

    def left(self) -> list[int]:
        """How many images there were, and are after each step."""
        return count_left(self._case().steps, self._rule.order)

    def write(self, words: dict[str, str], passed_over: int) -> tuple[Path, ...]:
        """Write all files; return the review pages."""
        case = self._case()
        ranked = self._rule.rank(case)
        _write_lines(self._output, SHORTLIST, (self._describe_shortlisted(case, index) for index in ranked))
        kept = set(ranked)
        dropped = (index for index in range(len(case.keys)) if index not in kept)
        _write_lines(self._output, DROPPED, (self._describe_dropped(case, index) for index in dropped))
        self._write_errors()
        digest = file_digest(self._output / SHORTLIST)
        items = [self._item(case, index) for index in ranked]
        pages = reviewing.write_pages(self._output, self._rule.title, digest, items, self._source.load, words)
        write_json(self._output, FUNNEL, self._funnel(case, passed_over, digest))
        return pages

    def _write_errors(self) -> None:
        (self._output / ERRORS).unlink(missing_ok=True)
        if self.failures:
            entries = ({"key": key, "reason": reason} for key, reason in sorted(self.failures.items()))
            _write_lines(self._output, ERRORS, entries)

    def _describe_shortlisted(self, case: Case, index: int) -> dict[str, Any]:
        path = self._source.location / case.keys[index]
        return self._entry(case, index) | {"sha256": file_digest(path)}

    def _describe_dropped(self, case: Case, index: int) -> dict[str, Any]:
        return {"step": case.step(index)} | self._entry(case, index)

    def _entry(self, case: Case, index: int) -> dict[str, Any]:
        key, said, names = case.keys[index], case.said, self._ensemble.classes
        about: dict[str, Any] = {
            "key": key,
            "class": class_of(key),
            "reason": self._rule.reason(case, index),
        }
        if not self._rule.asks(self._ensemble, key):
            return about
        truths = self._rule.ten
        return about | {
            "predicted": names[said.predicted[index]],
            "confidence": _round(said.confidence[index]),
            **({"true_confidence": _round(said.truth[:, index].max())} if truths else {}),
            "models": [self._model_entry(case, index, place) for place in range(len(self._ensemble.members))],
        }

    def _model_entry(self, case: Case, index: int, place: int) -> dict[str, Any]:
        said = case.said
        own = {
            "model": self._ensemble.members[place].label,
            "predicted": self._ensemble.classes[said.own[place, index]],
            "confidence": _round(said.sure[place, index]),
        }
        if not self._rule.ten:
            return own
        right, truth = int(said.right[place, index]), _round(said.truth[place, index])
        return own | {"right_crops": right, "true_confidence": truth}

    def _item(self, case: Case, index: int) -> reviewing.Item:
        said = case.said
        return reviewing.Item(
            case.keys[index],
            class_of(case.keys[index]),
            self._ensemble.classes[said.predicted[index]],
            float(said.confidence[index]),
            float(said.truth[:, index].max()) if self._rule.ten else None,
        )

    def _funnel(self, case: Case, passed_over: int, digest: str) -> dict[str, Any]:
        settings = _settings(self._rule, self._ensemble)
        folders = defaultdict(list)
        for key, step in zip(case.keys, case.steps.tolist(), strict=True):
            folders[class_of(key)].append(step)
        counts = {
            folder: count_left(np.array(steps), self._rule.order) for folder, steps in sorted(folders.items())
        }
        return {
            "settings": settings,
            "steps": self._rule.labels(),
            "images": self.left(),
            "classes": counts,
            "passed_over": passed_over,
            "failures": len(self.failures),
            "shortlist_sha256": digest,
        }


def _round(value: Any) -> float:
    """Six digits that count: the last ones of single precision depend on the machine."""
    return float(f"{value:.6g}")
