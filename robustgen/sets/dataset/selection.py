"""Selection of images of a source: a listed subset, a sample, the first few, or all."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from robustgen.display.text import format_count
from robustgen.errors import ConfigError, SourceError
from robustgen.files.storage import Store, locate
from robustgen.pixels.benchmarks.editions import Edition
from robustgen.pixels.benchmarks.registry import MEDMNIST
from robustgen.pixels.imaging.jpeg import Libjpeg
from robustgen.sets.dataset.layouts import (
    FoundMaps,
    check_pictures,
    describe_likely_maps,
    find_maps,
    find_other_maps,
)
from robustgen.sets.dataset.recipes import rank
from robustgen.sets.dataset.subset_lists import Listed, select_listed
from robustgen.sets.sources import imagenet
from robustgen.sets.sources.base import Items, Source, SourceOptions
from robustgen.sets.sources.folder import FileSource, ImageFolder, LabelledFolder, TreeItems
from robustgen.sets.sources.opening import open_source
from robustgen.sets.sources.rows import Asked
from robustgen.settings.config import Choices, Config
from robustgen.settings.fields import make_absolute

_IMAGENET: Final = ("imagenet", "tiny-imagenet")
# Planning a set asks several times for the maps of one source.
_find_maps_by_name: Final = lru_cache(maxsize=1)(find_maps)
# Of MedMNIST, the sets whose images have several labels.
_SEVERAL_LABELS: Final = ("chestmnist",)


def open_chosen_source(
    config: Choices, index: tuple[Store, str] | None = None, libjpeg: Libjpeg = "turbo"
) -> Source:
    """Open the source that `config` names; `index` is the cache for its listing.

    The label maps of a set that mirrors its source are none of its images.

    Raises
    ------
    SourceError
        The config names no source, or one that cannot be used.

    Examples
    --------
    >>> from robustgen.plugins import Choices, open_chosen_source
    >>> source = open_chosen_source(Choices(source_kind="demo"))
    >>> source.keys()[0]
    'astronaut/astronaut.png'
    """
    if config.source is None and config.source_kind != "demo":
        raise SourceError("no source: name the folder of images with --source or `source:`")
    if config.source is not None and config.source_kind == "demo":
        raise SourceError(f"{config.source}: the demo has its own photographs; choose another --dataset")
    located, labels, root = (
        p and make_absolute(p) for p in (config.source, config.labels, config.image_root)
    )
    # A variant that mirrors the source has all of its folders.
    has_classes = not isinstance(config, Config) or (config.require_classes and not is_mirror(config))
    options = SourceOptions(
        labels=labels,
        follow=config.follow_links,
        cache=index,
        split=config.split,
        labels_are_classes=config.labels_are_classes,
        label_column=config.label_column,
        file_column=config.file_column,
        split_column=config.split_column,
        split_is_listed=(config.subset or "").startswith("@"),
        classes=has_classes,
        columns=config.image_columns or (),
        image_root=root,
        libjpeg=libjpeg,
        levels=config.levels,
        rate=Fraction(config.fps) if config.fps else None,
        rig=config.rig,
    )
    source = open_source(located, config.source_kind, options)
    if isinstance(source, TreeItems) and isinstance(config, Config) and is_mirror(config):
        source.leave_out(_find_maps(config, source).maps)
    return source


def is_mirror(config: Config) -> bool:
    """Return whether a set is one for detection or segmentation, whose folders are no classes."""
    return config.mirror is not None or config.base_edition == "coco-c"


def check_classes(source: Source, config: Config) -> None:
    """Raise a SourceError for folders that are no classes, because the result could not be scored."""
    if not config.require_classes:
        return
    accept = "use `require_classes: false` in a config, or --set require_classes=false"
    if config.edition.startswith(_IMAGENET):
        named = (config.dataset or "").startswith(_IMAGENET)
        imagenet.check_classes(source, accept, is_imagenet=named)
    # A variant that mirrors the source is a data set with splits.
    if isinstance(source, ImageFolder) and not config.mirror:
        splits, folder = source.find_splits()
        if splits:
            raise SourceError(
                f"{source.location}: {' and '.join(splits)} have the same class folders, such as {folder!r}: "
                f"choose one with --split {splits[0]} (else {accept})"
            )


def check_data_set(source: Source, edition: Edition) -> None:
    """Raise a SourceError for a file of MedMNIST that is not of the data set of the `edition`."""
    if edition.data_set not in MEDMNIST:
        return
    from robustgen.sets.sources.published import MedMnist

    if not isinstance(source, MedMnist):
        return
    named = source.location.rpartition("/")[2].partition("_")[0].removesuffix(".npz")
    is_grey, has_several = len(source.shape) == 3, source.class_labels.shape[1] > 1
    wanted = (edition.data_set, edition.grey, edition.data_set in _SEVERAL_LABELS)
    found = (named if named in MEDMNIST else edition.data_set, is_grey, has_several)
    if found != wanted:
        both = [
            f"{'grey' if grey else 'colour'} images with {'several labels' if several else 'one label'} each"
            for _, grey, several in (found, wanted)
        ]
        own = f"is {named}" if found[0] != wanted[0] else f"contains {both[0]}"
        raise SourceError(
            f"{source.location}: {own}, but {edition.data_set} has {both[1]}; choose its edition"
        )


def _find_maps(config: Config, source: TreeItems[Any]) -> FoundMaps:
    """Return the label maps among the items of a source, by the name of the first file of each."""
    keys = sorted((*source.keys(), *source.left_out))
    files = {name: key for key in keys for name in source.list_files(key)[:1]}
    found = _find_maps_by_name(tuple(files), config.maps)
    maps, said, likely = (frozenset(map(files.__getitem__, each)) for each in found[:3])
    doubted = tuple(tuple(map(files.__getitem__, each)) for each in found.doubted)
    return FoundMaps(maps, said, likely, doubted, found.names)


def describe_maps(config: Config, source: Source) -> tuple[str, ...]:
    """Return a remark on the label maps of a set that mirrors its source.

    Raises
    ------
    ConfigError
        It is a guess which images are label maps.
    """
    if not isinstance(source, TreeItems) or not is_mirror(config):
        return ()
    found = _find_maps(config, source)
    if config.subset is None and config.maps is None:
        check_pictures(source, [*source.keys(), *source.left_out], found)
    if not found.maps:
        return ()
    fate = "repeated unchanged" if config.mirror else "left out"
    count = f"{format_count(len(found.maps), 'label map')}, such as {min(found.maps)!r}"
    return (f"{count}: {fate}, and not corrupted ({', '.join(found.names)}; the key maps names others)",)


def list_unselected(
    config: Config, source: Items[Any]
) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the files of the selected items of a source, those of the others, and the label maps of both."""
    chosen = {*read_subset(source, config).keys}
    others = {*source.keys()} - chosen
    maps = frozenset[str]()
    if isinstance(source, TreeItems):
        found = _find_maps(config, source)
        maps = found.maps | find_other_maps(source, chosen, others, found)
    files = (frozenset(list_files(source, each)) for each in (chosen, others - maps, maps))
    return next(files), next(files), next(files)


