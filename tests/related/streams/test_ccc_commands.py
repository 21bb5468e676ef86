"""CCC on the command line: shards as published, and measured tables."""

import io
import itertools
import json
import pickle
import re
import tarfile

import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.errors import ArgumentError
from robustgen.files import ledger
from robustgen.related.streams import accuracy_files, ccc, measuring, shards
from robustgen.torch import CccDataset, SourceDataset
from tests.digits import PLAIN, expected_logits, pictures, put_model
from tests.helpers import cli, cli_error, latest, put_photo, tree

RUN = ("ccc", "--target", "0", "--speed", "2", "--jobs", "1")
FOLDER = "baseline_0_transition+speed_2_seed_43"


def accuracies(baseline):
    """A table by the published names."""
    strength = np.arange(21)
    pairs = enumerate(itertools.permutations(ccc.list_corruptions(baseline), 2))
    return {
        f"n1_{first}_n2_{second}": np.clip(76 - (3 + number % 3) * strength[:, None] - 4 * strength, 1, 100)
        for number, (first, second) in pairs
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "table.npz"
    np.savez(path, **accuracies(0))
    return path


# --- shards --------------------------------------------------------------------------------------


@pytest.fixture
def small_shards(monkeypatch):
    """Shards of ten images."""
    monkeypatch.setattr(ccc, "IMAGES_PER_FILE", 10)
    monkeypatch.setattr(shards, "IMAGES_PER_FILE", 10)


def write(table, source, output, *flags, status=0, length=24):
    own = ("--accuracy-table", table, "--source", source, "--length", length, "--output", output)
    flags = latest(*RUN[1:], *own, *flags)
    return cli("stream", "ccc", *flags, status=status)


def samples(path):
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def test_shards_have_the_published_layout(table, photos, tmp_path, small_shards):
    assert write(table, photos, tmp_path).stdout.startswith("24 images of 12 cells (")
    names = [f"serial_0000{number}.tar" for number in range(3)]
    assert sorted(tree(tmp_path / FOLDER)) == names
    held = [samples(tmp_path / FOLDER / name) for name in names]
    suffixes = ("info", "input.jpg", "output.cls")
    for members, count in zip(held, (10, 10, 4), strict=True):
        assert [*members] == [f"sample_{place}.{suffix}" for place in range(count) for suffix in suffixes]
    base = SourceDataset(photos)
    run = CccDataset(base, accuracy_files.load_accuracy_table(table), baseline=0, speed=2, images=24)
    for index in range(24):
        file, place = divmod(index, 10)
        info, jpeg, label = (held[file][f"sample_{place}.{suffix}"] for suffix in suffixes)
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(jpeg))), np.asarray(run[index][0]))
        assert label == str(run[index][1]).encode()
        folder, name = base.keys[run.run[index].image].split("/")
        values = {
            "dir": folder,
            "name": name,
            **dict(zip(("n1", "s1", "n2", "s2"), run.cell(index), strict=True)),
        }
        assert info.decode() == "".join(f"++{each}++{value}" for each, value in values.items())
    names = [name for name, _ in itertools.groupby(run.cell(index).first for index in range(24))]
    assert names == [*itertools.islice(ccc.draw_corruptions(0, 43), len(names))]


def test_the_seed_is_that_of_the_run(table, photos, tmp_path):
    write(table, photos, tmp_path / "other", "--seed", "44", length=4)
    members = samples(tmp_path / "other" / FOLDER.replace("43", "44") / "serial_00000.tar")
    assert b"++n1++contrast" in members["sample_0.info"]
    write(table, photos, tmp_path / "same", "--seed", "43", length=4)
    write(table, photos, tmp_path / "usual", length=4)
    assert tree(tmp_path / "same" / FOLDER) == tree(tmp_path / "usual" / FOLDER)


