"""Lists of images for OpenOOD: `stream --format imglist`."""

from collections import Counter

import numpy as np
import pytest

from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from robustgen.related.streams.drawing import draw_csid
from tests.helpers import cli, cli_error, put_photo


def test_an_imglist_names_the_files_of_the_set(tmp_path):
    for number in range(40):
        put_photo(tmp_path / "in" / "ab"[number % 2] / f"{number}.png", 36, 40, number)
    common = ("--source", tmp_path / "in", "--corruptions", "contrast,saturate", "--severities", "1,4")
    cli("make-c", *common, "--jobs", 1, "--no-clean", "--output", tmp_path / "set")
    cli("stream", *common, "--format", "imglist", "--output", tmp_path / "list.txt")
    lines = (tmp_path / "list.txt").read_text().splitlines()
    assert len(lines) == 40 and len({line.split("/")[-1] for line in lines}) == 40
    for line in lines:
        path, label = line.rsplit(" ", 1)
        assert (tmp_path / "set" / path).is_file() and "ab"[int(label)] == path.split("/")[2]
    assert len({tuple(line.split("/")[:2]) for line in lines}) == 4
    again = tmp_path / "again.txt"
    cli("stream", *common, "--format", "imglist", "--setting", "csid", "--output", again)
    assert again.read_bytes() == (tmp_path / "list.txt").read_bytes()
    cli("stream", *common, "--format", "imglist", "--seed", 1, "--output", again)
    assert again.read_bytes() != (tmp_path / "list.txt").read_bytes()
    cli("make-c", *common, "--format", "png", "--jobs", 1, "--no-clean", "--output", tmp_path / "png")
    cli("stream", *common, "--format", "imglist", "--files", "png", "--output", again)
    assert all(
        (tmp_path / "png" / line.rsplit(" ", 1)[0]).is_file() for line in again.read_text().splitlines()
    )


@pytest.mark.parametrize("name", ["a\nb", "polar bear"])
def test_an_imglist_has_no_names_that_its_readers_would_divide(tmp_path, name):
    put_photo(tmp_path / "in" / name / "x.png", 36, 40)
    flags = ("--corruptions", "contrast", "--format", "imglist", "--output", tmp_path / "list.txt")
    message = cli_error("stream", "--source", tmp_path / "in", *flags)
    assert repr(f"{name}/x.JPEG") in message and "--format jsonl" in message
    assert not (tmp_path / "list.txt").exists()


def test_csid_draws_corruptions_and_severities_uniformly():
    steps = [*draw_csid(75_000, IMAGENET_C.common, IMAGENET_C.levels, np.random.default_rng(0))]
    assert [step.image for step in steps] == [*range(75_000)]
    counts = Counter((step.corruption, step.severity) for step in steps)
    assert len(counts) == 75 and min(counts.values()) > 850 and max(counts.values()) < 1150


def test_a_stream_needs_a_setting(tmp_path):
    put_photo(tmp_path / "in" / "a" / "1.png", 36, 40, 1)
    assert "give --setting" in cli_error("stream", "--source", tmp_path / "in")
