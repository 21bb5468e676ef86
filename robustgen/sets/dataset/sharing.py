"""Division of units among simultaneous runs on one output; no byte depends on claims."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from robustgen.sets.dataset.state import OutputState

_SECONDS_BETWEEN_LOOKS = 0.5
# Seconds, and multiples of this run's mean time for a unit, for which claims of other machines are respected.
_PATIENCE, _PATIENT_UNITS = 30.0, 8.0

IsDone = Callable[[str], bool]
"""Callback that returns whether the unit of that name is finished, by this run or another."""


def share_units(
    state: OutputState,
    names: Iterable[str],
    make: Callable[[Sequence[str]], Iterable[str]],
    is_done: IsDone,
    *,
    at_once: int = 1,
) -> Iterator[str]:
    """Process all units, or wait for other runs to do so; yield the name of each finished unit.

    Parameters
    ----------
    state : OutputState
    names : iterable of str
    make : callable
        Processes units, except for those that another run has claimed; yields the name of each.
    is_done : callable
    at_once : int
        Number of units that this run processes at the same time.
    """
    free = [*names]
    # A run that joins others starts at a random unit.
    if free and state.has_live_claims():
        start = random.randrange(len(free))
        free = free[start:] + free[:start]
    left, patience, changed = dict.fromkeys(free), _PATIENCE, time.monotonic()
    while left:
        started, before = time.monotonic(), len(left)
        for name in make(free) if free else ():
            del left[name]
            yield name
        if made := before - len(left):
            mean = (time.monotonic() - started) * at_once / made
            patience = max(patience, _PATIENT_UNITS * mean)
        for name in filter(is_done, [*left]):
            del left[name]
            yield name
        free = [name for name in left if not state.is_claimed(name)]
        now = time.monotonic()
        if free or len(left) < before:
            changed = now
        elif now - changed < patience:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        else:
            # The other runs may have died on other machines.
            changed, free = now, [*left][:at_once]
            for name in free:
                state.release(name)


def share_unit_by_unit(
    state: OutputState, names: Iterable[str], make: Callable[[str], None], is_done: IsDone
) -> Iterator[str]:
    """Process units with `make`, one after another; see `share_units`."""

    def make_all(names: Sequence[str]) -> Iterator[str]:
        for name in names:
            if state.claim(name):
                # The previous owner of the claim may have finished meanwhile.
                if not is_done(name):
                    make(name)
                yield name

    return share_units(state, names, make_all, is_done)
