"""Typed choices of a run, read from YAML and flags.

A config contains choices, never the published constants, which are defined next to their functions.
Command-line flags override the file.
"""

import os
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticKnownError

from robustgen.benchmarks.corruptions import ALL_CORRUPTIONS, CORRUPTIONS, FAMILIES
from robustgen.benchmarks.editions import EDITIONS, MOST_SIDE
from robustgen.benchmarks.kinds import IMAGENET_C, IMAGENET_P, Kind, Variant
from robustgen.benchmarks.overrides import check_overrides
from robustgen.benchmarks.perturbations import PERTURBATIONS
from robustgen.benchmarks.registry import SMALLEST_SIDE, Operation, Scale
from robustgen.errors import ArgumentError, ConfigError, RobustgenError, UnknownNameError
from robustgen.files.storage import is_url
from robustgen.formats import FORMATS
from robustgen.formats.base import SHARD_SIZE
from robustgen.imaging import video
from robustgen.imaging.jpeg import Libjpeg
from robustgen.sources.opening import KINDS

# --- fields --------------------------------------------------------------------------------------

GROUPS = ("common", "extra", "all")
USUAL_SCALE = 224
# A higher quality enlarges the files and hardly improves any pixel.
_MOST_QUALITY = 95


def _parts(value: Any) -> Any:
    """Return a comma-separated string as a list, and any other value unchanged."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _levels(what: str, highest: int, *, finer: bool = False) -> BeforeValidator:
    """Return a validator that turns ``3``, ``"1-5"``, ``[1, 3]`` or ``"all"`` into sorted levels.

    If `finer`, it also accepts fractional levels such as ``2.5``.
    """

    def read(part: Any) -> Sequence[float]:
        text = "" if isinstance(part, bool) else f"1-{highest}" if part == "all" else str(part)
        ends = re.fullmatch(r"(-?\d{1,9}(?:\.\d{1,9})?)(?:-(\d{1,9}))?", text)
        if not ends or ("." in text and (ends[2] or not finer)):
            raise ArgumentError(f"must be a number or a range such as 1-{highest}, not {part!r}")
        first, last = float(ends[1]), float(ends[2] or ends[1])
        if wrong := [end for end in (first, last) if not 1 <= end <= highest]:
            raise ArgumentError(f"{what} {wrong[0]:g} does not exist (1 to {highest})")
        if last < first:
            raise ArgumentError(f"{part!r} runs backwards: write {last:g}-{first:g}")
        return range(int(first), int(last) + 1) if first.is_integer() else [first]

    def read_all(value: Any) -> tuple[float, ...]:
        parts = _parts(value)
        parts = parts if isinstance(parts, (list, tuple)) else [parts]
        # Rows of arrays are ordered by rising severity, whatever the order in the request.
        return _once(tuple(sorted(level for part in parts for level in read(part))))

    return BeforeValidator(read_all)


def _expand_groups(known: Mapping[str, Operation]) -> AfterValidator:
    """Return a validator that replaces the groups `common`, `extra` and `all` with their members."""

    def members(part: str) -> list[str]:
        if part not in GROUPS:
            return [part]
        return [name for name, o in known.items() if part == "all" or o.common == (part == "common")]

    return AfterValidator(lambda parts: tuple(name for part in parts for name in members(part)))


def _check_corruption(name: str) -> str:
    # Membership alone loads no other family.
    if name not in GROUPS and name not in FAMILIES and name not in ALL_CORRUPTIONS:
        raise UnknownNameError("corruption", name, [*ALL_CORRUPTIONS, *GROUPS, *FAMILIES])
    return name


def expand_families(names: Any, scales: Collection[Scale | None]) -> Any:
    """Return `names` with ``family``, ``family:all`` and ``family:name`` replaced by corruption names.

    A family expands to its corruptions with constants for one of the `scales`. Other names are unchanged.
    """
    parts = _parts(names)
    if not isinstance(parts, (list, tuple)):
        return names
    return [name for part in parts for name in _expand_family(part, scales)]


def _expand_family(part: Any, scales: Collection[Scale | None]) -> Iterable[Any]:
    name, colon, member = part.partition(":") if isinstance(part, str) else ("", "", "")
    try:
        family = FAMILIES[name]
    except (KeyError, ArgumentError):  # The lookup of each name reports it.
        return [part]
    every = [each for each in family.corruptions.values() if each.common or colon]
    if member in ("", "all"):
        # If no member supports these scales, return all: the check of each one reports the reason.
        found = [each.name for each in every if any(scale in each.table for scale in scales)]
        return found or [each.name for each in every]
    return [family.full_name(member)]


def are_laion_c(corruptions: Any) -> bool:
    """Return whether all named `corruptions` belong to LAION-C."""
    names = _parts(corruptions)
    families = {str(name).partition(":")[0] for name in names} if isinstance(names, (list, tuple)) else set()
    return families == {"laion-c"}


def _once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise ArgumentError("at least one is needed")
    return tuple(dict.fromkeys(values))


def _check_known(kind: str, names: Any) -> AfterValidator:
    def check(value: str) -> str:
        if value not in names():
            raise UnknownNameError(kind, value, names())
        return value

    return AfterValidator(check)


def _expand_variables(value: Any) -> Any:
    """Return `value` with ``${NAME}`` and a leading ``~`` expanded."""
    if not isinstance(value, str):
        return value
    for name in re.findall(r"\$\{(\w+)\}", value):
        if name not in os.environ:
            raise ArgumentError(f"environment variable {name} is not set")
        value = value.replace(f"${{{name}}}", os.environ[name])
    if not value:
        raise ArgumentError("is empty")
    try:
        return value if is_url(value) else str(Path(value).expanduser())
    except RuntimeError as error:
        raise ArgumentError(f"{value}: {error}") from error


def make_absolute(location: str) -> str:
    """Return a path as an absolute path, valid in any working folder, and a URL unchanged."""
    return location if is_url(location) else str(Path(location).absolute())


def _none_if(word: str) -> BeforeValidator:
    """Return a validator that replaces `word` with None."""
    return BeforeValidator(lambda value: None if value == word else value)


def _parse_depth_scale(value: Any) -> float | Literal["midas"]:
    """Return a positive number, or ``"midas"``."""
    if value == "midas":
        return "midas"
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0
    if not 0 < number < float("inf"):
        raise ArgumentError(f"must be a positive number or midas, not {value!r}")
    return number


Whole = Annotated[int, Field(strict=True)]
Severities = Annotated[tuple[Any, ...], _levels("severity", 5, finer=True)]
Difficulties = Annotated[tuple[Any, ...], _levels("difficulty", 3)]
Corruptions = Annotated[
    tuple[Annotated[str, AfterValidator(_check_corruption)], ...],
    BeforeValidator(_parts),
    _expand_groups(CORRUPTIONS),
    AfterValidator(_once),
]
Perturbations = Annotated[
    tuple[Annotated[str, _check_known("perturbation", lambda: [*PERTURBATIONS, *GROUPS])], ...],
    BeforeValidator(_parts),
    _expand_groups(PERTURBATIONS),
    AfterValidator(_once),
]
EditionName = Annotated[str, _check_known("edition", lambda: EDITIONS)]
SourceKind = Annotated[str, _check_known("kind of source", lambda: KINDS)]
Location = Annotated[str, BeforeValidator(_expand_variables)]
FormatName = Annotated[str, _check_known("format", lambda: FORMATS)]
Count = Annotated[Whole, Field(ge=1)]


def _check_quality(value: int, info: ValidationInfo) -> int:
    """Reject a quality above Pillow's recommendation, unless the edition was published with it."""
    edition = EDITIONS.get(info.data.get("edition", ""))
    if value > (most := max(_MOST_QUALITY, edition.quality if edition else 0)):
        raise PydanticKnownError("less_than_equal", {"le": most})
    return value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Video(_Strict):
    """Video compression of `make-p`; the defaults are the published settings."""

    preset: Annotated[str, _check_known("preset", lambda: video.PRESETS)] = Field(
        "veryslow", description="preset of x264: slower ones give smaller files"
    )
    crf: float | None = Field(None, ge=0, le=51, description="constant rate factor of all sequences")
    pixel_format: Annotated[str, _check_known("pixel format", lambda: video.CODECS)] = Field(
        "yuv444p", description="yuv444p (published), yuv420p, or rgb24 (exact colours)"
    )
    lossless: StrictBool = Field(False, description="rate factor 0")
    playable: StrictBool = Field(False, description="yuv420p, which browsers play")


