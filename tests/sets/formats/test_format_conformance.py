"""Every format passes the conformance test, for each kind of set that it supports."""

import pytest

from robustgen.lab.inspection.conformance import check_format
from robustgen.sets.formats import FORMATS
from tests.source_writers import WRITERS

TABLES = WRITERS["table"]


@pytest.mark.parametrize("name", [*(name for name in FORMATS if name != "table"), "webdataset:png"])
def test_a_format_conforms(name):
    check_format(name)


@pytest.mark.parametrize(
    ("name", "layout"), [*(("table", layout) for layout in TABLES), ("table:webp", "jsonl-files")]
)
def test_tables_conform(name, layout):
    check_format(name, TABLES[layout], "table")
