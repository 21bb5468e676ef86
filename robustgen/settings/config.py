"""Choices of a run that writes a set: the source, the images, what is made of them, and where it goes.

A config contains choices, never the published constants, which are defined next to their functions.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, ValidationInfo, model_validator
from pydantic_core import PydanticKnownError

from robustgen.errors import ArgumentError, ConfigError, UnknownNameError, quote, raise_as
from robustgen.pixels.benchmarks.kinds import (
    CLIP,
    IMAGE,
    IMAGENET_C,
    IMAGENET_P,
    USUAL_SCALE,
    Benchmark,
    Medium,
)
from robustgen.settings import catalogue
from robustgen.settings.fields import (
    Count,
    Ends,
    ExpandedLocation,
    Flag,
    Group,
    Jobs,
    Options,
    Part,
    Seed,
    SetName,
    Words,
    expand_variables,
    known,
    levels,
    list_few,
    list_flags,
    make_absolute,
    none_if,
    once,
    split_list,
)

if TYPE_CHECKING:
    from robustgen.pixels.benchmarks.kinds import Kind, Variant

# A higher quality enlarges the files and hardly improves any pixel.
_MOST_QUALITY: Final = 95


# --- names of operations -------------------------------------------------------------------------


def _expand_groups(benchmark: Benchmark) -> AfterValidator:
    """Return a validator that replaces groups such as `common` and `noise` with their members."""
    return AfterValidator(
        lambda parts: tuple(name for part in parts for name in benchmark.groups.get(part, (part,)))
    )


def _check_corruption(name: str) -> str:
    if _LEVEL.fullmatch(name):
        raise ArgumentError(f"{name} is no corruption; as a severity, it follows one: fog:{name}")
    # Membership alone loads no other family.
    if (
        name not in catalogue.GROUPS
        and name not in catalogue.families()
        and name not in catalogue.all_corruptions()
    ):
        raise UnknownNameError("corruption", name, catalogue.corruption_words())
    return name


_LEVEL: Final = re.compile(r"[\d.]+(-[\d.]+)?")


def _split_severities(corruptions: Any) -> tuple[Any, dict[str, list[str]]]:
    """Return the names in ``fog:2,4,5,snow:1-3,contrast``, and the severities of those that have some."""
    parts = split_list(corruptions)
    if not isinstance(parts, (list, tuple)):
        return parts, {}
    names, own, last = list[Any](), dict[str, list[str]](), ""
    for part in parts:
        name, _, level = str(part).rpartition(":")
        is_level = _LEVEL.fullmatch(level)
        last = name or last if is_level else ""
        if last:
            own.setdefault(last, []).append(level)
        if name or not last:
            names.append(last or part)
    return names, own


def find_published_edition(corruptions: Any) -> str:
    """Return the edition in which the families of all named `corruptions` were published; empty if none."""
    names = split_list(corruptions)
    if not isinstance(names, (list, tuple)):
        return ""
    from robustgen.pixels.benchmarks.corruptions import find_family

    editions = {family.edition if (family := find_family(str(name))) else "" for name in names}
    return editions.pop() if len(editions) == 1 else ""


# --- values --------------------------------------------------------------------------------------


def _check_edition(name: str) -> str:
    from robustgen.pixels.benchmarks.editions import get_edition

    get_edition(name)
    return name


def _check_format(text: str) -> str:
    # The writer knows whether it takes the encoding after a colon.
    name = text.partition(":")[0]
    if name not in catalogue.formats():
        raise UnknownNameError("format", name, catalogue.formats())
    return text


def _check_overrides(overrides: Any) -> Any:
    from robustgen.pixels.benchmarks.binding import check_overrides

    return check_overrides(overrides)


def _expand_list(subset: Any) -> Any:
    """Return ``@FILE`` with ``${NAME}`` and ``~`` expanded, and a pattern unchanged; refuse empty ones."""
    if subset in ("", "@"):
        raise ArgumentError("names nothing: give a pattern such as 'val/*', or @FILE")
    return f"@{expand_variables(subset[1:])}" if isinstance(subset, str) and subset[:1] == "@" else subset


def _read_ingredient(value: Any) -> Any:
    """Return ``{"place": PLACE, ...}`` for a place or a mapping, with an absolute place."""
    given = dict(value) if isinstance(value, Mapping) else {"place": value}
    if "place" in given:
        if not isinstance(given["place"], str):
            raise ArgumentError(f"must be a path or URL, not {quote(given['place'])}")
        given["place"] = make_absolute(expand_variables(given["place"]))
    return given


def _parse_ingredients(value: Any) -> Any:
    """Return texts ``NAME=PLACE[,KEY=VALUE]`` as a mapping, and any other value unchanged."""
    if not isinstance(value, (list, tuple)):
        return value
    found = {}
    for text in value:
        # A place may contain commas: tiles-{1,2}.tar.
        parts = re.fullmatch(r"([\w-]+)=(.+?)((?:,\w+=[^,]*)*)", str(text))
        if not parts:
            raise ArgumentError(f"must be NAME=PLACE[,KEY=VALUE], not {quote(text)}")
        settings = (part.partition("=") for part in parts[3].split(",")[1:])
        pairs = [("place", parts[2]), *((key, given) for key, _, given in settings)]
        if parts[1] in found or len(dict(pairs)) < len(pairs):
            raise ArgumentError(f"{quote(text)}: a name or a key is given twice")
        found[parts[1]] = dict(pairs)
    return found


Ingredients = Annotated[
    dict[str, Annotated[dict[str, Any], BeforeValidator(_read_ingredient)]],
    BeforeValidator(_parse_ingredients),
]


def _check_rate(fps: Any) -> str:
    from robustgen.pixels.imaging.frames import parse_rate

    return str(parse_rate(fps))


def _check_rig(rig: Any) -> Any:
    """Return ``@FILE`` with an absolute path, and a pattern with a group `camera` or `scene` unchanged."""
    if not isinstance(rig, str):
        return rig
    if rig[:1] == "@":
        return f"@{make_absolute(expand_variables(rig[1:]))}"
    with raise_as(ArgumentError, f"{quote(rig)} is no pattern", re.error):
        groups = re.compile(rig).groupindex.keys()
    if not groups or groups - {"camera", "scene"}:
        raise ArgumentError(f"{quote(rig)} needs the group (?P<camera>...), (?P<scene>...) or both")
    return rig


Rate = Annotated[str | float, BeforeValidator(_check_rate)]


def _check_own(own: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    """Refuse severities of corruptions that are not chosen."""
    if lacking := [name for name in own if name not in info.data.get("corruptions", own)]:
        raise ArgumentError(f"{quote(lacking[0])} is none of the corruptions")
    return own


Severities = Annotated[tuple[Any, ...], levels("severity", 5, finer=True)]
Difficulties = Annotated[tuple[Any, ...], levels("difficulty", 3)]
Corruptions = Annotated[
    tuple[Annotated[str, AfterValidator(_check_corruption)], ...],
    BeforeValidator(list_few),
    _expand_groups(IMAGENET_C),
    AfterValidator(once),
]
Perturbations = Annotated[
    tuple[Annotated[str, known("perturbation", catalogue.perturbation_words)], ...],
    BeforeValidator(list_few),
    _expand_groups(IMAGENET_P),
    AfterValidator(once),
]
EditionName = Annotated[str, AfterValidator(_check_edition)]
FormatName = Annotated[str, AfterValidator(_check_format)]


def _check_quality(value: int, info: ValidationInfo) -> int:
    """Reject a quality above Pillow's recommendation, unless the edition was published with it."""
    edition = catalogue.find_edition(info.data.get("edition", ""))
    if value > (most := max(_MOST_QUALITY, edition.quality if edition else 0)):
        raise PydanticKnownError("less_than_equal", {"le": most})
    return value


