"""`robustgen stream score`: errors by corruption and visit, with intervals, as tables and as a page."""

import csv
import io
import json

import numpy as np
import pytest

from robustgen.metrics.intervals import wilson_interval
from tests.helpers import cli, cli_error

KEYS = [f"a/{number}.png" for number in range(12)]


def put_stream(folder, rounds=2):
    """A stream of two corruptions and two severities of the second; returns its rows."""
    rows = [
        {"key": key, "corruption": name, "severity": level, "label": KEYS.index(key) % 3, "visit": visit}
        for visit in range(1, rounds + 1)
        for name, level in (("fog", 5), ("snow", 4), ("snow", 5))
        for key in KEYS
    ]
    (folder / "stream.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return rows


def put_predictions(folder, rows, name, wrong):
    """Predictions that are wrong in the rows that `wrong` chooses; returns which."""
    mistakes = np.array([bool(wrong(row)) for row in rows])
    labels = np.array([row["label"] for row in rows])
    np.save(folder / name, np.where(mistakes, (labels + 1) % 3, labels))
    return mistakes


@pytest.fixture
def rows(tmp_path):
    return put_stream(tmp_path)


def test_errors_are_those_of_the_lines_of_a_corruption_and_a_visit(rows, tmp_path):
    one = put_predictions(tmp_path, rows, "one.npy", lambda row: row["visit"] == 1 and row["key"] < "a/4")
    logits = np.eye(3)[[row["label"] for row in rows]]
    np.save(tmp_path / "all right.npy", logits)
    files = (tmp_path / "stream.jsonl", tmp_path / "one.npy", tmp_path / "all right.npy")
    errors = json.loads(cli("stream", "score", *files, "--format", "json").stdout)["errors"]
    found = {(row["model"], row["visit"], row["corruption"]): row for row in errors}
    assert {model for model, *_ in found} == {"one", "all right"}
    for (model, visit, name), row in found.items():
        part = [visit in (None, each["visit"]) and name in ("mean", each["corruption"]) for each in rows]
        wrong = one[part].mean() if model == "one" else 0
        assert float(row["error"]) == pytest.approx(wrong) and int(row["images"]) == sum(part)
        assert 0 <= float(row["low"]) <= wrong <= float(row["high"]) <= 1
    # Fog has each image once in a visit; both severities of snow are wrong for the same images.
    ends = wilson_interval(one[:12].mean(), 12)
    for name in ("fog", "snow"):
        row = found["one", 1, name]
        assert (float(row["low"]), float(row["high"])) == pytest.approx(tuple(map(float, ends)))
    numbers = [*csv.DictReader(io.StringIO(cli("stream", "score", *files, "--format", "csv").stdout))]
    (row,) = (r for r in numbers if (r["row"], r["column"]) == ("fog", "one: visit 1"))
    assert float(row["value"]) == found["one", 1, "fog"]["error"] and float(row["high"]) == pytest.approx(
        ends[1]
    )


def test_a_page_shows_them_with_curves(rows, tmp_path):
    put_predictions(tmp_path, rows, "<b>.npy", lambda row: row["key"] < "a/4")
    files = (tmp_path / "stream.jsonl", tmp_path / "<b>.npy")
    cli("stream", "score", *files, "--output", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "&lt;b&gt;: errors along a stream" in page and page.count("<svg") == 2 and "<b>.npy" not in page


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (np.zeros(5, int), "5 predictions"),
        (np.zeros(72), "integers"),
        (np.full((72, 3), np.nan), "NaN"),
        (np.zeros((72, 2)), "label"),
    ],
)
def test_predictions_of_another_form_are_refused(rows, tmp_path, content, reason):
    np.save(tmp_path / "p.npy", content)
    text = cli_error("stream", "score", tmp_path / "stream.jsonl", tmp_path / "p.npy")
    assert "p.npy" in text and reason in text
