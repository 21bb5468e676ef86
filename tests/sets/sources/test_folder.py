"""Folders of images and their labels: keys, links, layouts of ImageNet, the demo's photographs."""

import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from robustgen import evaluate
from robustgen.errors import SourceError
from robustgen.sets.dataset.selection import select_keys
from robustgen.sets.sources.base import Source, SourceOptions
from robustgen.sets.sources.folder import ImageFolder, Photographs
from robustgen.sets.sources.opening import open_source
from robustgen.settings.config import Choices
from robustgen.torch import SourceDataset
from tests.helpers import cli, cli_error, pictures, put_photo

IMAGENET = {
    "ILSVRC2012_val_00000293.JPEG": "n01440764",
    "ILSVRC2012_val_00000001.JPEG": "n01751748",
    "ILSVRC2012_val_00002138.JPEG": "n01440764",
}
IMAGENET_KEYS = (
    "n01440764/ILSVRC2012_val_00000293.JPEG",
    "n01440764/ILSVRC2012_val_00002138.JPEG",
    "n01751748/ILSVRC2012_val_00000001.JPEG",
)


def put(path: Path, colour: Any = (10, 20, 30), mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (5, 4), colour).save(path)
    return path


def put_all(root: Path, *names: str) -> Path:
    for name in names:
        put(root / name)
    return root


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def open_labelled(root: Path, labels: str | bytes, name: str = "labels.txt", **options: Any) -> Source:
    """Open the images in `root` with a file of labels beside it."""
    return open_source(root, options=SourceOptions(labels=write(root.with_name(name), labels), **options))


def labels_of(source: Source) -> list[int]:
    return [*map(source.label, source.keys())]


def every_image_is_there(source: Source) -> bool:
    return all(image.any() for image in map(source.load, source.keys())) and all(
        map(source.size, source.keys())
    )


def test_files_without_a_suffix_are_counted(tmp_path: Path) -> None:
    put(tmp_path / "cat" / "a.png")
    for name in ("README", "cat/0001", "cat/0002", "cat/scan.dcm"):
        write(tmp_path / name, b"data")
    (remark,) = ImageFolder(tmp_path).remarks()
    assert "2 without a suffix, 1 .dcm ('cat/0001', ...); convert them" in remark


# --- folders -------------------------------------------------------------------------------------


def test_keys_classes_labels_and_sizes(tmp_path: Path) -> None:
    put_all(tmp_path, "b/y.png", "a/x.JPEG", "a/deep/er.bmp", "B/x.GIF", "top.tiff")
    for ignored in ("a/notes.txt", "a/._x.jpg", ".hidden/x.png", "a/x.jpeg.bak", "a/jpg"):
        write(tmp_path / ignored, b"")
    (tmp_path / "empty").mkdir()
    source = ImageFolder(tmp_path)
    assert source.keys() == ("B/x.GIF", "a/deep/er.bmp", "a/x.JPEG", "b/y.png")
    assert source.keys() is source.keys()
    assert source.refused() == {}
    assert source.classes == ("B", "a", "b") and source.class_count == 3
    assert labels_of(source) == [0, 1, 1, 2]
    assert source.size("b/y.png") == (tmp_path / "b/y.png").stat().st_size
    assert source.location == str(tmp_path)
    assert source.load("b/y.png")[3, 4].tolist() == [10, 20, 30]


def test_odd_names(tmp_path: Path) -> None:
    names = ("-rf.png", "a'b\"c$.png", "new\nline.png", "with space.png", "żółw🐢.png")
    source = ImageFolder(put_all(tmp_path / "-class", *names).parent)
    assert source.keys() == tuple(f"-class/{name}" for name in names)
    assert every_image_is_there(source)


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems take no such names")
def test_names_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "fine.png")
    raw = os.fsencode(tmp_path)
    for name in (b"caf\xe9.png", b"caf\xe9.txt"):
        with open(raw + b"/" + name, "wb"):  # noqa: PTH123
            pass
    source = ImageFolder(tmp_path)
    assert source.keys() == ("fine.png",)
    assert source.refused() == {"caf\\xe9.png": "file name is not valid UTF-8"}


