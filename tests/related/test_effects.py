"""Every flag of make-augmix and preprocess does something; see tests/cli/test_effects.py."""

import pytest

from tests.cli.test_effects import EXCEPTIONS, RUNNING, SELECTION, SOURCE, check_effect, list_flags
from tests.cli.test_effects import places as places

RUN = {
    flag: RUNNING[flag] for flag in ("--dry-run", "--write-plan", "--quiet", "--log-json", "--on", "--shard")
}
_COPIES = "--source {photos} --copies 1 --output out --jobs 1"


def clean(name, **flags):
    """The call of a way of cleaning, and its flags."""
    own = {
        f"--{flag.replace('_', '-')}": f"--{flag.replace('_', '-')} {value}" for flag, value in flags.items()
    }
    rows = {
        "--config": "--config {cleaning}",
        "--set": "--set quality=30",
        "--limit": "--limit 1",
        "--quality": "--quality 30",
        "--allow-failures": ("! {damaged} out --jobs 1", "--allow-failures"),
        "--overwrite": (f"preprocess {name} {{own}} --quality 30 ;", "--overwrite"),
    }
    return "{photos} out --jobs 1", RUN | own | rows


EFFECTS = {
    "make-augmix": (
        _COPIES,
        SOURCE
        | SELECTION
        | RUNNING
        | {
            "--edition": "--edition cifar-10",
            "--dataset": ("! --copies 1 --limit 1 --output out --jobs 1", "--dataset demo"),
            "--quality": "--quality 30",
            "--copies": "--copies 2",
            "--severity": "--severity 9",
            "--width": "--width 1",
            "--depth": "--depth 3",
            "--alpha": "--alpha 9",
            "--operations": "--operations all",
            "--overwrite": ("make-augmix {own} --seed 1 ;", "--overwrite"),
        },
    ),
    "preprocess clahe": clean("clahe", clip_limit=9, tiles=2),
    "preprocess denoise": clean("denoise", patch=3, distance=2, strength=5),
    "preprocess median": clean("median", window=7),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_each_flag_is_tried_or_stands_among_the_exceptions(name):
    excepted = {flag for flag in EXCEPTIONS if flag.startswith("--")}
    assert list_flags(name) <= EFFECTS[name][1].keys() | excepted


@pytest.mark.slow("calls each command with and without each flag")
@pytest.mark.parametrize("name", EFFECTS)
def test_each_flag_has_an_effect(name, places, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    faults = []
    for flag in EFFECTS[name][1]:
        try:
            check_effect(name, EFFECTS, places, tmp_path / "work", flag)
        except AssertionError as error:
            faults.append(f"{flag}: {error}")
    assert not faults
