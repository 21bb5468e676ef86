"""`robustgen predict`: runs an ONNX model over a C or P set and leaves its predictions on disk.

What is predicted of an arm grows in the output's state folder and becomes a file of predictions once it is
whole. A run that was cut off loses a few seconds at most.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from robustgen import predictions
from robustgen.benchmark import Arm
from robustgen.datasets import EQUALISED, Dataset, Tree, difference, noun, open_dataset
from robustgen.display import progress
from robustgen.errors import ConfigError, OutputError, RobustgenError, SourceError, WriteError
from robustgen.evaluation import preprocessing as presets
from robustgen.evaluation.models import CPU, Classifier, Model
from robustgen.metrics import top_classes
from robustgen.output.files import STATE, file_digest, temporary_folder, write_whole
from robustgen.predictions import ABOUT, PredictionFile, Saved

_SECONDS_BETWEEN_SAVES = 10.0


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


# --- what is predicted of one arm ----------------------------------------------------------------


class _Growing:
    """Rows of outputs that are kept on disk from the first to the last.

    Parameters
    ----------
    root : Path
        The output.
    arm : Arm
        What a run that was cut off left of it is continued.
    rows : int
    keys : str
        Digest of the keys that the rows are of.
    """

    def __init__(self, root: Path, arm: Arm, rows: int, keys: str) -> None:
        self._root, self._arm, self._rows = root, arm, rows
        self._place = f"{STATE}/partial/{arm.folder.replace('/', '-')}"
        self._file: IO[bytes] | None = None
        self._saved = time.monotonic()
        self._state: dict[str, Any] = {"keys": keys, "shape": [], "dtype": "", "done": 0} | self._left(keys)

    def _left(self, keys: str) -> dict[str, Any]:
        try:
            state = json.loads(self._path("state.json").read_bytes())
            return dict(state) if state["keys"] == keys and self._path("rows").exists() else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _path(self, name: str) -> Path:
        return self._root / self._place / name

    @property
    def done(self) -> int:
        """How many rows there are."""
        return int(self._state["done"])

    def append(self, values: NDArray[Any]) -> None:
        """Take in the next rows."""
        if self._file is None:
            self._file = self._open(values)
        if [*values.shape[1:]] != self._state["shape"]:
            raise SourceError(f"{self._arm.folder}: its sequences differ in length")
        # No memory map: on a full disk that would end the process without a word.
        self._file.write(values.tobytes())
        self._state["done"] += len(values)
        if time.monotonic() - self._saved > _SECONDS_BETWEEN_SAVES:
            self.save()

    def _open(self, values: NDArray[Any]) -> IO[bytes]:
        """The file of the rows, without what was written after the state was saved."""
        if not self.done:
            self._state |= {"shape": [*values.shape[1:]], "dtype": values.dtype.str}
        self._path("rows").parent.mkdir(parents=True, exist_ok=True)
        file = self._path("rows").open("r+b" if self.done else "wb")
        file.truncate(self.done * values[0].nbytes)
        file.seek(0, os.SEEK_END)
        return file

    def save(self) -> None:
        """Bring the rows to the disk, and only then say how many there are."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            write_whole(self._root, f"{self._place}/state.json", json.dumps(self._state).encode())
        self._saved = time.monotonic()

    def rows(self) -> NDArray[Any]:
        """All rows, once they are there and saved."""
        shape = (self._rows, *self._state["shape"])
        return np.memmap(self._path("rows"), np.dtype(self._state["dtype"]), "r", shape=shape)

    def remove(self) -> None:
        """Forget the rows."""
        if self._file is not None:
            self._file.close()
        shutil.rmtree(self._root / self._place, ignore_errors=True)


