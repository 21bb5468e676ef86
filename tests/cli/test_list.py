"""`robustgen list`: names, groups, constants and JSON."""

import dataclasses
import json

from robustgen import CORRUPTIONS, EDITIONS, FAMILIES, PERTURBATIONS
from robustgen.cli import list as list_module
from robustgen.sets.formats import FORMATS
from robustgen.settings.yaml_files import dataset_names
from tests.helpers import cli, cli_error


def test_list_tells_all_names():
    text = cli("list").stdout
    for name in [*CORRUPTIONS, *PERTURBATIONS, *EDITIONS, *dataset_names()]:
        assert name in text


def test_list_tells_the_constants_of_one():
    text = cli("list", "motion_blur").stdout
    assert "scale 224, severity 5: radius 20, sigma 15" in text
    assert "scale  32, difficulty 1: radius 6, sigma 1.8, step 9" in text
    assert cli_error("list", "forst").endswith("(did you mean 'frost'?)")
    nouns = "corruption, perturbation, edition, format, data set, recipe or family"
    assert cli_error("list", "QQQ") == f"unknown {nouns} 'QQQ' (robustgen list names all)"


def test_the_members_of_a_group_or_family_are_listed():
    def names(group):
        return {each["name"] for each in json.loads(cli("list", group, "--format", "json").stdout)}

    assert names("imagenet-c") == {*CORRUPTIONS} and names("imagenet-p") == {*PERTURBATIONS}
    assert len(json.loads(cli("list", "common", "--format", "json").stdout)) == 25
    assert names("all") == {*CORRUPTIONS, *PERTURBATIONS}
    assert names("formats") == {*FORMATS} and names("editions") == {*EDITIONS}
    assert names("data-sets") == {*dataset_names()}
    assert names("weather") == {"snow", "frost", "fog", "brightness"}
    assert names("c-bar") == names("c-bar:all") == {*FAMILIES["c-bar"].corruptions}
    lines = cli("list", "c-bar").stdout.splitlines()
    assert lines[0] == "corruptions of ImageNet-C-bar (robustgen make-c --corruptions c-bar)"
    assert len(lines) == 1 + len(FAMILIES["c-bar"].corruptions)


def test_list_describes_an_edition_and_the_config_of_a_data_set():
    text = cli("list", "imagenet").stdout
    assert "edition imagenet: constants of 224 pixels" in text
    assert "shorter side to 256 pixels, then the middle 224 x 224" in text
    assert "source: ${IMAGENET_VAL}" in text
    assert "by default  npy files" in cli("list", "cifar-10").stdout


def test_list_gives_all_as_json():
    found = json.loads(cli("list", "--format", "json").stdout)
    kinds = {"corruption", "perturbation", "edition", "format", "data set", "recipe"}
    assert {each["type"] for each in found} == kinds
    assert {each["name"] for each in found if each["type"] == "edition"} == set(EDITIONS)
    (fog,) = json.loads(cli("list", "fog", "--format", "json").stdout)
    assert fog["parameters"]["224"]["3"] == dataclasses.asdict(CORRUPTIONS["fog"].parameters(3, 224))


def test_an_entry_goes_before_a_group_of_its_name(monkeypatch):
    listed, own = list_module._list_all, {"type": "format", "name": "noise", "title": "noise of a plug-in"}
    monkeypatch.setattr(list_module, "_list_all", lambda families: [*listed(families), own])
    assert list_module._find("noise") == [own]
