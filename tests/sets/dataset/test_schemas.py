"""The schemas of dataset.json, the output state and predictions, and outputs of other versions."""

import csv
import hashlib
import json
import shutil
from importlib.resources import files

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from robustgen.files.set_files import SCHEMA
from robustgen.sets.formats import list_formats
from tests.digits import PLAIN, put_folder
from tests.helpers import FEW, cli, cli_error, findings, make_c, put_photo, records_of, whole

NAMES = ("arrays", "dataset", "errors", "notes", "plan", "predictions", "record", "settings")
VALIDATORS = {
    name: Draft202012Validator(
        json.loads((files("robustgen") / "files" / "schemas" / f"{name}.json").read_text("utf-8"))
    )
    for name in NAMES
}
SMALL = ("--corruptions", "contrast", "--severities", "1,4", "--edition", "imagenet-64", "--jobs", "1")


def check(name, content):
    """Hold `content` to the schema called `name`."""
    assert [error.message for error in VALIDATORS[name].iter_errors(content)] == []


def check_state(state):
    """Hold the files of an output state to their schemas; return the numbers of plans and records."""
    check("settings", json.loads((state / "settings.json").read_text()))
    plans, records = [*(state / "plans").iterdir()], records_of(state.parent, state.name)
    for path in plans:
        check("plan", json.loads(path.read_text()))
    for content in records.values():
        check("record", content)
    return len(plans), len(records)


def check_set(root, state=None):
    """Hold everything that describes the set at `root` to the schemas."""
    check("dataset", json.loads((root / "dataset.json").read_text()))
    assert min(check_state(state or root / ".robustgen")) >= 1
    for name in ("errors", "notes"):
        lines = root / f"{name}.jsonl"
        for line in lines.read_text().splitlines() if lines.exists() else ():
            check(name, json.loads(line))


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_valid_and_describe_every_key(name):
    schema = VALIDATORS[name].schema
    Draft202012Validator.check_schema(schema)
    assert {path.name for path in (files("robustgen") / "files" / "schemas").iterdir()} == {
        f"{each}.json" for each in NAMES
    }
    assert "schema" not in schema["properties"] or schema["properties"]["schema"]["const"] == SCHEMA
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        waiting += part.get("properties", {}).values()
        assert (name == "arrays" and "description" not in part) or part["description"].endswith(".")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("dataset", {"arms": ["clean"]}),
        ("dataset", {"schema": SCHEMA + 1}),
        ("dataset", {"digest": "A" * 64}),
        ("dataset", {"source": {"location": "photos", "images": 5}}),
        ("settings", {"versions": {"numpy": 2}}),
        ("record", {"files": [["a.png", 5, "0" * 64]]}),
        ("record", {"failures": [{"key": "a.png"}]}),
    ],
    ids=str,
)
def test_schemas_refuse_what_is_not_in_them(output, name, change):
    state = output / ".robustgen"
    paths = {"dataset": output / "dataset.json", "settings": state / "settings.json"}
    content = (
        json.loads(paths[name].read_text()) if name in paths else next(iter(records_of(output).values()))
    )
    check(name, content)
    assert not VALIDATORS[name].is_valid(content | change)


# --- sets ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Three photographs of 72 x 72 pixels, one of them damaged."""
    root = tmp_path_factory.mktemp("source") / "photos"
    put_photo(root / "cat" / "a.JPEG", 72, 72, 1)
    put_photo(root / "dog" / "b.png", 72, 72, 2)
    (root / "dog" / "c.png").write_bytes(b"\x89PNG")
    return root


@pytest.fixture(scope="module")
def table(source, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "list.tsv"
    shutil.copytree(source / "cat", path.parent / "cat")
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([("index", "image"), (1, "cat/a.JPEG")])
    return path


@pytest.mark.parametrize(
    ("kind", "form"), [(kind, form) for kind in ("c", "p") for form in list_formats(kind)], ids="-".join
)
def test_sets_of_every_format(kind, form, source, table, tmp_path):
    flags = SMALL if kind == "c" else ("--perturbations", "translate", *SMALL[4:])
    own = ("--dataset", "table", "--source", table) if form == "table" else ("--source", source)
    out = ("--output", tmp_path / "out", "--format", form, "--allow-failures")
    cli(f"make-{kind}", *own, *flags, *out, *(("--set", "mirror=copy") if form == "original" else ()))
    check_set(tmp_path / "out")


# --- predictions ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return put_folder(tmp_path_factory.mktemp("digits") / "digits", 12)


@pytest.fixture(scope="module")
def predicting(model, tmp_path_factory):
    """What predict and evaluate need for the digits."""
    names = tmp_path_factory.mktemp("names") / "classes.txt"
    names.write_text("".join(f"digit {label}\n" for label in range(10)))
    return ("--model", model, *PLAIN, "--classes", names)


def describe_arrays(path):
    """Name to type and shape of the arrays of a file."""
    with np.load(path) as held:
        arrays = {name: held[name] for name in held.files}
    return {name: {"dtype": a.dtype.str.lstrip("<|"), "shape": [*a.shape]} for name, a in arrays.items()}


OF_32 = ("--edition", "folder", "--set", "constants_for=32")
FEW_DIGITS = {
    "c": ("--corruptions", "fog", "--severities", "1", "--limit", "6"),
    "p": ("--perturbations", "brightness", "--limit", "6"),
}


@pytest.mark.parametrize("save", ["logits", "top5"])
@pytest.mark.parametrize("kind", ["c", "p"])
def test_predictions(kind, save, digits, predicting, tmp_path):
    flags = ("--source", digits, *OF_32, "--jobs", "1", *FEW_DIGITS[kind])
    cli(f"make-{kind}", *flags, "--format", "png", "--output", tmp_path / "set")
    cli("predict", tmp_path / "set", *predicting, "--save", save, "--output", tmp_path / "p")
    cli("evaluate", *flags, *predicting, "--save", save, "--output", tmp_path / "e")
    for root in (tmp_path / "p" / "digits", tmp_path / "e" / "digits"):
        check("predictions", json.loads((root / "predictions.json").read_text()))
        for content in records_of(root).values():
            check("record", content)
        found = [describe_arrays(path) for path in root.rglob("*.npz")]
        assert len(found) == (2 if kind == "c" else 1)
        for arrays in found:
            check("arrays", arrays)
            assert not VALIDATORS["arrays"].is_valid({**arrays, "keys": arrays["labels"]})


# --- other versions ------------------------------------------------------------------------------


def make_older(root):
    """Describe an output as the versions did that had no schema number; return it."""
    for path in [*root.glob("*.json"), *(root / ".robustgen").glob("*.json")]:
        content = json.loads(path.read_text())
        content.pop("schema", None)
        path.write_text(json.dumps(content).replace('"variants"', '"arms"'))
    for path in (root / ".robustgen").glob("plans/*"):
        data = path.read_text().replace('"variants"', '"arms"').replace('"manifest"', '"about"').encode()
        path.unlink()
        path.with_name(f"0000-{hashlib.sha256(data).hexdigest()[:16]}.json").write_bytes(data)
    for path in (root / ".robustgen").glob("records/**/*.json"):
        body = path.read_bytes().split(b"\n")[1].replace(b'"variants"', b'"arms"')
        path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body + b"\n")
    return root