def test_a_source_of_few_images_is_told(table, photos, tmp_path):
    done = write(table, photos, tmp_path, "--speed", "9", length=7)
    assert "5 images are fewer than 9: each cell shows all once" in done.stderr
    assert "7 images of 2 cells" in done.stdout


def test_shards_are_read_by_webdataset(table, photos, tmp_path, small_shards):
    webdataset = pytest.importorskip("webdataset")
    write(table, photos, tmp_path)
    url = f"{tmp_path}/{FOLDER}/serial_{{00000..00002}}.tar"
    read = webdataset.WebDataset(url, shardshuffle=False).decode("pil")
    items = [*read.to_tuple("input.jpg", "output.cls")]
    assert len(items) == 24 and all(image.size == (224, 224) for image, _ in items)
    assert {label for _, label in items} == {0, 1}


def test_a_run_of_shards_resumes(table, photos, tmp_path, small_shards):
    write(table, photos, tmp_path)
    folder = tmp_path / FOLDER
    whole = tree(folder)
    (folder / "serial_00001.tar").unlink()
    (folder / "serial_00002.tar").write_bytes(b"cut")
    assert "14 images of 12 cells (" in (done := write(table, photos, tmp_path)).stdout
    assert "10 were there already" in done.stdout and tree(folder) == whole
    assert write(table, photos, tmp_path).stdout.startswith("0 images of 12 cells (")
    message = write(table, photos, tmp_path, length=26, status=2).stderr
    assert "created with different settings: output.images was 24 and is now 26" in message
    assert write(table, photos, tmp_path, "--overwrite", length=26).stdout.startswith(
        "26 images of 13 cells ("
    )


def test_two_workers_write_the_same_bytes(table, photos, tmp_path):
    write(table, photos, tmp_path / "one")
    write(table, photos, tmp_path / "two", "--jobs", "2")
    assert tree(tmp_path / "one" / FOLDER) == tree(tmp_path / "two" / FOLDER)


def test_a_shard_that_a_dead_run_claimed_is_written(table, photos, tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "_PATIENCE", 1.0)
    write(table, photos, tmp_path)
    whole = tree(tmp_path / FOLDER)
    (tmp_path / FOLDER / "serial_00000.tar").unlink()
    claims = tmp_path / f".{FOLDER}.robustgen" / "claims"
    claims.mkdir()
    (claims / "serial_00000.tar").write_text("1 elsewhere")
    write(table, photos, tmp_path)
    assert tree(tmp_path / FOLDER) == whole


def test_images_that_fail_are_left_out_and_named(table, tmp_path):
    for place in range(3):
        path = put_photo(tmp_path / "val" / "cat" / f"{place}.JPEG", seed=place)
    path.write_bytes(path.read_bytes()[:300])
    done = write(table, tmp_path / "val", tmp_path / "out", status=1, length=9)
    assert "'cat/2.JPEG': " in done.stderr
    members = samples(tmp_path / "out" / FOLDER / "serial_00000.tar")
    assert 0 < len(members) // 3 < 9 and not any(b"2.JPEG" in content for content in members.values())


# --- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_tables_are_read_from_pickles_archives_and_json(protocol, tmp_path):
    arrays = {name: each.astype(float) for name, each in accuracies(40).items()}
    arrays["n1_snow_n2_fog"] = np.asfortranarray(arrays["n1_snow_n2_fog"].T)
    (tmp_path / "t.pickle").write_bytes(pickle.dumps(arrays, protocol))
    np.savez(tmp_path / "t.npz", **arrays)
    (tmp_path / "t.json").write_text(json.dumps({name: each.tolist() for name, each in arrays.items()}))
    for suffix in ("pickle", "npz", "json"):
        table = accuracy_files.load_accuracy_table(tmp_path / f"t.{suffix}")
        assert len(table) == 14 * 13
        assert np.array_equal(table["snow", "fog"], arrays["n1_snow_n2_fog"])


