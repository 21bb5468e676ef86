"""Streams for test-time adaptation: what is drawn, what is written, and what StreamDataset plays."""

import json
import os
from collections import Counter
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import pytest

from robustgen.errors import ArgumentError
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from robustgen.related.streams.drawing import (
    ORDERS,
    SETTINGS,
    StreamChoices,
    draw_correlated,
    draw_stream,
)
from robustgen.related.streams.rows import StreamRow, format_row, read_rows
from robustgen.related.streams.settings import Drawing
from robustgen.torch import CorruptedDataset, SourceDataset, StreamDataset
from tests.helpers import cifar_folder, cli, cli_error, photo, put_many
from tests.sets.sources.test_folder import put_stray

# --- drawing ---------------------------------------------------------------------------------------

LABELS = np.repeat(np.arange(10), 20)
THREE = ("fog", "snow", "contrast")


def rng(seed=0):
    return np.random.default_rng(seed)


def drawn(setting, corruptions=THREE, severities=(5,), seed=0, **more):
    choices = StreamChoices(corruptions, severities, Drawing(setting=setting, **more))
    return [*draw_stream(LABELS.tolist(), choices, rng(seed))]


def stretches(steps):
    """The stretches of equal corruption and severity, with their images."""
    groups = groupby(steps, key=lambda step: (step.corruption, step.severity))
    return [(*what, [step.image for step in group]) for what, group in groups]


def test_continual_is_one_corruption_after_another_at_severity_5():
    parts = stretches(drawn("continual", IMAGENET_C.common))
    assert [part[:2] for part in parts] == [(name, 5) for name in IMAGENET_C.common]
    orders = {tuple(images) for *_, images in parts}
    assert len(orders) == 15
    assert all(sorted(order) == [*range(200)] for order in orders)


@pytest.mark.parametrize(
    ("severities", "abrupt", "climbs"),
    [
        ((1, 2, 3, 4, 5), False, [1, 2, 3, 4, 5, 4, 3, 2, 1] * 3),
        ((1, 3, 5), True, [5, 3, 1, *(1, 3, 5, 3, 1), *(1, 3, 5, 3, 1)]),
    ],
)
def test_gradual_climbs_and_descends_and_may_begin_at_the_top(severities, abrupt, climbs):
    # The last stretch of a corruption is not joined to the first of the next: that is another corruption.
    parts = stretches(drawn("gradual", severities=severities, abrupt=abrupt))
    assert [part[1] for part in parts] == climbs
    assert [name for name, _ in groupby(part[0] for part in parts)] == [*THREE]
    assert all(sorted(images) == [*range(200)] for *_, images in parts)


@pytest.mark.parametrize(("setting", "like"), [("mixed", (0, 0.2)), ("mixed-correlated", (0.6, 1))])
def test_mixed_is_every_image_with_every_corruption_in_any_order(setting, like):
    steps, every = drawn(setting), {(image, name) for image in range(200) for name in THREE}
    assert len(steps) == 600 and {(step.image, step.corruption) for step in steps} == every
    assert like[0] < same_class([step.image for step in steps]) < like[1]
    # Of three corruptions, two neighbours are of the same one about every third time.
    assert 150 < sum(a.corruption == b.corruption for a, b in pairwise(steps)) < 250


def same_class(order):
    """How often an image is followed by one of its class."""
    return np.mean(LABELS[order][1:] == LABELS[order][:-1])


@pytest.mark.parametrize(
    ("setting", "severities", "levels", "least"),
    [("correlated", (5,), [5] * 3, 0.6), ("gradual-correlated", (1, 3, 5), [1, 3, 5, 3, 1] * 3, 0.5)],
)
def test_correlated_brings_like_classes_together(setting, severities, levels, least):
    parts = stretches(drawn(setting, severities=severities))
    assert [part[1] for part in parts] == levels
    assert [name for name, _ in groupby(part[0] for part in parts)] == [*THREE]
    for *_, images in parts:
        assert sorted(images) == [*range(200)] and same_class(images) > least
    assert same_class(stretches(drawn("continual"))[0][2]) < 0.2


