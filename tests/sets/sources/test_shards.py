"""Images in WebDatasets and Parquet: the same keys and outputs as from folders, and what is damaged."""

import json
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustgen.errors import ImageError, SourceError
from robustgen.files.containers import tables
from robustgen.files.storage.local import LocalStore
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.formats.encoders import encode_lossless
from robustgen.sets.sources import shards
from robustgen.sets.sources.base import Source, SourceOptions
from robustgen.sets.sources.folder import ImageFolder
from robustgen.sets.sources.opening import open_source
from robustgen.sets.sources.places import Place
from robustgen.sets.sources.shards import Parquet, WebDataset
from tests.helpers import cli, cli_error, photo, tree
from tests.sets.sources.test_trees import NAMES, UNSAFE, assert_alike, files_of, put_photos, put_tar, put_zip

CLASSES = ("n01", "n02", "n10")


def put_shards(root: Path, samples: list[dict[str, bytes]]) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for number, files in enumerate(samples):
        put_tar(root / f"val-{number:06d}.tar", files)
    return root


def labelled(files: dict[str, bytes], how: str) -> list[dict[str, bytes]]:
    """Two shards of `files`, whose labels are told as `how` says."""
    shards: list[dict[str, bytes]] = [{}, {}]
    for i, (name, content) in enumerate(files.items()):
        number = CLASSES.index(name.partition("/")[0])
        stem = name.rpartition(".")[0]
        shard = shards[i % 2]
        shard[name] = content
        if how == "cls":
            shard[f"{stem}.cls"] = b"%d\n" % number
        elif how == "names":
            shard[f"{stem}.cls"] = CLASSES[number].encode()
        elif how == "json":
            shard[f"{stem}.json"] = json.dumps({"width": 50, "label": number}).encode()
    return shards