def test_links(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    put_all(root, "a/x.png", ".store/c/z.png")
    put_all(outside, "y.png")
    write(outside / "notes.txt", b"")
    links = {
        "a/inside.png": "x.png",
        "a/outside.png": "../../outside/y.png",
        "a/notes.txt": "../../outside/notes.txt",
        "a/broken.png": "nothing.png",
        "a/broken.avif": "nothing.avif",
        "a/loop.png": "loop.png",
        "a/self": ".",
        "a/up": "../..",
        "b": "a",
        "c": ".store/c",
        "gone": "nowhere",
        "away": str(outside),
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    source = ImageFolder(root)
    assert source.keys() == ("a/inside.png", "a/x.png", "b/inside.png", "b/x.png", "c/z.png")
    refused = source.refused()
    assert "a/notes.txt" not in refused and not [*source.remarks()]
    for key in ("a/outside.png", "b/outside.png", "a/up", "away"):
        assert refused[key].startswith(
            "symlink that leaves the source (the key follow_links allows its target"
        )
    for key in ("a/broken.png", "a/loop.png", "gone"):
        assert refused[key].startswith("symlink that cannot be followed")
    assert refused["a/self"] == "symlink loop"
    assert source.load("c/z.png").shape == (4, 5, 3)


def test_folders_linked_crosswise_end(tmp_path: Path) -> None:
    names = [f"f{i}" for i in range(6)]
    for name in names:
        put(tmp_path / name / "x.png")
        for other in names:
            (tmp_path / name / f"to-{other}").symlink_to(f"../{other}")
    source = ImageFolder(tmp_path)
    assert {f"{name}/x.png" for name in names} < set(source.keys())
    assert {"symlink loop", "more than 3 symlinked folders within each other"} == set(
        source.refused().values()
    )


def test_the_root_may_be_a_link_and_a_neighbour_is_outside(tmp_path: Path) -> None:
    put_all(tmp_path, "data/a/x.png", "data-more/y.png")
    (tmp_path / "root").symlink_to("data")
    (tmp_path / "data/a/y.png").symlink_to("../../data-more/y.png")
    source = ImageFolder(tmp_path / "root")
    assert source.keys() == ("a/x.png",)
    assert list(source.refused()) == ["a/y.png"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_named_pipe_is_refused_not_waited_for(tmp_path: Path) -> None:
    put(tmp_path / "x.png")
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "link.jpg").symlink_to("pipe.jpg")
    assert ImageFolder(tmp_path).refused() == dict.fromkeys(["link.jpg", "pipe.jpg"], "not a regular file")


def test_a_folder_that_cannot_be_listed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_all(tmp_path, "a/x.png", "b/x.png")
    scandir = os.scandir

    def denied(path: str) -> Any:
        if path.endswith("b"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    source = ImageFolder(tmp_path)
    assert source.keys() == ("a/x.png",)
    assert source.refused() == {"b": "folder cannot be listed: Permission denied"}


def test_no_images(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "notes.txt", b"").parent)
    assert source.refused() == {}
    with pytest.raises(SourceError, match=r"no images .*JPEG.*GIF"):
        source.keys()
    (tmp_path / "x.png").symlink_to("nothing")
    with pytest.raises(SourceError, match=r"1 refused, 'x\.png': symlink"):
        ImageFolder(tmp_path).keys()


# --- images beside class folders ------------------------------------------------------------------


def put_stray(root: Path) -> Path:
    """Put class folders and a picture beside them."""
    for seed, name in enumerate(("cat/a.png", "cat/b.png", "dog/c.png", "stray.png")):
        put_photo(root / "set" / name, seed=seed)
    return root / "set"


def pack(root: Path, suffix: str, top: str) -> Path:
    files = {f"{top}{path.relative_to(root)}": path.read_bytes() for path in sorted(root.rglob("*.png"))}
    path = root.with_name(f"set{top.strip('/')}{suffix}")
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return path
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


@pytest.mark.parametrize("suffix", ["", ".tar", ".zip"])
@pytest.mark.parametrize("top", ["", "set/"])
def test_a_stray_picture_is_left_out_and_named(tmp_path: Path, suffix: str, top: str) -> None:
    root = put_stray(tmp_path)
    source = open_source(pack(root, suffix, top) if suffix else root)
    assert source.keys() == ("cat/a.png", "cat/b.png", "dog/c.png")
    assert source.classes == ("cat", "dog") and not source.refused()
    (remark,) = source.remarks()
    assert "1 image" in remark and "'stray.png'" in remark and "require_classes=false" in remark
    assert every_image_is_there(source)


def test_strays_in_commands(tmp_path: Path) -> None:
    root, few = put_stray(tmp_path), ("--severities", "1", "--jobs", "1")
    fog = (*few, "--corruptions", "fog", "--format", "png")
    out = tmp_path / "out"
    assert "'stray.png'" in cli("make-c", "--source", root, *fog, "--output", out).stderr
    assert {name for name in pictures(out) if "stray" in name} == set()
    assert "'stray.png'" in cli("list", "--keys", root).stderr
    cli("make-c", "--source", root, *fog, "--set", "require_classes=false", "--output", tmp_path / "all")
    assert "fog/1/stray.png" in pictures(tmp_path / "all")
    mirrored = ("--dataset", "coco-c", "--source", root, *few, "--corruptions", "fog")
    cli("make-c", *mirrored, "--output", tmp_path / "coco")
    assert "fog/1/stray.png" in pictures(tmp_path / "coco")
    assert "'stray.png'" in cli_error("make-c", "--dataset", "imagenet", "--source", root, *few, "--dry-run")

    def model(pixels: np.ndarray) -> np.ndarray:
        return np.eye(2, dtype=np.float32)[np.zeros(len(pixels), int)]

    scored = {"source": str(root), "corruptions": ["fog"], "severities": [1], "jobs": 1, "quiet": True}
    assert evaluate(model, **scored).clean_error == pytest.approx(1 / 3)
    with pytest.raises(SourceError, match=r"1 of 4 images have no class, such as 'stray\.png'"):
        evaluate(model, require_classes=False, **scored)
    assert len(SourceDataset(root)) == 3 and len(SourceDataset(root, require_classes=False)) == 4


def test_most_images_in_the_root_are_no_strays(tmp_path: Path) -> None:
    source = ImageFolder(put_all(tmp_path, "1.png", "2.png", "more/3.png"))
    assert source.keys() == ("1.png", "2.png", "more/3.png") and not source.remarks()


# --- the layouts of ImageNet ---------------------------------------------------------------------


def flat_imagenet(root: Path) -> Path:
    return put_all(root / "flat", *IMAGENET)


def pairs(separator: str, extension: str = ".JPEG") -> str:
    return "".join(f"{name[:-5]}{extension}{separator}{wnid}\n" for name, wnid in IMAGENET.items())


KAGGLE = "ImageId,PredictionString\n" + "".join(
    f"{name[:-5]},{wnid} 1 2 3 4 {wnid} 5 6 7 8 \n" for name, wnid in IMAGENET.items()
)
LABELS = {
    "space": pairs(" "),
    "tab": pairs("\t"),
    "comma": pairs(","),
    "comma and space": pairs(", "),
    "without extension": pairs(" ", ""),
    "windows": "\ufeff" + pairs(" ").replace("\n", "\r\n"),
    "kaggle": KAGGLE,
    "json": "".join(json.dumps({"file_name": name, "label": wnid}) + "\n" for name, wnid in IMAGENET.items()),
    "of absent images": "absent.JPEG n09999999\n\n" + pairs(" "),
    "one a line": "".join(f"{IMAGENET[name]}\n" for name in sorted(IMAGENET)),
}


@pytest.mark.parametrize("content", LABELS.values(), ids=LABELS)
def test_the_layouts_of_imagenet_have_the_same_keys(tmp_path: Path, content: str) -> None:
    flat = open_labelled(flat_imagenet(tmp_path), content)
    folders = ImageFolder(put_all(tmp_path / "val", *(f"{wnid}/{name}" for name, wnid in IMAGENET.items())))
    for source in (flat, folders):
        assert source.keys() == IMAGENET_KEYS
        assert source.classes == ("n01440764", "n01751748")
        assert labels_of(source) == [0, 0, 1]
        assert every_image_is_there(source)
        assert not source.refused()


@pytest.mark.parametrize("name", ["ILSVRC2012_validation_ground_truth.txt", "labels.txt"])
def test_numbers_of_the_devkit_are_no_classes_unless_that_is_said(tmp_path: Path, name: str) -> None:
    flat, labels = flat_imagenet(tmp_path), write(tmp_path / name, "490\n361\n171\n")
    with pytest.raises(SourceError, match=r"numbers of the devkit.* set labels_are_classes"):
        open_source(flat, options=SourceOptions(labels=labels)).keys()
    keys = open_source(flat, options=SourceOptions(labels=labels, labels_are_classes=True)).keys()
    assert keys[0] == "171/ILSVRC2012_val_00002138.JPEG"
    for image in flat.iterdir():
        put_photo(image)
    flags = ("--labels", labels, "--set", "labels_are_classes=true", "--output", tmp_path / "out")
    cli("make-c", "--source", flat, *flags, "--dry-run")
    listed = cli("list", "--keys", flat, "--labels", labels, "--labels-are-classes").stdout.splitlines()
    assert tuple(listed) == keys


def test_numbers_that_the_devkit_does_not_have_are_classes(tmp_path: Path) -> None:
    keys = open_labelled(flat_imagenet(tmp_path), "0\n361\n171\n").keys()
    assert {key.partition("/")[0] for key in keys} == {"0", "361", "171"}


def test_images_without_a_label_are_refused(tmp_path: Path) -> None:
    root = put_all(tmp_path / "flat", "a.png", "b c.png", "new\nline.png", "deeper/d.png")
    (root / "broken.png").symlink_to("nothing")
    source = open_labelled(root, "b c.png cat\nbroken.png cat\n")
    assert source.keys() == ("cat/b c.png",)
    refused = source.refused()
    assert sorted(refused) == ["a.png", "cat/broken.png", "deeper/d.png", "new\nline.png"]
    assert "no label in" in refused["a.png"]


def test_classes_of_several_words(tmp_path: Path) -> None:
    root = put_all(tmp_path / "flat", "a.png", "b.png")
    source = open_labelled(root, "a.png\tgreat white shark\nb.png\then\n")
    assert source.keys() == ("great white shark/a.png", "hen/b.png")


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"", 1, "no labels"),
        (b"a.png cat\nb.png ../../etc\n", 2, "cannot be the name of a class"),
        *((b"a.png\t%b\n" % name, 1, "cannot be the name of a class") for name in (b"..", b".git")),
        (b"a.png\ta\\b\n", 1, "file_column"),
        (b"a.png cat\na.png dog\n", 2, "'a.png' was 'cat' before, now 'dog'"),
        (b"cat\n", 1, "1 labels for 2 images"),
        (b"a.png cat\nb.png \xff\n", 2, "iconv"),
        (b'{"file_name": "a.png", "label": "../x"}', 1, "cannot be the name of a class"),
    ],
)
def test_malformed_labels_name_file_and_line(tmp_path: Path, content: bytes, line: int, reason: str) -> None:
    source = open_labelled(put_all(tmp_path / "flat", "a.png", "b.png"), content)
    with pytest.raises(SourceError) as caught:
        source.keys()
    start = f"{tmp_path / 'labels.txt'}, line {line}: "
    assert str(caught.value).startswith(start) and reason in str(caught.value)


