"""The order of a stream: for each step an image, a corruption and a severity.

A stream consists of stretches, each of all images with one corruption at one severity. The settings differ in
the stretches and in the order within them; `draw_stream` implements all of them.

Wang et al., "Continual Test-Time Domain Adaptation" (CVPR 2022), and its code, CoTTA: continual and gradual.
Marsden, Doebler and Yang, "Universal Test-Time Adaptation through Weight Ensembling, Diversity Weighting, and
Prior Correction" (WACV 2024), and its code: mixed, with resets, and the correlated forms of all.
Hoang, Vo and Do, "Persistent Test-time Adaptation in Recurring Testing Scenarios" (NeurIPS 2024): the visits.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from robustgen.lab.related.streams.chain import draw_chain
from robustgen.lab.related.streams.choices import StreamChoices
from robustgen.lab.related.streams.correlation import Indices, draw_correlated

# Corruption and severity of a stretch.
Domain = tuple[str, float]


class StreamStep(NamedTuple):
    """One image of a stream.

    Attributes
    ----------
    image : int
        Index among the images.
    corruption : str
    severity : float
    visit : int
        Number of the pass through the corruptions, from 1.
    domain : int
        Number of this corruption and severity among those of the stream, from 0.
    reset : bool
        Whether the model should be reset before this image.
    """

    image: int
    corruption: str
    severity: float
    visit: int
    domain: int
    reset: bool


def draw_stream(
    labels: Sequence[int], choices: StreamChoices, rng: np.random.Generator
) -> Iterator[StreamStep]:
    """Draw the steps of a stream: every image once in each stretch, unless a Markov chain decides.

    Parameters
    ----------
    labels : sequence of int
        Classes of the images.
    choices : StreamChoices
    rng : numpy.random.Generator

    Raises
    ------
    ArgumentError
        The images cannot be divided by the law.
    """
    stretches = [*_stretches(choices, rng)]
    domains = [*dict.fromkeys(stretches)]
    for visit in range(1, choices.drawing.repeat + 1):
        for image, domain, first in _draw_visit(np.asarray(labels), stretches, choices, rng):
            yield StreamStep(image, *domain, visit, domains.index(domain), first and choices.resets)


def _stretches(choices: StreamChoices, rng: np.random.Generator) -> Iterator[Domain]:
    """Yield the corruption and severity of each stretch."""
    count, drawing = len(choices.corruptions), choices.drawing
    for index, number in enumerate(rng.permutation(count) if drawing.shuffle else range(count)):
        descent = choices.severities[::-1]
        climb = () if index == 0 and drawing.abrupt else choices.severities[:-1]
        yield from ((choices.corruptions[number], severity) for severity in (*climb, *descent))


def _draw_visit(
    labels: Indices, stretches: Sequence[Domain], choices: StreamChoices, rng: np.random.Generator
) -> Iterator[tuple[int, Domain, bool]]:
    """Yield the images of one visit with their domains, and whether each is the first of its stretch."""
    drawing = choices.drawing
    if choices.setting == "markov":
        for image, number in draw_chain(labels.tolist(), len(stretches), drawing, rng):
            yield image, stretches[number], False
        return
    # All stretches together, or one after the other.
    mixed = choices.setting.startswith("mixed")
    for together in [stretches] if mixed else [[stretch] for stretch in stretches]:
        of_all = np.tile(labels, len(together))
        if choices.correlated:
            order = draw_correlated(of_all, drawing.concentration, drawing.slots, rng, drawing.law)
        else:
            order = rng.permutation(len(of_all))
        for index, number in enumerate(order.tolist()):
            stretch, image = divmod(number, len(labels))
            yield image, together[stretch], index == 0
