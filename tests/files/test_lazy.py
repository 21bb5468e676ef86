"""Cached properties of objects that several threads use."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from robustgen.files.lazy import cached_property


def test_objects_of_a_class_do_not_wait_for_each_other():
    together = Barrier(2, timeout=20)

    class Listing:
        @cached_property
        def names(self):
            together.wait()
            return [self]

    pair = [Listing(), Listing()]
    with ThreadPoolExecutor(2) as pool:
        found = [*pool.map(lambda each: each.names, pair)]
    assert found == [[each] for each in pair]
    # Once is enough: the barrier would stop another call.
    assert all(each.names is names for each, names in zip(pair, found, strict=True))
    assert isinstance(Listing.names, cached_property)