def test_labels_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"missing\.txt: No such file"):
        open_source(tmp_path, options=SourceOptions(labels=tmp_path / "missing.txt"))
    put(tmp_path / "a.png")
    with pytest.raises(SourceError, match="is not a regular file"):
        open_source(tmp_path, options=SourceOptions(labels=tmp_path)).keys()


# --- the demo -----------------------------------------------------------------------------------


def test_photographs_without_importing_scikit_image() -> None:
    code = (
        "import sys; from robustgen.sets.sources.folder import Photographs; s = Photographs(); k = s.keys(); "
        "s.load(k[0]); print(len(k), k[0], {'skimage', 'cv2', 'numba'} & set(sys.modules))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "8 astronaut/astronaut.png set()\n"


def test_photographs() -> None:
    source = open_source(None, "demo")
    assert labels_of(source) == list(range(8))
    assert source.load("rocket/rocket.JPEG").shape == (427, 640, 3)


def test_missing_photographs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Photographs, "NAMES", ("nothing.png",))
    with pytest.raises(SourceError, match=r"scikit-image.*pip install"):
        Photographs()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SourceError, match="pip install"):
        Photographs()


# Files, the classes, and the folder that a line names to take another level.
LEVELS = {
    "flat": (("cat/0.png", "dog/1.png"), ["cat", "dog"], ""),
    "EuroSAT": (("2750/cat/0.png", "2750/dog/1.png", "README"), ["cat", "dog"], "2750/"),
    "Food-101": (("images/cat/0.png", "images/dog/1.png", "meta/test.txt"), ["cat", "dog"], "images/"),
    "one split": (("data/val/cat/0.png", "data/val/dog/1.png"), ["cat", "dog"], "data/val/"),
    "a class": (("cat/0.png", "cat/1.png"), ["cat"], ""),
    "a class below": (("all/cat/0.png", "all/cat/1.png"), ["cat"], "all/"),
    "PACS": ([f"{d}/{c}/0.png" for d in ("art", "photo") for c in ("cat", "dog")], ["art", "photo"], "art"),
    "iNaturalist": (("Fungi/7/0.png", "Fungi/8/0.png", "Plantae/9/0.png"), ["Fungi", "Plantae"], "Fungi"),
    "parts of a class": (("cat/images/0.png", "dog/images/1.png"), ["cat", "dog"], ""),
}