def refused(file):
    """The error for a file of another version."""
    return (
        f"{file}: has no schema number, and this version of robustgen reads schema 1: another version or "
        "program wrote it. Choose another output, or start over with --overwrite"
    )


def make_flags(source, root):
    return "--source", source, "--output", root, *FEW


@pytest.fixture
def older(copied):
    return make_older(copied)


READING = {
    "verify": lambda root: ("verify", root),
    "report": lambda root: ("report", root, "--output", root.parent / "report.html"),
    "compare": lambda root: ("compare", root, root),
    "croissant": lambda root: ("croissant", root),
    "predict": lambda root: ("predict", root, "--model", "any.onnx", "--output", root.parent / "predictions"),
}


@pytest.mark.parametrize("command", READING)
def test_readers_refuse_a_set_of_an_earlier_version(command, older):
    assert cli_error(*READING[command](older)) == refused(older / "dataset.json")
    shutil.rmtree(older / ".robustgen")
    assert cli_error(*READING[command](older)) == refused(older / "dataset.json")
    assert {path.name for path in older.parent.iterdir()} == {older.name}


def test_a_set_of_a_later_version_is_refused(copied):
    path = copied / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": SCHEMA + 1}))
    assert f"dataset.json: has schema {SCHEMA + 1}, and this version" in cli_error("verify", copied)


@pytest.mark.parametrize("flags", [(), ("--shard", "1/2"), ("--corruptions", "fog")], ids=str)
@pytest.mark.parametrize("is_finished", [True, False])
def test_writers_refuse_a_set_of_an_earlier_version(flags, is_finished, older, photos):
    if not is_finished:
        (older / "dataset.json").unlink()
    before = {path: path.read_bytes() for path in older.rglob("*") if path.is_file()}
    error = cli_error("make-c", *make_flags(photos, older), *flags)
    assert error == refused(older / ".robustgen" / "settings.json")
    assert {path: path.read_bytes() for path in older.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("form", ["jpeg", "webdataset"])
def test_overwriting_replaces_a_set_of_an_earlier_version(form, photos, tmp_path):
    out, flags = tmp_path / "out", ("--edition", "imagenet-64@32", "--format", form)
    make_c(photos, out, *FEW, *flags)
    make_older(out)
    assert cli_error("make-c", *make_flags(photos, out), *flags) == refused(out / ".robustgen/settings.json")
    only = ("--corruptions", "fog", "--severities", "2")
    make_c(photos, out, *FEW, *flags, *only, "--overwrite")
    make_c(photos, tmp_path / "new", *FEW, *flags, *only)
    assert whole(out) == whole(tmp_path / "new")
    assert findings(out, status=0) == []


@pytest.fixture
def predicted(digits, predicting, tmp_path):
    """Command that predicts, and the folder of its predictions, by its name."""
    flags = ("--source", digits, *OF_32, "--jobs", "1", *FEW_DIGITS["c"])
    cli("make-c", *flags, "--output", tmp_path / "set")
    both = {
        "predict": (("predict", tmp_path / "set", "--output", tmp_path / "p"), tmp_path / "p" / "digits"),
        "evaluate": (("evaluate", *flags, "--output", tmp_path / "e"), tmp_path / "e" / "digits"),
    }
    return {name: ((*command, *predicting), root) for name, (command, root) in both.items()}


@pytest.mark.parametrize("name", ["predict", "evaluate"])
def test_predictions_of_an_earlier_version_are_refused(name, predicted):
    command, root = predicted[name]
    cli(*command)
    before = {path.name: path.read_bytes() for path in root.rglob("*.npz")}
    make_older(root)
    error = refused(root / "predictions.json")
    assert cli_error(*command) == error
    assert cli_error("score", root, "--partial") == error
    cli(*command, "--overwrite")
    assert {path.name: path.read_bytes() for path in root.rglob("*.npz")} == before
    cli("score", root, "--partial")