class Trap:
    def __reduce__(self):
        return print, ("called",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"nothing", "contains no accuracy table"),
        (pickle.dumps([1, 2]), "a pickle of list instead of a dict"),
        (pickle.dumps({"n1_fog_n2_snow": Trap()}), "asks for the global"),
        (pickle.dumps({"fog": np.eye(21)}), "is not n1_<corruption>_n2_<corruption>"),
        (pickle.dumps({"n1_fog_n2_snow": np.full((21, 21), "a")}), "an array of U1 instead of numbers"),
        (b"{", "is not JSON"),
        (b'{"measured": [[]]}', "holds no measured accuracies"),
        (b'{"n1_fog_n2_snow": [[1, 2]]}', r"has the shape \(1, 2\), not \(21, 21\)"),
    ],
)
def test_files_of_something_else_are_refused(content, message, tmp_path, capsys):
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(ArgumentError, match=message) as raised:
        accuracy_files.load_accuracy_table(tmp_path / "t")
    assert str(tmp_path / "t") in str(raised.value) and capsys.readouterr().out == ""


# --- measuring -----------------------------------------------------------------------------------

GRID = (0.0, 5.0)
CELLS = 1 + 4 + 4 * 3


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A folder of a digit of each class as PNG files, and a network."""
    root = tmp_path_factory.mktemp("digits")
    images, labels = pictures(40)
    for digit in range(10):
        picture = np.pad(images[labels.tolist().index(digit)], ((4, 4), (4, 4), (0, 0)))
        path = root / "val" / str(digit) / "a.png"
        path.parent.mkdir(parents=True)
        Image.fromarray(picture).save(path)
    return root / "val", put_model(root / "digits.onnx")


def measure(digits, output, *flags, status=0):
    source, model = digits
    flags = flags if "--limit" in flags else ("--limit", "4", *flags)
    own = ("--source", source, "--model", model, *PLAIN, "--input-size", "32", "--output", output)
    fixed = ("--target", "0", "--severities", "0,5", "--jobs", "1")
    return cli("stream", "measure", *latest(*fixed, *own, *flags), status=status)


@pytest.fixture(scope="module")
def measured(digits, tmp_path_factory):
    path = tmp_path_factory.mktemp("measured") / "accuracies.json"
    assert f"{CELLS} accuracies of 4 images measured, 0 were there" in measure(digits, path).stdout
    return path


def show(image, *stages):
    """What the network sees of an image after these corruptions, which draw nothing."""
    pixels = robustgen.prepare(image, "imagenet")
    for name, severity in stages:
        pixels = robustgen.corrupt(pixels, f"ccc:{name}", severity)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=85)
    return np.asarray(Image.open(buffer).resize((32, 32), Image.Resampling.BILINEAR))


def test_accuracies_are_those_of_the_network(measured, digits):
    found = accuracy_files.parse_measurements(json.loads(measured.read_text())).measured
    base = [SourceDataset(digits[0])[place] for place in range(4)]
    clean, worst = ccc.StreamCell("", 0.0, "", 0.0), ccc.StreamCell("contrast", 5.0, "", 0.0)
    for cell, stages in ((clean, ()), (worst, [("contrast", 5)])):
        seen = np.stack([show(image, *stages) for image, _ in base])
        right = expected_logits(seen).argmax(axis=1) == [label for _, label in base]
        assert found[cell] == 100 * right.mean()
    assert found[clean] > found[worst]
    assert {*found} == {*ccc.list_measurements(0, GRID)}


def test_a_measured_table_is_walked_over(measured, photos, tmp_path):
    flags = ("--accuracy-table", measured, "--source", photos, "--length", "6", "--output", tmp_path / "s")
    cli("stream", *RUN, *flags)
    table = accuracy_files.load_accuracy_table(measured)
    cell = json.loads(measured.read_text())["measured"]
    (accuracy,) = [row[-1] for row in cell if row[:-1] == ["contrast", 5.0, "shot_noise", 5.0]]
    assert table["contrast", "shot_noise"][20, 20] == accuracy
    fewer = cli_error("stream", "ccc", "--target", "20", *flags)
    assert fewer == f"{measured}: accuracy table has no pair of gaussian_noise and glass_blur"


def test_measuring_resumes_where_it_was_stopped(measured, digits, photos, tmp_path, monkeypatch):
    path, whole, asked = tmp_path / "accuracies.json", measuring._MeasuringRun.measure, []

    def stop(self, cells, meter):
        asked.append(cells)
        if len(asked) == 3:
            raise RuntimeError("the power is out")
        return whole(self, cells, meter)

    monkeypatch.setattr(measuring._MeasuringRun, "measure", stop)
    with pytest.raises(AssertionError, match="traceback"):
        measure(digits, path)
    begun = len(json.loads(path.read_text())["measured"])
    assert 0 < begun < CELLS
    flags = ("--accuracy-table", path, "--source", photos, "--output", tmp_path / "s")
    message = cli_error("stream", *RUN, *flags)
    assert f"{CELLS - begun} accuracies lack" in message
    assert f"{CELLS - begun} accuracies of 4 images measured, {begun} were" in measure(digits, path).stdout
    assert path.read_bytes() == measured.read_bytes()
    assert [each.name for each in measured.parent.iterdir()] == [measured.name]
    # None is measured twice.
    assert sum(map(len, asked)) == CELLS + len(asked[2])


def test_two_workers_measure_the_same(measured, digits, tmp_path):
    measure(digits, tmp_path / "a.json", "--jobs", "2")
    assert (tmp_path / "a.json").read_bytes() == measured.read_bytes()


def test_dark_images_are_warned_of_once(table, digits, tmp_path):
    for digit in range(10):
        path = tmp_path / "val" / str(digit) / "a.png"
        path.parent.mkdir(parents=True)
        values = np.arange(1600, dtype=np.uint16).reshape(40, 40) + 200 * digit
        Image.fromarray(values).save(path)
    written = write(table, tmp_path / "val", tmp_path / "out", length=3)
    measured = measure((tmp_path / "val", digits[1]), tmp_path / "table.json", "--limit", "1")
    for done in (written, measured):
        assert done.stderr.count("in at most 16 grey levels") == done.stderr.count("warning: ") == 1


def test_other_settings_are_refused(measured, digits, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(measured.read_bytes())
    message = measure(digits, path, "--limit", "2", status=2).stderr
    assert "made_of.images was 4 and is now 2" in message and "--overwrite" in message
    assert "17 accuracies of 2 images measured" in measure(digits, path, "--limit", "2", "--overwrite").stdout
    path.write_text("nothing")
    assert "start over with --overwrite" in measure(digits, path, status=2).stderr
    assert "17 accuracies" in measure(digits, path, "--limit", "1", "--overwrite").stdout


# --- usage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("ccc",), "--accuracy-table is missing"),
        (("ccc", "--accuracy-table", "none.npz"), "none.npz: cannot be read"),
        ((), "--setting is missing"),
        (("--setting", "fog"), "or 'mixed-correlated', not 'fog'"),
        (("measure",), "--model is missing"),
        (
            ("measure", "--model", "a", "--severities", "0,3,2,5"),
            "--severities: must ascend from 0 to 5, not '0,3,2,5'",
        ),
        (
            ("measure", "--model", "a", "--severities", "0,x,5"),
            "--severities: must ascend from 0 to 5, not '0,x,5'",
        ),
    ],
)
def test_flags_that_do_not_fit_are_named(flags, message, photos):
    assert message in cli_error("stream", *flags, "--source", photos)


@pytest.mark.parametrize("flags", [("ccc", "--corruptions"), ("measure", "--speed"), ("--speed",)])
def test_flags_of_another_stream_do_not_exist(flags):
    # Releases of click differ in the punctuation.
    assert re.search(f"No such option:? '?{flags[-1]}", cli("stream", *flags, status=2).stderr)
