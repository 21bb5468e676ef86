"""`robustgen predict`: runs a model over a C or P set and leaves its predictions on disk.

What is predicted of an arm grows in the output's state folder and becomes a file of predictions once it is
whole. A run that was cut off loses a few seconds at most.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustgen.benchmark import Arm, Kind
from robustgen.datasets import EQUALISED, Dataset, name_contents, open_dataset
from robustgen.display import progress
from robustgen.errors import ConfigError, SourceError
from robustgen.evaluation import preprocessing as presets
from robustgen.evaluation.models.base import Runtime
from robustgen.evaluation.models.classifier import Classifier, is_finite
from robustgen.evaluation.models.opening import open_model
from robustgen.evaluation.preprocessing import Pixels
from robustgen.evaluation.store import PredictionStore, hold_store
from robustgen.metrics import top_classes
from robustgen.predictions import Saved, digest_of, top5_entries


@dataclass(frozen=True)
class PredictResult:
    """What a run did.

    Attributes
    ----------
    made, kept : int
        Images or sequences predicted now, and earlier.
    noun : str
        Which of the two.
    seconds : float
    preprocessing : str
        Name or file.
    """

    made: int
    kept: int
    noun: str
    seconds: float
    preprocessing: str


# --- from pixels to rows -------------------------------------------------------------------------


@dataclass(frozen=True)
class Predictor:
    """A classifier and what is kept of its outputs.

    Attributes
    ----------
    classifier : Classifier
    classes : int
    save : {"logits", "top5"}
    batch : int
        Images or frames that the model sees at once.
    """

    classifier: Classifier
    classes: int
    save: Saved
    batch: int

    def predict(self, pixels: Pixels, keys: Sequence[str], arm: Arm) -> NDArray[Any]:
        """What is kept of the outputs for images (n, H, W, 3) or sequences (n, T, H, W, 3), uint8.

        Raises
        ------
        ConfigError
            The model gives NaN or infinity; names the one of `keys`. Minus infinity rules a class out.
        """
        images = pixels.reshape(-1, *pixels.shape[-3:])
        parts = [images[at : at + self.batch] for at in range(0, len(images), self.batch)]
        logits = np.concatenate([self.classifier(part) for part in parts])
        logits = logits.reshape(*pixels.shape[:-3], logits.shape[-1])
        finite = is_finite(logits)
        if not finite.all():
            key, name = keys[int(finite.argmin())], self.classifier.model.name
            raise ConfigError(f"{name}: gives NaN or infinity for {key!r} of {arm.folder}")
        return logits if self.save == "logits" else top_classes(logits).astype(np.int32)

    def entries(self, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The entries of the file of an arm, of all of its rows."""
        return {"logits": rows} if self.save == "logits" else top5_entries(rows, self.classes)

    def settings(self) -> dict[str, Any]:
        """What decides the predictions, but for the images."""
        return {
            "model": self.classifier.model.settings(),
            "preprocessing": self.classifier.preprocessing.settings(),
            "save": self.save,
        }

    def check_labels(self, labels: NDArray[Any] | None, root: Path) -> None:
        """Raise a SourceError if the set at `root` has labels that the model has no class for."""
        if labels is not None and (labels.min() < 0 or labels.max() >= self.classes):
            raise SourceError(
                f"{root}: labels {labels.min()} to {labels.max()} are out of range for the "
                f"{self.classes} classes of {self.classifier.model.name}"
            )