class Video(Options):
    """Video compression; the defaults are the published settings of `make-p`, and lossless for clips."""

    preset: Annotated[
        Annotated[str, known("preset", catalogue.video_presets)] | None,
        Flag(Group.OUTPUT, "NAME", Part.ENCODING, usual=True, complete=catalogue.video_presets),
    ] = None
    """preset of x264, veryslow (default of make-p) to ultrafast; compresses clips, which else are lossless"""
    crf: float | None = Field(None, ge=0, le=51)
    """constant rate factor of all sequences; default as published"""
    pixel_format: Annotated[str, known("pixel format", catalogue.pixel_formats)] = "yuv444p"
    """yuv444p (published), yuv420p, or rgb24 (exact colours)"""
    lossless: StrictBool = False
    """rate factor 0; of clips, exact frames"""
    playable: StrictBool = False
    """yuv420p, which browsers play"""


# --- models --------------------------------------------------------------------------------------

SOURCE, CONTENT, OUTPUT, RUNNING = Group.SOURCE, Group.CONTENT, Group.OUTPUT, Group.RUNNING


class Choices(Options):
    """Choices common to all runs.

    Examples
    --------
    >>> from robustgen.plugins import Choices
    >>> choices = Choices(source="photos", limit=10)
    >>> choices.limit, choices.seed
    (10, 0)
    """

    dataset: SetName | None = None
    """name of the data set, for the default output; default that of the source"""
    source: Annotated[ExpandedLocation | None, Flag(SOURCE, "PATH", Part.SOURCE, usual=True)] = None
    """folder, archive, shards or URL of the source images"""
    source_kind: Annotated[str, known("kind of source", catalogue.source_kinds)] = "auto"
    """layout of the source; auto recognises it"""
    split: Annotated[str | None, Flag(SOURCE, "NAME", Part.SOURCE)] = None
    """split of the source, such as train; default the published one, or all"""
    labels: Annotated[ExpandedLocation | None, Flag(SOURCE, "FILE", Part.SOURCE)] = None
    """table of labels for images without class folders (CSV, JSON, ...), or ImageNet's devkit"""
    labels_are_classes: Annotated[StrictBool, Flag(SOURCE, part=Part.SOURCE)] = False
    """treat numbers in labels as names of your own classes, not as class numbers or the devkit's"""
    label_column: str | None = None
    """column of labels in a table; default one with a usual name, such as label or class"""
    file_column: str | None = None
    """column of file names in a table of labels or a list; default that which names the images"""
    split_column: str | None = None
    """column of splits in a table of labels or a list; default one with a usual name, such as split"""
    image_columns: Words | None = None
    """image columns of a table; default image"""
    image_root: ExpandedLocation | None = None
    """folder of the image paths in a table; default that of the table"""
    follow_links: Annotated[tuple[ExpandedLocation, ...], BeforeValidator(split_list)] = ()
    """folders outside the source to which its links may lead"""
    fps: Rate | None = None
    """frames per second of clips that are folders of frames; default that of seqinfo.ini (MOT), else 25"""
    rig: Annotated[str | None, BeforeValidator(_check_rig)] = None
    """camera and scene of each file: a pattern with the groups (?P<camera>...), (?P<scene>...) or both, or
    @FILE, a table with the columns file and camera, scene; scenes divide a folder of frames into clips;
    default the cameras of nuScenes"""
    levels: Annotated[Ends | None, Flag(SOURCE, "LOW,HIGH", Part.EDITION)] = None
    """values of 16-bit, 32-bit and float images that become 0 and 255; default the high byte of 16 bits"""
    limit: Annotated[Count | None, Flag(SOURCE, "N", Part.SELECTION, usual=True)] = None
    """use only the first N images"""
    sample: Annotated[Count | None, Flag(SOURCE, "N", Part.SELECTION, usual=True)] = None
    """use a class-balanced random sample of N images (see --seed)"""
    subset: Annotated[
        str | None, BeforeValidator(_expand_list), Flag(SOURCE, "PATTERN|@FILE", Part.SELECTION)
    ] = None
    """use only images whose keys match, such as 'val/*', or that the file lists"""
    seed: Annotated[Seed, Flag(CONTENT, "N", Part.SELECTION, usual=True)] = 0
    """seed, a non-negative whole number"""
    output: Annotated[ExpandedLocation, Flag(OUTPUT, "DIR", Part.OUTPUT, usual=True)] = "out/{dataset}-{kind}"
    """output folder or URL; {kind} is c or p"""
    jobs: Annotated[Jobs, Flag(RUNNING, "N|all", Part.JOBS, usual=True)] = None
    """worker processes; default all: one per core"""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        super().__pydantic_init_subclass__()
        if lacking := [key for key, _, flag in list_flags(cls) if flag.part is None]:
            raise TypeError(f"{cls.__name__}.{lacking[0]}: its Flag needs a part, by which commands take it")

    @property
    def medium(self) -> Medium:
        """Return what the source contains."""
        return {"clips": CLIP}.get(self.source_kind, IMAGE)

    def require_source(self) -> None:
        """Raise a ConfigError if no source is named."""
        if self.source is None and self.source_kind != "demo":
            raise ConfigError("no source: give --dataset, --config or --source")

    def name_dataset(self) -> str:
        """Return the given name of the data set, or the name of the source's folder or archive."""
        if self.dataset or self.source is None:
            return self.dataset or "custom"
        # A pattern such as val-{000000..000063}.tar gives the name before its first wildcard.
        name = re.split(r"[{*?\[]", Path(self.source).name)[0].rstrip("-_.")
        source = Path(self.source).resolve().with_name(name or Path(self.source).absolute().parent.name)
        return (source.name.partition(".")[0] if source.is_file() else source.name) or "custom"

    def resolve_output(self, kind: str) -> str:
        """Return the output for a set of the benchmark `kind`: a URL or an absolute path."""
        return make_absolute(self.output.replace("{dataset}", self.name_dataset()).replace("{kind}", kind))


