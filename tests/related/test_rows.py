"""The wing as the rest of the package knows it: by its rows."""

import json
import re
from pathlib import Path

import pytest

import robustgen
from robustgen.files.registry import load_row
from robustgen.pixels.imaging.cleaning import CLEANINGS
from robustgen.related.rows import RELATED
from robustgen.related.streams.settings import SETTINGS
from tests.cli.test_help import SPEAKERS, check_without_models, find_strange_flags, list_modules
from tests.helpers import cli
from tests.lab.test_plans import check_rows
from tests.test_docs import read
from tests.test_docs_reference import check_sections, script
from tests.test_structure import check_unloaded

_PREPROCESS = "preprocess_clahe preprocess_denoise preprocess_median"
_OF_SETS = f"make-augmix make-icons {_PREPROCESS}"
_OF_SOURCES = "make-augmix stream stream_ccc stream_measure"
# As in tests/cli/test_help.py: rooms whose messages the commands of this wing print too, and its own.
ALSO = {
    "cli/execution": _OF_SETS,
    "sets/dataset": _OF_SETS,
    "sets/dataset/selection": _OF_SOURCES,
    # Only make-c and make-p look for label maps, and `stream` reads no pixels.
    "sets/dataset/layouts": "",
    "sets/sources/arrays": _OF_SOURCES.replace(" stream ", " "),
    "lab/evaluation/store": "filter_a filter_o",
    "sets/executors": _OF_SETS,
    "sets/executors/jobs": _OF_SETS,
    "files/set_files": _OF_SETS,
    "lab/models": "filter_a filter_o stream_measure",
    "lab/models/base": "stream_measure",
    "settings": _OF_SOURCES,
    "sets/sources": _OF_SOURCES,
    "sets/sources/labels": _OF_SOURCES,
    "sets/sources/trees": f"{_OF_SOURCES} filter_a filter_o make-icons {_PREPROCESS}",
}
OWN = {
    "related": "make-augmix make-icons make-subtypes filter_a filter_o",
    "related/cli/filtration": "filter_a filter_o",
    "related/cli/streams": "stream",
    "related/training_copies": "make-augmix",
    "related/cleaned_sets": _PREPROCESS,
    "related/filtration": "filter_a filter_o",
    "related/icons": "make-icons",
    "related/streams/drawing": "stream",
    "related/streams/measuring": "stream_measure",
    "related/streams/settings": "stream",
    "related/subtypes": "make-subtypes",
}


def test_messages_name_only_flags_of_the_commands_that_print_them():
    known = dict.fromkeys(SPEAKERS, "") | ALSO | OWN
    assert find_strange_flags(known, list_modules()) == []


def test_every_set_has_a_command_settings_and_a_planner():
    check_rows(RELATED.sets, "robustgen.related.", {each.title for each in CLEANINGS.values()})


@pytest.mark.parametrize("module", RELATED.public)
def test_public_names_stay_where_they_are(module):
    page = read(Path(robustgen.__file__).parents[1] / "docs" / "api" / f"{module}.md")
    for name in RELATED.public[module]:
        assert load_row(f"{module}:__all__").count(name) == 1
        assert load_row(f"{module}:{name}").__module__.startswith("robustgen.related.")
        assert f"::: {module}.{name}\n" in page


def test_streams_wait_for_libraries():
    check_unloaded("from robustgen.torch import StreamDataset", "numba cv2 scipy torch pydantic av")


def test_the_reference_and_the_table_of_completion_are_current():
    pages = script("docs_reference").make_pages_of_wings()
    root = Path(robustgen.__file__).parents[1]
    assert {page: read(root / page) for page in pages} == pages, "run make docs"
    sections = check_sections("related.md")
    assert {"stream ccc", "preprocess clahe", "make-icons"} <= {*sections}


def test_help_lists_the_settings_of_streams():
    told = " ".join(cli("stream", "--help").stdout.split()).replace("- ", "-")
    assert all(re.search(rf"[ ,]{each}[,.]", told) for each in SETTINGS)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("make-", ["make-augmix", "make-icons", "make-subtypes"]),
        ("stream --set", ["plain,--setting"]),
        ("preprocess cla", ["plain,clahe"]),
        ("preprocess clahe --over", ["plain,--overwrite"]),
    ],
)
def test_completion_builds_no_model(words, shown):
    check_without_models(words, shown)


def test_a_stream_has_the_defaults_that_its_help_names(photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for setting, severities in (("continual", {5}), ("gradual", {1, 2, 3, 4, 5})):
        flags = ("--corruptions", "fog,snow", "--setting", setting, "--output", f"{setting}.jsonl")
        cli("stream", "--source", photos, *flags)
        rows = map(json.loads, Path(f"{setting}.jsonl").read_text().splitlines())
        assert {row["severity"] for row in rows} == severities