def test_a_larger_concentration_correlates_less():
    shares = [
        np.mean([same_class(draw_correlated(LABELS, c, None, rng(s))) for s in range(5)])
        for c in (0.01, 1, 1000)
    ]
    assert shares[0] > shares[1] > shares[2]
    # Each of ten slots holds two images of each class.
    assert shares[2] < 0.6


def test_one_slot_is_sorted_by_class_but_for_the_order_of_classes():
    order = draw_correlated(LABELS, 0.1, 1, rng())
    assert [len([*group]) for _, group in groupby(LABELS[order])] == [20] * 10
    assert [*LABELS[order]] != sorted(LABELS)


def test_classes_of_one_image_and_of_any_number_do():
    labels = np.array([7, 1000, 7, 3])
    assert sorted(draw_correlated(labels, 0.001, 50, rng())) == [0, 1, 2, 3]


def test_corruptions_come_in_an_order_that_is_drawn_if_wanted():
    draws = [stretches(drawn("continual", IMAGENET_C.common, seed=s, shuffle=True)) for s in range(5)]
    orders = {tuple(part[0] for part in parts) for parts in draws}
    assert len(orders) == 5
    assert all(sorted(order) == sorted(IMAGENET_C.common) for order in orders)


@pytest.mark.parametrize("suffix", ["", "-correlated"])
def test_resets_stand_at_each_shift(suffix):
    steps = drawn(f"reset-each-shift{suffix}")
    plain = drawn("continual" if not suffix else "correlated")
    assert [step[:3] for step in steps] == [step[:3] for step in plain]
    assert [place for place, step in enumerate(steps) if step.reset] == [0, 200, 400]
    assert not any(step.reset for step in plain)


@pytest.mark.parametrize("setting", SETTINGS)
def test_visits_repeat_the_domains_with_images_drawn_anew(setting):
    severities = (1, 5) if setting.startswith("gradual") else (5,)
    steps = drawn(setting, severities=severities, repeat=3, shuffle=True)
    visits = [[*group] for _, group in groupby(steps, key=lambda step: step.visit)]
    assert [visit[0].visit for visit in visits] == [1, 2, 3]
    order, *others = [[part[:2] for part in stretches(visit)] for visit in visits]
    if not setting.startswith("mixed"):
        assert others == [order, order]
    assert Counter(step[:3] for step in visits[0]) == Counter(step[:3] for step in visits[2])
    assert [step.image for step in visits[0]] != [step.image for step in visits[1]]
    domains = {(step.corruption, step.severity): step.domain for step in steps}
    assert sorted(domains.values()) == [*range(len(domains))]
    assert all(domains[step.corruption, step.severity] == step.domain for step in steps)


def test_the_law_of_note_closes_slots_and_fills_each():
    labels, runs = np.repeat(np.arange(10), 500), {}
    for law in ("rotta", "note"):
        orders = [draw_correlated(labels, 0.1, None, rng(seed), law) for seed in range(8)]
        assert all(sorted(order) == [*range(5000)] for order in orders)
        runs[law] = np.mean([5000 / (1 + np.count_nonzero(np.diff(labels[order]))) for order in orders])
    # Runs of one class are longer by NOTE's law: by 22 % in the mean of its code.
    assert 1.05 < runs["note"] / runs["rotta"] < 1.45


def test_slots_that_note_cannot_fill_are_refused():
    with pytest.raises(ArgumentError, match="use fewer than 21 slots: 200 images do not fill them"):
        draw_correlated(LABELS, 0.1, 21, rng(), "note")


# --- the chain -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("concentration", "0", "greater than or equal to 0.001, not 0"),
        ("slots", "0", "greater than or equal to 1, not 0"),
        # No more than can be drawn soon.
        ("slots", "10001", "less than or equal to 10000, not 10001"),
        ("repeat", "0", "greater than or equal to 1, not 0"),
    ],
)
def test_values_out_of_range_are_refused(flag, value, message):
    error = cli_error("stream", "--source", ".", "--setting", "continual", f"--{flag}", value)
    assert error.startswith(f"--{flag}: must be {message}")


# --- the command -----------------------------------------------------------------------------------


