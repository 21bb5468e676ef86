"""The release: its number in every file, and that no byte of a set depends on it."""

import re
from pathlib import Path

import yaml

import robustgen
from robustgen.sets.formats import base
from tests.helpers import ONE, make_c, manifest, tree

ROOT = Path(__file__).parent.parent


def test_every_file_has_the_number_of_the_release():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert citation["version"] == recipe["context"]["version"] == robustgen.__version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[([^]]+)\]", changes, re.MULTILINE)[0] == robustgen.__version__


def test_no_digest_depends_on_the_release(photos, tmp_path, monkeypatch):
    for form in ("jpeg", "webdataset", "parquet", "png"):
        ours, theirs = tmp_path / form, tmp_path / f"{form}-later"
        make_c(photos, ours, *ONE, "--format", form)
        with monkeypatch.context() as later:
            later.setattr(base, "__version__", "1.7.3")
            make_c(photos, theirs, *ONE, "--format", form)
        assert manifest(theirs)["settings"]["versions"]["robustgen"] == "1.7.3"
        assert manifest(theirs)["digest"] == manifest(ours)["digest"] and tree(theirs) == tree(ours)