def list_files(source: Items[Any], keys: Iterable[str]) -> list[str]:
    """Return the files of the items `keys`."""
    if not isinstance(source, TreeItems):
        return [*keys]
    return [name for key in keys for name in source.list_files(key)]


def describe_chosen(choices: Choices, source: Source, keys: Sequence[str]) -> tuple[str, ...]:
    """Return remarks on the list of the chosen images `keys`, and on those that look like label maps."""
    is_apart = isinstance(choices, Config) and is_mirror(choices)
    is_files = isinstance(source, FileSource) and not is_apart
    remark, pattern = describe_likely_maps(keys) if is_files else ("", None)
    how = f"--subset '{pattern}'" if pattern else "--subset @FILE, a list of the pictures"
    return (*read_subset(source, choices).remarks, *[f"{remark}; leave them out with {how}"] * bool(remark))


def describe_columns(choices: Choices, source: Source) -> tuple[str, ...]:
    """Return lines that say what the columns of the labels, and of the list of images, mean."""
    return (*source.describe_columns(), *read_subset(source, choices).shown)


def select_keys(source: Items[Any], config: Choices) -> tuple[str, ...]:
    """Return the keys of the images that `config` selects: its subset or all, a sample or the first few.

    Raises
    ------
    ConfigError
        The subset names a missing image, or the config has both a sample and a limit.

    Examples
    --------
    >>> from robustgen.plugins import Choices, open_chosen_source, select_keys
    >>> choices = Choices(source_kind="demo", limit=2)
    >>> source = open_chosen_source(choices)
    >>> len(select_keys(source, choices)), len(source.keys())
    (2, 8)
    """
    keys = read_subset(source, config).keys
    if config.sample and config.limit:
        raise ConfigError("sample and limit cannot be combined: choose a sample of N images, or the first N")
    if config.sample:
        return sample_keys(keys, source.label, config.sample, config.seed)
    return keys[: config.limit]


