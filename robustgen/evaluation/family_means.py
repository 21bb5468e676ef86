"""The means of other families of corruptions, such as C-bar, beside the benchmark's."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from robustgen.benchmark import IMAGENET_C
from robustgen.evaluation.results import Scores


@dataclass(frozen=True)
class FamilyMean:
    """The errors of all models on one family of corruptions.

    Attributes
    ----------
    family, title : str
    names : tuple of str
        The corruptions that the means go over, which all models have.
    whole : bool
        Whether these are all that count in the family's mean at one scale.
    errors : tuple of dict
        For each model, the mean error over severities, by corruption.
    reference : str
        The network whose published errors the second means are divided by; empty if there are none.
    published : dict
        Its errors, by corruption.
    """

    family: str
    title: str
    names: tuple[str, ...]
    whole: bool
    errors: tuple[dict[str, float], ...]
    reference: str
    published: dict[str, float]

    def mean(self, place: int) -> float:
        """Return the mean error of the model at `place`, a fraction."""
        return fmean(self.errors[place][name] for name in self.names)

    def normalised_mean(self, place: int) -> float | None:
        """Return the mean of the errors divided by those of the reference; None if it lacks one."""
        if not all(self.published.get(name) for name in self.names):
            return None
        return fmean(self.errors[place][name] / self.published[name] for name in self.names)


def compute_family_means(models: Sequence[Scores]) -> list[FamilyMean]:
    """Return the means of all families of which every model has a corruption, besides the benchmark's own."""
    errors = tuple({name: fmean(each) for name, each in model.errors.items()} for model in models)
    shared = [name for name in errors[0] if all(name in each for each in errors)]
    others = [name for name in shared if name not in IMAGENET_C.names]
    # Only for sets with other corruptions is it worth loading them.
    return _group_by_family(others, errors) if others else []


def _group_by_family(others: Sequence[str], errors: tuple[dict[str, float], ...]) -> list[FamilyMean]:
    from robustgen.corruptions import FAMILIES

    found = []
    for family in FAMILIES.values():
        own = [name for name in others if (entry := family.find(name)) and entry.common]
        scales = dict.fromkeys(scale for each in family.corruptions.values() for scale in each.table)
        sets = [family.names(scale) for scale in scales if family.names(scale)]
        names = next((each for each in sets if set(each) <= set(own)), tuple(own))
        if names:
            chosen = tuple({name: each[name] for name in names} for each in errors)
            published = {name: family.means[name] for name in names if name in family.means}
            whole = names in sets
            found.append(
                FamilyMean(family.name, family.title, names, whole, chosen, family.reference, published)
            )
    return found