class Choices(_Strict):
    """Choices common to all kinds of run; the field descriptions are the reference."""

    dataset: str | None = Field(
        None, description="name of the data set, for the default output; default that of the source"
    )
    source: Location | None = Field(None, description="folder, archive, shards or URL of the source images")
    source_kind: SourceKind = Field("auto", description="layout of the source; auto recognises it")
    split: str | None = Field(
        None, description="split of the source, such as train; default the published one, or all"
    )
    labels: Location | None = Field(
        None, description="file of labels for a flat source, or the archive of ImageNet's devkit"
    )
    labels_are_classes: StrictBool = Field(
        False,
        description="treat numbers from 1 to 1000 in labels as your own classes, not as the devkit's",
    )
    image_columns: Annotated[tuple[str, ...] | None, BeforeValidator(_parts)] = Field(
        None, description="image columns of a table; default image"
    )
    image_root: Location | None = Field(None, description="folder of the image paths in a table")
    follow_links: Annotated[tuple[Location, ...], BeforeValidator(_parts)] = Field(
        (), description="folders outside the source to which its links may lead"
    )
    output: Location = Field("out/{dataset}-{kind}", description="output folder or URL; {kind} is c or p")
    seed: Annotated[Whole, Field(ge=0)] = Field(0, description="non-negative whole number")
    jobs: Annotated[Count | None, _none_if("all")] = Field(
        None, description="worker processes; all: one per core"
    )
    limit: Count | None = Field(None, description="use only the first N images")
    sample: Count | None = Field(
        None, description="use a class-balanced random sample of N images (see seed)"
    )
    subset: Location | None = Field(None, description="text file with the keys of the images to use")
    images: str | None = Field(
        None, description="use only images whose keys match, for instance `leftImg8bit/*`"
    )

    def name_dataset(self) -> str:
        """Return the given name of the data set, or the name of the source's folder or archive."""
        if self.dataset or self.source is None:
            return self.dataset or "custom"
        # A pattern such as val-{000000..000063}.tar gives the name before its first wildcard.
        name = re.split(r"[{*?\[]", Path(self.source).name)[0].rstrip("-_.")
        source = Path(self.source).resolve().with_name(name or Path(self.source).absolute().parent.name)
        return (source.name.partition(".")[0] if source.is_file() else source.name) or "custom"

    def resolve_output(self, kind: str) -> str:
        """Return the output for a set of this `kind`: a URL or an absolute path."""
        return make_absolute(self.output.replace("{dataset}", self.name_dataset()).replace("{kind}", kind))


