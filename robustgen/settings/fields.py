"""Description of a choice: base class of the models, flags, and types of values.

A field of a model is the only description of a choice: its type, default and limits, and the sentence below
it. Keys of YAML files, flags, help, completion and the tables of the docs derive from it.
"""

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PrivateAttr,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

from robustgen.errors import ArgumentError, UnknownNameError, quote, raise_as
from robustgen.files.storage import is_url

_MOST_PARTS: Final = 500


class Group(Enum):
    """Groups of flags in the help, in this order.

    Examples
    --------
    >>> from robustgen.plugins import Group
    >>> Group.SOURCE.value
    'Source'
    """

    ARGUMENTS = "Arguments"
    SOURCE = "Source"
    CONTENT = "Content"
    STREAM = "Stream"
    MODEL = "Models"
    INPUT = "Model input"
    OUTPUT = "Output"
    RUNNING = "Running"


class Part(Enum):
    """Parts of a config, which commands name to take their flags; files and ``--set`` accept every key.

    Examples
    --------
    >>> from robustgen.plugins import Part
    >>> [part.name for part in Part][:2]
    ['SOURCE', 'SELECTION']
    """

    SOURCE = "images, their labels, and the files with keys"
    SELECTION = "which images, and the seed"
    EDITION = "preparation of the images"
    OPERATIONS = "operations on the images, and what these need"
    CLIPS = "treatment of clips"
    ENCODING = "formats and encoders of files"
    OUTPUT = "place and content of the output"
    JOBS = "processes"


@dataclass(frozen=True)
class Flag:
    """The flag or argument of a field on the command line.

    Attributes
    ----------
    group : Group
    metavar : str
        Placeholder of the value, for instance ``N``; empty for the choices of the type.
    part : Part, optional
        Part of the config; every flag of a model that derives from `Choices` needs one.
    usual : bool
        Whether ``--help`` shows the flag; ``--help-all`` shows every flag.
    kinds : str
        Benchmarks whose commands have the flag: ``c``, ``p`` or ``cp``.
    name : str, optional
        Spelling without dashes if it is not that of the field.
    argument : bool
        Whether the value is positional.
    switch : bool
        Whether the flag has no value, although its field has a type other than bool.
    complete : callable, optional
        Returns the names for completion.

    Examples
    --------
    >>> from typing import Annotated
    >>> from robustgen.plugins import Flag, Group, Options
    >>> class Mixing(Options):
    ...     share: Annotated[float, Flag(Group.CONTENT, "X", usual=True)] = 1.0
    >>> Mixing.model_fields["share"].metadata[0].metavar  # of --share
    'X'
    """

    group: Group
    metavar: str = ""
    part: Part | None = None
    usual: bool = False
    kinds: str = "cp"
    name: str | None = None
    argument: bool = False
    switch: bool = False
    complete: Callable[[], Iterable[str]] | None = None


class Options(BaseModel):
    """Base of all models: immutable, without unknown keys; knows which fields the command line gave.

    Examples
    --------
    >>> from robustgen.plugins import Options
    >>> class Mixing(Options):
    ...     share: float = 1.0
    >>> Mixing(share=0.5).share
    0.5
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        arbitrary_types_allowed=True,
        use_attribute_docstrings=True,
        # Help and completion read the fields, and validate nothing.
        defer_build=True,
    )
    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        # Tables and completion take one line, of docstrings that have several too.
        for field in cls.model_fields.values():
            field.description = field.description and " ".join(field.description.split())

    @property
    def origins(self) -> dict[str, str]:
        """Return the origin of each key that is not a default: ``--flag``, ``--set`` or ``file:line``."""
        return self._origins

    @property
    def flagged(self) -> frozenset[str]:
        """Return the keys that the command line gave."""
        return frozenset(key for key, origin in self._origins.items() if origin.startswith("--"))


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by key; `with` is a word of Python, so its field has another name."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def list_flags(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo, Flag]]:
    """Yield key, field and flag of each field with a flag, also of those in sections: ``video.preset``."""
    for key, field in keys_of(model).items():
        if flag := next((each for each in field.metadata if isinstance(each, Flag)), None):
            yield key, field, flag
        # For Python 3.10, list[str] is a type, but not of this one.
        elif isinstance(field.annotation, type(BaseModel)):
            for inner, part, own in list_flags(field.annotation):
                yield f"{key}.{inner}", part, own


def flag_of(model: type[BaseModel], key: str) -> Flag | None:
    """Return the flag of a key, if it has one."""
    return next((flag for own, _, flag in list_flags(model) if own == key), None)


def spell(key: str, flag: Flag | None = None) -> str:
    """Return the flag of a key as users type it; a key of a section has no flag of its section."""
    return "--" + ((flag and flag.name) or key.rpartition(".")[2]).replace("_", "-")


# --- validators ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Described:
    """A validator whose values the JSON Schema lists, for editors and for the pages of the docs."""

    validator: AfterValidator | BeforeValidator
    describe: Callable[[dict[str, Any]], dict[str, Any]]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return self.validator.__get_pydantic_core_schema__(source, handler)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return self.describe(handler(schema))


def known(noun: str, names: Callable[[], Collection[str]]) -> Described:
    """Return a validator that accepts one of `names`, which are loaded on use."""

    def check(value: str) -> str:
        if value not in names():
            raise UnknownNameError(noun, value, names())
        return value

    return Described(AfterValidator(check), lambda schema: {**schema, "enum": [*names()]})


def split_list(value: Any) -> Any:
    """Return a comma-separated string as a list, and any other value unchanged."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def list_few(value: Any) -> Any:
    """Return `value` as `split_list` does, and refuse long lists, because each entry is an output or more."""
    parts = split_list(value)
    if isinstance(parts, (list, tuple)) and len(parts) > _MOST_PARTS:
        raise ArgumentError(f"lists {len(parts)}; at most {_MOST_PARTS} are allowed")
    return parts