@pytest.mark.parametrize("name", LEVELS)
def test_the_level_of_classes_is_said_and_that_of_archives(tmp_path, name):
    names, classes, said = LEVELS[name]
    for each in names:
        put(tmp_path / "set" / each) if each.endswith(".png") else write(tmp_path / "set" / each, "text")
    with tarfile.open(tmp_path / "a.tar", "w") as tar, zipfile.ZipFile(tmp_path / "b.zip", "w") as packed:
        tar.add(tmp_path / "set", arcname="set")
        for each in names:
            packed.write(tmp_path / "set" / each, each)
    source, *archives = (open_source(tmp_path / each) for each in ("set", "a.tar", "b.zip"))
    assert [*source.classes] == classes
    assert all(each.keys() == source.keys() for each in archives)
    lines = [line for line in source.remarks() if "classes" in line]
    assert len(lines) == bool(said)
    assert not said or said in lines[0]
    if name == "PACS":
        way = re.search(r"--source (\S+)", lines[0])[1]
        assert [*open_source(way).classes] == ["cat", "dog"]
        tar, _ = archives
        split = re.search(r"--set split=(\S+)", " ".join(tar.remarks()))[1]
        assert [*open_source(tmp_path / "a.tar", options=SourceOptions(split=split)).classes] == [
            "cat",
            "dog",
        ]


