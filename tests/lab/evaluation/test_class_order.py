"""A model that is always right makes no error, whatever the source and the format: labels keep their meaning.

The pictures of each source are grey, and the level of a picture is its true class.
"""

import io
import json
import tarfile

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

import robustgen
from robustgen.errors import ConfigError, RobustgenError, SourceError
from robustgen.files.text_files import imagenet_classes
from robustgen.lab.evaluation.predictions import write_predictions as write
from robustgen.lab.scores.scoring import score
from robustgen.pixels.benchmarks.kinds import CLEAN_VARIANT
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.sources.base import SourceOptions
from robustgen.sets.sources.classes import name_folders
from robustgen.sets.sources.opening import open_source
from tests.helpers import cli, cli_error, published, slow_after
from tests.source_writers import write_mnist

FIRST, STEP, SIDE = 12, 10, 32
NAMES = ["tench", "goldfish", "shark", "cock", "hen", "ostrich", "brambling", "a ray", "junco", "robin"]
SOME = [7, 2, 5, 2]


def picture(label):
    return np.full((SIDE, SIDE, 3), FIRST + STEP * label, np.uint8)


def png(label):
    file = io.BytesIO()
    Image.fromarray(picture(label)).save(file, "PNG")
    return file.getvalue()


def level(pixels):
    """The class that a picture shows."""
    return round((float(pixels[..., 12:-12, 12:-12, :].mean()) - FIRST) / STEP)


def oracle(outputs):
    """A model of so many outputs that is always right."""
    steps = FIRST + STEP * np.arange(outputs)

    def scores(pixels):
        return -np.abs(pixels.mean((1, 2, 3))[:, None] - steps).astype(np.float32)

    return scores


# --- sources -------------------------------------------------------------------------------------


def put_folders(root, classes):
    """Folders called like `classes`, label to name."""
    for label, name in classes.items():
        (root / name).mkdir(parents=True)
        for copy in range(2):
            (root / name / f"{label}_{copy}.png").write_bytes(png(label))
    return root


def put_parquet(path, labels, names=None, texts=None):
    images = [{"bytes": png(label), "path": f"{path.stem}{i}.png"} for i, label in enumerate(labels)]
    table = pa.table({"image": images, "label": texts or labels})
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": names}}
    note = {"huggingface": json.dumps({"info": {"features": features}})} if names else {}
    path.parent.mkdir(exist_ok=True)
    parquet.write_table(table.replace_schema_metadata(note), path)
    return path


def put_shards(root, samples, names=None):
    """Two shards of `samples`: name of a picture, true class, and text of the label."""
    root.mkdir(parents=True)
    for number in range(2):
        with tarfile.open(root / f"{number:06d}.tar", "w") as tar:
            for name, label, text in samples[number::2]:
                for member, data in ((f"{name}.png", png(label)), (f"{name}.cls", str(text).encode())):
                    info = tarfile.TarInfo(member)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    if names:
        (root.parent / "classnames.txt").write_text("".join(f"{name}\n" for name in names))
    return root


def put_flat(root, texts):
    """A flat folder, and a file with the labels `texts`, true class to text."""
    (root / "flat").mkdir(parents=True)
    lines = []
    for label, text in texts.items():
        (root / "flat" / f"{label}.png").write_bytes(png(label))
        lines.append(f"{label}.png,{text}\n")
    (root / "labels.csv").write_text("".join(lines))
    return root / "flat"


def two_files(root):
    put_parquet(root / "data" / "test-0.parquet", [9, 0, 4], NAMES)
    return put_parquet(root / "data" / "test-1.parquet", SOME, NAMES).parent


def tiny_imagenet(root):
    (root / "val" / "images").mkdir(parents=True)
    lines = []
    for label in (2, 0, 1):
        (root / "val" / "images" / f"val_{label}.JPEG").write_bytes(png(label))
        lines.append(f"val_{label}.JPEG\tn0000000{label}\t0\t0\t9\t9\n")
    (root / "val" / "val_annotations.txt").write_text("".join(lines))
    return root


def medmnist(root):
    np.savez(root / "a.npz", test_images=np.stack([*map(picture, SOME)]), test_labels=np.array(SOME)[:, None])
    return root / "a.npz"


def finished(format_, build):
    """One variant of a finished set as a source."""

    def put(root):
        robustgen.make_c(
            source=build(root), output=root / "set", format=format_, corruptions="brightness", severities=1
        )
        folder = root / "set" / "data" / "clean"
        return folder if folder.exists() else root / "set" / "clean"

    return put


def by_label(root):
    return put_shards(root / "s", [(f"{'zebra' if n % 2 else 'ant'}{n}/{n}", n, n) for n in SOME[1:]])


def names_below(root):
    return put_shards(root / "a" / "s", [(str(i), n, n) for i, n in enumerate(SOME)], NAMES)