# --- a run ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A classifier, a set and where the predictions go.

    Attributes
    ----------
    dataset : Dataset
    classifier : Classifier
    classes : int
    output : Path
    save : {"logits", "top5"}
    batch : int
        Images or frames that the model sees at once.
    """

    dataset: Dataset
    classifier: Classifier
    classes: int
    output: Path
    save: Saved
    batch: int

    def settings(self) -> dict[str, Any]:
        """What decides the predictions."""
        about, model = self.dataset.about, self.classifier.model.path
        return {
            "kind": self.dataset.benchmark.title,
            "dataset": about.get("dataset"),
            "edition": about.get("edition"),
            "digest": about.get("digest"),
            "source_digest": about.get("source", {}).get("digest"),
            "keys": predictions.digest_of(self.dataset.keys(self.dataset.arms[0])),
            "model": {"file": model.name, "sha256": file_digest(model)},
            "preprocessing": self.classifier.preprocessing.settings(),
            "save": self.save,
        }

    def predict(self, arm: Arm, bar: Any) -> int:
        """Predict what is lacking of `arm` and write its file; return the number of images or sequences."""
        keys, labels = self.dataset.keys(arm), self._labels(arm)
        growing = _Growing(self.output, arm, len(keys), predictions.digest_of(keys))
        begun = growing.done
        bar.update(begun)
        try:
            for logits in self._logits(arm, begun):
                growing.append(self._kept(logits, arm, growing.done))
                bar.update(len(logits))
        finally:
            growing.save()
        predictions.write_entries(self.output, arm.folder, keys, labels, self._entries(growing.rows()))
        growing.remove()
        return len(keys) - begun

    def _entries(self, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {"logits": rows} if self.save == "logits" else predictions.top5_entries(rows, self.classes)

    def _logits(self, arm: Arm, start: int) -> Iterator[NDArray[Any]]:
        """Logits (n, K) or (n, T, K) of the images or sequences of `arm` from `start` on."""
        size = self.batch if self.dataset.kind == "c" else 1
        for pixels in self.dataset.batches(arm, size, start, self.classifier.preprocessing.prepare):
            images = pixels.reshape(-1, *pixels.shape[-3:])
            parts = [images[at : at + self.batch] for at in range(0, len(images), self.batch)]
            logits = np.concatenate([self.classifier(part) for part in parts])
            yield logits.reshape(*pixels.shape[:-3], logits.shape[-1])

    def _kept(self, logits: NDArray[Any], arm: Arm, start: int) -> NDArray[Any]:
        """What is kept of `logits`, which must be numbers; minus infinity rules a class out."""
        bad = ~np.isfinite(logits.max(axis=-1)).reshape(len(logits), -1).all(axis=1)
        if bad.any():
            key = self.dataset.keys(arm)[start + int(bad.argmax())]
            path = self.classifier.model.path
            raise ConfigError(f"{path}: gives NaN or infinity for {key!r} of {arm.folder}")
        return logits if self.save == "logits" else top_classes(logits).astype(np.int32)

    def _labels(self, arm: Arm) -> NDArray[Any] | None:
        labels = self.dataset.labels(arm)
        if labels is not None and (labels.min() < 0 or labels.max() >= self.classes):
            raise SourceError(
                f"{self.dataset.root}: labels {labels.min()} to {labels.max()} are out of range for the "
                f"{self.classes} classes of {self.classifier.model.path}"
            )
        return labels

    def has(self, arm: Arm) -> bool:
        """Whether the predictions of `arm` are there; a SourceError if they are of other images."""
        path = predictions.path_of(self.output, arm.folder)
        if not path.exists():
            return False
        own, wanted = PredictionFile(path, arm).keys, self.dataset.keys(arm)
        if own != wanted:
            reason = difference(own, wanted, "keys")
            raise SourceError(f"{path}: not the images of {self.dataset.root}: {reason}")
        return True


def predict(
    dataset: Path,
    model: Path,
    output: Path,
    *,
    preprocessing: str | None = None,
    flags: Mapping[str, Any] | None = None,
    save: Saved | None = None,
    batch: int = 64,
    threads: int = 0,
    provider: str = CPU,
    overwrite: bool = False,
) -> PredictResult:
    """Predict all arms of a set, or those that are not there yet.

    Parameters
    ----------
    dataset, model, output : Path
        A C or P set, an ONNX file, and the folder of the predictions.
    preprocessing : str, optional
        A preset or a YAML file; otherwise what fits the set.
    flags : mapping, optional
        Fields of `Preprocessing`, as text, that win over it.
    save : {"logits", "top5"}, optional
        What to keep; otherwise logits of a C set and top5 of a P set, whose logits fill disks.
    batch : int
        Images or frames that the model sees at once.
    threads, provider
        As for `Model`.
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
    chosen = presets.load_preprocessing(preprocessing, flags or {}, default)
    if chosen.classes:
        data = open_dataset(dataset, chosen.classes)
    if chosen.clahe and EQUALISED in data.about:
        raise ConfigError(f"{dataset}: has been through CLAHE already; --no-clahe takes it as it is")
    classifier = Classifier(Model(model, threads, provider), chosen)
    classes = classifier.classes(data)
    run = Run(data, classifier, classes, output, _choose_saved(save, data, classes), batch)
    with _claimed(output, run.settings(), overwrite):
        made, kept = _carry_out(run)
    return PredictResult(made, kept, noun(data.kind), time.monotonic() - started, preprocessing or default)