def put_set_and_tar(root, *names):
    """A folder of photographs and a tar of it."""
    folder, packed = put_all(root / "set", *names), root / "a.tar"
    with tarfile.open(packed, "w") as tar:
        tar.add(folder, arcname="set")
    return folder, packed


def test_a_split_may_hold_all_images_of_an_archive(tmp_path):
    for place in put_set_and_tar(tmp_path, "val/cat/0.png", "val/dog/1.png"):
        assert open_source(place, options=SourceOptions(split="val")).keys() == ("cat/0.png", "dog/1.png")


def test_labels_leave_shared_folders_out_of_keys(tmp_path):
    for place in put_set_and_tar(tmp_path, "a/images/0.png", "a/images/1.png"):
        source = open_labelled(place, "a/images/0.png cat\na/images/1.png dog\n")
        assert source.keys() == ("cat/0.png", "dog/1.png")


def test_keys_of_sets_that_mirror_their_source_are_paths(tmp_path):
    put_all(tmp_path, "val/cat/0.png", "val/dog/1.png")
    keys = open_source(tmp_path, options=SourceOptions(classes=False)).keys()
    assert keys == ("val/cat/0.png", "val/dog/1.png")


def test_images_of_imagenet_from_the_hub_have_the_keys_of_the_original(tmp_path: Path) -> None:
    names = {"n01440764/ILSVRC2012_val_00000293.JPEG", "n01443537/ILSVRC2012_val_00000236.JPEG"}
    for number, name in enumerate(sorted(names)):
        wnid, stem = name.removesuffix(".JPEG").split("/")
        for place in (f"original/{name}", f"hub/{stem}_{wnid}.JPEG", f"folders/{wnid}/{stem}_{wnid}.JPEG"):
            put_photo(tmp_path / place, seed=number)
    with tarfile.open(tmp_path / "hub.tar", "w") as archive:
        archive.add(tmp_path / "hub", "")
    (tmp_path / "split").mkdir()
    (tmp_path / "hub").rename(tmp_path / "split" / "val")
    with tarfile.open(tmp_path / "split.tar", "w") as archive:
        archive.add(tmp_path / "split", "")
    original = open_source(tmp_path / "original")
    for form in ("split/val", "split", "folders", "hub.tar", "split.tar"):
        keys = open_source(tmp_path / form).keys()
        # Workers have listed nothing.
        assert keys == original.keys()
        assert [*map(open_source(tmp_path / form).read_bytes, keys)] == [*map(original.read_bytes, keys)]
        assert open_source(tmp_path / form).classes == original.classes
        mirrored = open_source(tmp_path / form, options=SourceOptions(classes=False))
        assert all("_n0" in key for key in mirrored.keys())  # noqa: SIM118


