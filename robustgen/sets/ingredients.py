"""Ingredients of a set, which its corruptions need beside the images: depth maps, tiles, cameras."""

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from robustgen.display.progress import track
from robustgen.errors import ConfigError, ImageError, SourceError, UnknownNameError, raise_as
from robustgen.files.storage import Store
from robustgen.pixels.benchmarks.binding import Bound
from robustgen.pixels.benchmarks.ingredients import Images, Ingredient, IngredientSpec, OpenedIngredient
from robustgen.pixels.benchmarks.kinds import CLEAN, Variant
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import reason_of
from robustgen.pixels.imaging.geometry import PreparationStep
from robustgen.sets.dataset.recipes import CorruptionRecipe, Recipe
from robustgen.sets.dataset.selection import match_keys
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.executors import count_cores
from robustgen.sets.sources.base import Reusable, Source, SourceOptions, name_source_in_errors
from robustgen.sets.sources.classes import sample_key
from robustgen.sets.sources.opening import open_source
from robustgen.sets.sources.places import ARCHIVES, Place, find_place
from robustgen.sets.sources.rigs import NUSCENES, find_in_rig, require_all, says
from robustgen.sets.sources.trees import ArchiveTree, FileTree, FolderTree
from robustgen.settings.config import Config

if TYPE_CHECKING:
    from robustgen.pixels.imaging.laion_c_effects import TileBank
    from robustgen.pixels.imaging.three_d_cc_effects import Depth

# --- depth maps ----------------------------------------------------------------------------------


def open_depth(spec: IngredientSpec) -> "SetDepth":
    """List the maps, and read some of them."""
    assert spec.place is not None
    with raise_as(ConfigError, "depth", SourceError), name_source_in_errors(spec.place):
        trees = _open_trees(find_place(spec.place), spec.store)
        maps = SetDepth(spec.place, spec.source, spec.settings.get("scale", 1.0), trees)
        # Report unreadable maps now.
        maps.describe()
    return maps


DEPTH_SUFFIXES: Final = (".png", ".npy", ".tif", ".tiff")


# Number of maps whose content enters the digest; the others contribute only names and sizes.
_LOOKED_AT: Final = 4


