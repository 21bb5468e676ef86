"""Every kind of source passes the conformance test, in each of its layouts."""

from pathlib import Path

import pytest

from robustgen.lab.inspection.conformance import check_source
from robustgen.sets.sources import SOURCES
from robustgen.sets.sources.base import Options
from robustgen.sets.sources.opening import open_source
from tests.source_writers import WRITERS

LAYOUTS = [(kind, layout) for kind, layouts in WRITERS.items() for layout in layouts]


def test_every_kind_is_checked():
    assert {*WRITERS} == {*SOURCES}


@pytest.mark.parametrize(("kind", "layout"), LAYOUTS, ids=[layout for _, layout in LAYOUTS])
def test_a_source_conforms(kind, layout):
    def open_location(location):
        if kind == "labelled":
            return open_source(location, options=Options(labels=Path(location).parent / "labels.txt"))
        # Parquet files are recognised as a source of their own.
        return open_source(location, "table" if layout == "table-parquet" else "auto")

    shape = (28, 28) if "mnist" in kind else (32, 32)
    check_source(WRITERS[kind][layout], open_location, shape=shape, grey=kind == "mnist")
