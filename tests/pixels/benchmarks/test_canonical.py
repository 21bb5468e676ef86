"""The table of canonical sets, and what is recognised as one of them."""

import hashlib
import json
import re
from pathlib import Path

import pytest

import robustgen
from robustgen.pixels.benchmarks.canonical import PENDING, PUBLISHED_FILES, read_table, recognise
from tests.helpers import CIFAR, cli, make_c

PAGE = (Path(__file__).parents[3] / "docs" / "background" / "canonical.md").read_text()


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


@pytest.mark.slow("makes a canonical set")
@pytest.mark.parametrize("kind", ["c", "p"])
def test_verify_names_a_canonical_set(tmp_path, kind):
    cli(f"make-{kind}", "--dataset", "smoke", "--output", tmp_path / "set", "--jobs", "1")
    assert f"This is smoke-{kind.upper()} (seed 0) as published" in cli("verify", tmp_path / "set").output
    cli(f"make-{kind}", "--dataset", "smoke", "--seed", 1, "--output", tmp_path / "other", "--jobs", "1")
    assert "This is" not in cli("verify", tmp_path / "other").output


# --- published files -----------------------------------------------------------------------------


def test_the_page_lists_the_digests_of_the_published_files():
    (_, ten), (_, hundred) = PUBLISHED_FILES.values()
    assert ten.keys() == hundred.keys() and len({*ten.values(), *hundred.values()}) == 18
    for path, digest in ten.items():
        assert f"| `{path}` | `{digest}` | `{hundred[path]}` |" in PAGE


@pytest.fixture
def planted(cifar, tmp_path, monkeypatch):
    """A small CIFAR-10-C of which contrast.npy counts as published."""
    make_c(cifar[0], tmp_path / "out", *CIFAR)
    digest = hashlib.md5((tmp_path / "out" / "contrast.npy").read_bytes()).hexdigest()
    digests = {"contrast.npy": digest, "labels.npy": "0" * 32, "fog.npy": "1" * 32}
    monkeypatch.setitem(PUBLISHED_FILES, "cifar-10", ("CIFAR-10-C", digests))
    return tmp_path / "out"


def test_verify_names_the_files_of_a_published_set(planted):
    lines = cli("verify", planted).stdout.splitlines()
    assert lines[1:] == ["contrast.npy: the file of CIFAR-10-C on Zenodo"]
    assert json.loads(cli("verify", planted, "--format", "json").stdout)["published"] == {
        "contrast.npy": "CIFAR-10-C"
    }


def test_other_files_are_not_called_published(planted):
    (planted / "contrast.npy").write_bytes((planted / "gaussian_noise.npy").read_bytes())
    assert "Zenodo" not in cli("verify", planted, status=1).stdout
    (planted / "contrast.npy").unlink()
    assert "Zenodo" not in cli("verify", planted, status=1).stdout


def test_other_sets_have_no_published_files(planted, monkeypatch):
    title, digests = PUBLISHED_FILES["cifar-10"]
    monkeypatch.setitem(PUBLISHED_FILES, "cifar-100", (title, digests))
    monkeypatch.delitem(PUBLISHED_FILES, "cifar-10")
    assert "Zenodo" not in cli("verify", planted).stdout
