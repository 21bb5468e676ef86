"""Data set card: a `README.md` whose header names the files of each variant to hubs and to `datasets`."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from robustgen.pixels.benchmarks.kinds import IMAGENET_P
from robustgen.pixels.imaging.decode import EXTENSIONS
from robustgen.sets.formats.parquet import FOLDER
from robustgen.sets.formats.trees import find_pattern
from robustgen.sets.sources.table import LAYOUTS

CARD: Final = "README.md"
_FILES: Final = {
    "parquet": (f"{FOLDER}/{{}}*.parquet",),
    "webdataset": ("{}*.tar",),
    "table of files": tuple(f"{{}}**/*{suffix}" for suffix in LAYOUTS),
}
"""Format to the patterns of the samples' files in the folder ``{}``; by default, all of its files."""
_IMAGES: Final = tuple(f"**/*{each}" for suffix in EXTENSIONS for each in (suffix, suffix.upper()))
_EXAMPLE: Final = """```python
from datasets import load_dataset

images = load_dataset("path/to/this/folder", "{}", split="test")
```"""
_NO_EXAMPLE: Final = "NumPy reads these arrays; the library `datasets` does not."


def write_card(manifest: Mapping[str, Any]) -> bytes:
    """Return the `README.md` of a set, with one config for each variant.

    Parameters
    ----------
    manifest : mapping
        The content of ``dataset.json``.
    """
    head = ["---", "license: other"]
    if _is_classification(manifest):
        head += ["task_categories:", "- image-classification"]
    head.append("configs:")
    for variant in manifest["variants"]:
        # JSON strings are YAML strings.
        paths = ", ".join(map(json.dumps, _list_patterns(manifest, variant)))
        head += [f"- config_name: {config_name(variant)}", "  data_files:", "  - split: test"]
        head += [f"    path: [{paths}]", *_describe_labels(manifest)]
    return "\n".join([*head, "---", "", _body(manifest)]).encode("utf-8", "replace")


def config_name(folder: str) -> str:
    """Return the config name of the variant in `folder`, without slashes: ``fog-3``."""
    return folder.replace("/", "-") or "default"


def _format(manifest: Mapping[str, Any]) -> str:
    return str(manifest["settings"]["output"].get("format"))


def _is_classification(manifest: Mapping[str, Any]) -> bool:
    """Return False for tables, and for sets with annotations of their own."""
    return "table" not in _format(manifest) and not manifest["config"].get("mirror")


def _list_patterns(manifest: Mapping[str, Any], variant: str) -> Iterator[str]:
    """Yield the patterns of the files of a variant; arrays match none, so `datasets` refuses them."""
    if variant and not manifest["config"].get("mirror"):
        yield from (name.format(f"{variant}/") for name in _FILES.get(_format(manifest), ("{}**",)))
        return
    pattern, folder = find_pattern(manifest), f"{variant}/" if variant else ""
    # `datasets` reads tables of this name together with the images.
    for name in (*(_expand(pattern) if pattern else _IMAGES), "**/metadata.*"):
        yield f"{folder}{name}"


def _expand(pattern: str) -> list[str]:
    """Return patterns in which ``*`` matches no slash for a `pattern` in which it does."""
    found = [""]
    for character in pattern:
        ends = ("*", "*/**/*") if character == "*" else (character,)
        found = [start + end for start in found for end in ends]
    return found


def _describe_labels(manifest: Mapping[str, Any]) -> list[str]:
    """Return the line that says whether folders are classes, for formats with a file for each image."""
    if "sample" in manifest["settings"]["output"] or manifest["config"].get("mirror"):
        return []
    # Frames lie in the folder of their sequence.
    has_frames = _format(manifest) == "png" and manifest["kind"] == IMAGENET_P.title
    return [f"  drop_labels: {json.dumps(has_frames or not manifest['class_folders'])}"]


def _body(manifest: Mapping[str, Any]) -> str:
    settings, versions = manifest["settings"], manifest["settings"]["versions"]
    choices = [f"{name} {settings[name]}" for name in ("edition", "seed", "clahe") if name in settings]
    text = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    names = ("dataset", "kind", "images", "digest", "licence", "citation")
    return text.format(
        **{name: manifest[name] for name in names},
        variants=len(manifest["variants"]),
        choices=", ".join(choices),
        example=_NO_EXAMPLE if manifest["arrays"] else _EXAMPLE.format(config_name(manifest["variants"][-1])),
        libraries=", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
    )