def stream(tmp_path, *flags):
    path = tmp_path / "stream.jsonl"
    result = cli("stream", *flags, "--output", path)
    return [*read_rows(path)], result.output


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_command_writes_a_line_for_each_image(photos, tmp_path, setting):
    rows, told = stream(tmp_path, "--setting", setting, "--source", photos, "--seed", 3)
    source = SourceDataset(photos)
    labels = {key: label for key, (_, label) in zip(source.keys, source, strict=True)}
    found = {row.key: row.label for row in rows}
    assert found == labels
    gradual = setting.startswith("gradual")
    assert len(rows) == 15 * 5 * (9 if gradual else 1)
    assert told.startswith(f"{len(rows)} images in ")
    if not setting.startswith("mixed"):
        assert tuple(dict.fromkeys(row.corruption for row in rows)) == ORDERS[setting]
    assert {row.severity for row in rows} == ({1, 2, 3, 4, 5} if gradual else {5})
    line = json.loads((tmp_path / "stream.jsonl").read_text().splitlines()[0])
    assert {"reset": False, "edition": ""} | line == rows[0]._asdict()
    again, _ = stream(tmp_path, "--setting", setting, "--source", photos, "--seed", 3)
    other, _ = stream(tmp_path, "--setting", setting, "--source", photos, "--seed", 4)
    assert rows == again != other


def test_flags_choose_images_corruptions_and_severities(photos, tmp_path):
    flags = ("--source", photos, "--limit", 2, "--corruptions", "snow,fog", "--severities")
    rows, _ = stream(tmp_path, "--setting", "continual", *flags, "3")
    assert [row[1:3] for row in rows] == [("snow", 3)] * 2 + [("fog", 3)] * 2
    assert {row.key for row in rows} == {"cat/a.JPEG", "cat/b.jpg"}
    rows, _ = stream(tmp_path, "--setting", "gradual", "--abrupt", *flags, "1,5")
    assert [row.severity for row in rows[::2]] == [5, 1, 1, 5, 1]


def test_configs_and_cifar_do(tmp_path):
    folder, _, labels = cifar_folder(tmp_path, images=12)
    flags = ("--dataset", "cifar-10", "--source", folder, "--corruptions", "fog", "--slots", 3)
    rows, _ = stream(tmp_path, "--setting", "correlated", *flags, "--concentration", 0.5)
    assert {int(row.key): row.label for row in rows} == dict(enumerate(labels))
    assert len(rows) == 12 and rows[0].key in {f"{index:05d}" for index in range(12)}


def test_all_options_of_the_new_settings_are_taken(photos, tmp_path):
    common = ("--source", photos, "--corruptions", "fog,snow")
    rows, _ = stream(tmp_path, "--setting", "correlated", *common, "--repeat", 2)
    assert [row.visit for row in rows] == [1] * 10 + [2] * 10
    many = put_many(tmp_path / "many", 32, 32)
    flags = ("--source", many, "--corruptions", "fog", "--law", "note", "--slots", 2)
    assert len(stream(tmp_path, "--setting", "correlated", *flags)[0]) == 24
    rows, _ = stream(tmp_path, "--setting", "reset-each-shift", *common)
    assert [row.reset for row in rows] == ([True] + [False] * 4) * 2
    assert [row.domain for row in rows] == [0] * 5 + [1] * 5
    played = StreamDataset(SourceDataset(photos), rows, edition="imagenet-64")
    assert [played.reset(i) for i in range(10)] == [row.reset for row in rows] and played.visit(3) == 1


def test_the_default_output_is_named_after_the_setting(photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = cli("stream", "--setting", "mixed", "--source", photos).output
    assert told == "75 images in out/stream-mixed.jsonl\n" and Path("out/stream-mixed.jsonl").is_file()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "no source: give --dataset, --config or --source"),
        (("--source", "PHOTOS", "--severities", "1-5"), "severities: a mixed stream has one, not 5"),
        (("--source", "PHOTOS", "--severities", "9"), "--severities: "),
        (("--source", "PHOTOS", "--corruptions", "fgo"), "--corruptions: unknown corruption 'fgo'"),
        (("--source", "PHOTOS", "--slots", "5"), "--slots is for the correlated settings"),
        (("--source", "PHOTOS", "--abrupt"), "a mixed stream has no abrupt start"),
        (("--source", "PHOTOS", "--output", "PHOTOS"), "--output "),
        (("--source", "nowhere"), "nowhere"),
    ],
)
def test_wrong_commands_get_one_line(photos, flags, message):
    given = [photos if flag == "PHOTOS" else flag for flag in flags]
    assert message in cli_error("stream", "--setting", "mixed", *given)