def _default_preset(dataset: Dataset) -> str:
    """The preset of the data set's edition; without a manifest, judged by the size of the images."""
    edition = dataset.about.get("edition")
    if edition in presets.PRESETS:
        return str(edition)
    small = not edition and not isinstance(dataset, Tree)
    return "cifar-10" if small else "imagenet"


def _choose_saved(wanted: Saved | None, dataset: Dataset, classes: int) -> Saved:
    if wanted == "top5" and classes < 5:
        raise ConfigError(f"--save top5: the model has only {classes} classes")
    return wanted or ("top5" if dataset.kind == "p" and classes >= 5 else "logits")


def _carry_out(run: Run) -> tuple[int, int]:
    """Predict what is lacking; return the number of images or sequences made, and of those kept."""
    arms = run.dataset.arms
    waiting = [arm for arm in arms if not run.has(arm)]
    images = len(run.dataset.keys(arms[0]))
    made = 0
    with progress.open_bar(len(waiting) * images, noun(run.dataset.kind)) as bar:
        for arm in waiting:
            bar.set_description(arm.folder)
            made += run.predict(arm, bar)
    return made, len(arms) * images - made


@contextmanager
def _claimed(output: Path, settings: dict[str, Any], overwrite: bool) -> Iterator[None]:
    """Hold `output`, which says in `predictions.json` what it holds, against others."""
    if output.exists() and not output.is_dir():
        raise OutputError(f"{output}: is a file")
    try:
        temporary_folder(output).mkdir(parents=True, exist_ok=True)
        lock = (output / STATE / "lock").open("a")
    except OSError as error:
        raise OutputError(f"{output}: cannot be written: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OutputError(f"{output}: another robustgen predict is at work in it") from error
        if overwrite:
            _clear(output)
        _check_settings(output, settings)
        text = json.dumps(settings, indent=1, sort_keys=True) + "\n"
        write_whole(output, ABOUT, text.encode())
        try:
            yield
        except OSError as error:
            if isinstance(error, RobustgenError):
                raise
            raise WriteError(f"{output}: {error.strerror or error}") from error


def _clear(output: Path) -> None:
    for path in [output / ABOUT, *output.glob("*.npz"), *output.glob("*/*.npz")]:
        path.unlink(missing_ok=True)
    shutil.rmtree(output / STATE / "partial", ignore_errors=True)


def _check_settings(output: Path, settings: dict[str, Any]) -> None:
    path = output / ABOUT
    remedy = "choose another --output, or --overwrite"
    if not path.exists():
        if any(output.glob("*.npz")) or any(output.glob("*/*.npz")):
            raise OutputError(f"{output}: holds predictions of unknown origin; {remedy}")
        return
    try:
        held = json.loads(path.read_bytes())
        other = [key for key in settings if held[key] != settings[key]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{path}: cannot be read; {remedy}") from error
    if other:
        raise OutputError(f"{output}: holds predictions of another {other[0]}; {remedy}")
