"""Division of units among simultaneous runs on one output; no byte depends on claims."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from robustgen.dataset.state import OutputState

_SECONDS_BETWEEN_LOOKS = 0.5
# Seconds, and multiples of this run's slowest unit, for which claims of other machines are respected.
_PATIENCE, _PATIENT_UNITS = 30.0, 4.0

Make = Callable[[Sequence[str], bool], Iterable[tuple[str, bool]]]
"""Callback that processes units; yields the name of each and True, or False if another run has claimed it.

The second argument is whether to take over units that others have claimed.
"""


@dataclass
class Sharing:
    """Share of one run in work that any number of runs divide among themselves.

    Attributes
    ----------
    state : OutputState
    slowest : float
        Duration in seconds of the slowest unit of this run; the `Make` callback updates it.
    at_once : int
        Number of units that this run processes at the same time.
    in_order : bool
        Whether to start units in order; otherwise a run that joins others starts at a random unit.
    """

    state: OutputState
    slowest: float = 0.0
    at_once: int = 1
    in_order: bool = False

    def carry_out(self, names: Iterable[str], make: Make, is_done: Callable[[str], bool]) -> Iterator[str]:
        """Process all units, or wait for other runs to do so; yield the name of each finished unit.

        Parameters
        ----------
        names : iterable of str
        make : callable
        is_done : callable
            Returns whether the unit of that name is finished, by this run or another.
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
                # If another run takes a unit over, its wait starts again.
                seen[name] = seen[name] if name in seen and seen[name][0] == claim else (claim, now)
                if not self.state.is_alive(claim):
                    free.append(name)
                elif now - seen[name][1] >= patience and len(late) < self.at_once:
                    late.append(name)
            left = [name for name in left if name not in {*done, *free, *late}]
            if left and not (done or free or late):
                time.sleep(_SECONDS_BETWEEN_LOOKS)

    def make_each(self, make: Callable[[str], None], is_done: Callable[[str], bool]) -> Make:
        """Return a callback that processes unfinished units with `make`, one after another."""

        def make_all(names: Sequence[str], insist: bool) -> Iterator[tuple[str, bool]]:
            for name in names:
                if not is_done(name):
                    started = time.monotonic()
                    with self.state.hold(name, insist=insist) as is_ours:
                        # The previous owner of the claim may have finished meanwhile.
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
        """Process units one after another; see `carry_out`."""
        return self.carry_out(names, self.make_each(make, is_done), is_done)