# --- rows ------------------------------------------------------------------------------------------


def test_rows_are_read_as_they_were_written(tmp_path):
    rows = [StreamRow("ä\n/b.png", "fog", 5, 3), StreamRow("c", "c-bar:lines", 2.5, 0)]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(format_row(row) + "\n" for row in rows), encoding="utf-8")
    assert [*read_rows(path)] == rows


ROW = {"key": "a", "corruption": "fog", "severity": 5, "label": 1}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "label; may contain visit, domain, reset, edition, and"),
        (json.dumps(ROW | {"n2": 3}), "line 2: must contain key, corruption, severity, label; may"),
        (json.dumps(ROW | {"reset": 1}), "line 2: reset cannot be 1"),
        ("[" * 5000, "line 2: not JSON"),
        (json.dumps({"key": "a"}), "line 2: must contain key"),
        (json.dumps(ROW | {"key": ""}), "line 2: key cannot be ''"),
        (json.dumps(ROW | {"severity": "5"}), "line 2: severity cannot be '5'"),
        (json.dumps(ROW | {"label": True}), "line 2: label cannot be True"),
        (json.dumps(ROW | {"label": 1.5}), "line 2: label cannot be 1.5"),
    ],
)
def test_wrong_rows_are_named(tmp_path, line, message):
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(ROW) + "\n" + line + "\n")
    with pytest.raises(ArgumentError, match=message):
        [*read_rows(path)]


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(ArgumentError, match=r"s\.jsonl: cannot be read: No such file"):
        [*read_rows(tmp_path / "s.jsonl")]
    (tmp_path / "s.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(ArgumentError, match=r"s\.jsonl: not UTF-8"):
        [*read_rows(tmp_path / "s.jsonl")]


# --- playing ---------------------------------------------------------------------------------------


def test_what_is_played_are_the_images_of_make_c(photos, tmp_path):
    flags = ("--corruptions", "snow,gaussian_noise", "--source", photos)
    rows, _ = stream(tmp_path, "--setting", "mixed", *flags)
    base = SourceDataset(photos)
    played = StreamDataset(base, tmp_path / "stream.jsonl", seed=7, edition="imagenet-64")
    assert len(played) == len(rows) == 10
    for index, (row, (image, label)) in enumerate(zip(rows, played, strict=True)):
        made = CorruptedDataset(base, row.corruption, row.severity, seed=7, edition="imagenet-64")
        expected, _ = made[base.keys.index(row.key)]
        np.testing.assert_array_equal(np.asarray(image), np.asarray(expected))
        assert label == row.label
        assert played.variant(index) == made.variant
    assert {variant.name for variant in played.variants} == {"snow", "gaussian_noise"}
    np.testing.assert_array_equal(np.asarray(played[-1][0]), np.asarray(played[9][0]))
    with pytest.raises(IndexError):
        played[10]


def test_a_stream_is_not_played_in_another_edition(photos, tmp_path):
    flags = ("--setting", "mixed", "--corruptions", "contrast", "--source", photos)
    config = tmp_path / "own.yaml"
    config.write_text("edition: imagenet-64\n")
    rows, _ = stream(tmp_path, *flags, "--config", config)
    assert [row.edition for row in rows] == ["imagenet-64", "", "", "", ""]
    base, path = SourceDataset(photos), tmp_path / "stream.jsonl"
    with pytest.raises(ArgumentError, match=r"was drawn for the edition 'imagenet-64', not for 'cifar-10'"):
        StreamDataset(base, path, edition="cifar-10")
    for edition in ("imagenet-64", "imagenet-64@40"):
        assert len(StreamDataset(base, path, edition=edition)) == 5
    assert stream(tmp_path, *flags, "--edition", "imagenet-64@40")[0][0].edition == "imagenet-64"
    assert {row.edition for row in stream(tmp_path, *flags)[0]} == {""}
    rows, _ = stream(tmp_path, "--setting", "mixed", "--corruptions", "laion-c:mosaic", "--source", photos)
    assert rows[0].edition == "laion-c"


ARRAYS = [(photo(40, 44, seed), seed) for seed in range(2)]


def test_rows_may_be_given_as_they_are():
    # The targets are those of the base, not the labels of the stream.
    rows = (StreamRow("b", "clean", 0, 8), StreamRow("a", "fog", 2, 9))
    played = StreamDataset(ARRAYS, rows, edition="folder", key=["a", "b"], jpeg=None, transform=np.float32)
    (clean, first), (_, second) = played
    np.testing.assert_array_equal(clean, np.float32(ARRAYS[1][0]))
    assert (first, second) == (1, 0)


@pytest.mark.parametrize(
    "target", [lambda n: {"boxes": [[n]], "image_id": f"{n}"}, lambda n: f"text {n}", lambda n: 9 - n]
)
def test_targets_are_those_of_the_base(photos, tmp_path, target):
    source = SourceDataset(photos)
    base = [(image, target(number)) for number, (image, _) in enumerate(source)]
    stream(tmp_path, "--setting", "continual", "--corruptions", "fog", "--source", photos)
    rows = [*read_rows(tmp_path / "stream.jsonl")]
    played = StreamDataset(base, tmp_path / "stream.jsonl", edition="imagenet-64", key=source.keys)
    assert [item[1] for item in played] == [target(source.keys.index(row.key)) for row in rows]


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_stream_may_hold_a_clean_domain(photos, tmp_path, setting):
    few = ("--corruptions", "fog,clean,contrast", "--source", photos)
    rows, _ = stream(tmp_path, "--setting", setting, *few)
    clean = [row for row in rows if row.corruption == "clean"]
    assert clean and {row.severity for row in clean} == {0}
    if setting in ("continual", "gradual"):
        # Clean images have no severities to go through.
        assert [name for name, _ in groupby(row.corruption for row in rows)] == ["fog", "clean", "contrast"]
        assert len(clean) == 5
    played = StreamDataset(SourceDataset(photos), rows, edition="imagenet-64", jpeg=None)
    index = rows.index(clean[0])
    assert played.variant(index).folder == "clean"


def test_only_streams_have_a_clean_domain(photos, tmp_path):
    flags = ("--source", photos, "--corruptions", "clean,fog")
    assert "'clean'" in cli_error("make-c", *flags, "--output", tmp_path / "out")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (StreamRow("c", "fog", 5, 0), "stream, line 1: the data set has no image 'c'"),
        (StreamRow("a", "fgo", 5, 0), "stream, line 1: unknown corruption 'fgo'"),
        (StreamRow("a", "fog", 9, 0), "stream, line 1: severity"),
    ],
)
def test_streams_of_something_else_are_refused_at_once(row, message):
    with pytest.raises(ArgumentError, match=message):
        StreamDataset(ARRAYS, [row], edition="folder", key=["a", "b"])