class Config(Choices):
    """Choices of a run of make-c or make-p."""

    edition: Annotated[
        EditionName, Flag(CONTENT, "NAME[@SIZE]", Part.EDITION, usual=True, complete=catalogue.edition_names)
    ] = "folder"
    """preparation and constants (robustgen list); imagenet@384 for another size"""
    corruptions: Annotated[
        Corruptions,
        Flag(CONTENT, "NAMES", Part.OPERATIONS, usual=True, kinds="c", complete=catalogue.corruption_words),
    ] = Field("common", validate_default=True)
    """names (a,b), a family, or common, extra, all, noise, blur, weather, digital (robustgen list); fog:2,4,5
    has severities of its own"""
    severities: Annotated[Severities, Flag(CONTENT, "N,N", Part.OPERATIONS, usual=True, kinds="c")] = Field(
        "1-5", validate_default=True
    )
    """1 to 5, such as 3, 1-5, 1,3,5 or all; also fractional ones such as 2.5"""
    severities_of: Annotated[dict[str, Severities], AfterValidator(_check_own)] = Field({})
    """severities of some corruptions: {fog: [2, 4, 5], snow: 1-3}; in --corruptions fog:2,4,5,snow:1-3"""
    temporal: Annotated[Literal["clip", "frame"], Flag(CONTENT, kinds="c", part=Part.CLIPS)] = "clip"
    """of clips: draw fog, frost, drops and angles once per clip, or everything afresh in each frame"""
    one_per_image: Annotated[StrictBool, Flag(CONTENT, kinds="c", part=Part.OUTPUT)] = False
    """write one corrupted copy of each image; --seed draws its corruption and severity"""
    perturbations: Annotated[
        Perturbations,
        Flag(CONTENT, "NAMES", Part.OPERATIONS, usual=True, kinds="p", complete=catalogue.perturbation_words),
    ] = Field("common", validate_default=True)
    """names (a,b), or common, extra, all, noise, blur, weather, digital (robustgen list)"""
    difficulty: Annotated[Difficulties, Flag(CONTENT, "N,N", Part.OPERATIONS, usual=True, kinds="p")] = Field(
        "1", validate_default=True
    )
    """difficulties of the noise sequences, 1 to 3, such as 1,3 or all"""
    quality: Annotated[Count, AfterValidator(_check_quality), Flag(OUTPUT, "N", Part.ENCODING, kinds="c")] = (
        85
    )
    """quality of the JPEG files, at most 95; for edition laion-c 100"""
    libjpeg: Annotated[Literal["turbo", "ijg"], Flag(CONTENT, part=Part.ENCODING)] = "turbo"
    """decoder and encoder of JPEG; ijg: libjpeg 9c, as in the published files"""
    require_classes: StrictBool = True
    """require class folders or labels for ImageNet, and refuse a folder of splits with the same classes"""
    clean: Annotated[StrictBool, Flag(OUTPUT, usual=True, kinds="c", part=Part.OUTPUT)] = True
    """write the clean images too"""
    format: Annotated[
        FormatName | None,
        Flag(OUTPUT, "NAME[:ENCODING]", Part.ENCODING, usual=True, complete=catalogue.formats),
    ] = Field(
        None,
        description="output format (robustgen list formats): of images jpeg, png, webp, original, npy, npz, "
        "webdataset, parquet or table, of sequences mp4, png, npy, webdataset or parquet; webdataset:png "
        "names the encoding of images in shards; default as published",
    )
    shard_size: Count = 1000
    """images per shard of webdataset and parquet"""
    mirror: Annotated[Literal["link", "copy"] | None, none_if("none")] = Field(
        None,
        description="repeat other files of the source in every variant, as hard links or copies, with "
        "format original; or none",
    )
    maps: Words | None = None
    """patterns of label maps, which stay as they are, or none; default those of known layouts"""
    orientation: Literal["stored", "upright"] | None = None
    """pixels that detectors get of files with an EXIF orientation; default as their annotations fit"""
    video: Video = Video()
    """encoder settings of sequences and clips; default as published, and lossless for clips"""
    constants_for: Literal[224, 299, 64, 32, 256, 336, 384, 448] | None = Field(
        None,
        description="image size whose constants are used; the last four are"
        " [robustgen's own](../use/calibrate.md); default the edition's",
    )
    ingredients: Annotated[
        Ingredients, Flag(CONTENT, "NAME=PLACE[,KEY=VALUE]", Part.OPERATIONS, kinds="c", name="with")
    ] = Field({}, alias="with")
    """frost, ink, tiles or depth that corruptions need beside the images; repeatable"""
    parameters: Annotated[dict[str, dict[Any, Any]], AfterValidator(_check_overrides)] = Field({})
    """your own constants, {corruption: {severity: {parameter: value}}}; default as published"""

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, content: Any) -> Any:
        """Replace families by their members, and set the edition in which they were published."""
        if not isinstance(content, Mapping):
            return content
        content = dict(content)
        own = dict(content.get("severities_of") or {})
        if "corruptions" in content:
            content["corruptions"], named = _split_severities(content["corruptions"])
            own |= named
        if published := find_published_edition(content.get("corruptions")):
            content.setdefault("edition", published)
        edition = catalogue.find_edition(str(content.get("edition", cls.model_fields["edition"].default)))
        if edition:
            content.setdefault("quality", edition.quality)
        # A set with images of any size uses the corruptions published for the usual size.
        scale = content.get("constants_for") or (edition and edition.scale) or USUAL_SCALE
        if isinstance(content.get("corruptions"), (list, tuple)) and isinstance(scale, int):
            from robustgen.pixels.benchmarks.corruptions import expand_families

            scales = (scale, edition.data_set if edition else None)
            content["corruptions"] = expand_families(content["corruptions"], scales)
            members = [(name, IMAGENET_C.groups.get(name, (name,))) for name in own]
            own = {each: own[name] for name, group in members for each in expand_families(group, scales)}
        return content | ({"severities_of": own} if own else {})

    @property
    def kind(self) -> "Kind":
        """Return the benchmark that the given keys select: p for those of perturbations, otherwise c."""
        return "p" if self.flagged & {"perturbations", "difficulty"} else "c"

    @property
    def base_edition(self) -> str:
        """Return the name of the edition without a size."""
        return self.edition.partition("@")[0]

    @property
    def size(self) -> int | None:
        """Return the size after ``@`` in the name of the edition."""
        size = self.edition.partition("@")[2]
        return int(size) if size else None

    def variants(self, kind: "Kind") -> "tuple[Variant, ...]":
        """Return the variants of the requested C or P set."""
        if kind == "p":
            return IMAGENET_P.variants(self.perturbations, self.difficulty)
        variants = IMAGENET_C.variants(
            self.corruptions, self.severities, clean=self.clean, own=self.severities_of
        )
        # In an array, the severities of a corruption are consecutive.
        edition = catalogue.find_edition(self.edition)
        as_published = edition is not None and edition.by_corruption and self.format != "npy"
        return tuple(map(IMAGENET_C.published_variant, variants)) if as_published else variants

    def of_separate_images(self, **changes: Any) -> "Config":
        """Return the config for images that are computed one by one, with other `changes`."""
        classes = self.require_classes and not self.mirror
        fixed = {"mirror": None, "one_per_image": False, "require_classes": classes}
        return self.model_copy(update=fixed | changes)
