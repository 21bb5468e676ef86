"""Data set card for hubs: a `README.md` whose header lists the files of each config."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

CARD = "README.md"


def write_card(manifest: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the `README.md` of a set, with one config for each variant.

    Parameters
    ----------
    manifest : mapping
        The content of ``dataset.json``.
    """
    head = ["---", "license: other", "task_categories:", "- image-classification", "configs:"]
    for variant in manifest["variants"]:
        head += [
            f"- config_name: {config_name(variant)}",
            "  data_files:",
            "  - split: test",
            f"    path: data/{variant}/*.parquet",
        ]
    return {CARD: "\n".join([*head, "---", "", _body(manifest)]).encode("utf-8", "replace")}


def config_name(folder: str) -> str:
    """Return the config name of the variant in `folder`, without slashes: ``fog-3``."""
    return folder.replace("/", "-")


def _body(manifest: Mapping[str, Any]) -> str:
    settings, versions = manifest["settings"], manifest["settings"]["versions"]
    choices = [f"{name} {settings[name]}" for name in ("edition", "seed", "clahe") if name in settings]
    text = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    names = ("dataset", "kind", "images", "digest", "licence", "citation")
    return text.format(
        **{name: manifest[name] for name in names},
        variants=len(manifest["variants"]),
        choices=", ".join(choices),
        example=config_name(manifest["variants"][-1]),
        libraries=", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
    )
