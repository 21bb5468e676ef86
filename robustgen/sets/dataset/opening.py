"""Opening of a finished set, recognised by its manifest or its layout."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from robustgen.errors import OutputError, SourceError
from robustgen.files.set_files import MANIFEST, STATE, TABLES, check_folder
from robustgen.files.storage import Store, open_store
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, CLEAN, IMAGENET_C, TITLES, Kind, parse_variant
from robustgen.pixels.benchmarks.registry import MEDMNIST
from robustgen.pixels.imaging.cleaning import CLEANINGS
from robustgen.sets.dataset.manifest import read_manifest
from robustgen.sets.dataset.rows import find_set
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.formats import FORMATS
from robustgen.sets.formats.arrays import ARCHIVE, Archives, ArraySet, file_of, open_array
from robustgen.sets.formats.base import WrittenSet
from robustgen.sets.formats.shards import ParquetShards, ShardSet, WebDatasetShards
from robustgen.sets.formats.table import FileTableSet
from robustgen.sets.formats.trees import TreeSet

CLEANED = "cleaned"
"""Key of the cleaning in the manifest of a set that `robustgen preprocess` created from another set."""
_CLEANINGS = {each.title: each for each in CLEANINGS.values()}
_LEVELS = tuple(map(str, BENCHMARKS["c"].levels))


def open_set(root: str | Path | Store, classes: Sequence[str] | None = None) -> WrittenSet:
    """Open the C or P set at `root`.

    Parameters
    ----------
    root : path, URL or Store
        An output of make-c or make-p in any format, or a published set: ImageNet-C, ImageNet-P, Tiny ImageNet
        or CIFAR.
    classes : sequence of str, optional
        Class names in the order of the model's outputs. By default, labels number the classes in the order of
        the source, which `dataset.json` contains; in a published set, class folders in sorted order.

    Raises
    ------
    SourceError
        There is no set, it is unfinished, or its parts are inconsistent.

    Examples
    --------
    >>> import robustgen
    >>> made = robustgen.make_c("demo", corruptions="contrast", limit=2, output="out", jobs=1, quiet=True)
    >>> opened = robustgen.open_set("out")
    >>> [variant.folder for variant in opened][:3]
    ['clean', 'contrast/1', 'contrast/2']
    >>> source = opened[[*opened][-1]]
    >>> source.load(source.keys()[0]).shape
    (224, 224, 3)
    """
    store = root if isinstance(root, Store) else open_store(root)
    check_folder(store)
    manifest = read_manifest_of(store)
    is_known = manifest.get("title") in TITLES
    kind, folders = _from_manifest(store, manifest) if is_known else _from_layout(store)
    # Sort clean first, then in the order of the paper's tables, then others; levels as in arrays.
    ranks = {name: i for i, name in enumerate((CLEAN, *BENCHMARKS[kind].names))}
    named = {parse_variant(folder, kind): place for folder, place in folders.items()}
    places = dict(sorted(named.items(), key=lambda each: ranks.get(each[0].name, len(ranks))))
    first = next(iter(folders.values()))
    layout: type[WrittenSet] = TreeSet
    if manifest:
        form = manifest["settings"]["output"].get("format")
        row = FORMATS.get(form)
        layout = FileTableSet if form == FileTableSet.format else (row and row.reader) or TreeSet
    elif first.endswith(ARCHIVE):
        # The folder of published archives has the name of the data set.
        name = store.location.rpartition("/")[2]
        layout, manifest = Archives, {"edition": name} if name in MEDMNIST else {}
    elif first.endswith(".npy"):
        layout = ArraySet
    else:
        folder = next(iter(places.values()))
        inside = {entry.path for entry in store.list(folder) if entry.path.rpartition("/")[0] == folder}
        shards: tuple[type[ShardSet], ...] = (WebDatasetShards, ParquetShards)
        layout = next(
            (each for each in shards if any(path.endswith(each.suffix) for path in inside)), TreeSet
        )
    return layout(store, kind, manifest, places, classes)


def read_manifest_of(store: Store) -> dict[str, Any]:
    """Return the content of the manifest of a set; empty if there is none.

    For a cleaned set, title and source digest are those of the original set, so that both can be scored
    together, and ``"cleaned"`` contains the name of the cleaning and its parameters.

    Raises
    ------
    SourceError
        The set is unfinished, or the manifest cannot be read.
    """
    state = SetLedger(store)
    try:
        manifest = read_manifest(store) if store.exists(MANIFEST) else {}
        plans = [] if manifest else state.plans()
    except OutputError as error:
        raise SourceError(str(error)) from error
    if not manifest and state.exists:
        command = name_command(plans[0]["manifest"]["title"] if plans else "")
        raise SourceError(f"{store.location}: no {MANIFEST}: its run has not finished; {command} resumes it")
    if manifest and not manifest["complete"] and not manifest["failures"]:
        command = name_command(manifest["title"])
        raise SourceError(f"{store.location}: is not complete; {command} resumes its run")
    if (title := manifest.get("title")) in _CLEANINGS:
        config, name = manifest["config"], _CLEANINGS[title].name
        manifest |= {
            "title": config.get("benchmark"),
            "source": manifest["source"] | {"digest": config.get("origin")},
            CLEANED: {name: manifest["settings"].get(name)},
        }
    return manifest


def name_command(title: str) -> str:
    """Return the command that creates or resumes a set of this `title`."""
    row = find_set(title)
    return f"the same 'robustgen {row.command if row else 'make-...'} ...' command"


def _from_manifest(store: Store, manifest: Mapping[str, Any]) -> tuple[Kind, dict[str, str]]:
    """Return the benchmark of a set and the location of each variant, without listing the whole set."""
    variants = manifest["variants"]
    array = next(iter(manifest["arrays"]), "")
    suffix = PurePosixPath(array).suffix
    places = {variant: file_of(variant, suffix) if array else variant for variant in variants}
    missing = [variant for variant, place in places.items() if not _exists(store, place)]
    if len(missing) == len(variants) and not array:
        places = {variant: f"{TABLES}/{place}" for variant, place in places.items()}
        missing = [variant for variant, place in places.items() if not _exists(store, place)]
    if missing or not variants:
        lacking = ", ".join(missing[:5]) or "all variants"
        raise SourceError(f"{store.location}: lacks {lacking}, which its {MANIFEST} lists")
    return TITLES[manifest["title"]].kind, places


def _exists(store: Store, path: str) -> bool:
    """Return whether there is a file, or a folder with files, at `path`."""
    return store.exists(path) or next(iter(store.list(path)), None) is not None


def _from_layout(store: Store) -> tuple[Kind, dict[str, str]]:
    """Return the benchmark of a set without `dataset.json`, and the location of each variant."""
    files = [entry.path for entry in store.list() if not entry.path.startswith(f"{STATE}/")]
    if archives := _find_archives(files):
        return "c", archives
    nested = [path for path in files if "/" in path]
    if nested and all(path.endswith(".npz") for path in nested):
        raise SourceError(f"{store.location}: contains predictions, not images; robustgen score reads them")
    # Users often unpack the published archives into a folder per category.
    for depth in (1, 2):
        places = {"/".join(path.split("/")[:depth]) for path in files if path.count("/") >= depth - 1}
        names = {place: place.rpartition("/")[2] for place in sorted(places)}
        found = {name: place for place, name in names.items() if _is_operation(name)}
        if found.keys() - {CLEAN, f"{CLEAN}.npy"}:
            return _list_variants(store, found, files)
    raise SourceError(f"{store.location}: contains no folder or array of a corruption or perturbation")


def _find_archives(files: Sequence[str]) -> dict[str, str]:
    """Return the location of each variant in the archives of the published MedMNIST-C; empty without any."""
    stems = {path.removesuffix(ARCHIVE) for path in files if path.endswith(ARCHIVE) and "/" not in path}
    if not stems:
        return {}
    from robustgen.pixels.benchmarks.corruptions import FAMILIES

    known = FAMILIES["medmnist-c"].corruptions
    folders = [
        IMAGENET_C.variant(name, level).folder
        for name in known
        if name.partition(":")[2] in stems
        for level in IMAGENET_C.levels
    ]
    found = {folder: file_of(folder, ARCHIVE) for folder in folders}
    return ({CLEAN: f"{CLEAN}{ARCHIVE}"} if CLEAN in stems and found else {}) | found


def _is_operation(name: str) -> bool:
    name = name.removesuffix(".npy")
    known = {CLEAN, *BENCHMARKS["c"].names, *BENCHMARKS["p"].names}
    return name in known or parse_variant(name, "p").name in known


def _list_variants(
    store: Store, found: Mapping[str, str], files: Sequence[str]
) -> tuple[Kind, dict[str, str]]:
    arrays = {name.removesuffix(".npy"): place for name, place in found.items() if name.endswith(".npy")}
    places = arrays or found
    sample = next(place for name, place in places.items() if name != CLEAN)
    if arrays:
        is_c = open_array(store, sample).ndim == 4
    else:
        # All folders in the folder of an operation are severities, and contain no videos.
        folders, levels = _list_folders(files, sample)
        videos = (path for path in files if path.startswith(f"{sample}/") and path.endswith(".mp4"))
        is_c = len(folders) == len(levels) > 0 and not any(
            path.removeprefix(f"{sample}/").count("/") == 1 for path in videos
        )
    if not is_c:
        return "p", {name: place for name, place in places.items() if name != CLEAN}
    variants: dict[str, str] = {}
    for name, place in places.items():
        if name == CLEAN:
            variants[name] = place
        elif arrays:
            variants |= {f"{name}/{level}": place for level in _LEVELS}
        else:
            variants |= {f"{name}/{level}": f"{place}/{level}" for level in _list_folders(files, place)[1]}
    return "c", variants


def _list_folders(files: Iterable[str], place: str) -> tuple[set[str], list[str]]:
    """Return the names of the folders at `place`, and those of severities in order of severity."""
    inside = (path.removeprefix(f"{place}/") for path in files if path.startswith(f"{place}/"))
    names = {path.partition("/")[0] for path in inside if "/" in path}
    return names, sorted((name for name in names if BENCHMARKS["c"].read_level(name) is not None), key=float)