def test_lists_with_names_of_the_hub_and_of_the_original_are_the_same(tmp_path: Path) -> None:
    named = {"ILSVRC2012_val_00000293": "n01440764", "ILSVRC2012_val_00000236": "n01443537"}
    for number, (stem, wnid) in enumerate(named.items()):
        for place in (f"flat/{stem}.JPEG", f"hub/{stem}_{wnid}.JPEG", f"original/{wnid}/{stem}.JPEG"):
            put_photo(tmp_path / place, seed=number)
    forms = {"original": "{0}.JPEG", "hub": "{0}_{1}.JPEG", "stems": "{0}", "stems_of_hub": "{0}_{1}"}
    original = open_source(tmp_path / "original")
    for form, text in forms.items():
        rows = [(text.format(*each), each[1]) for each in named.items()]
        labels = tmp_path / f"{form}.csv"
        labels.write_text("image,label\n" + "".join(f"{name},{wnid}\n" for name, wnid in rows))
        for source in ("flat", "hub"):
            options = SourceOptions(labels=str(labels))
            keys = open_source(tmp_path / source, options=options).keys()
            assert keys == original.keys()
            read = open_source(tmp_path / source, options=options).read_bytes
            assert [*map(read, keys)] == [*map(original.read_bytes, keys)]
        subset = tmp_path / f"{form}.txt"
        subset.write_text(f"{rows[0][0]}\n")
        for source in ("original", "hub"):
            choices = Choices(source=str(tmp_path / source), subset=f"@{subset}")
            assert select_keys(open_source(tmp_path / source), choices) == (original.keys()[0],)
