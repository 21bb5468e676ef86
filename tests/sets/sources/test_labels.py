"""Files of labels in the forms that people have, and labels in the columns of tables."""

import json
from pathlib import Path

import numpy as np
import pytest

from robustgen import evaluate
from robustgen.errors import SourceError
from robustgen.sets.dataset.selection import select_keys
from robustgen.sets.sources.base import Source, SourceOptions
from robustgen.sets.sources.opening import open_source
from robustgen.settings.config import Choices
from robustgen.torch import SourceDataset
from tests.helpers import cli, cli_error, errors_of, pictures, put_photo
from tests.sets.sources.test_trees import put_tar, put_zip

FEW = ("--corruptions", "contrast", "--severities", "1", "--format", "png", "--jobs", "1")
NAMES = [f"part{number % 2}/id_{number:02d}.png" for number in range(12)]
LABELS = [number * 5 % 11 for number in range(12)]
WORDS = [f"class {'kjihgfedcba'[label]}" for label in LABELS]
ROWS = [*zip(NAMES, LABELS, strict=True)]
HEADER = "image,label\n"


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images in two folders, which are no classes."""
    root = tmp_path_factory.mktemp("labels") / "photos"
    for seed, name in enumerate(NAMES):
        put_photo(root / name, seed=seed)
    return root


def read(images: Path, content: str | bytes, name: str = "labels.csv", **options: object) -> Source:
    """Open the images with a file of labels beside their folder."""
    file = images.parent / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_source(images, options=SourceOptions(labels=file, **options))


def labels_of(source: Source) -> dict[str, int]:
    """The label of each image by its path below the source."""
    return {key.partition("/")[2]: source.label(key) for key in source.keys()}  # noqa: SIM118


def in_lines(form: str, header: str = "") -> str:
    lines = (
        form.format(name=name, base=name[6:], stem=name[6:-4], label=label, n=number, float=float(label))
        for number, (name, label) in enumerate(ROWS)
    )
    return header + "".join(f"{line}\n" for line in lines)


FORMS = {
    "comma": in_lines("{name},{label}", HEADER),
    "no header": in_lines("{name},{label}"),
    "semicolon": in_lines("{name};{label};", "image;label;\n"),
    "tab": in_lines("{name}\t{label}", "file\tlabel\n"),
    "pipe": in_lines("{name}|{label}"),
    "space": in_lines("{name} {label}"),
    "Windows": "\ufeff" + in_lines("{name},{label}", HEADER).replace("\n", "\r\n"),
    "UTF-16": in_lines("{name}\t{label}", "image\tlabel\n").encode("utf-16"),
    "quoted": in_lines('"{name}","{label}"', '"image","label"\n'),
    "backslashes": in_lines("{name},{label}", HEADER).replace("/", "\\"),
    "dots": in_lines("./{name},{label}", HEADER),
    "names alone": in_lines("{base},{label}", HEADER),
    "stems": in_lines("{stem},{label}", "id,label\n"),
    "label first": in_lines("{label},{name}", "label,image_id\n"),
    "label in the middle": in_lines("{name},{label},{n}", "image_id,label,fold\n"),
    "index of pandas": in_lines("{n},{name},{label}", ",image,label\n"),
    "unknown name": in_lines("{name},{label}", "image,diagnosis\n"),
    "ClassId": in_lines("{name},{n},{label}", "Path,Width,ClassId\n"),
    "floats": in_lines("{name},{float}", HEADER),
    "beside the folder": in_lines("photos/{name},{label}", HEADER),
    "other machine": in_lines("/home/a/photos/{name},{label}", HEADER),
    "other drive": in_lines("D:\\photos\\{name},{label}", HEADER),
    "JSON lines": in_lines('{{"image": "{name}", "label": {label}}}'),
    "JSON lines of floats": in_lines('{{"box": {{"x": 1}}, "label": {float}, "file_name": "{name}"}}'),
    "JSON object": json.dumps(dict(ROWS)),
    "JSON list": json.dumps([{"image": name, "class_id": label} for name, label in ROWS], indent=1),
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_every_form_gives_each_image_its_number(images: Path, content: str | bytes) -> None:
    source = read(images, content)
    assert source.keys()[0] == "0/part0/id_00.png" and labels_of(source) == dict(ROWS)
    # A model may have more outputs than the largest number.
    assert source.class_count is None and not source.refused()
    assert all(image.any() for image in map(source.load, source.keys()))


def test_absolute_paths_and_parquet(images: Path) -> None:
    content = HEADER + "".join(f"{images}/{name},{label}\n" for name, label in ROWS)
    assert labels_of(read(images, content)) == dict(ROWS)
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"path": NAMES, "label": LABELS}), images.parent / "x.parquet")
    content = (images.parent / "x.parquet").read_bytes()
    assert labels_of(read(images, content, "labels.parquet")) == dict(ROWS)


def test_names_are_in_text_order(images: Path) -> None:
    content = HEADER + "".join(f'{name},"{word}, sic"\n' for name, word in zip(NAMES, WORDS, strict=True))
    source = read(images, content)
    assert source.classes == tuple(f"class {letter}, sic" for letter in "abcdefghijk")
    assert labels_of(source) == {name: 10 - label for name, label in ROWS}
    assert source.class_count == 11


@pytest.mark.parametrize("none", ["-1", "", "-1.0"])
def test_images_without_a_label_are_counted(images: Path, tmp_path: Path, none: str) -> None:
    content = in_lines("{name},{label}", HEADER).replace(f"{NAMES[3]},{LABELS[3]}", f"{NAMES[3]},{none}")
    source = read(images, content)
    assert labels_of(source) == {name: label for name, label in ROWS if name != NAMES[3]}
    assert [*source.refused()] == [NAMES[3]] and "no label" in source.refused()[NAMES[3]]
    result = cli(
        "make-c",
        *("--source", images, "--labels", images.parent / "labels.csv", "--output", tmp_path / "out"),
        *FEW,
        status=1,
    )
    assert NAMES[3] in result.stderr and [each["key"] for each in errors_of(tmp_path / "out")] == [NAMES[3]]
    assert f"clean/0/{NAMES[0]}" in pictures(tmp_path / "out")


def test_numbers_stay_among_names_only_if_they_are_names(images: Path) -> None:
    content = in_lines("{name},{label}", HEADER).replace(f"{NAMES[3]},{LABELS[3]}", f"{NAMES[3]},cat")
    with pytest.raises(SourceError, match=r"line 5: label 'cat'.*line 2.*labels_are_classes"):
        read(images, content).keys()
    assert read(images, content, labels_are_classes=True).classes[-1] == "cat"
    # Identifiers are names.
    many = HEADER + "".join(f"{name},{label + 100_000}\n" for name, label in ROWS)
    assert read(images, many).classes[0] == "100000" and read(images, many).class_count == 11


def test_the_column_of_labels(images: Path) -> None:
    content = in_lines("{name},{n},{label}", "image,age,grade\n")
    with pytest.raises(SourceError, match=r"line 2: .*age, grade.*label_column"):
        read(images, content).keys()
    assert labels_of(read(images, content, label_column="grade")) == dict(ROWS)
    with pytest.raises(SourceError, match=r"'sex' \(columns: age, grade\)"):
        read(images, content, label_column="sex").keys()
    both = HEADER.replace("label", "class,class_id") + "".join(
        f"{name},{word},{label}\n" for (name, label), word in zip(ROWS, WORDS, strict=True)
    )
    with pytest.raises(SourceError, match=r"'class' and 'class_id' disagree.*label_column"):
        read(images, both).keys()
    assert labels_of(read(images, both, label_column="class_id")) == dict(ROWS)
    listed = ("list", "--keys", images, "--labels", images.parent / "labels.csv")
    assert "label_column" in cli_error(*listed)
    assert cli(*listed, "--label-column", "class_id").stdout.splitlines()[0] == "0/part0/id_00.png"
    in_python = SourceDataset(images, images.parent / "labels.csv", label_column="class_id")
    assert {key.partition("/")[2]: item[1] for key, item in zip(in_python.keys, in_python, strict=True)} == (
        dict(ROWS)
    )


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (in_lines("x{name},{label}", HEADER), "line 2: .*part0/id_00.png.*columns: image, label"),
        (in_lines("x{n}.png {label}"), "line 1: .*part0/id_00.png"),
        (in_lines("{name},{label},5", HEADER), "line 2: 3 cells.*image, label"),
        (in_lines("{name},0.{n}", HEADER), "line 2|line 3"),
        (in_lines('{{"image": "{name}", "label": [1, {label}]}}'), "line 1: .*not one class"),
        (in_lines('{{"image": "{name}", "label": {label}}}')[:-3], "line 12: "),
        ("image,mask,label\n" + "".join(f"{a},{b},1\n" for a, b in zip(NAMES, NAMES[::-1], strict=True)), ""),
        (
            "a,b,label\n" + "".join(f"{a},{b},1\n" for a, b in zip(NAMES, NAMES[::-1], strict=True)),
            "'a' and 'b'",
        ),
    ],
)
def test_what_does_not_match_is_named(images: Path, content: str, named: str) -> None:
    source = read(images, content)
    if named:
        with pytest.raises(SourceError, match=named):
            source.keys()
    else:
        # The column with the usual name.
        assert labels_of(source) == dict.fromkeys(NAMES, 1)


def test_names_per_line_may_have_words_and_a_title(images: Path) -> None:
    lines = "".join(f"great {word}\n" for word in WORDS)
    by_order = dict(zip(sorted(NAMES), (10 - label for label in LABELS), strict=True))
    assert labels_of(read(images, lines)) == labels_of(read(images, "label\n" + lines)) == by_order


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl"])
@pytest.mark.parametrize("place", ["folder", "tar", "zip"])
def test_metadata_in_the_root_is_used(images: Path, tmp_path: Path, name: str, place: str) -> None:
    form = '{{"file_name": "{name}", "label": {label}}}' if name.endswith("l") else "{name},{label}"
    content = in_lines(form, "" if name.endswith("l") else "file_name,label\n").encode()
    files = {file: (images / file).read_bytes() for file in NAMES} | {name: content}
    if place == "folder":
        root = tmp_path / "set"
        for file, data in files.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_bytes(data)
    else:
        put = put_tar if place == "tar" else put_zip
        root = put(tmp_path / f"set.{place}", {f"set/{file}": data for file, data in files.items()})
    source = open_source(root)
    assert labels_of(source) == dict(ROWS) and source.keys()[0] == "0/part0/id_00.png"
    assert any(name in remark for remark in source.remarks())
    assert all(image.any() for image in map(source.load, source.keys()))
    assert open_source(root, "folder").classes == ("part0", "part1")
    # A set that mirrors its source has no classes.
    if place == "folder":
        mirrored = cli("make-c", "--dataset", "coco-c", "--source", root, "--dry-run", *FEW[:4]).stdout
        assert name not in mirrored.partition("mirror ")[0]


@pytest.mark.parametrize(
    "content", ["file_name,text\nA/1.png,a cat\n", "file_name,label\nA/1.png,A\nB/2.png,B\n", "x,y\n1,2\n"]
)
def test_metadata_without_other_labels_leaves_class_folders(tmp_path: Path, content: str) -> None:
    for name in ("A/1.png", "B/2.png"):
        put_photo(tmp_path / name)
    (tmp_path / "metadata.csv").write_text(content)
    assert open_source(tmp_path).keys() == ("A/1.png", "B/2.png") and not open_source(tmp_path).remarks()


def test_a_dry_run_shows_classes(images: Path) -> None:
    read(images, in_lines("{name},{label}", HEADER))
    flags = ("--source", images, "--labels", images.parent / "labels.csv", *FEW, "--dry-run")
    lines = [line for line in cli("make-c", *flags).stdout.splitlines() if line.startswith("classes")]
    assert len(lines) == 3 and "0/part0/id_00.png" in lines[0] and "number 0" in lines[0]


def test_a_csv_is_no_source(images: Path) -> None:
    read(images, in_lines("{name},{label}", HEADER))
    message = cli_error("make-c", "--source", images.parent / "labels.csv", *FEW, "--dry-run")
    assert "--labels" in message and "--source" in message
    (images.parent / "cells.csv").write_text(f"image,label\n{'A' * 2000},3\n")
    assert "to_csv('cells.tsv'" in cli_error("make-c", "--source", images.parent / "cells.csv", *FEW)


def test_numbers_lose_their_leading_zeros(tmp_path: Path) -> None:
    rows = {f"{number:05d}": number % 3 for number in range(9)}
    np.save(tmp_path / "x.npy", np.zeros((9, 32, 32, 3), np.uint8))
    (tmp_path / "labels.csv").write_text("id,label\n" + "".join(f"{int(k)},{v}\n" for k, v in rows.items()))
    options = SourceOptions(labels=tmp_path / "labels.csv")
    source = open_source(tmp_path / "x.npy", options=options)
    assert {key: source.label(key) for key in source.keys()} == rows  # noqa: SIM118
    for name in rows:
        put_photo(tmp_path / "flat" / f"{name}.png")
    assert labels_of(open_source(tmp_path / "flat", options=options)) == {
        f"{k}.png": v for k, v in rows.items()
    }


def test_scores_need_labels(images: Path, tmp_path: Path) -> None:
    lines = [json.dumps({"image": name, "question": "?"}) + "\n" for name in NAMES]
    (images / "questions.jsonl").write_text("".join(lines))

    def model(pixels: np.ndarray) -> np.ndarray:
        return np.eye(11, dtype=np.float32)[np.zeros(len(pixels), int)]

    few = {"corruptions": ["brightness"], "severities": [1], "jobs": 1, "quiet": True}
    with pytest.raises(SourceError, match=r"12 of 12 images have no class.*label_column"):
        evaluate(model, source=str(images / "questions.jsonl"), **few)
    flips = {"perturbations": ["brightness"], "limit": 2, "jobs": 1, "quiet": True}
    assert evaluate(model, source=str(images / "questions.jsonl"), **flips) is not None


BLANKS = {"a b.jpg": "great white shark", "b.jpg": "dog", "c d.JPG": "house cat"}


@pytest.mark.parametrize("header", ["", "image label\n"])
def test_names_and_classes_may_have_blanks(tmp_path: Path, header: str) -> None:
    for name in BLANKS:
        put_photo(tmp_path / "photos" / name)
    lines = header + "".join(f"{name} {label}\n" for name, label in BLANKS.items())
    source = read(tmp_path / "photos", lines, "labels.txt")
    assert [*source.keys()] == sorted(f"{label}/{name}" for name, label in BLANKS.items())
    few = lines[: lines.index("c d")]
    choices = Choices(source=str(tmp_path / "photos"), subset=f"@{tmp_path / 'list.txt'}")
    (tmp_path / "list.txt").write_text(few)
    assert select_keys(open_source(tmp_path / "photos"), choices) == ("a b.jpg", "b.jpg")
    # Two columns or one class, and no class at all.
    for label in ("big cat", ""):
        with pytest.raises(SourceError, match=r"tabs|subset"):
            read(tmp_path / "photos", "".join(f"{name} {label}\n" for name in BLANKS), "labels.txt").keys()


@pytest.mark.parametrize("pair", [("Cat", "cat"), ("f\u00e9lin", "fe\u0301lin")])
def test_classes_that_look_alike_are_named(images: Path, pair: tuple[str, str]) -> None:
    source = read(images, "".join(f"{name},{pair[number % 2]}\n" for number, name in enumerate(NAMES)))
    assert len(source.classes) == 2
    (remark,) = source.remarks()
    assert all(repr(name) in remark for name in pair)
