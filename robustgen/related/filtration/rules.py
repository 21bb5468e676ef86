"""Rules of ImageNet-A and ImageNet-O: which candidates they keep, and the texts about them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustgen.errors import SourceError
from robustgen.related.filtration.ensemble import Ensemble, unknown_class
from robustgen.related.filtration.funnel import (
    MAX_CONFIDENCE,
    MIN_CONFIDENCE,
    PER_CONFUSION,
    FunnelStep,
    Opinions,
    Whole,
    judge_adversarial,
    judge_outlying,
    rank_in_confusions,
)
from robustgen.sets.sources.base import class_of


@dataclass(frozen=True)
class Case:
    """Predicted images, and the step at which each leaves the funnel.

    Attributes
    ----------
    ensemble : Ensemble
    keys : sequence of str
    said : Opinions
    steps : (images,), integer
        `FunnelStep` of each image.
    places, crowds : (images,), integer
        Rank in its confusion, and size of the confusion; 0 if irrelevant.
    """

    ensemble: Ensemble
    keys: Sequence[str]
    said: Opinions
    steps: Whole
    places: Whole
    crowds: Whole

    def kept(self) -> list[int]:
        """Return the images of the shortlist."""
        return np.flatnonzero(self.steps == FunnelStep.KEPT).tolist()

    def step(self, index: int) -> str:
        """Return the name of the step at which the image left."""
        return FunnelStep(self.steps[index]).name.lower()


@dataclass(frozen=True)
class Adversarial:
    """ImageNet-A: images of known classes that no model recognises.

    Attributes
    ----------
    max_confidence : float
        Highest confidence that a model may have in the true class.
    per_confusion : int
        Highest number of images of one true and one predicted class.
    """

    max_confidence: float = MAX_CONFIDENCE
    per_confusion: int = PER_CONFUSION

    title = "ImageNet-A"
    ten = True
    order = (FunnelStep.CORRECT, FunnelStep.CONFIDENT, FunnelStep.CROWDED)

    def select_keys(
        self, root: object, keys: Sequence[str], ensemble: Ensemble, restricted: bool
    ) -> list[str]:
        """Return the `keys` that are candidates; other folders are ignored if `restricted` by --only.

        Raises
        ------
        SourceError
            A class folder below `root` is unknown to the models.
        """
        known = set(ensemble.classes)
        unexpected = sorted({class_of(key) for key in keys} - known)
        if unexpected and not restricted:
            if not unexpected[0]:
                raise SourceError(f"{root}: some images are not in a class folder")
            raise SourceError(f"{root}: class folder: {unknown_class(unexpected[0], ensemble.classes)}")
        return [key for key in keys if class_of(key) in known]

    def asks(self, ensemble: Ensemble, key: str) -> bool:
        """Return whether the models have to predict the image."""
        return True

    def true_classes(self, ensemble: Ensemble, keys: Sequence[str]) -> Whole:
        """Return the true classes of the images."""
        indices = {name: index for index, name in enumerate(ensemble.classes)}
        return np.array([indices[class_of(key)] for key in keys], np.int64)

    def judge(self, ensemble: Ensemble, keys: Sequence[str], said: Opinions) -> Case:
        """Return the step at which each image leaves."""
        true = self.true_classes(ensemble, keys)
        steps = judge_adversarial(said, true, keys, **asdict(self))
        left = np.flatnonzero((steps == FunnelStep.KEPT) | (steps == FunnelStep.CROWDED))
        ranks, crowds = np.zeros_like(true), np.zeros_like(true)
        ranks[left] = rank_in_confusions(
            said.select(left), true[left], [keys[index] for index in left.tolist()]
        )
        confusions = [*zip(true[left].tolist(), said.predicted[left].tolist(), strict=True)]
        sizes = Counter(confusions)
        crowds[left] = [sizes[confusion] for confusion in confusions]
        return Case(ensemble, keys, said, steps, ranks, crowds)

    def labels(self) -> list[str]:
        """Return the names of the steps."""
        confident = f"true class at most {self.max_confidence:.6g}"
        return ["candidates", "wrong in every crop", confident, f"at most {self.per_confusion} a confusion"]

    def reason(self, case: Case, index: int) -> str:
        """Return the reason, as text."""
        said, rank = case.said, f"rank {case.places[index]} of {case.crowds[index]} in its confusion"
        surest = f"true class at most {said.truth[:, index].max():.6g}"
        confident = f"true class {{:.6g}}, over {self.max_confidence:.6g}"
        return {
            FunnelStep.KEPT: f"wrong in every crop; {surest}; {rank}",
            FunnelStep.CORRECT: _describe_each(case, said.right[:, index], "right in {} of 10 crops", 0),
            FunnelStep.CONFIDENT: _describe_each(case, said.truth[:, index], confident, self.max_confidence),
            FunnelStep.CROWDED: f"{rank}, of which {self.per_confusion} stay",
        }[FunnelStep(case.steps[index])]

    def rank(self, case: Case) -> list[int]:
        """Return the order of the images: by class, then by prediction, then by rank."""
        classes, guesses = case.ensemble.classes, case.said.predicted
        ranks = {i: (class_of(case.keys[i]), classes[guesses[i]], case.places[i]) for i in case.kept()}
        return sorted(ranks, key=ranks.__getitem__)


def _describe_each(case: Case, values: NDArray[Any], text: str, limit: float) -> str:
    """Return `text` for each model whose value is over `limit`."""
    pairs = zip(case.ensemble.members, values.tolist(), strict=True)
    return "; ".join(f"{member.label}: {text.format(value)}" for member, value in pairs if value > limit)


@dataclass(frozen=True)
class Outlying:
    """ImageNet-O: images of unknown classes that every model predicts with high confidence.

    Attributes
    ----------
    min_confidence : float
        Lowest confidence that each model must have in its prediction.
    """

    min_confidence: float = MIN_CONFIDENCE

    title = "ImageNet-O"
    ten = False
    order = (FunnelStep.KNOWN, FunnelStep.UNSURE)

    def select_keys(
        self, root: object, keys: Sequence[str], ensemble: Ensemble, restricted: bool
    ) -> list[str]:
        """Return all keys."""
        return [*keys]

    def asks(self, ensemble: Ensemble, key: str) -> bool:
        """Return whether the models have to predict the image: not if any model knows its class."""
        return class_of(key) not in ensemble.known

    def true_classes(self, ensemble: Ensemble, keys: Sequence[str]) -> None:
        """Return the true classes of the images."""

    def judge(self, ensemble: Ensemble, keys: Sequence[str], said: Opinions) -> Case:
        """Return the step at which each image leaves."""
        flags = np.array([not self.asks(ensemble, key) for key in keys], bool)
        steps = judge_outlying(said, flags, **asdict(self))
        return Case(ensemble, keys, said, steps, np.zeros_like(steps), np.zeros_like(steps))

    def labels(self) -> list[str]:
        """Return the names of the steps."""
        return ["candidates", "of unknown classes", f"predicted with at least {self.min_confidence:.6g}"]

    def reason(self, case: Case, index: int) -> str:
        """Return the reason, as text."""
        sure = case.said.sure[:, index]
        least = case.ensemble.members[int(sure.argmin())].label
        return {
            FunnelStep.KEPT: f"predicted with at least {sure.min():.6g}",
            FunnelStep.KNOWN: "its class is known",
            FunnelStep.UNSURE: f"{least}: predicted with {sure.min():.6g}, under {self.min_confidence:.6g}",
        }[FunnelStep(case.steps[index])]

    def rank(self, case: Case) -> list[int]:
        """Return the order of the images: highest confidence first."""
        return sorted(case.kept(), key=lambda i: (-case.said.sure[:, i].min(), case.keys[i]))


Rule = Adversarial | Outlying
"""One of the two rules; the models get ten crops if `ten`, and images leave by the steps of `order`."""