def once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the different `values`, of which there must be one."""
    if not values:
        raise ArgumentError("at least one is needed")
    return tuple(dict.fromkeys(values))


def none_if(word: str) -> Described:
    """Return a validator that replaces `word` with None, for a type that allows None."""
    return Described(
        BeforeValidator(lambda value: None if value == word else value),
        lambda schema: {"anyOf": [*schema["anyOf"], {"const": word}]},
    )


def levels(what: str, highest: int, *, finer: bool = False) -> BeforeValidator:
    """Return a validator that turns ``3``, ``"1-5"``, ``[1, 3]`` or ``"all"`` into sorted levels.

    If `finer`, it also accepts fractional levels such as ``2.5``.
    """

    def read(part: Any) -> Sequence[float]:
        text = "" if isinstance(part, bool) else f"1-{highest}" if part == "all" else str(part)
        ends = re.fullmatch(r"(-?\d{1,9}(?:\.\d{1,9})?)(?:-(\d{1,9}))?", text)
        if not ends or ("." in text and (ends[2] or not finer)):
            raise ArgumentError(f"must be a number or a range such as 1-{highest}, not {quote(part)}")
        first, last = float(ends[1]), float(ends[2] or ends[1])
        if wrong := [end for end in (first, last) if not 1 <= end <= highest]:
            raise ArgumentError(f"{what} {wrong[0]:g} does not exist (1 to {highest})")
        if last < first:
            raise ArgumentError(f"{quote(part)} runs backwards: write {last:g}-{first:g}")
        return range(int(first), int(last) + 1) if first.is_integer() else [first]

    def read_all(value: Any) -> tuple[float, ...]:
        parts = list_few(value)
        parts = parts if isinstance(parts, (list, tuple)) else [parts]
        # Rows of arrays are ordered by rising severity, whatever the order in the request.
        return once(tuple(sorted(level for part in parts for level in read(part))))

    return BeforeValidator(read_all)


def _read_ends(value: Any) -> Any:
    """Return the two rising numbers of ``"0,4095"`` or ``[0, 4095]``."""
    ends = split_list(value)
    try:
        low, high = map(float, ends)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"must be two numbers such as 0,4095, not {value!r}") from error
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ArgumentError(f"must be two rising numbers such as 0,4095, not {value!r}")
    return low, high


def expand_variables(value: Any) -> Any:
    """Return `value` with ``${NAME}`` and a leading ``~`` expanded."""
    if not isinstance(value, str):
        return value
    for name in re.findall(r"\$\{(\w+)\}", value):
        if name not in os.environ:
            raise ArgumentError(f"environment variable {name} is not set")
        value = value.replace(f"${{{name}}}", os.environ[name])
    if not value:
        raise ArgumentError("is empty")
    if "\0" in value:
        raise ArgumentError("contains a NUL character")
    try:
        os.fsencode(value)
    except UnicodeEncodeError as error:
        raise ArgumentError(f"contains {quote(value[error.start])}, which no path can contain") from error
    with raise_as(ArgumentError, value, RuntimeError):
        return value if is_url(value) else str(Path(value).expanduser())


def check_name(name: str) -> str:
    """Return the name of a set or a model, which names a folder; raise an ArgumentError if it cannot."""
    if not name or name.startswith(".") or re.search(r"[/\\\0-\x1f\ud800-\udc7f\udd00-\udfff]", name):
        raise ArgumentError(f"must be a name without slashes or a dot at its beginning, not {quote(name)}")
    return name


def make_absolute(location: str) -> str:
    """Return a path as an absolute path, valid in any working folder, and a URL unchanged."""
    return location if is_url(location) else str(Path(location).absolute())


def _check_file(path: Path) -> Path:
    if path.is_dir():
        raise ArgumentError(f"{path}: is a folder")
    return path


NewFile = Annotated[Path, AfterValidator(_check_file)]
Whole = Annotated[int, Field(strict=True)]
Count = Annotated[Whole, Field(ge=1)]
Jobs = Annotated[Annotated[Count, Field(le=4096)] | None, none_if("all")]
Seed = Annotated[Whole, Field(ge=0, le=10**18)]
ExpandedLocation = Annotated[str, BeforeValidator(expand_variables)]
SetName = Annotated[str, AfterValidator(check_name)]
Words = Annotated[tuple[str, ...], BeforeValidator(split_list)]
Ends = Annotated[tuple[float, float], BeforeValidator(_read_ends)]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
