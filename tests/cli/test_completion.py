"""Completion in shells: commands, flags and their values."""

from click.shell_completion import BashComplete

from robustgen.cli import main
from robustgen.files import registry
from robustgen.sets.formats import FORMATS


def proposals(*words):
    """What bash is told when the last of `words` is to be completed."""
    found = BashComplete(main, {}, "robustgen", "_ROBUSTGEN_COMPLETE").get_completions(
        [*words[:-1]], words[-1]
    )
    return [each.value for each in found]


def test_shells_complete_names(monkeypatch):
    assert "make-c" in proposals("mak")
    assert proposals("make-c", "--dataset", "ima") == ["imagenet", "imagenet-64", "imagenet-inception"]
    assert proposals("make-c", "--corruptions", "fog,gla") == ["fog,glass_blur"]
    assert "tilt" in proposals("make-p", "--perturbations", "")
    assert proposals("preview", "--edition", "tiny") == ["tiny-imagenet"]
    assert proposals("list", "elas") == ["elastic_transform"]
    # A perturbation too, and named once.
    assert proposals("list", "glass") == ["glass_blur"] and proposals("list", "sno") == ["snow"]
    # The command itself knows names that came after the table was written.
    monkeypatch.setattr(registry, "FORMAT_ROWS", {**registry.FORMAT_ROWS, "zarr": ""})
    assert proposals("make-c", "--format", "za") == ["zarr"]
    for format in proposals("make-c", "--format", "") + proposals("make-p", "--format", ""):
        assert format in FORMATS