def test_a_dataloader_plays_in_order(photos, tmp_path):
    torch = pytest.importorskip("torch")
    rows, _ = stream(tmp_path, "--setting", "continual", "--corruptions", "fog,contrast", "--source", photos)
    played = StreamDataset(SourceDataset(photos), rows, edition="imagenet-64", transform=np.asarray)
    batches = [*torch.utils.data.DataLoader(played, batch_size=4, num_workers=2)]
    assert torch.cat([labels for _, labels in batches]).tolist() == [row.label for row in rows]
    images = torch.cat([images for images, _ in batches]).numpy()
    np.testing.assert_array_equal(images, [image for image, _ in played])


def test_a_pipe_is_written_to_and_not_replaced(photos, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # A thread that reads would wait for ever if the command fails; the pipe itself holds a few lines.
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as written:
        cli("stream", "--setting", "mixed", "--source", photos, "--output", pipe, "--corruptions", "fog")
        assert len(written.readlines()) == 5
    assert pipe.is_fifo() and [*tmp_path.iterdir()] == [pipe]


def test_a_stream_leaves_out_a_picture_beside_the_class_folders(tmp_path):
    root = put_stray(tmp_path)
    drawn = cli("stream", "--source", root, "--setting", "mixed", "--output", tmp_path / "x.jsonl")
    assert "'stray.png'" in drawn.stderr and "stray" not in (tmp_path / "x.jsonl").read_text()
