"""Divides units among the runs that work on one output at the same time; no byte depends on claims."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from robustgen.dataset.state import OutputState

_SECONDS_BETWEEN_LOOKS = 0.5
# Claims of another machine are respected for so many seconds, and for so many times this run's slowest unit.
_PATIENCE, _PATIENT_UNITS = 30.0, 4.0

Make = Callable[[Sequence[str], bool], Iterable[tuple[str, bool]]]
"""Makes units, and yields the name of each and True; or False if another run has claimed it.

The second argument is whether to take units over that others have claimed.
"""


@dataclass
class Sharing:
    """The part of one run in work that any number of runs share.

    Attributes
    ----------
    state : OutputState
    slowest : float
        Seconds that the slowest unit of this run took; whoever makes units keeps it.
    at_once : int
        Units that this run makes at the same time.
    in_order : bool
        Whether units have to begin in order; otherwise whoever joins begins elsewhere.
    """

    state: OutputState
    slowest: float = 0.0
    at_once: int = 1
    in_order: bool = False

    def carry_out(self, names: Iterable[str], make: Make, is_done: Callable[[str], bool]) -> Iterator[str]:
        """Have all units made, here or by others; yield the name of each that is done.

        Parameters
        ----------
        names : iterable of str
        make : callable
        is_done : callable
            Returns whether the unit of that name is done, whoever made it.
        """
        order = [*names]
        if order and not self.in_order and self.state.has_live_claims():
            start = random.randrange(len(order))
            order = order[start:] + order[:start]
        free, late, left = order, list[str](), list[str]()
        seen: dict[str, tuple[str, float]] = {}
        while free or late or left:
            for tried, insist in (free, False), (late, True):
                for name, is_made in make(tried, insist) if tried else ():
                    if is_made:
                        yield name
                    else:
                        left.append(name)
            done = {name for name in left if is_done(name)}
            yield from done
            free, late, now = [], [], time.monotonic()
            patience = max(_PATIENCE, _PATIENT_UNITS * self.slowest)
            for name in (each for each in left if each not in done):
                claim = self.state.read_claim(name)
                # One that another run has taken over counts anew.
                seen[name] = seen[name] if name in seen and seen[name][0] == claim else (claim, now)
                if not self.state.is_alive(claim):
                    free.append(name)
                elif now - seen[name][1] >= patience and len(late) < self.at_once:
                    late.append(name)
            left = [name for name in left if name not in {*done, *free, *late}]
            if left and not (done or free or late):
                time.sleep(_SECONDS_BETWEEN_LOOKS)

    def make_each(self, make: Callable[[str], None], is_done: Callable[[str], bool]) -> Make:
        """Return what makes units by `make`, one after another, unless they are done."""

        def make_all(names: Sequence[str], insist: bool) -> Iterator[tuple[str, bool]]:
            for name in names:
                if not is_done(name):
                    started = time.monotonic()
                    with self.state.hold(name, insist=insist) as is_ours:
                        # Whoever held the claim may be done since.
                        if is_ours and not is_done(name):
                            make(name)
                    if not is_ours:
                        yield name, False
                        continue
                    self.slowest = max(self.slowest, time.monotonic() - started)
                yield name, True

        return make_all

    def share(
        self, names: Iterable[str], make: Callable[[str], None], is_done: Callable[[str], bool]
    ) -> Iterator[str]:
        """Have units made one after another, as `carry_out` does."""
        return self.carry_out(names, self.make_each(make, is_done), is_done)
