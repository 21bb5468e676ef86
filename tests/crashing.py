"""Death at a chosen write: after it, stores refuse to write, as if the process had been killed."""

import re
from contextlib import contextmanager

import pytest

from robustgen.files.storage.local import LocalStore
from robustgen.files.storage.remote import RemoteStore

# Other records have the names of what they describe.
_UNIT_RECORD = re.compile(r"put records/[0-9a-f]{16}\.json")


class Died(BaseException):
    """Stands in for `kill -9`: nothing may catch it, and nothing is written after it."""


def raise_died():
    raise Died


class Death:
    """Counts the writes of all stores, and dies before write number `after`, by calling `die`.

    Attributes
    ----------
    writes : list of str
        Verb and path of each write so far.
    """

    def __init__(self, monkeypatch, after=None, die=raise_died):
        self.writes, self._after, self._die = [], after, die
        for store in (LocalStore, RemoteStore):
            for verb in ("put", "delete", "copy"):
                monkeypatch.setattr(store, verb, self._guard(verb, getattr(store, verb)))
            monkeypatch.setattr(store, "create", self._guard_create(store.create))
            for verb in ("clean", "withdraw"):
                monkeypatch.setattr(store, verb, self._skip(getattr(store, verb)))

    @property
    def is_dead(self):
        return self._after is not None and len(self.writes) >= self._after

    def _write(self, verb, path):
        if self.is_dead:
            self._die()
        self.writes.append(f"{verb} {path}")

    def _guard(self, verb, call):
        def write(store, *args, **options):
            self._write(verb, args[-1] if verb == "copy" else args[0])
            return call(store, *args, **options)

        return write

    def _guard_create(self, call):
        @contextmanager
        def create(store, path):
            with call(store, path) as file:
                yield file
                self._write("create", path)

        return create

    def _skip(self, call):
        return lambda store: None if self.is_dead else call(store)


def count_writes(act):
    """Return the writes of `act`, one by one."""
    with pytest.MonkeyPatch.context() as patch:
        death = Death(patch)
        act()
        return death.writes


def list_unit_ends(writes):
    """Return the numbers of the writes that record a work unit."""
    return [i for i, write in enumerate(writes) if _UNIT_RECORD.fullmatch(write)]


def die(act, after):
    """Carry out `act`, and die before write number `after`."""
    with pytest.MonkeyPatch.context() as patch:
        Death(patch, after)
        with pytest.raises(Died):
            act()
