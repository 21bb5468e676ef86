"""The pages hold what the package has: flags, fields, public names, wings."""

import importlib
import importlib.util
import re
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from robustgen.settings.config import Config
from robustgen.settings.schema import make_schema
from tests.helpers import cli
from tests.test_docs import ROOT, read


def script(name):
    """A module of scripts/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def test_the_table_of_wings_says_what_each_may_import():
    reference = script("docs_reference")
    page, names = read(reference.ARCHITECTURE), re.compile(r"^\| (`\w+`) \| (.*?) \|", re.MULTILINE)
    assert dict(names.findall(page)) == dict(names.findall(reference.write_wings(page)))
    assert {"`pixels`", "`sets`", "`lab`", "`related`"} <= dict(names.findall(page)).keys()


def test_the_python_reference_has_every_public_name():
    for page in sorted((ROOT / "docs" / "api").glob("robustgen*.md")):
        paths = re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        public = vars(importlib.import_module(page.stem)).get("__all__", ())
        assert {*public} - {"__version__"} <= {path.rpartition(".")[2] for path in paths}, page.name
        for path in paths:
            # Some public names import PyTorch, which may be missing, when they are looked up.
            known = path == page.stem or path.rpartition(".")[2] in public or find(path) is not None
            assert known, f"{page.name}: {path}"
            assert path in (page.stem, f"{page.stem}.{path.rpartition('.')[2]}"), f"{path}: not public"


def find(path):
    """The object at a dotted path, its module imported."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name, None)


def test_the_reference_and_the_types_of_keywords_are_current():
    pages = script("docs_reference").make_pages()
    written = {page: read(ROOT / page) for page in pages}
    assert written == pages, "run .venv/bin/python scripts/docs_reference.py"


def test_no_row_of_the_reference_is_broken():
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        for block in re.split(r"\n\n+", read(page)):
            lines = block.splitlines()
            if lines[0].startswith("|"):
                assert all(line.startswith("|") and line.endswith("|") for line in lines), (page.name, block)


def test_the_reference_has_every_command_and_flag():
    assert {"make-c", "score", "list"} <= {*check_sections("commands.md")}


def check_sections(page):
    """Hold the sections of a page of the reference to the help of their commands; return them."""
    text = read(ROOT / "docs" / "reference" / page)
    sections = dict(re.findall(r"^## `(.*?)`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    for words, section in sections.items():
        shown = cli(*words.split(), "--help-all").output
        flags_shown = {*re.findall(r"^  (--[\w-]+)", shown, re.MULTILINE)} - {"--help", "--help-all"}
        assert flags_shown == {*re.findall(r"^\|.*?\| `(--[\w-]+)", section, re.MULTILINE)}, words
    return sections


@pytest.fixture
def street(tmp_path, monkeypatch):
    """The config of the page, in the current folder."""
    page = read(ROOT / "docs/reference/config.md")
    (text,) = re.findall(r"```yaml\n(# street.yaml\n.*?)```", page, re.DOTALL)
    (tmp_path / "street.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREET_PHOTOS", "photos")
    return tmp_path / "street.yaml"


def test_the_page_on_configs_shows_what_the_command_prints(street):
    page = read(ROOT / "docs/reference/config.md")
    (call, pattern, shown) = re.search(
        r"\$ robustgen (config .*?) \| grep -E '(.*?)'\n(.*?)```", page, re.DOTALL
    ).groups()
    printed = cli(*call.split()).output
    assert [line for line in printed.splitlines() if re.match(pattern, line)] == shown.splitlines()
    assert shown.count("\n") == 4


def test_the_output_of_config_is_a_config(street):
    printed = cli("config", "--config", street).output
    Path("printed.yaml").write_text(printed)
    again = cli("config", "--config", "printed.yaml").output
    assert yaml.safe_load(again) == yaml.safe_load(printed)


def test_the_page_on_configs_shows_the_message_of_a_mistake(street):
    street.write_text(street.read_text().replace("frost", "forst"))
    (message,) = re.findall(r"`(street.yaml:5: .*?)`", read(ROOT / "docs/reference/config.md"))
    assert cli("make-c", "--config", "street.yaml", status=2).stderr == f"Error: {message}\n"


def test_the_schema_accepts_every_config(street):
    validator = jsonschema.Draft7Validator(make_schema(Config))
    for path in (street, *sorted((ROOT / "configs").glob("*.yaml"))):
        validator.validate(yaml.safe_load(read(path)))
    for wrong in ("libjpeg: 9c", "seed: '3'", "jobs: most", "corruption: fog", "mirror: move"):
        assert not validator.is_valid(yaml.safe_load(wrong)), wrong
