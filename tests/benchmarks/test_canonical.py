"""The table of canonical sets, and what is recognised as one of them."""

import re
from pathlib import Path

import pytest

import robustgen
from robustgen.benchmarks.canonical import PENDING, read_table, recognise
from tests.helpers import cli

PAGE = (Path(__file__).parents[2] / "docs" / "background" / "canonical.md").read_text()


def test_the_table_has_every_set_once_and_the_page_says_the_same():
    rows = read_table()
    known = {(row.source, row.kind, row.operations) for row in rows}
    sources = ("demo", "smoke", "cifar-10", "cifar-100")
    assert known == {(s, k, o) for s in sources for k in "cp" for o in ("default", "all")}
    assert len(rows) == len(known)
    for row in rows:
        assert row.digest == PENDING or re.fullmatch(r"[0-9a-f]{64}", row.digest)
        assert row.digest != PENDING or row.source.startswith("cifar")
        assert f"| {row.title} | `{row.source}` | {row.operations} | `{row.digest}` |" in PAGE
        assert robustgen.__version__.startswith(row.release)


def test_a_canonical_set_is_recognised_by_its_digest():
    (row,) = (r for r in read_table() if (r.source, r.kind, r.operations) == ("smoke", "c", "default"))
    sentence = f"This is smoke-C (seed 0) as published with robustgen {row.release}."
    assert recognise(row.digest) == recognise("0" * 64, row.digest) == sentence
    assert recognise("0" * 64, None, PENDING) is None


@pytest.mark.parametrize("kind", ["c", "p"])
def test_verify_names_a_canonical_set(tmp_path, kind):
    cli(f"make-{kind}", "--dataset", "smoke", "--output", tmp_path / "set", "--jobs", "1")
    assert f"This is smoke-{kind.upper()} (seed 0) as published" in cli("verify", tmp_path / "set").output
    cli(f"make-{kind}", "--dataset", "smoke", "--seed", 1, "--output", tmp_path / "other", "--jobs", "1")
    assert "This is" not in cli("verify", tmp_path / "other").output
