"""Every kind of source passes the conformance test, in each of its layouts."""

import pytest

from robustgen.lab.inspection.conformance import check_source
from robustgen.sets.sources import SOURCES
from robustgen.sets.sources.base import Options
from robustgen.sets.sources.opening import open_source
from tests.source_writers import WRITERS

LAYOUTS = [(kind, layout) for kind, layouts in WRITERS.items() for layout in layouts]


def test_every_kind_is_checked():
    assert {*WRITERS} == {*SOURCES}


def open_layout(location, kind, layout):
    if kind == "labelled":
        labels = f"{str(location).rpartition('/')[0]}/labels.txt"
        return open_source(location, options=Options(labels=labels))
    # Parquet files are recognised as a source of their own.
    return open_source(location, "table" if layout == "table-parquet" else "auto")


@pytest.mark.parametrize(("kind", "layout"), LAYOUTS, ids=[layout for _, layout in LAYOUTS])
def test_a_source_conforms(kind, layout):
    shape = (28, 28) if "mnist" in kind else (32, 32)
    write = WRITERS[kind][layout]
    check_source(write, lambda place: open_layout(place, kind, layout), shape=shape, grey=kind == "mnist")
