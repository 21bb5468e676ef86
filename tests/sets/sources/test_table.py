"""Tables as sources: their labels, their columns of images, and cells that cannot be read."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from robustgen import evaluate
from robustgen.errors import SourceError
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.sources.base import Source, SourceOptions
from robustgen.sets.sources.opening import open_source
from robustgen.torch import SourceDataset
from tests.helpers import ONE, cli, errors_of, make_c, pictures, tree

ROWS = {f"img/{number}.png": number * 5 % 7 for number in range(10)}
SCORED = {"corruptions": ["contrast"], "severities": [1], "jobs": 1, "quiet": True}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Flat pictures, whose grey is 20 times the label."""
    (tmp_path / "img").mkdir()
    for name, label in ROWS.items():
        Image.new("RGB", (40, 40), (20 * label,) * 3).save(tmp_path / name)
    return tmp_path


def put_lines(root: Path, *rows: dict[str, object], name: str = "t.jsonl") -> Path:
    (root / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root / name


def labels_of(source: Source) -> dict[str, int]:
    return {key: source.label(key) for key in source.keys()}  # noqa: SIM118


def model_of(greys: list[int]) -> Callable[[NDArray[np.uint8]], NDArray[np.float32]]:
    """A model without errors on clean images, whose outputs have these greys."""
    return lambda pixels: -np.abs(pixels.mean((1, 2, 3))[:, None] - np.array(greys)).astype(np.float32)


SEVEN = model_of([20 * label for label in range(7)])


def put_as(root: Path, form: str) -> Path:
    rows = [{"n": 1.5, "label": label, "image": name} for name, label in ROWS.items()]
    if form == "jsonl":
        return put_lines(root, *rows)
    if form == "tsv":
        lines = ["n\tlabel\timage", *("\t".join(map(str, row.values())) for row in rows)]
        (root / "t.tsv").write_text("\n".join(lines) + "\n")
        return root / "t.tsv"
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for number, name in enumerate(ROWS):
        # Equal bytes would be one picture.
        image = Image.open(root / name)
        image.putpixel((0, 0), (number,) * 3)
        image.save(root / name)
    cells = [
        row | {"image": {"bytes": (root / str(row["image"])).read_bytes(), "path": None}} for row in rows
    ]
    parquet.write_table(pyarrow.Table.from_pylist(cells), root / "t.parquet")
    return root / "t.parquet"


@pytest.mark.parametrize("form", ["jsonl", "tsv", "parquet"])
def test_a_column_of_labels_is_kept(root: Path, form: str) -> None:
    place = put_as(root, form)
    source = open_source(place, "table")
    assert [*labels_of(source).values()] == [*ROWS.values()]
    assert min(map(source.label, source.keys())) >= 0 and any(source.classes) and source.class_count is None
    assert evaluate(SEVEN, source=str(place), source_kind="table", **SCORED).clean_error == 0
    if form != "parquet":
        assert [label for _, label in SourceDataset(place)] == [*ROWS.values()]


def test_keys_and_bytes_stay_and_trees_have_class_folders(root: Path) -> None:
    with_labels = put_as(root, "jsonl")
    without = put_lines(root, *({"image": name} for name in ROWS), name="u.jsonl")
    made = {}
    for table in (with_labels, without):
        output = root.parent / f"{root.name} {table.stem}"
        make_c(table, output, *ONE, "--format", "png")
        made[table.stem] = tree(output)
    first, other = (f"contrast/1/{folder}img/1.png" for folder in ("5/", ""))
    assert made["t"][first] == made["u"][other]
    # The table as a set keeps its labels, for predict.
    output = root.parent / f"{root.name} table"
    make_c(with_labels, output, *ONE)
    assert (output / "clean/t.jsonl").read_bytes() == with_labels.read_bytes()
    written = open_set(output)
    assert written.labels(written.variants[0]).tolist() == [*ROWS.values()]


def test_names_are_classes_in_text_order(root: Path) -> None:
    table = put_lines(root, *({"image": name, "class": "gfedcba"[label]} for name, label in ROWS.items()))
    source = open_source(table)
    assert source.classes == tuple("abcdefg")
    assert labels_of(source) == {name: 6 - label for name, label in ROWS.items()}
    assert evaluate(model_of([*range(120, -1, -20)]), source=str(table), **SCORED).clean_error == 0


@pytest.mark.parametrize("none", [-1, None, -1.0])
def test_rows_without_a_label_are_counted_in_scores_and_kept_in_tables(root: Path, none: object) -> None:
    rows = [{"image": name, "label": label if label else none} for name, label in ROWS.items()]
    table = put_lines(root, *rows)
    assert set(labels_of(open_source(table)).values()) == {-1, *range(1, 7)}
    lost = sum(not label for label in ROWS.values())
    scores = evaluate(SEVEN, source=str(table), output=root / "p", name="m", **SCORED)
    assert scores.clean_error == 0
    result = cli("make-c", "--source", table, *ONE, "--output", root.parent / f"{root.name} out")
    assert not (root.parent / f"{root.name} out/errors.jsonl").exists()
    assert "failure" not in result.stderr and lost == 2
    # Other formats have no place for a row without a label.
    make_c(table, root.parent / f"{root.name} npy", *ONE, "--format", "npy", status=1)
    named = {each["key"] for each in errors_of(root.parent / f"{root.name} npy")}
    assert named == {name for name, label in ROWS.items() if not label}
    assert np.load(root.parent / f"{root.name} npy/labels.npy").min() == 1
    with np.load(next((root / "p").rglob("clean.npz"))) as predicted:
        assert len(predicted["labels"]) == len(ROWS) - lost


@pytest.mark.parametrize(
    ("columns", "right"),
    [
        ({"class": lambda n: "gfedcba"[n], "class_id": lambda n: n}, "class_id"),
        ({"cls": lambda n: 6 - n, "label": lambda n: n}, "label"),
        ({"category": lambda n: f"x{n % 2}", "target": lambda n: n}, "target"),
    ],
)
def test_columns_that_disagree_are_refused_in_scores(
    root: Path, columns: dict[str, object], right: str
) -> None:
    rows = [{"image": name} | {each: of(n) for each, of in columns.items()} for name, n in ROWS.items()]
    table = put_lines(root, *rows)
    first, second = columns
    (remark,) = open_source(table).remarks()
    assert f"{first!r} and {second!r}" in remark and "label_column" in remark
    with pytest.raises(SourceError, match=r"10 of 10 images have no class.*label_column"):
        evaluate(SEVEN, source=str(table), **SCORED)
    assert evaluate(SEVEN, source=str(table), label_column=right, **SCORED).clean_error == 0


def test_columns_that_agree_are_one(root: Path) -> None:
    rows = [{"image": name, "class": "abcdefg"[n], "class_id": n} for name, n in ROWS.items()]
    source = open_source(put_lines(root, *rows))
    assert source.classes == tuple("abcdefg") and labels_of(source) == ROWS and not source.remarks()


def test_rows_that_share_a_picture_must_agree(root: Path) -> None:
    rows = [{"image": "img/0.png", "category": word} for word in ("colour", "shape")]
    source = open_source(put_lines(root, *rows))
    assert not any(source.classes) and "'colour'" in source.remarks()[0]


def test_two_columns_of_images(root: Path) -> None:
    rows = [{"mask": "img/0.png", "image": name, "label": n} for name, n in ROWS.items()]
    source = open_source(put_lines(root, *rows))
    (remark,) = source.remarks()
    assert labels_of(source) == ROWS and "'mask'" in remark and "image_columns" in remark
    chosen = open_source(put_lines(root, *rows), options=SourceOptions(columns=("image",)))
    assert chosen.keys() == source.keys() and not chosen.remarks()
    text = "What is shown on this photograph of a street in the morning of a day in May?"
    plain = put_lines(root, *({"image": name, "question": text} for name in ROWS))
    assert not open_source(plain).remarks()


@pytest.mark.parametrize("cell", ["img/missing.png", "photo.heic", "img/no_suffix", "/etc/x.png", "a.nii.gz"])
def test_a_cell_that_names_no_picture_is_counted(root: Path, cell: str) -> None:
    rows = [{"image": name, "label": label} for name, label in ROWS.items()]
    table = put_lines(root, *rows, {"image": cell, "label": 3})
    output = root.parent / f"{root.name} out"
    make_c(table, output, *ONE, "--format", "png", status=1)
    (error,) = errors_of(output)
    assert cell in f"{error['key']} {error['reason']}"
    assert len(pictures(output)) == 2 * len(ROWS)


def test_numbers_of_json_lines_stay_as_written(root: Path) -> None:
    lines = [
        '{"image": "img/0.png", "a": 1.50, "b": 1e5, "c": -0, "d": 12345678901234567890.10}',
        '{"image": "img/3.png", "e": [1.0, {"f": 2E-3}]}',
        '{ "a":NaN,"image" :"img/1.png" , "text": "\\u00e4 \\"q\\" }", "image2": 1.0}',
        '{"image":"img/2.png"}',
    ]
    (root / "t.jsonl").write_text("\n".join(lines) + "\n")
    output = root.parent / f"{root.name} out"
    make_c(root / "t.jsonl", output, *ONE, "--format", "table:webp")
    expected = "\n".join(lines).replace('.png"', '.webp"') + "\n"
    assert (output / "contrast/1/t.jsonl").read_text() == expected
