"""The release: its number in every file, and that no byte of a set depends on it."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import yaml
from hatchling.builders.sdist import SdistBuilder

import robustgen
from robustgen.sets.formats import base
from tests.helpers import ONE, make_c, manifest, tree

ROOT = Path(__file__).parent.parent


def test_every_file_has_the_number_of_the_release():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert citation["version"] == recipe["context"]["version"] == robustgen.__version__
    needed = [each for each in metadata.requires("robustgen") or () if ";" not in each]
    bounds = {each.lower().replace(">=", " >=") for each in needed}
    assert len(bounds) > 5 and bounds <= {each.lower() for each in recipe["requirements"]["run"]}
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[([^]]+)\]", changes, re.MULTILINE)[0] == robustgen.__version__


def test_no_digest_depends_on_the_release(photos, tmp_path, monkeypatch):
    for form in ("jpeg", "webdataset", "parquet", "png"):
        ours, theirs = tmp_path / form, tmp_path / f"{form}-later"
        make_c(photos, ours, *ONE, "--format", form)
        with monkeypatch.context() as later:
            later.setattr(base, "__version__", "1.7.3")
            make_c(photos, theirs, *ONE, "--format", form)
        assert manifest(theirs)["settings"]["versions"]["robustgen"] == "1.7.3"
        assert manifest(theirs)["digest"] == manifest(ours)["digest"] and tree(theirs) == tree(ours)


def test_the_long_description_works_away_from_the_checkout():
    """On PyPI, there are no other files."""
    from readme_renderer import markdown

    # importlib_metadata, which other tests import by way of Dask, empties the payload.
    page = markdown.render(metadata.metadata("robustgen")["Description"])
    addresses = re.findall(r'(?:href|src)="([^#"][^"]*)"', page)
    own = [each.partition("robustgen/robustgen/") for each in addresses if "robustgen/robustgen/" in each]
    assert len(own) > 30 and all(each.startswith("https://") for each in addresses)
    for _, _, path in own:
        file = re.sub(r"^(blob/)?main/|#.*", "", path)
        assert (ROOT / file).exists() or file == "issues", file


def test_the_sdist_has_all_that_its_tests_open():
    """A file or folder of the project that a test names is in it, with everything below it."""
    ours = SdistBuilder(str(ROOT)).recurse_included_files()
    packed = {file.distribution_path for file in ours}
    ignored = (".git/", *(ROOT / ".gitignore").read_text().split())
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    named = [
        path
        for path in ROOT.iterdir()
        if f"{path.name}/" not in ignored and re.search(rf'"{re.escape(path.name)}["/]', text)
    ]
    assert {"docs", "scripts", "mkdocs.yml", ".github", "CITATION.cff"} <= {path.name for path in named}
    opened = [each for path in named for each in (path, *path.rglob("*")) if each.is_file()]
    lacking = {str(path.relative_to(ROOT)) for path in opened if "__pycache__" not in path.parts} - packed
    assert not lacking


def test_releases_of_python_are_the_same_everywhere():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    known = re.findall(r"Python :: (3\.\d+)", text)
    wheels = read_workflows()["release"]["jobs"]["wheels"]
    assert wheels["strategy"]["matrix"]["python"] == known
    assert f'requires-python = ">={known[0]}"' in text
    for page in ("README.md", "docs/start/install.md"):
        assert f"Python {known[0]} to {known[-1]}" in (ROOT / page).read_text(encoding="utf-8")
    tested = yaml.dump(read_workflows()["tests"])
    assert all(release in tested for release in known)


def read_workflows():
    """Each workflow by its name."""
    paths = (ROOT / ".github" / "workflows").glob("*.yml")
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths}


def test_workflows_run_what_was_read_and_keep_no_credentials():
    steps = [
        step
        for workflow in read_workflows().values()
        for job in workflow["jobs"].values()
        for step in job.get("steps", ())
    ]
    used = [step for step in steps if "uses" in step]
    assert len(used) > 10
    for step in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]), step
        if step["uses"].startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_pages_of_all_releases_are_listed_for_the_selector(tmp_path):
    """The newest release is first and is where the address without a version leads."""
    put = tmp_path / "scripts" / "site_versions.sh"
    put.parent.mkdir()
    shutil.copy(ROOT / "scripts" / put.name, put)
    (tmp_path / "mkdocs.yml").write_text("site_url: https://pages\n")
    mkdocs = tmp_path / "venv" / "bin" / "mkdocs"
    mkdocs.parent.mkdir(parents=True)
    mkdocs.write_text('#!/bin/sh\nmkdir -p "$4" && cp mkdocs.yml "$4"\n')
    mkdocs.chmod(0o755)
    own = {**os.environ, "VENV": "venv"}
    shell = "git init -q . && git add scripts mkdocs.yml"
    name = "-c user.name=Name -c user.email=name@example.org"
    subprocess.run(["sh", "-c", f"{shell} && git {name} commit -q -m Release"], cwd=tmp_path, check=True)

    def build():
        subprocess.run([put], cwd=tmp_path, env=own, check=True)
        site = tmp_path / "build" / "site-versions"
        (first,) = re.findall('url=([^"]+)/', (site / "index.html").read_text())
        listed = [each["version"] for each in json.loads((site / "versions.json").read_text())]
        for version in listed:
            page = yaml.safe_load((site / version / "mkdocs.yml").read_text())
            assert page["site_url"] == f"https://pages/{version}"
        return first, listed

    assert build() == ("main", ["main"])
    for tag in ("v1.0.0", "v1.10.0", "v1.10.0rc1", "v1.9.0"):
        subprocess.run(["git", "tag", tag], cwd=tmp_path, check=True)
    assert build() == ("1.10.0", ["1.10.0", "1.10.0rc1", "1.9.0", "1.0.0", "main"])
    assert yaml.safe_load((ROOT / "mkdocs.yml").read_text())["extra"]["version"]["provider"] == "mike"


def test_nothing_is_published_before_its_tests_and_under_another_version():
    jobs = read_workflows()["release"]["jobs"]
    assert {"tests", "build", "wheels"} <= {*jobs["publish"]["needs"]}
    assert jobs["tests"]["uses"].endswith("/tests.yml")
    assert any("TAG" in step.get("env", {}) for step in jobs["build"]["steps"])
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]


def test_steps_of_a_release_compare_its_tag_and_fill_in_the_digest(tmp_path):
    def run(named, **own):
        (step,) = (each["run"] for each in steps if each.get("name", "").startswith(named))
        return subprocess.run(["bash", "-e", "-c", step], cwd=tmp_path, env={**os.environ, **own}).returncode

    steps = read_workflows()["release"]["jobs"]["build"]["steps"]
    for folder in ("dist", "conda"):
        (tmp_path / folder).mkdir()
    (tmp_path / "dist" / "robustgen-1.2.0-py3-none-any.whl").touch()
    (tmp_path / "dist" / "robustgen-1.2.0.tar.gz").write_bytes(b"sdist")
    assert run("the tag", TAG="v1.2.0") == 0 and run("the tag", TAG="v1.2.1") == 1
    recipe = tmp_path / "conda" / "recipe.yaml"
    shutil.copy(ROOT / "conda" / "recipe.yaml", recipe)
    assert run("the conda recipe") == 0
    filled = yaml.safe_load(recipe.read_text())
    assert filled["source"].pop("sha256") == hashlib.sha256(b"sdist").hexdigest()
    before = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    assert before["source"].pop("sha256") == "0" * 64 and filled == before
