"""Selection of images of a source: a listed subset, a sample, the first few, or all."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any, Final

from robustgen.display.text import format_count
from robustgen.errors import ConfigError, SourceError
from robustgen.files.storage import Store, locate
from robustgen.pixels.benchmarks.editions import Edition
from robustgen.pixels.benchmarks.registry import MEDMNIST
from robustgen.pixels.imaging.jpeg import Libjpeg
from robustgen.sets.dataset.label_maps import (
    FoundMaps,
    Maps,
    check_doubts,
    describe_likely_maps,
    find_maps,
    find_pattern,
)
from robustgen.sets.dataset.recipes import rank
from robustgen.sets.dataset.subset_lists import select_listed
from robustgen.sets.sources import imagenet
from robustgen.sets.sources.base import Items, Source, SourceOptions
from robustgen.sets.sources.folder import FileSource, ImageFolder, TreeItems
from robustgen.sets.sources.opening import open_source
from robustgen.sets.sources.published import MedMnist
from robustgen.settings.config import Choices, Config
from robustgen.settings.fields import make_absolute

_IMAGENET: Final = ("imagenet", "tiny-imagenet")
# Of MedMNIST, the sets whose images have several labels.
_SEVERAL_LABELS: Final = ("chestmnist",)


def open_chosen_source(
    config: Choices, index: tuple[Store, str] | None = None, libjpeg: Libjpeg = "turbo"
) -> Source:
    """Open the source that `config` names; `index` is the cache for its listing.

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
        classes=has_classes,
        columns=config.image_columns or (),
        image_root=root,
        libjpeg=libjpeg,
        levels=config.levels,
        rate=Fraction(config.fps) if config.fps else None,
    )
    return open_source(located, config.source_kind, options)


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
    if edition.data_set not in MEDMNIST or not isinstance(source, MedMnist):
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
            f"{source.location}: {own}, but {edition.data_set} has {both[1]}; choose the edition of the file"
        )


def leave_out_maps(config: Config, source: Source) -> tuple[Config, Maps, tuple[str, ...]]:
    """Leave label maps out of the images of a set for detection or segmentation.

    Returns
    -------
    config : Config
        With a subset that only pictures match, if it had none and a simple pattern exists.
    maps : dict
        Files of all label maps of the source, with those of their pictures.
    remarks : tuple of str

    Raises
    ------
    ConfigError
        It is not certain which images are label maps.
    """
    if not isinstance(source, TreeItems) or not is_mirror(config):
        return config, {}, ()
    keys, is_list = source.keys(), (config.subset or "").startswith("@")
    # The first frame of a clip stands for all.
    files = {name: key for key in keys for name in source.list_files(key)[:1]}
    by_file = find_maps(source, [*files])
    found = FoundMaps(
        {files[name]: tuple(map(files.__getitem__, each)) for name, each in by_file.maps.items()},
        {files[name]: files[picture] for name, picture in by_file.doubts.items()},
    )
    if config.subset is None:
        check_doubts(found, keys)
    chosen = {*list_subset(source, config)}
    listed, pictures = chosen.intersection(found.maps), chosen.difference(found.maps)
    if is_list:
        images = chosen
    else:
        # Maps without their pictures are wanted as images.
        lone = {key for key in listed if chosen.isdisjoint(found.maps[key])}
        images = pictures | {key for key in lone if found.maps[key] or not pictures}
    unsure = {key: (picture,) for key, picture in found.doubts.items() if picture in images}
    maps = {key: each for key, each in (found.maps | unsure).items() if key not in images}
    source.leave_out(maps)
    remarks = []
    if is_list and (asked := {key for key in listed if not chosen.isdisjoint(found.maps[key])}):
        remarks.append(f"--subset selects {_count_maps(asked)}; they are corrupted like pictures")
    if own := {key for key, each in maps.items() if not (each and images.isdisjoint(each))}:
        fate = "repeated unchanged" if config.mirror else "left out"
        remarks.append(f"{_count_maps(own)}: {fate}, and not corrupted")
        if config.subset is None and (pattern := find_pattern(images, maps)):
            config = config.model_copy(update={"subset": pattern})
            remarks[-1] += f"; the {source.medium.name}s are those of --subset {pattern!r}"
    of_files = {
        name: tuple(list_files(source, each)) for key, each in maps.items() for name in source.list_files(key)
    }
    return config, of_files, tuple(remarks)


def list_files(source: Items[Any], keys: Iterable[str]) -> list[str]:
    """Return the files of the items `keys`."""
    if not isinstance(source, TreeItems):
        return [*keys]
    return [name for key in keys for name in source.list_files(key)]


def _count_maps(maps: Collection[str]) -> str:
    return f"{format_count(len(maps), 'label map')}, such as {min(maps)!r}"


def describe_maps_left_in(choices: Choices, source: Source, keys: Sequence[str]) -> tuple[str, ...]:
    """Return a remark on those of the chosen images `keys` that look like label maps, if any."""
    is_apart = isinstance(choices, Config) and is_mirror(choices)
    remark, pattern = ("", None) if is_apart else describe_likely_maps(source, keys)
    how = f"--subset '{pattern}'" if pattern else "--subset @FILE, a list of the pictures"
    return (f"{remark}; leave them out with {how}",) * bool(remark)


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
    keys = list_subset(source, config)
    if config.sample and config.limit:
        raise ConfigError("sample and limit cannot be combined: choose a sample of N images, or the first N")
    if config.sample:
        return sample_keys(keys, source.label, config.sample, config.seed)
    return keys[: config.limit]


def list_subset(source: Items[Any], config: Choices) -> tuple[str, ...]:
    """Return the keys of the images that the subset of `config` names, or of all images.

    Raises
    ------
    ConfigError
        The subset names a missing image, or no image.
    """
    keys = match_keys(source, config)
    if config.subset and config.subset[0] == "@":
        return select_listed(
            config.subset[1:],
            keys,
            lambda: find_maps(source, keys).maps if isinstance(source, FileSource) else {},
        )
    return keys


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
