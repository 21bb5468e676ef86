"""Finds out what set lies in a folder, by its manifest or by its layout, and opens it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from robustgen.benchmark import BENCHMARKS, CLEAN, TITLES, Kind
from robustgen.datasets.arrays import Arrays, open_array
from robustgen.datasets.base import Dataset, parse_arm
from robustgen.datasets.shards import ParquetShards, Shards, WebDatasetShards, list_shards
from robustgen.datasets.trees import Tree
from robustgen.errors import ConfigError, SourceError, explain_no_folder
from robustgen.output.files import MANIFEST
from robustgen.output.state import State
from robustgen.regular_file import open_regular

EQUALISED = "CLAHE"
"""What it calls a set that `robustgen preprocess clahe` made of another."""
_LEVELS = tuple(map(str, BENCHMARKS["c"].levels))


def open_dataset(root: str | Path, classes: Sequence[str] | None = None) -> Dataset:
    """Open a C or P set, whichever lies at `root`.

    Parameters
    ----------
    root : path
        An output of make-c or make-p in any format, or a published set: ImageNet-C, ImageNet-P, Tiny ImageNet
        or CIFAR.
    classes : sequence of str, optional
        Names of class folders in the order of the model's outputs. Otherwise the labels count the class
        folders in sorted order; those of arrays are what `labels.npy` says, and shards hold their own.

    Raises
    ------
    SourceError
        There is none, it is not finished, or its parts do not fit each other.
    ConfigError
        Classes are given for arrays, which have no class folders.
    """
    root = Path(root)
    if not root.is_dir():
        raise SourceError(f"{root}: {explain_no_folder(root)}")
    about = read_about(root)
    kind, folders = _from_manifest(root, about) if about.get("kind") in TITLES else _from_layout(root)
    arms = tuple(parse_arm(folder, kind) for folder in _order_arms(folders, kind))
    if about.get("arrays") or (not about and (root / next(iter(folders.values()))).suffix == ".npy"):
        if classes:
            raise ConfigError(f"a class list goes with class folders; {root} has arrays with labels.npy")
        return Arrays(root, kind, arms, about)
    places = {arm: root / folders[arm.folder] for arm in arms}
    return _find_layout(places[arms[0]])(root, kind, arms, about, places, classes)


def _find_layout(folder: Path) -> type[Tree | Shards]:
    """What the folder of an arm holds: shards of some kind, or else files."""
    return next(
        (each for each in (WebDatasetShards, ParquetShards) if list_shards(folder, each.suffix)), Tree
    )


def read_about(root: Path) -> dict[str, Any]:
    """What the manifest at `root` says, or nothing if there is none.

    Of a set that went through CLAHE, kind and digest of the source are those of the original, so that the two
    can be scored together, and ``"CLAHE"`` are the parameters.

    Raises
    ------
    SourceError
        The set is not finished, or the manifest cannot be read.
    """
    path = root / MANIFEST
    if not path.exists():
        if State(root).has_settings:
            raise SourceError(f"{root}: has no {MANIFEST}; the run that makes it has not finished")
        return {}
    try:
        with open_regular(path) as file:
            about = json.loads(file.read())
        if not about["complete"] and not about["failures"]:
            raise SourceError(f"{root}: is not complete; give its make command again")
        if about.get("kind") == EQUALISED:
            config = about["config"]
            about |= {
                "kind": config.get("benchmark"),
                "source": about["source"] | {"digest": config.get("origin")},
                EQUALISED: about["settings"]["clahe"],
            }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{path}: cannot be read ({error})") from error
    return dict(about)


def _from_manifest(root: Path, about: Mapping[str, Any]) -> tuple[Kind, dict[str, str]]:
    kind = TITLES[about["kind"]].kind
    arms = about.get("arms") or []
    if not isinstance(arms, list) or not all(isinstance(arm, str) for arm in arms):
        raise SourceError(f"{root / MANIFEST}: arms must be a list of names")
    files = {arm: f"{arm.partition('/')[0]}.npy" if about.get("arrays") else arm for arm in arms}
    missing = [arm for arm, file in files.items() if not (root / file).exists()]
    if missing or not arms:
        raise SourceError(f"{root}: lacks {', '.join(missing[:5]) or 'all arms'}, which its {MANIFEST} names")
    return kind, files


def _from_layout(root: Path) -> tuple[Kind, dict[str, str]]:
    """Kind, and where each arm is, of a set without `dataset.json`."""
    # Archives of the published sets are often unpacked into a folder per category.
    for pattern in ("*", "*/*"):
        found = {path.name: path for path in sorted(root.glob(pattern)) if _operation(path)}
        if set(found) - {CLEAN, f"{CLEAN}.npy"}:
            return _list_folders(root, found)
    raise SourceError(f"{root}: holds no folder or array of a corruption or perturbation")


def _operation(path: Path) -> bool:
    name = path.name.removesuffix(".npy")
    known = {CLEAN, *BENCHMARKS["c"].names, *BENCHMARKS["p"].names}
    return (name in known or parse_arm(name, "p").name in known) and (path.is_dir() or path.suffix == ".npy")


def _list_folders(root: Path, found: Mapping[str, Path]) -> tuple[Kind, dict[str, str]]:
    arrays = {name: path for name, path in found.items() if path.suffix == ".npy"}
    chosen = arrays or found
    samples = [path for name, path in chosen.items() if name.removesuffix(".npy") != CLEAN]
    # Of an empty folder nothing can be told.
    sample = next((path for path in samples if arrays or any(path.iterdir())), samples[0])
    kind: Kind = "c" if (open_array(sample).ndim == 4 if arrays else _has_severities(sample)) else "p"
    folders: dict[str, str] = {}
    for name, path in chosen.items():
        where = path.relative_to(root).as_posix()
        name = name.removesuffix(".npy")
        if kind == "p" or name == CLEAN:
            folders[name] = where
        else:
            levels = _LEVELS if arrays else _severities(path)
            folders |= {f"{name}/{level}": where if arrays else f"{where}/{level}" for level in levels}
    return kind, {folder: where for folder, where in folders.items() if kind == "c" or folder != CLEAN}


def _has_severities(folder: Path) -> bool:
    inside = [path for path in folder.iterdir() if path.is_dir()]
    return len(inside) == len(_severities(folder)) > 0 and not [*folder.glob("*/*.mp4")]


def _severities(folder: Path) -> list[str]:
    """The names of the folders in `folder` that are severities, in their order."""
    names = [path.name for path in folder.iterdir() if path.is_dir()]
    return sorted((name for name in names if BENCHMARKS["c"].read_level(name) is not None), key=float)


def _order_arms(folders: Iterable[str], kind: Kind) -> list[str]:
    """Clean first, then the order of the paper's tables, then others; levels stay in the order of arrays."""
    names = (CLEAN, *BENCHMARKS[kind].names)
    ranks = {name: i for i, name in enumerate(names)}
    return sorted(folders, key=lambda folder: ranks.get(parse_arm(folder, kind).name, len(ranks)))
