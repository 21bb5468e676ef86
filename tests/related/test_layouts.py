"""Label maps among the images of the commands of this wing."""

import pytest

from tests.helpers import cli
from tests.sets.dataset.test_layouts import check_plain_command, put_layout


@pytest.mark.parametrize(
    "command",
    [
        ("make-augmix",),
        ("stream", "--dataset", "folder", "--setting", "continual", "--corruptions", "contrast"),
        ("preprocess", "clahe"),
    ],
    ids=lambda command: command[0],
)
def test_plain_commands_leave_nothing_out_and_say_so(tmp_path, command):
    check_plain_command(tmp_path, command)


def test_a_stream_of_a_set_with_maps_has_none(tmp_path):
    put_layout(tmp_path / "source", {"images/{}.png": "picture", "masks/{}.png": "map"}, 2)
    few = ("--dataset", "coco-c", "--setting", "continual", "--corruptions", "contrast", "--severities", "1")
    said = cli("stream", *few, "--source", tmp_path / "source", "--output", tmp_path / "stream.jsonl").stderr
    assert "2 label maps" in said and "masks" not in (tmp_path / "stream.jsonl").read_text()