def read_subset(source: Items[Any], config: Choices) -> Listed:
    """Return the images that the subset of `config` names, or all, and what its columns mean if it is a list.

    Raises
    ------
    ConfigError
        The subset names a missing image, or no image.
    """
    keys = match_keys(source, config)
    if not config.subset or config.subset[0] != "@":
        return Listed(keys, (), ())
    own = config if isinstance(config, Config) else Config()
    maps = _find_maps(own, source).maps if isinstance(source, TreeItems) else frozenset[str]()
    columns = config.file_column, None, config.split_column
    # Without labels, and without a folder of the split, only the list can say it.
    may_lack = isinstance(source, (ImageFolder, LabelledFolder)) and source.lacks_split
    asked = Asked(*columns, config.split, config.split is not None and may_lack)
    try:
        return select_listed(config.subset[1:], keys, maps, asked, source.location.rpartition("/")[2])
    except ConfigError as error:
        left = isinstance(source, TreeItems) and source.left_out
        hint = "; label maps are no images of the set unless you --set maps=none" if left else ""
        raise ConfigError(f"{error}{hint}") from error


def match_keys(source: Items[Any], config: Choices) -> tuple[str, ...]:
    """Return the keys of all files that `config` accepts as images.

    Raises
    ------
    ConfigError
        No key matches.
    """
    keys = source.keys()
    pattern = config.subset
    if pattern is None or pattern[0] == "@":
        return keys
    matching = tuple(key for key in keys if fnmatchcase(key, pattern))
    if not matching and "/" not in pattern:
        # The bare name of an image or of a folder.
        matching = tuple(key for key in keys if any(fnmatchcase(part, pattern) for part in key.split("/")))
    if not matching:
        store, name = locate(pattern)
        file = f", or did you mean @{pattern}, a file of keys?" if store.exists(name) else ""
        maps = source.left_out if isinstance(source, TreeItems) else ()
        if any(fnmatchcase(key, pattern) for key in maps):
            file = ", and the label maps that match are no images unless you --set maps=none"
        raise ConfigError(f"subset: no key matches {pattern!r}; the first is {keys[0]!r}{file}")
    return matching


def sample_keys(keys: Sequence[str], label: Callable[[str], int], count: int, seed: int) -> tuple[str, ...]:
    """Return a class-balanced sample of `count` of the `keys`, in their order.

    It depends only on seed and names. A smaller sample is part of a larger one.

    Parameters
    ----------
    keys : sequence of str
    label : callable
        Key to class.
    count : int
    seed : int
    """
    places: dict[int, int] = defaultdict(int)
    turns = []
    for key in sorted(keys, key=lambda key: rank(seed, key)):
        # Take a first image of every class, then a second one, and so on.
        turns.append((places[label(key)], rank(seed, f"class {label(key)}"), key))
        places[label(key)] += 1
    drawn = {key for *_, key in sorted(turns)[:count]}
    return tuple(key for key in keys if key in drawn)