TWELVE = {n: str(n) for n in range(12)}
TEXTS = {0: "cat", 1: "dog", 2: "emu"}
# A source, and its further keys; the number of classes; the number of outputs that the model has.
SOURCES = {
    "folders 0 to 11": (lambda root: put_folders(root / "s", TWELVE), {}, 12, 12),
    "folders 2, 5, 7": (lambda root: put_folders(root / "s", {0: "2", 1: "5", 2: "7"}), {}, 3, 3),
    "folders 8 to 11": (
        lambda root: put_folders(root / "s", dict(enumerate(["8", "9", "10", "11"]))),
        {},
        4,
        4,
    ),
    "two Parquet files with names": (two_files, {}, 10, 10),
    "Parquet of text": (
        lambda root: put_parquet(root / "a.parquet", [2, 0, 1], texts=["emu", "cat", "dog"]),
        {},
        3,
        3,
    ),
    "Parquet of integers": (lambda root: put_parquet(root / "a.parquet", SOME), {}, None, 10),
    "names above the shards": (names_below, {}, 10, 10),
    "names in .cls": (
        lambda root: put_shards(root / "s", [(str(n), n, text) for n, text in TEXTS.items()]),
        {},
        3,
        3,
    ),
    "folders in shards, ordered by .cls": (by_label, {}, None, 10),
    "tiny-imagenet": (lambda root: tiny_imagenet(root / "tiny-imagenet-200"), {}, 3, 3),
    "mnist": (lambda root: write_mnist(root / "raw", [picture(n) for n in range(4)]), {}, None, 10),
    "npz": (medmnist, {}, None, 10),
    "labels of names": (lambda root: put_flat(root, TEXTS), {"labels": "labels.csv"}, 3, 3),
    "labels of integers": (
        lambda root: put_flat(root, {n: str(n) for n in SOME[:3]}),
        {"labels": "labels.csv"},
        None,
        10,
    ),
    "labels that are names": (
        lambda root: put_flat(root, {n: str(n + 1) for n in range(11)}),
        {"labels": "labels.csv", "labels_are_classes": True},
        11,
        11,
    ),
    "a finished tree": (finished("png", two_files), {}, 10, 10),
    "a finished tree of numbers": (finished("png", medmnist), {}, None, 10),
    "a finished WebDataset": (finished("webdataset", two_files), {}, 10, 10),
    "a finished Parquet set": (finished("parquet", two_files), {}, 10, 10),
}


@pytest.fixture(params=slow_after(len(SOURCES) - 4, "a set first", [*SOURCES]))
def case(request, tmp_path):
    """A source, the keys to open it, its number of classes, and a model that is always right."""
    build, keys, count, outputs = SOURCES[request.param]
    source = build(tmp_path)
    keys = {key: str(tmp_path / value) if key == "labels" else value for key, value in keys.items()}
    return source, keys, count, outputs


def test_labels_are_those_of_the_source(case):
    location, keys, count, outputs = case
    source = open_source(location, options=SourceOptions(**keys))
    assert source.class_count == count and len(source.classes) <= outputs
    for key in source.keys():  # noqa: SIM118
        assert source.label(key) == level(source.load(key)), key
    assert len(source.remarks()) == (source.classes[-1] == "11")


@pytest.mark.slow("six sets of each source")
def test_no_format_changes_a_label(case, tmp_path):
    location, keys, count, outputs = case
    keys |= {"source": location, "jobs": 1, "edition": "folder"}
    few = {"corruptions": "brightness", "severities": 1, "quiet": True}
    scores = robustgen.evaluate(oracle(outputs), **keys, **few)
    assert scores.clean_error == 0
    for other in (outputs - 1, outputs + 1) if count else ():
        with pytest.raises(ConfigError, match="classes"):
            robustgen.evaluate(oracle(other), **keys, **few)
    for name in ("jpeg", "png", "webdataset", "parquet", "npy"):
        robustgen.make_c(output=tmp_path / name, format=name, **keys, **few)
        made = open_set(tmp_path / name)
        assert made.class_count == count, name
        shown = [level(made.load(CLEAN_VARIANT, key)) for key in made.keys_of(CLEAN_VARIANT)]
        assert made.labels(CLEAN_VARIANT).tolist() == shown, name
    robustgen.make_p(output=tmp_path / "p", perturbations="rotate", **keys)
    made = open_set(tmp_path / "p")
    ((variant, images),) = made.items()
    assert made.labels(variant).tolist() == [level(images.load(key)[0]) for key in images.keys()]  # noqa: SIM118
    torch_sets = pytest.importorskip("robustgen.torch")
    if "labels_are_classes" not in keys:
        data = torch_sets.SourceDataset(location, keys.get("labels"))
        assert all(label == level(np.asarray(image)) for image, label in (data[i] for i in range(len(data))))


# --- class lists ---------------------------------------------------------------------------------


