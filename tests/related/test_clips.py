"""Commands for images refuse clips before they write anything."""

import pytest

from tests.helpers import cli_error, put_photo


@pytest.mark.parametrize(
    "command",
    [
        ("make-augmix",),
        ("stream", "--setting", "continual"),
        ("stream", "ccc", "--accuracy-table", "x.json"),
        ("stream", "measure", "--model", "lengths:build"),
    ],
)
def test_commands_for_images_refuse_clips(tmp_path, monkeypatch, command):
    for number in range(3):
        put_photo(tmp_path / "clips" / "cat" / "a" / f"{number}.jpg", seed=number)
    (tmp_path / "lengths.py").write_text("def build():\n    return len\n")
    (tmp_path / "x.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    found = cli_error(*command, "--dataset", "clips", "--source", "clips")
    assert "images, not clips" in found and not (tmp_path / "out").exists()
