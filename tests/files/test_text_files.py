"""The one reader of JSON, and names of files in lists: what is taken, and what is refused in a line."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustgen.files.text_files import MOST_DEPTH, escape_name, parse_json, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_it_reads_what_json_writes(value):
    text = json.dumps(value)
    assert parse_json(text) == parse_json(text.encode()) == parse_json("\ufeff" + text) == value


def test_depth_is_limited_and_brackets_in_strings_are_no_depth():
    pairs = "[" + "[]," * 9
    assert parse_json(pairs + "[" * (MOST_DEPTH - 1) + "]" * MOST_DEPTH)
    assert parse_json("[" + "[]," * 5000 + "[]]")
    text = "\\" + '"[{' * 5000
    assert parse_json(json.dumps([text, text])) == [text, text]
    for deep in (pairs + "[" * 100 + "]" * 101, "[" * 100_000, '{"a":' * 100_000, '["x", ' * 200):
        with pytest.raises(ValueError, match="100"):
            parse_json(deep)


@pytest.mark.parametrize(
    "text",
    ["", "{", '"abc', '{"a": 1,}', '["' + "[" * 500, "]" * 500 + "[" * 500, b"\xff[]", "1" * 100_000],
    ids=range(8),
)
def test_what_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError) as caught:
        parse_json(text)
    assert "\n" not in str(caught.value)


def test_size_is_limited(tmp_path):
    (tmp_path / "a.json").write_text(" " * 50 + "1")
    assert read_json(tmp_path / "a.json", 51) == 1
    with pytest.raises(OSError, match="51"):
        read_json(tmp_path / "a.json", 50)
    with pytest.raises(ValueError, match="51"):
        parse_json(" " * 50 + "1", 50)


def test_pipes_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="regular"):
        read_json(tmp_path / "pipe")


def test_carriage_returns_are_left_as_they_are():
    # Only coreutils 9 and later know them escaped; every release takes them as they are.
    assert escape_name("a\rb") == ("", "a\rb")
    assert escape_name("a\r\\b\n") == ("\\", "a\r\\\\b\\n")
