"""Wings: parts of the package, and installed packages, that the rest of it knows by their rows alone."""

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import Enum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from robustgen.errors import ArgumentError
from robustgen.files.registry import Registry, load_row


class Section(Enum):
    """Sections of ``robustgen --help``.

    Examples
    --------
    >>> from robustgen.plugins import Section
    >>> [section.value for section in Section]
    ['Make and check', 'Inspect', 'Score', 'Related benchmarks']
    """

    MAKE = "Make and check"
    SEE = "Inspect"
    SCORE = "Score"
    FAMILY = "Related benchmarks"


class CommandRow(NamedTuple):
    """A command.

    Attributes
    ----------
    name : str
    section : Section
    module : str
        Module that declares the command; it is imported when the command is called.
    summary : str
        First line of the command's help; "" if the package has a table of completion.
    resumes : bool
        The same command, called again, resumes an interrupted run.

    Examples
    --------
    >>> from robustgen.plugins import CommandRow, Section
    >>> row = CommandRow("count", Section.SEE, "robustgen_count", "Count the images of a source.")
    >>> row.name, row.resumes
    ('count', False)
    """

    name: str
    section: Section
    module: str
    summary: str = ""
    resumes: bool = False


class SetRow(NamedTuple):
    """A row in the table of sets.

    Attributes
    ----------
    command : str
        The command that creates a set and resumes its run.
    choices, planner : str
        ``"package.module:NAME"`` of the model of its settings, and of the function that turns these into its
        plan.

    Examples
    --------
    >>> from robustgen.plugins import SetRow
    >>> SetRow("make-negatives", "negatives:Choices", "negatives:plan").planner
    'negatives:plan'
    """

    command: str
    choices: str
    planner: str


class Wing(NamedTuple):
    """The rows of a wing.

    Attributes
    ----------
    commands : sequence of CommandRow
    sets : mapping of str to SetRow
        Rows of sets by their title in `dataset.json`.
    public : mapping of str to tuple of str
        Public modules, ``"robustgen"`` or ``"robustgen.torch"``, to the names that the wing adds to each.
        Those of plug-ins are ignored.

    Examples
    --------
    >>> from robustgen.plugins import CommandRow, Section, Wing
    >>> row = CommandRow("count", Section.SEE, "robustgen_count", "Count the images of a source.")
    >>> [command.name for command in Wing(commands=(row,)).commands]
    ['count']
    """

    commands: tuple[CommandRow, ...] = ()
    sets: Mapping[str, SetRow] = MappingProxyType({})
    public: Mapping[str, tuple[str, ...]] = MappingProxyType({})


# Nothing else names the wing `related`; without it, the rest works. A folder of caches alone has no origin.
_IS_THERE: Final = getattr(find_spec("robustgen.related"), "origin", None) is not None
OWN: Final = {"related": "robustgen.related.rows:RELATED"} if _IS_THERE else {}
"""Wings of this package."""


class Wings(Registry[Wing]):
    """Wings by name: those of this package, and those of plug-ins."""

    def check(self, row: Any, name: str) -> Wing:
        """Return the wing of a plug-in; raise an ArgumentError if it or one of its rows is none."""
        wing = super().check(row, name)
        types = {CommandRow: [str, Section, str, str, bool], SetRow: [str, str, str]}
        for each in (*wing.commands, *wing.sets.values()):
            if types.get(type(each)) != [*map(type, each)]:
                raise ArgumentError(f"its rows must be CommandRow and SetRow with texts, not {each!r}")
        return wing


WINGS: Final = Wings("wing", "robustgen.wings", Wing, OWN)


def list_wings() -> Iterator[Wing]:
    """Yield the wings of this package, then those of plug-ins that can be used."""
    for name in WINGS.list_usable():
        yield WINGS[name]


def list_public(module: str) -> list[str]:
    """Return the names that wings of this package add to a public `module`."""
    return [name for wing in OWN for name in WINGS[wing].public.get(module, ())]


def load_lazily(module: str, file: str, public: Collection[str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a public `module`, whose names load on first use.

    Parameters
    ----------
    module, file : str
        Name and path of the module. The block for type checkers there says where each name is from.
    public : collection of str
        Its names; those that the block has besides are of wings that are not there.
    """

    @cache
    def list_rows() -> dict[str, str]:
        import ast

        blocks = [node for node in ast.parse(Path(file).read_bytes()).body if isinstance(node, ast.If)]
        return {
            each.name: f"{node.module}{'.' if node.module == module else ':'}{each.name}"
            for node in blocks[0].body
            if isinstance(node, ast.ImportFrom)
            for each in node.names
            if each.name in public
        }

    def load(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        from robustgen.errors import WriteError
        from robustgen.files.storage.host import check_unpacked, explain_refusal

        check_unpacked()
        try:
            return load_row(list_rows()[name])
        except RuntimeError as error:
            # Modules that start threads cannot be imported while Python ends.
            if not (reason := explain_refusal(error)):
                raise
            raise WriteError(reason) from error

    return load