def put_parquet(
    path: Path, rows: list[tuple[object, object]], label: pa.DataType | None, names: object = None
):
    """A file of rows (image, label), two to a row group."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = [pa.field("image", image)] + ([pa.field("label", label)] if label else [])
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": names}}
    noted = {"huggingface": json.dumps({"info": {"features": features}})} if names else None
    arrays = [pa.array([row for row, _ in rows], image)]
    arrays += [pa.array([told for _, told in rows], label)] if label else []
    pq.write_table(pa.table(arrays, pa.schema(columns, noted)), path, row_group_size=2)
    return path


def as_rows(files: dict[str, bytes], base: bool) -> list[tuple[object, object]]:
    return [
        ({"bytes": content, "path": name.rpartition("/")[2] if base else name}, CLASSES.index(name[:3]))
        for name, content in files.items()
    ]


# --- the same from everywhere --------------------------------------------------------------------


@pytest.mark.parametrize("how", ["cls", "names", "json", "folders"])
def test_a_webdataset_has_the_keys_and_pixels_of_its_folder(
    tmp_path: Path, folder: Path, files: dict[str, bytes], how: str
) -> None:
    root = put_shards(tmp_path / "shards", labelled(files, how))
    patterns = ("val-{000000..000001}.tar", "val-{000000,000001}.tar", "val-*.tar", "")
    for path in (root / pattern for pattern in patterns):
        source = open_source(path)
        assert isinstance(source, WebDataset)
        assert source.refused() == {}
        assert_alike(source, ImageFolder(folder))


def test_labels_tell_the_classes_of_samples_without_folders(tmp_path: Path) -> None:
    folder = put_photos(tmp_path / "photos", "cat/a.png", "dog/b.png", "dog/c.png")
    contents = files_of(folder)
    for prefix in ("", "val/"):
        files = {f"{prefix}{name.rpartition('/')[2]}": content for name, content in contents.items()}
        labels = {f"{prefix}a.cls": b"0", f"{prefix}b.cls": b"1", f"{prefix}c.cls": b"1"}
        root = put_shards(tmp_path / f"{len(prefix)}", [files | labels])
        source = open_source(root / "val-000000.tar")
        assert isinstance(source, WebDataset) and source.keys() == ("0/a.png", "1/b.png", "1/c.png")
        (root / "classnames.txt").write_text("cat\ndog\nemu\n")
        source = open_source(root)
        assert source.keys() == ("cat/a.png", "dog/b.png", "dog/c.png")
        assert source.classes == ("cat", "dog", "emu")
        assert [source.label(key) for key in source.keys()] == [0, 1, 1]  # noqa: SIM118
        assert source.size("dog/b.png") == len(contents["dog/b.png"])


@pytest.mark.parametrize("base", [True, False], ids=["names", "paths"])
def test_parquet_has_the_keys_and_pixels_of_its_folder(tmp_path: Path, base: bool) -> None:
    names = [name for name in NAMES if not base or "deep" not in name]
    folder = put_photos(tmp_path / "photos", *names)
    rows = as_rows(files_of(folder), base)
    put_parquet(tmp_path / "data/validation-00000-of-00002.parquet", rows[1:], pa.int64(), CLASSES)
    put_parquet(tmp_path / "data/validation-00001-of-00002.parquet", rows[:1], pa.int64(), CLASSES)
    for path in ("data/validation-*.parquet", "data", "data/validation-0000{0,1}-of-00002.parquet"):
        source = open_source(tmp_path / path)
        assert isinstance(source, Parquet)
        assert source.refused() == {}
        assert_alike(source, ImageFolder(folder))


def test_threads_read_a_row_group_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = as_rows(files_of(put_photos(tmp_path / "photos", *NAMES)), base=False)
    source = open_source(put_parquet(tmp_path / "x.parquet", rows, pa.int64(), CLASSES))
    keys, iterate, groups = source.keys(), tables.iterate_batches, list[int]()

    def count(table: Any, group: int, columns: list[str]) -> Iterator[Any]:
        groups.append(group)
        # Time in which the others would also begin.
        time.sleep(0.05)
        return iterate(table, group, columns)

    source.read(keys[0])
    shards._open_group.cache_clear()
    monkeypatch.setattr(tables, "iterate_batches", count)
    with ThreadPoolExecutor(4) as pool:
        assert len([*pool.map(source.read, [keys[0]] * 4)]) == 4
    assert len(groups) == 1


def test_names_of_the_hub_give_the_keys_of_imagenet(tmp_path: Path) -> None:
    name, wnid = "ILSVRC2012_val_00000293", "n01440764"
    folder = put_photos(tmp_path / "photos", f"{wnid}/{name}.JPEG", "n01443537/n01443537_7.JPEG")
    rows = [
        ({"bytes": content, "path": f"{Path(key).stem}_{key[:9]}.JPEG"}, key[:9])
        for key, content in files_of(folder).items()
    ]
    assert_alike(open_source(put_parquet(tmp_path / "a.parquet", rows, pa.string())), ImageFolder(folder))
    # The class of another image is a part of the name.
    other = open_source(put_parquet(tmp_path / "b.parquet", [(rows[0][0], "cat")], pa.string()))
    assert other.keys() == (f"cat/{name}_{wnid}.JPEG",)


def test_parquet_of_names_of_bytes_alone_and_without_labels(tmp_path: Path) -> None:
    folder = put_photos(tmp_path / "photos", "cat/a.png", "dog/b.jpg")
    files = files_of(folder)
    rows = [({"bytes": content, "path": name}, name[:3]) for name, content in files.items()]
    assert_alike(open_source(put_parquet(tmp_path / "a.parquet", rows, pa.string())), ImageFolder(folder))
    assert_alike(open_source(put_parquet(tmp_path / "b.parquet", rows, None)), ImageFolder(folder))
    unnamed = [({"bytes": content, "path": None}, 7) for content in files.values()]
    source = open_source(put_parquet(tmp_path / "c.parquet", unnamed, pa.int32()))
    assert source.keys() == ("7/00000000.png", "7/00000001.jpg") and source.classes == (*"01234567",)
    plain = pa.table({"img": pa.array([*files.values()]), "fine_label": pa.array([3, 20])})
    pq.write_table(plain, tmp_path / "d.parquet")
    source = open_source(tmp_path / "d.parquet")
    assert source.keys() == ("20/00000001.jpg", "3/00000000.png") and len(source.classes) == 21


@pytest.mark.slow("a run for each container")
def test_the_outputs_are_the_same_bytes_from_every_container(tmp_path: Path) -> None:
    files = files_of(put_photos(tmp_path / "photos", *NAMES))
    put_shards(tmp_path / "shards", labelled(files, "cls"))
    put_parquet(tmp_path / "p" / "x.parquet", as_rows(files, base=False), pa.int64(), CLASSES)
    put_tar(tmp_path / "a.tar", files)
    put_tar(tmp_path / "a.tar.gz", files, "w:gz")
    put_zip(tmp_path / "a.zip", files)
    flags = ("--corruptions", "shot_noise,fog", "--severities", "2", "--jobs", "2")
    outputs = {}
    for source in ("photos", "a.tar", "a.tar.gz", "a.zip", "shards/val-{000000..000001}.tar", "p"):
        output = tmp_path / "out" / source.replace("/", "-")
        cli("make-c", "--source", tmp_path / source, *flags, "--output", output)
        outputs[source] = tree(output)
        cli("verify", output, "--deep", "2")
    assert len(outputs["photos"]) > 15
    assert all(output == outputs["photos"] for output in outputs.values())


def test_shards_of_a_set_can_be_a_source(tmp_path: Path) -> None:
    """What make-c writes as WebDataset and Parquet is read as the images that it holds."""
    names = ("cat/a.png", "cat/a.b.c.png", "cat/50%.2E.png", "dog/b.JPEG", "dog/x%2Ey.jpg")
    folder = put_photos(tmp_path / "photos", *names)
    flags = ("--corruptions", "contrast", "--severities", "1", "--no-clean")
    for form in ("jpeg", "webdataset", "parquet"):
        cli("make-c", "--source", folder, *flags, "--format", form, "--output", tmp_path / form)
    expected = ImageFolder(tmp_path / "jpeg/contrast/1")
    for form in ("webdataset", "parquet"):
        (folder,) = (tmp_path / form).glob("**/contrast/1")
        source = open_source(folder)
        assert source.classes == ("cat", "dog") and source.refused() == {}
        for key, own in zip(expected.keys(), source.keys(), strict=True):
            # A tree of nothing but JPEGs and one of our sets have the very same names.
            assert key == own
            assert (source.load(own) == expected.load(key)).all()


def test_samples_of_one_of_our_sets_that_lost_its_names(tmp_path: Path) -> None:
    """Without `keys.txt` suffixes are those in the shard, and dots what our writer made of them."""
    folder = put_photos(tmp_path / "photos", "cat/a.b.png", "cat/50%.png", "dog/x%2Ey.jpg")
    flags = ("--corruptions", "contrast", "--severities", "1", "--no-clean", "--format", "webdataset")
    cli("make-c", "--source", folder, *flags, "--output", tmp_path / "out")
    (tmp_path / "out/keys.txt").unlink()
    source = open_source(tmp_path / "out/contrast/1")
    assert source.keys() == ("cat/50%.jpg", "cat/a.b.jpg", "dog/x%2Ey.jpg")
    assert source.load("cat/a.b.jpg").shape == (40, 50, 3)


def test_samples_whose_names_become_one_are_refused(tmp_path: Path, png: bytes) -> None:
    names = ("c/50%.png", "c/50%25.png", "c/%2Ehidden.png", "c/x.png")
    source = open_source(put_shards(tmp_path / "s", [dict.fromkeys(names, png)]))
    assert source.keys() == ("c/%2Ehidden.png", "c/x.png")
    assert source.refused() == {"c/50%.png": "occurs twice"}


def test_patterns(tmp_path: Path) -> None:
    for name in ("a-08.tar", "a-09.tar", "a-10.tar", "b[1].tar"):
        (tmp_path / name).touch()

    def expanded(pattern: str) -> list[str]:
        found = Place(tmp_path / pattern).expand((".tar",))
        return [file.name for file in found]

    assert expanded("a-{08..10}.tar") == expanded("a-*.tar") == ["a-08.tar", "a-09.tar", "a-10.tar"]
    assert expanded("{a-08,b[1]}.tar") == ["a-08.tar"]
    assert expanded("a-{8..9}.tar") == ["a-8.tar", "a-9.tar"]
    assert expanded("b[1].tar") == ["b[1].tar"]
    assert len(expanded("")) == 4
    with pytest.raises(SourceError, match="matches no file"):
        expanded("c-*.tar")
    with pytest.raises(SourceError, match="too many files"):
        expanded("{0..999999999}.tar")


def test_the_default_output_is_named_after_what_a_pattern_begins_with(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    put_shards(tmp_path / "shards", labelled(files, "cls"))
    shown = cli("make-c", "--source", tmp_path / "shards/val-{000000..000001}.tar", "--dry-run").stdout
    assert re.search(r"^output .*out/val-c:", shown, re.MULTILINE)


# --- damaged and hostile ones --------------------------------------------------------------------


def test_a_corrupt_shard_in_the_middle_is_named_and_the_rest_is_done(tmp_path: Path) -> None:
    files = files_of(put_photos(tmp_path / "photos", "n01/a.png", "n02/b.png", "n03/c.png", "n04/d.png"))
    root = put_shards(tmp_path / "s", [{name: content} for name, content in files.items()])
    (root / "val-000001.tar").write_bytes(b"no archive" * 99)
    (root / "val-000002.tar").unlink()
    pattern = root / "val-{000000..000003}.tar"
    source = open_source(pattern)
    assert source.keys() == ("n01/a.png", "n04/d.png")
    refused = source.refused()
    assert set(refused) == {"val-000001.tar", "val-000002.tar"}
    assert "No such file" in refused["val-000002.tar"]
    flags = ("--corruptions", "contrast", "--severities", "1", "--no-clean", "--output", tmp_path / "out")
    done = cli("make-c", "--source", pattern, *flags, status=1)
    assert "'val-000001.tar'" in done.stderr and "'val-000002.tar'" in done.stderr
    assert {name for name in tree(tmp_path / "out") if name.endswith(".JPEG")} == {
        "contrast/1/n01/a.JPEG",
        "contrast/1/n04/d.JPEG",
    }


@pytest.mark.parametrize("container", ["webdataset", "parquet"])
def test_a_lost_connection_ends_the_listing(
    tmp_path: Path, container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, root = files_of(put_photos(tmp_path / "photos", "n01/a.png", "n02/b.png")), tmp_path / "shards"
    if container == "webdataset":
        put_shards(root, [{name: content} for name, content in files.items()])
    else:
        for number in range(2):
            put_parquet(root / f"{number}.parquet", as_rows(files, False), pa.int64(), CLASSES)
    whole = LocalStore.open

    def lose(store: LocalStore, path: str) -> BinaryIO:
        if path.endswith(("1.tar", "1.parquet")):
            raise ConnectionResetError(104, "Connection reset by peer")
        return whole(store, path)

    monkeypatch.setattr(LocalStore, "open", lose)
    with pytest.raises(SourceError, match="shards: Connection reset by peer"):
        open_source(root).keys()


def test_samples_that_are_refused(tmp_path: Path, png: bytes) -> None:
    names = (
        *("good.png", "unlabelled.png", "two.png", "two.jpg", "bad.png", "twice.png", "dot.ted.png"),
        *("masked.png", "masked.seg.png", "/absolute.png", "bomb.png", "nested.png"),
    )
    labels = {"good.cls": b"1", "bad.cls": b"../up", "twice.cls": b"1", "masked.cls": b"0th"}
    bombs = {"bomb.cls": b"7" * (2 << 20), "nested.json": b'{"a":' * 100_000}
    first = dict.fromkeys(names, png) | labels | bombs
    root = put_shards(tmp_path / "s", [first, {"twice.png": png, "twice.cls": b"0"}])
    source = open_source(root)
    assert source.keys() == ("0th/masked.png", "1/good.png")
    refused = source.refused()
    assert refused.pop("bad.png").startswith("its label cannot be read: '../up'")
    assert refused.pop("dot.ted.png").startswith("WebDataset treats everything after the first dot")
    assert refused == {
        "unlabelled.png": "has no label, but others have",
        "two": "has 2 images",
        "twice": "occurs twice",
        "absolute.png": UNSAFE,
        "bomb.png": "its label cannot be read: 2097152 bytes",
        "nested.png": "its label cannot be read: JSON is nested more than 100 deep",
    }


def test_parquet_without_images_or_with_bad_rows(tmp_path: Path, png: bytes) -> None:
    pq.write_table(pa.table({"text": ["a"], "label": [1]}), tmp_path / "text.parquet")
    line = cli_error("make-c", "--source", tmp_path / "text.parquet", "--output", tmp_path / "out")
    assert "'text.parquet': no column of images (columns: text, label)" in line
    assert not (tmp_path / "out").exists()
    sound = pa.array([{"bytes": b"", "path": "a.wav"}])
    noted = {"huggingface": json.dumps({"info": {"features": {"audio": {"_type": "Audio"}}}})}
    pq.write_table(pa.table({"audio": sound}).replace_schema_metadata(noted), tmp_path / "sound.parquet")
    with pytest.raises(SourceError, match=r"no column of images \(columns: audio\)"):
        open_source(tmp_path / "sound.parquet").keys()
    good = {"bytes": png, "path": "a.png"}
    rows: list[tuple[object, object]] = [
        (good, 0),
        ({"bytes": png, "path": "../up.png"}, 0),
        ({"bytes": png, "path": "b.png"}, 7),
        ({"bytes": None, "path": "c.png"}, 1),
        ({"bytes": png, "path": "d.png"}, 1),
        ({"bytes": png, "path": "x/d.png"}, 1),
        (None, 0),
    ]
    path = put_parquet(tmp_path / "rows.parquet", rows, pa.int64(), ["cat", "dog"])
    source = open_source(path)
    assert source.keys() == ("cat/a.png",)
    assert source.refused() == {
        "row 1": "path '../up.png' cannot be the name of an image",
        "row 2": "label '7' is not one of the classes",
        "dog/c.png": "its row contains no bytes",
        "dog/d.png": "occurs twice",
        "cat/00000006": "its row contains no bytes",
    }
    whole = path.read_bytes()
    put_parquet(tmp_path / "many" / "b.parquet", [({**good, "path": "z.png"}, 0)], pa.int64(), ["cat", "dog"])
    for damaged in (whole[:-100], whole[:100], b"", whole[:40] + bytes(400) + whole[440:]):
        (tmp_path / "many" / "a.parquet").write_bytes(damaged)
        source = open_source(tmp_path / "many")
        assert "cat/z.png" in source.keys()  # noqa: SIM118
        assert "a.parquet" in source.refused() or len(source.refused()) > 2


def test_parquet_that_promises_gigabytes(tmp_path: Path, png: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put_parquet(tmp_path / "a.parquet", [({"bytes": png, "path": "a.png"}, 0)], pa.int64())
    monkeypatch.setattr("robustgen.files.containers.tables._MOST_DECODED", 10)
    with pytest.raises(SourceError, match=r"'a\.parquet, row group 0': a row group has \d+ bytes"):
        open_source(path).keys()


def test_parquet_files_of_other_classes_are_refused(tmp_path: Path, png: bytes) -> None:
    for name, classes in (("a", ["cat", "dog"]), ("b", ["dog", "cat"]), ("c", None), ("d", ["cat", "dog"])):
        rows: list[tuple[object, object]] = [({"bytes": png, "path": f"{name}.png"}, 0)]
        put_parquet(tmp_path / "p" / f"{name}.parquet", rows, pa.int64(), classes)
    source = open_source(tmp_path / "p")
    assert source.keys() == ("cat/a.png", "cat/c.png", "cat/d.png")
    assert source.refused() == {"b.parquet": "its class names differ from those of the files before it"}


def test_a_damaged_row_group_is_named_and_those_around_it_are_read(tmp_path: Path, png: bytes) -> None:
    rows: list[tuple[object, object]] = [({"bytes": png, "path": f"{i}.png"}, 0) for i in range(6)]
    path = put_parquet(tmp_path / "a.parquet", rows, pa.int64(), ["cat"])
    column = pq.ParquetFile(path).metadata.row_group(1).column(0)
    data = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + 40] = bytes(40)
    path.write_bytes(data)
    source = open_source(path)
    assert source.keys() == ("cat/0.png", "cat/1.png", "cat/4.png", "cat/5.png")
    ((name, reason),) = source.refused().items()
    assert name == "a.parquet, row group 1" and reason
    flags = ("--corruptions", "contrast", "--severities", "1", "--no-clean", "--output", tmp_path / "out")
    assert "'a.parquet, row group 1'" in cli("make-c", "--source", path, *flags, status=1).stderr


def put_bomb(path: Path, value: bytes, rows: int) -> Path:
    """A file that names one value many times: a dictionary of one entry."""
    entry = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([value]))
    names = pa.array([f"{i}.png" for i in range(rows)])
    table = pa.table({"image": pa.StructArray.from_arrays([entry, names], ["bytes", "path"])})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, store_schema=False)
    return path


def test_a_value_that_is_repeated_is_not_decoded_without_end(tmp_path: Path) -> None:
    """The file says 100 kB, is no larger, and would take 400 MB."""
    path = put_bomb(tmp_path / "a.parquet", os.urandom(100_000), 4000)
    assert path.stat().st_size < 200_000
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(SourceError, match=r"a row group decodes to more than \d+ bytes"):
        open_source(path).keys()
    assert pa.default_memory_pool().max_memory() <= max(before, 1 << 28)
    put_bomb(tmp_path / "out/fog/1/0.parquet", os.urandom(100_000), 4000)
    dataset = open_set(tmp_path / "out")
    (variant,) = dataset.variants
    assert len(dataset.keys_of(variant)) == 4000
    with pytest.raises(ImageError, match="a row group decodes to more"):
        dataset.load(variant, dataset.keys_of(variant)[0])


def varint(number: int, length: int = 0) -> bytes:
    """A whole number as Thrift writes it, in `length` bytes or more."""
    number, data = number << 1, bytearray()
    while number > 127 or len(data) + 1 < length:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def test_a_file_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    """Its end says 1000 bytes, where a page of some kilobytes unpacks to a hundred million."""
    path = put_bomb(tmp_path / "a.parquet", bytes(100_000_000), 1)
    pq.write_table(pq.read_table(path), path, compression="zstd", use_dictionary=False)
    manifest = pq.ParquetFile(path).metadata.row_group(0)
    data = path.read_bytes()
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    foot = data[end:]
    for size in {manifest.total_byte_size, manifest.column(0).total_uncompressed_size}:
        stated = varint(size)
        assert foot.count(stated) == 1
        foot = foot.replace(stated, varint(1000, len(stated)))
    path.write_bytes(data[:end] + foot)
    assert pq.ParquetFile(path).metadata.row_group(0).total_byte_size == 1000 and len(data) < 100_000
    with pytest.raises(SourceError, match=r"a row group decodes to more than \d+ bytes"):
        open_source(path).keys()


@pytest.mark.parametrize("codec", ["zstd", "gzip", "brotli", "lz4", "snappy", "none"])
def test_all_packed_pages_are_read(tmp_path: Path, png: bytes, codec: str) -> None:
    images = [{"bytes": png + bytes([i % 7]) * 50, "path": f"cat/{i}.png"} for i in range(60)]
    for version in ("1.0", "2.0"):
        for dictionary in (True, False):
            path = tmp_path / f"{version}-{dictionary}.parquet"
            pq.write_table(
                pa.table({"image": images, "label": ["cat"] * 60}),
                path,
                compression=codec,
                use_dictionary=dictionary,
                data_page_version=version,
                data_page_size=2000,
                row_group_size=40,
            )
            source = open_source(path)
            assert len(source.keys()) == 60 and source.refused() == {}
            assert source.size("cat/59.png") == len(png) + 50
            assert source.load("cat/41.png") is not None


# --- labels and images in columns of Parquet ------------------------------------------------------


def put_columns(path: Path, features: dict[str, object] | None = None, **columns: list[Any] | None) -> Path:
    """Write a Parquet file of columns: ten images each, or the given cells."""
    images = [{"bytes": encode_lossless(photo(32, 32, n), ".png"), "path": f"{n}.png"} for n in range(10)]
    table = pa.table({name: images if cells is None else cells for name, cells in columns.items()})
    if features:
        note = json.dumps({"info": {"features": features}}).encode()
        table = table.replace_schema_metadata({b"huggingface": note})
    pq.write_table(table, path)
    return path


NUMBERS = [number * 5 % 7 for number in range(10)]


def numbers_of(source: Source) -> list[int]:
    """The labels in the order of the names."""
    return [source.label(key) for key in sorted(source.keys(), key=lambda key: key.rpartition("/")[2])]


def test_floats_of_pandas_are_whole_numbers(tmp_path: Path) -> None:
    floats = [*map(float, NUMBERS[:-1]), None]
    source = open_source(put_columns(tmp_path / "x.parquet", image=None, label=floats))
    assert numbers_of(source) == NUMBERS[:-1] and source.class_count is None
    assert "has no label" in source.refused()["row 9"]


def test_a_column_of_labels_may_have_any_name(tmp_path: Path) -> None:
    path = put_columns(tmp_path / "x.parquet", image=None, genus=NUMBERS)
    assert open_source(path).classes == ("",)
    assert numbers_of(open_source(path, options=SourceOptions(label_column="genus"))) == NUMBERS
    with pytest.raises(SourceError, match=r"no column 'gnus' \(columns: image, genus\)"):
        open_source(path, options=SourceOptions(label_column="gnus")).keys()


def test_columns_of_labels_that_disagree_are_refused(tmp_path: Path) -> None:
    words = ["gfedcba"[number] for number in NUMBERS]
    columns: dict[str, list[Any] | None] = {"image": None, "class": words, "class_id": NUMBERS}
    path = put_columns(tmp_path / "x.parquet", **columns)
    with pytest.raises(SourceError, match=r"'class' and 'class_id' disagree.*label_column"):
        open_source(path).keys()
    assert numbers_of(open_source(path, options=SourceOptions(label_column="class_id"))) == NUMBERS
    features = {"label": {"_type": "ClassLabel", "names": [*"gfedcba"]}}
    agreeing = put_columns(tmp_path / "y.parquet", features, image=None, label=NUMBERS, class_name=words)
    assert open_source(agreeing).classes == tuple("gfedcba")


def test_two_columns_of_images_in_parquet(tmp_path: Path) -> None:
    features = {name: {"_type": "Image"} for name in ("mask", "image")}
    source = open_source(put_columns(tmp_path / "x.parquet", features, mask=None, image=None, label=NUMBERS))
    (remark,) = source.remarks()
    assert "'image'" in remark and "'mask'" in remark and "image_columns" in remark
    path = put_columns(tmp_path / "y.parquet", left=None, right=None, label=NUMBERS)
    with pytest.raises(SourceError, match=r"left, right.*image_columns"):
        open_source(path).keys()
    chosen = open_source(path, options=SourceOptions(columns=("right",)))
    assert [chosen.label(key) for key in chosen.keys()] == NUMBERS  # noqa: SIM118