class Config(Choices):
    """Choices of a run of make-c or make-p."""

    edition: EditionName = Field("folder", description="preparation and constants")
    size: Annotated[Whole, Field(ge=SMALLEST_SIDE, le=MOST_SIDE)] | None = Field(
        None, description="resize and crop to this size in pixels instead of the edition's"
    )
    corruptions: Corruptions = Field("common", validate_default=True, description="names or a group")
    severities: Severities = Field(
        "1-5", validate_default=True, description="1 to 5, also fractional ones such as 2.5"
    )
    perturbations: Perturbations = Field("common", validate_default=True, description="names or a group")
    difficulty: Difficulties = Field((1,), description="1 to 3, or all: difficulties of the noise sequences")
    quality: Annotated[Whole, Field(ge=1), AfterValidator(_check_quality)] = Field(
        85, description="quality of the JPEG files of make-c; at most 95, for edition laion-c 100"
    )
    libjpeg: Libjpeg = Field(
        "turbo",
        description="decoder and encoder of JPEG: turbo, or ijg: libjpeg 9c, as in the published files",
    )
    classes: StrictBool = Field(True, description="require class folders or labels for ImageNet")
    clean: StrictBool = Field(True, description="make-c: write the clean images too")
    format: FormatName | None = Field(None, description="output format, see [formats](../use/formats.md)")
    sample_format: FormatName | None = Field(
        None, description="encoding of the images in shards; default as published"
    )
    shard_size: Annotated[Whole, Field(ge=1)] = Field(SHARD_SIZE, description="images per shard")
    mirror: Annotated[Literal["link", "copy"] | None, _none_if("none")] = Field(
        None,
        description="repeat other files of the source in every variant, as hard links or copies; or `none`",
    )
    video: Video = Field(Video(), description="encoder settings of make-p")
    scale: Literal[224, 299, 64, 32, 256, 336, 384, 448] | None = Field(
        None,
        description="image size whose constants are used; the last four are"
        " [robustgen's own](../use/calibrate.md)",
    )
    motion_blur: Literal["exact", "imagemagick"] = Field(
        "exact", description="robustgen's own implementation, or the library"
    )
    tiles: Location | None = Field(
        None,
        description="source of the pictures for laion-c:stickers and laion-c:mosaic; default the set itself, "
        "without the corrupted image",
    )
    depth_maps: Location | None = Field(
        None, description="depth maps for 3dcc: a folder, an archive or shards with the keys of the images"
    )
    depth_scale: Annotated[float | Literal["midas"], PlainValidator(_parse_depth_scale)] = Field(
        1.0, description="factor for the stored depth; midas: 16-bit inverse depth, as published"
    )
    frost_dir: Location | None = Field(None, description="folder with the frost photographs")
    parameters: Annotated[dict[str, dict[Any, Any]], AfterValidator(check_overrides)] = Field(
        {},
        description="make-c: your own constants, {corruption: {severity: {parameter: value}}}",
    )

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, content: Any) -> Any:
        """Replace families by their members, and set edition and quality as published for LAION-C."""
        if not isinstance(content, Mapping):
            return content
        content = dict(content)
        if are_laion_c(content.get("corruptions")):
            content.setdefault("edition", "laion-c")
        edition = EDITIONS.get(str(content.get("edition", cls.model_fields["edition"].default)))
        if edition:
            content.setdefault("quality", edition.quality)
        # A set with images of any size uses the corruptions published for the usual size.
        scale = content.get("scale") or (edition and edition.scale) or USUAL_SCALE
        if "corruptions" in content and isinstance(scale, int):
            scales = (scale, edition.data_set if edition else None)
            content["corruptions"] = expand_families(content["corruptions"], scales)
        return content

    def arms(self, kind: Kind) -> tuple[Variant, ...]:
        """Return the variants of the requested C or P set."""
        if kind == "c":
            arms = IMAGENET_C.arms(self.corruptions, self.severities, clean=self.clean)
            # In an array, the severities of a corruption are consecutive.
            as_published = EDITIONS[self.edition].by_corruption and self.format != "npy"
            return tuple(map(IMAGENET_C.published_arm, arms)) if as_published else arms
        return IMAGENET_P.arms(self.perturbations, self.difficulty)