@dataclass(frozen=True, eq=False)
class SetDepth(OpenedIngredient):
    """Reader of the depth map of each image. Picklable.

    Attributes
    ----------
    location : str
    images : Images
        Images that the maps belong to.
    scale : float or "midas"
        Factor of the stored values; "midas" for the 16-bit inverse depth of MiDaS.
    """

    location: str
    images: Images
    scale: float | Literal["midas"]
    trees: tuple[tuple[FileTree, str], ...]

    @cached_property
    def digest(self) -> str:
        """Return a SHA-256 of the names and sizes of all maps, and of the content of a few."""
        total = hashlib.sha256()
        found = [place for key in self.images.keys() if (place := self.find(key))]  # noqa: SIM118
        for tree, folder, name in found:
            total.update(f"{tree.stat(folder + name)[0]} {name}\n".encode("utf-8", "surrogateescape"))
        for number in sorted({len(found) * part // _LOOKED_AT for part in range(_LOOKED_AT)}):
            for tree, folder, name in found[number : number + 1]:
                total.update(tree.read(folder + name))
        return total.hexdigest()

    def find(self, key: str) -> tuple[FileTree, str, str] | None:
        """Return file tree, folder and name of the map of the image `key`; None if there is none."""
        stems = dict.fromkeys([PurePosixPath(key).with_suffix("").as_posix(), sample_key(key), key])
        names = [f"{stem}{suffix}" for stem in stems for suffix in DEPTH_SUFFIXES]
        for tree, folder in self.trees:
            for name in names:
                if tree.has(folder + name):
                    return tree, folder, name
        return None

    def check(self, keys: Sequence[str]) -> None:
        """Raise a ConfigError if one of the images `keys` has no map."""
        missing = [key for key in keys if self.find(key) is None]
        if not missing:
            return
        stem = PurePosixPath(missing[0]).with_suffix("").as_posix()
        names = f"{missing[0]!r} (looked for {stem}{', '.join(DEPTH_SUFFIXES)})"
        raise ConfigError(f"depth: {self.location}: no map of {len(missing)} of {len(keys)} images: {names}")

    def provide(self, key: str, preparation: PreparationStep) -> "Depth":
        """Return the depth of the image `key` after its `preparation`, float32 (H, W).

        Raises
        ------
        ImageError
            The map is missing or unreadable, differs in shape from the image, or has NaN or negative values.
        """
        found = self.find(key)
        if found is None:
            raise ImageError(f"no depth map in {self.location}", key)
        tree, folder, name = found
        try:
            stored = _decode_map(name, tree.read(folder + name))
        except Exception as error:
            raise ImageError(f"depth map {name}: {reason_of(error)}", key) from error
        width, height = self.images.dimensions(key)
        if stored.shape != (height, width):
            size = " x ".join(map(str, reversed(stored.shape)))
            raise ImageError(f"depth map {name} has {size} pixels, the image {width} x {height}", key)
        if self.scale == "midas":
            from robustgen.pixels.imaging.three_d_cc_effects import depth_from_midas

            values = depth_from_midas(stored)
        else:
            values = np.asarray(stored, np.float32) * np.float32(self.scale)
        if not (np.isfinite(values).all() and values.min() >= 0):
            raise ImageError(f"depth map {name} contains NaN, infinity or negative depth", key)
        return preparation.follow(values)

    def describe(self, parameters: object = None) -> str:
        """Return digest and scale of the maps."""
        return f"{self.digest[:16]}, scale {self.scale}"

    def make_ready(self) -> None:
        """Cache the listings of archives for worker processes."""
        for tree, _ in self.trees:
            tree.make_ready()


def _open_trees(place: Place, cache: Store | None) -> tuple[tuple[FileTree, str], ...]:
    """Return the trees of files at `place`, each with a folder in which keys may begin."""
    if place.is_folder and not any(name.lower().endswith(ARCHIVES) for name in place.children):
        return ((FolderTree(place), ""),)
    trees: list[tuple[FileTree, str]] = []
    for number, file in enumerate(place.expand(ARCHIVES)):
        tree = ArchiveTree(
            f"{file.store.location}/{file.name}", (cache, f"depth-index-{number}") if cache else None
        )
        folders = {name.partition("/")[0] for name in tree.listing.places}
        # In an archive of a single folder, all names start with that folder.
        trees += [(tree, ""), *((tree, f"{folder}/") for folder in folders if len(folders) == 1)]
    return tuple(trees)


def _decode_map(name: str, data: bytes) -> Any:
    if not name.endswith(".npy"):
        from robustgen.pixels.imaging.three_d_cc_effects import read_depth_picture

        return read_depth_picture(data)
    values = np.load(io.BytesIO(data), allow_pickle=False)
    if values.dtype.kind not in "fiu":
        raise ValueError(f"contains {values.dtype}, not numbers")
    return values.squeeze() if values.ndim == 3 and 1 in (values.shape[0], values.shape[2]) else values


# --- tiles of stickers and mosaics ---------------------------------------------------------------


def open_tiles(spec: IngredientSpec) -> "SetTiles":
    """Read the pictures, and shrink them to tiles of all sides that the variants need.

    Unreadable pictures of the set itself are skipped, because the run reports them.
    """
    from robustgen.pixels.imaging.laion_c_effects import MOST_PICTURES, shrink_to_tile

    source, keys, own = spec.source, spec.keys, spec.place is None
    if not own:
        with raise_as(ConfigError, "tiles", SourceError):
            source = open_source(spec.place, options=SourceOptions(classes=False, libjpeg=spec.libjpeg))
            keys = source.keys()
    sides, chosen = [*dict.fromkeys(map(_find_side, spec.parameters))], keys[:MOST_PICTURES]

    def shrink(key: str) -> list[Rgb] | None:
        try:
            picture = source.open(key)
            return [shrink_to_tile(picture, side) for side in sides]
        except ImageError as error:
            if own:
                return None
            raise ConfigError(f"tiles: {source.location}: {error}") from error

    with ThreadPoolExecutor(count_cores()) as pool:
        read = track(zip(chosen, pool.map(shrink, chosen), strict=True), len(chosen), "tiles")
        kept = {key: tiles for key, tiles in read if tiles}
    if len(kept) < 1 + own:
        reason = "the set itself contains no other picture" if own else "it contains no picture"
        raise ConfigError(f"tiles: {source.location}: {reason}; name others by --with tiles=PATH")
    stacked = {side: np.stack([tiles[index] for tiles in kept.values()]) for index, side in enumerate(sides)}
    return SetTiles(spec.store, stacked, {key: number for number, key in enumerate(kept)}, own)


class SetTiles(Reusable, OpenedIngredient):
    """Bank of tiles, and the number of each picture in it. Picklable, and small when pickled.

    Workers read the tiles from the output state, where `make_ready` writes them.

    Parameters
    ----------
    store : Store, optional
        The output state.
    tiles : mapping of int to uint8 ndarray of shape (N, side, side, 3)
        Tiles by side in pixels.
    numbers : mapping of str to int
        Key of each picture to its number.
    own : bool
        Whether the pictures are the images of the set; each is then excluded from its own tiles.
    """

    def __init__(
        self, store: Store | None, tiles: Mapping[int, Rgb], numbers: Mapping[str, int], own: bool
    ) -> None:
        self.store, self.own, self.count = store, own, len(numbers)
        self.licence = "" if own else "Stickers and mosaics contain pictures of another source."
        self.digests = {side: hashlib.sha256(each.data).hexdigest() for side, each in tiles.items()}
        parts = [hashlib.sha256(_join(numbers)).hexdigest(), *(self.digests[side] for side in sorted(tiles))]
        self._name = f"tiles-{hashlib.sha256(''.join(parts).encode()).hexdigest()[:16]}.npz"
        self.content = _open_bank(tiles), dict(numbers)

    @cached_property
    def content(self) -> tuple["TileBank", dict[str, int]]:
        """Return the bank and the number of each picture, from the output state."""
        assert self.store is not None
        with np.load(io.BytesIO(self.store.read(self._name)), allow_pickle=False) as content:
            keys = content["keys"].tobytes().decode("utf-8", "surrogateescape").split("\0")
            tiles = {side: content[str(side)] for side in self.digests}
        return _open_bank(tiles), {key: number for number, key in enumerate(keys)}

    def make_ready(self) -> None:
        """Write the tiles where workers read them."""
        if self.store is None or self.store.exists(self._name):
            return
        bank, numbers = self.content
        buffer = io.BytesIO()
        keys = np.frombuffer(_join(numbers), np.uint8)
        tiles: dict[str, Any] = {str(side): bank.tiles(side) for side in self.digests}
        np.savez(buffer, keys=keys, **tiles)
        self.store.put(self._name, buffer.getvalue())

    def describe(self, parameters: Any) -> str:
        """Return number, origin and digest of the tiles."""
        whose = "of the set itself" if self.own else "of another source"
        return f"{self.count} {whose}, {self.digests[_find_side(parameters)][:16]}"

    def provide(self, key: str, preparation: PreparationStep) -> "TileBank":
        """Return the bank, without the image `key` if the pictures are those of the set."""
        bank, numbers = self.content
        return bank.without(numbers[key]) if self.own and key in numbers else bank


def _open_bank(tiles: Mapping[int, Rgb]) -> "TileBank":
    from robustgen.pixels.imaging.laion_c_effects import TileBank

    return TileBank(tiles)


def _find_side(parameters: Any) -> int:
    """Return the side in pixels of the tiles for a distortion with these `parameters`."""
    from robustgen.pixels.imaging.laion_c_effects import STICKER_SIDE

    return int(getattr(parameters, "tile", STICKER_SIDE))


def _join(keys: Iterable[str]) -> bytes:
    return "\0".join(keys).encode("utf-8", "surrogateescape")


# --- cameras of a rig ----------------------------------------------------------------------------


class SetCameras(Reusable, OpenedIngredient):
    """Number of the camera of each image, and the count of cameras. Picklable.

    Parameters
    ----------
    spec : IngredientSpec
        Its `place` is the rig; without cameras in it, that of nuScenes.
    """

    def __init__(self, spec: IngredientSpec) -> None:
        own = spec.place if says(spec.place, "camera") else None
        self.source, self._rig = spec.source, own or NUSCENES
        self.names = tuple(sorted({*self.found.values()})) if own else _OF_NUSCENES

    @cached_property
    def found(self) -> dict[str, str]:
        """Return the camera of each image of the source that has one."""
        return self._find(self.source.keys())

    def _find(self, keys: Iterable[str]) -> dict[str, str]:
        list_files = getattr(self.source, "list_files", lambda key: (key,))
        files = {key: list_files(key)[0] for key in keys}
        found = find_in_rig(self._rig, "camera", files.values(), self.source.location)
        return {key: found[file] for key, file in files.items() if file in found}

    def check(self, keys: Sequence[str]) -> None:
        """Raise a ConfigError if one of the images `keys` has no camera."""
        require_all(self._rig, "camera", keys, self.found)

    def describe(self, parameters: object) -> str:
        """Return the number of cameras, and a digest of the rig."""
        table = find_place(self._rig[1:])
        content = table.store.read(table.name) if self._rig[0] == "@" else self._rig.encode()
        return f"{len(self.names)} cameras, {hashlib.sha256(content).hexdigest()[:16]}"

    def provide(self, key: str, preparation: PreparationStep) -> tuple[int, int]:
        """Return number and count of the cameras for the image `key`."""
        # A pattern needs no listing of the source, unlike a table.
        found = self.found if self._rig[0] == "@" else self._find([key])
        return self.names.index(found[key]), len(self.names)


_OF_NUSCENES: Final = tuple(
    f"CAM_{way}{side}" for way in ("BACK", "FRONT") for side in ("", "_LEFT", "_RIGHT")
)


# --- opening -------------------------------------------------------------------------------------


OPENERS: Final[Mapping[str, Callable[[IngredientSpec], OpenedIngredient]]] = MappingProxyType(
    {"tiles": open_tiles, "depth": open_depth, "camera": SetCameras}
)
"""Functions that open built-in ingredients by reading sources; other ingredients open themselves."""


def open_ingredients(
    config: Config,
    recipe: CorruptionRecipe,
    variants: tuple[Variant, ...],
    source: Source,
    keys: tuple[str, ...],
    output: Store | None,
) -> dict[str, OpenedIngredient]:
    """Open every ingredient that one of the `variants` needs, for the images `keys`; return them by name.

    Raises
    ------
    ConfigError, MissingDependencyError
        An ingredient is missing or cannot be used, or none of the variants needs one that `config` names.
    """
    needing = dict[Ingredient, list[Bound]]()
    for ingredient, bound in _list_needs(recipe, variants):
        needing.setdefault(ingredient, []).append(bound)
    names = [ingredient.name for ingredient in needing if not ingredient.key]
    for name in config.ingredients:
        if name not in names:
            others = f" (they need {' and '.join(names)})" if names else ""
            raise ConfigError(f"with: {name}: none of the corruptions needs it{others}")
    opened = {}
    for ingredient, users in needing.items():
        place, settings = _read_settings(ingredient, config.ingredients.get(ingredient.name, {}))
        place = getattr(config, ingredient.key) if ingredient.key else place
        if place is None and ingredient.default == "refused":
            needed = f"{users[0].operation.name} needs {ingredient.sentence}"
            raise ConfigError(f"{needed}: give --with {ingredient.name}=PLACE, or leave it out")
        every, cache = match_keys(source, config), SetLedger(output).store if output else None
        spec = IngredientSpec(
            place, settings, [each.any_parameters() for each in users], source, every, config.libjpeg, cache
        )
        opened[ingredient.name] = OPENERS.get(ingredient.name, ingredient.open)(spec)
        opened[ingredient.name].check(keys)
    return opened


def find_fitting(recipe: Recipe[Any], variants: tuple[Variant, ...]) -> Ingredient | None:
    """Return an ingredient of `variants` that fits one image pixel by pixel, such as depth; None without."""
    return next((each for each, _ in _list_needs(recipe, variants) if each.fits_image), None)


def _list_needs(recipe: Recipe[Any], variants: tuple[Variant, ...]) -> Iterator[tuple[Ingredient, Bound]]:
    """Yield the ingredient of each variant that needs one, and the variant with its constants."""
    if isinstance(recipe, CorruptionRecipe):
        for variant in variants:
            if variant.name != CLEAN and (needs := recipe.bind(variant).operation.needs):
                yield needs, recipe.bind(variant)


def _read_settings(ingredient: Ingredient, given: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Return the place and the checked settings of an ingredient, as `given` in a config."""
    settings = dict[str, Any]()
    for name in given.keys() - {"place"}:
        with raise_as(ConfigError, f"with: {ingredient.name}.{name}", ValueError, TypeError):
            if name not in ingredient.settings:
                raise UnknownNameError(f"setting of {ingredient.name}", name, ingredient.settings)
            settings[name] = ingredient.settings[name](given[name])
    return given.get("place"), settings