def test_a_list_orders_the_rows_of_arrays(tmp_path):
    """--classes names integers by their digits; a class that the list lacks is an error."""
    robustgen.make_c(
        source=medmnist(tmp_path),
        output=tmp_path / "c",
        format="npy",
        edition="folder",
        corruptions="brightness",
    )
    order = ["7", "1", "2", "3", "4", "5"]
    made = open_set(tmp_path / "c", order)
    assert made.labels(CLEAN_VARIANT).tolist() == [0, 2, 5, 2] and made.class_count == 6
    with pytest.raises(SourceError, match=r"class '5' is not in the class list"):
        open_set(tmp_path / "c", order[:5]).labels(CLEAN_VARIANT)
    published(tmp_path / "c", tmp_path / "published")
    assert open_set(tmp_path / "published", order).labels(CLEAN_VARIANT).tolist() == [0, 2, 5, 2]


def test_a_set_without_a_record_is_ordered_by_value_with_a_remark(tmp_path):
    put_folders(tmp_path / "set" / "fog" / "1", TWELVE)
    made = open_set(tmp_path / "set")
    ((variant, images),) = made.items()
    assert made.labels(variant).tolist() == [level(images.load(key)) for key in images.keys()]  # noqa: SIM118
    (remark,) = made.remarks()
    assert remark.startswith("classes 0 to 11 are ordered as numbers") and "(0, 1, 10, ...)" in remark
    assert not open_set(tmp_path / "set", sorted(TWELVE.values())).remarks()


def test_images_without_a_label_are_refused_beside_labelled_ones(tmp_path):
    source = open_source(put_parquet(tmp_path / "a.parquet", [0, 1], NAMES[:2], texts=[0, -1]))
    assert source.refused() == {"row 1": "has no label, but others have"}
    hidden = open_source(put_parquet(tmp_path / "b.parquet", [0, 1], NAMES[:2], texts=[-1, -1]))
    assert hidden.classes == ("",)
    samples = [("0", 0, 0), ("1", 1, -1), ("2", 2, 12)]
    source = open_source(put_shards(tmp_path / "s" / "t", samples, NAMES))
    refused = {"1.png": "has no label, but others have", "2.png": "label '12' is not in classnames.txt"}
    assert source.refused() == refused and source.classes == tuple(NAMES)


@pytest.mark.parametrize(
    ("recorded", "folders"),
    [
        (["b", "a"], ["b", "a"]),
        (["a/b", "c"], ["0", "1"]),
        (["crane", "crane"], ["0", "1"]),
        ([], []),
    ],
)
def test_names_become_folders(recorded, folders):
    assert name_folders(recorded) == folders


@pytest.mark.slow("imports timm and torchvision")
def test_class_names_of_imagenet_become_wordnet_ids(tmp_path):
    """The lists of torchvision and of timm, which has the names of the Hugging Face Hub."""
    meta = pytest.importorskip("torchvision.models._meta")
    info = pytest.importorskip("timm.data").ImageNetInfo()
    wnids = imagenet_classes()
    assert name_folders(meta._IMAGENET_CATEGORIES) == wnids
    names = [info.label_name_to_description(wnid, detailed=False) for wnid in wnids]
    assert name_folders(names) == wnids != name_folders(names[::-1])
    # Hubs want unique names.
    names[517] = "crane2"
    source = open_source(put_parquet(tmp_path / "a.parquet", [0, 2], names, texts=[0, 517]))
    assert source.keys() == ("n01440764/a0.png", "n03126707/a1.png")
    assert source.label("n03126707/a1.png") == 517 and source.class_count == 1000
    cli("make-c", "--dataset", "imagenet", "--source", tmp_path / "a.parquet", "--dry-run")
    put_parquet(tmp_path / "b.parquet", [0, 2], NAMES)
    line = cli_error("make-c", "--dataset", "imagenet", "--source", tmp_path / "b.parquet", "--dry-run")
    assert "class 'tench' is not a class folder of ImageNet, named by a WordNet id" in line


# --- score ---------------------------------------------------------------------------------------


def test_score_refuses_other_labels_for_the_same_images(tmp_path):
    keys, labels = (
        ["a", "b", "c"],
        {"first": [0, 1, 2], "same": [0, 1, 2], "other": [1, 0, 2], "merged": [0, 0, 2]},
    )
    orders = {"first": None, "same": None, "other": ["dog", "cat", "emu"], "merged": ["x", "y", "z"]}
    for name, own in labels.items():
        for variant in ("clean", "fog/1"):
            write(tmp_path / name, variant, keys, own, np.eye(3)[own])
        about = {"schema": 1, "preprocessing": {"classes": orders[name]}}
        (tmp_path / name / "predictions.json").write_text(json.dumps(about))
    report = score([tmp_path / "first", tmp_path / "same", tmp_path / "other"], partial=True)
    assert [model.clean_error for model in report.models] == [0, 0, 0]
    with pytest.raises(RobustgenError, match=r"merged: '[ab]' is of class 0, in .*first of class [01]"):
        score([tmp_path / "first", tmp_path / "merged"], partial=True)
    (tmp_path / "other" / "predictions.json").write_text('{"schema": 1, "preprocessing": {"classes": null}}')
    with pytest.raises(RobustgenError, match=r"other: 'a' is of class 1, in .*first of class 0"):
        score([tmp_path / "first", tmp_path / "other"], partial=True)