# --- files ---------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """Safe YAML loader that rejects repeated keys, and aliases, which can expand without limit."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(None, None, "aliases are not allowed", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen:
                raise yaml.MarkedYAMLError(None, None, f"{key!r} occurs twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def config_folder() -> Path:
    """Return the folder of the configs: in the installed package, or next to it in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


def dataset_names() -> list[str]:
    """Return the names that `--dataset` accepts."""
    return sorted(path.stem for path in config_folder().glob("*.yaml"))


def dataset_file(name: str) -> Path:
    """Return the config of the data set `name`.

    Raises
    ------
    UnknownNameError
    """
    if name not in dataset_names():
        raise UnknownNameError("dataset", name, dataset_names())
    return config_folder() / f"{name}.yaml"


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises
    ------
    ConfigError
        The file cannot be read, is not YAML, or contains no mapping.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # derives from SafeLoader
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        reason = f"{where}{getattr(error, 'problem', None) or error}".replace("\n", " ")
        raise ConfigError(f"{path}: {reason}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: must contain keys and values, not a {type(content).__name__}")
    return content


AnyChoices = TypeVar("AnyChoices", bound=Choices)


def load(path: Path | None, flags: Mapping[str, Any] | None = None) -> Config:
    """Read and check the config of make-c or make-p; see `load_as`."""
    return load_as(Config, path, flags)


def load_as(model: type[AnyChoices], path: Path | None, flags: Mapping[str, Any] | None = None) -> AnyChoices:
    """Read the config at `path` (None: defaults only), override it with the `flags`, and check it.

    `model` defines the keys.

    Raises
    ------
    ConfigError
        The message names the file or the flag, the key and the problem in one line.
    """
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    content = read_yaml(path) if path else {}
    return check(model, _merge(content, given), str(path), given)


def _merge(content: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return `content` overridden by `flags`; ``"video.preset"`` sets a key of the section `video`."""
    merged = dict(content)
    for flag, value in flags.items():
        section, dot, key = flag.rpartition(".")
        if not dot:
            merged[key] = value
        elif isinstance(held := merged.get(section, {}), Mapping):
            merged[section] = {**held, key: value}
    return merged


def check(
    model: type[AnyChoices], content: Mapping[str, Any], name: str, flags: Mapping[str, Any] | None = None
) -> AnyChoices:
    """Return the config in `content`, read from the file `name`; keys in `flags` come from the command line.

    Raises
    ------
    ConfigError
        A key or a value is invalid; see `load_as`.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise ConfigError(_explain(error, name, flags or {}, model)) from error


def _explain(error: ValidationError, file: str, flags: Mapping[str, Any], model: type[Choices]) -> str:
    first = error.errors()[0]
    location, cause = first["loc"], first.get("ctx", {}).get("error")
    key = str(location[0]) if location else ""
    flag = next((flag for flag in (_format_location(location), key) if flag in flags), None)
    where = (
        f"--{flag.rpartition('.')[2].replace('_', '-')}" if flag else f"{file}: {_format_location(location)}"
    )
    if first["type"] == "extra_forbidden":
        fields = Video.model_fields if len(location) > 1 else model.model_fields
        within = f"{_format_location(location[:-1])}: " if len(location) > 1 else ""
        return f"{file}: {within}{UnknownNameError('key', str(location[-1]), fields)}"
    if isinstance(cause, RobustgenError):
        hint = "; name the images with --source" if key == "source" and key not in flags else ""
        return f"{where}: {cause}{hint}"
    return f"{where}: {first['msg'].replace('Input should be', 'must be')}, not {first['input']!r}"


def _format_location(location: tuple[int | str, ...]) -> str:
    # Pydantic marks an invalid key with an extra step.
    location = tuple(part for part in location if part != "[key]")
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return path.removeprefix(".")