# --- a run ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """A set, a model, and where its predictions go."""

    dataset: Dataset
    predictor: Predictor
    store: PredictionStore

    def carry_out(self) -> tuple[int, int]:
        """Predict what is lacking; return the number of images or sequences made, and of those kept."""
        data, made = self.dataset, 0
        waiting = [arm for arm in data.arms if not self.store.has(arm, data.keys(arm), data.root)]
        images = len(data.keys(data.arms[0]))
        with progress.open_bar(len(waiting) * images, name_contents(data.kind)) as bar:
            for arm in waiting:
                bar.name(arm.folder)
                made += self._predict(arm, bar)
        return made, len(data.arms) * images - made

    def _predict(self, arm: Arm, bar: Any) -> int:
        """Predict what is lacking of `arm` and write its file; return the number of images or sequences."""
        data, keys, labels = self.dataset, self.dataset.keys(arm), self.dataset.labels(arm)
        self.predictor.check_labels(labels, data.root)
        rows = self.store.rows(arm, keys)
        begun = rows.done
        bar.update(begun)
        size = self.predictor.batch if data.kind == "c" else 1
        try:
            for pixels in data.batches(arm, size, begun, self.predictor.classifier.preprocessing.prepare):
                part = keys[rows.done : rows.done + len(pixels)]
                rows.append(self.predictor.predict(pixels, part, arm), part)
                bar.update(len(pixels))
        except BaseException:
            rows.save()
            raise
        self.store.finish(arm, keys, labels, self.predictor.entries(rows.read()), rows)
        return len(keys) - begun


def predict(
    dataset: Path,
    model: str,
    output: Path,
    *,
    preprocessing: str | None = None,
    flags: Mapping[str, Any] | None = None,
    save: Saved | None = None,
    batch: int = 64,
    runtime: Runtime | None = None,
    overwrite: bool = False,
) -> PredictResult:
    """Predict all arms of a set, or those that are not there yet.

    Parameters
    ----------
    dataset, output : Path
        A C or P set, and the folder of the predictions.
    model : str
        As for `open_model`.
    preprocessing : str, optional
        A preset or a YAML file; otherwise what fits the set.
    flags : mapping, optional
        Fields of `Preprocessing`, as text, that win over it.
    save : {"logits", "top5"}, optional
        What to keep; otherwise logits of a C set and top5 of a P set, whose logits fill disks.
    batch : int
        Images or frames that the model sees at once.
    runtime : Runtime, optional
    overwrite : bool
        Remove other predictions that are in `output`.

    Raises
    ------
    RobustgenError
        Model, set and output do not fit each other.
    """
    started = time.monotonic()
    data = open_dataset(dataset)
    default = _default_preset(data)
    opened = open_model(model, runtime or Runtime())
    chosen = presets.load_preprocessing(preprocessing, flags or {}, default, opened.preprocessing)
    if chosen.classes:
        data = open_dataset(dataset, chosen.classes)
    if chosen.clahe and EQUALISED in data.about:
        raise ConfigError(f"{dataset}: has been through CLAHE already; --no-clahe takes it as it is")
    classifier = Classifier(opened, chosen)
    classes = classifier.count_classes(data.load(data.arms[0], 0), data.root, data.classes)
    named = preprocessing or (f"of {model}" if opened.preprocessing else default)
    predictor = Predictor(classifier, classes, choose_saved(save, data.kind, classes), batch)
    settings = _describe_dataset(data) | predictor.settings()
    with hold_store(output, dataset, settings, overwrite=overwrite) as store:
        made, kept = _Run(data, predictor, store).carry_out()
    return PredictResult(made, kept, name_contents(data.kind), time.monotonic() - started, named)


def _default_preset(dataset: Dataset) -> str:
    """The preset of the data set's edition; without a manifest, that of published sets of its layout."""
    edition = dataset.about.get("edition") or dataset.usual_edition
    return str(edition) if edition in presets.PRESETS else "imagenet"


def choose_saved(wanted: Saved | None, kind: Kind, classes: int) -> Saved:
    """What to keep of a model with that many `classes`: as `wanted`, or what fits the kind of set."""
    if wanted == "top5" and classes < 5:
        raise ConfigError(f"--save top5: the model has only {classes} classes")
    return wanted or ("top5" if kind == "p" and classes >= 5 else "logits")


def _describe_dataset(dataset: Dataset) -> dict[str, Any]:
    """What tells the images of `dataset` from others."""
    about = dataset.about
    return {
        "kind": dataset.benchmark.title,
        "dataset": about.get("dataset"),
        "edition": about.get("edition"),
        "digest": about.get("digest"),
        "source_digest": about.get("source", {}).get("digest"),
        "keys": digest_of(dataset.keys(dataset.arms[0])),
    }
