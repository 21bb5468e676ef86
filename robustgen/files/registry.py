"""Tables whose rows have names: built-in rows, and those of installed plug-ins.

A row is named like an entry point, ``"package.module:NAME"``, and imported when it is looked up, so that
listing the names imports nothing.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from robustgen.errors import ArgumentError, name_error

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

AnyRow = TypeVar("AnyRow")


class Registry(Mapping[str, AnyRow]):
    """Rows by name: the built-in ones in their order, then those of plug-ins in alphabetical order.

    Looking up the row of a plug-in that cannot be used raises an ArgumentError with the reason.

    Parameters
    ----------
    noun : str
        Name of a row in messages.
    group : str
        Group of the entry points of plug-ins.
    row_type : type
        Class of the rows.
    built_in : mapping of str to str
        Name to ``"package.module:NAME"``.
    reserved : sequence of str
        Further names that plug-ins cannot have.
    """

    def __init__(
        self,
        noun: str,
        group: str,
        row_type: Any,
        built_in: Mapping[str, str],
        reserved: tuple[str, ...] = (),
    ) -> None:
        self.noun: str = noun
        self.group: str = group
        self.row_type: Any = row_type
        self._built_in, self._reserved = built_in, reserved
        self._rows: dict[str, AnyRow] = {}

    def __getitem__(self, name: str) -> AnyRow:
        if name not in self._rows:
            if name in self._built_in:
                self._rows[name] = load_row(self._built_in[name])
            else:
                self._rows[name] = self._load(self._plugins[name])
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        yield from (*self._built_in, *self._plugins)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @cached_property
    def _entries(self) -> "list[EntryPoint]":
        # A package may be on the path twice; each entry counts once.
        found: dict[tuple[str, str], EntryPoint] = {}
        for folder in self._list_folders():
            # The import takes longer than most commands need to print their help.
            from importlib.metadata import Distribution

            entries = Distribution.at(folder).entry_points.select(group=self.group)
            found |= {(_name_package(entry), entry.name): entry for entry in entries}
        return [found[key] for key in sorted(found)]

    def _list_folders(self, *, damaged: bool = False) -> list[Path]:
        """Return the folders of the packages that name this group in their entry points."""
        texts = read_entry_points().items()
        return [path for path, text in texts if f"[{self.group}]" in text and _is_damaged(text) == damaged]

    @cached_property
    def _plugins(self) -> "dict[str, EntryPoint]":
        """Return the plug-ins by name; of two packages that claim a name, the first in the alphabet."""
        taken = {*self._built_in, *self._reserved}
        first = {entry.name: entry for entry in reversed(self._entries) if entry.name not in taken}
        return dict(sorted(first.items()))

    def _load(self, entry: "EntryPoint") -> AnyRow:
        try:
            # Only robustgen prints to standard output: `robustgen list --format json` must stay JSON.
            with redirect_stdout(sys.stderr):
                row: object = entry.load()
            return self.check(row, entry.name)
        except (Exception, SystemExit) as error:
            reason = str(error) if isinstance(error, ArgumentError) else name_error(error)
            found = f"{self.noun} {entry.name!r} of package {_name_package(entry)}"
            raise ArgumentError(f"{found} cannot be used: {reason}") from error

    def check(self, row: Any, name: str) -> AnyRow:
        """Return the `row` of the plug-in called `name`; raise an ArgumentError if it is no row."""
        if not isinstance(row, self.row_type):
            wanted = f"{self.row_type.__module__}.{self.row_type.__name__}"
            raise ArgumentError(f"its entry point must name a {wanted}, not {row!r}")
        checked: AnyRow = row
        return checked

    def list_usable(self) -> Iterator[str]:
        """Yield the names of the rows that can be used, which imports all plug-ins."""
        yield from self._built_in
        for name in self._plugins:
            if self._explain(name) is None:
                yield name

    def problems(self) -> list[str]:
        """Return why some plug-ins cannot be used, one line each."""
        found = [problem for name in self._plugins if (problem := self._explain(name))]
        for folder in self._list_folders(damaged=True):
            package = folder.stem.replace("-", " ").replace("_", "-")
            found.append(f"package {package} cannot be used: {folder / _ENTRY_POINTS} is damaged")
        owners = dict.fromkeys((*self._built_in, *self._reserved), "robustgen")
        for entry in self._entries:
            package = _name_package(entry)
            owner = owners.setdefault(entry.name, package)
            if owner != package:
                found.append(
                    f"{self.noun} {f'{package}: {entry.name}'!r} cannot be used: the name is taken by {owner}"
                )
        return found

    def find_package(self, name: str) -> str:
        """Return the package of a row: ``"robustgen"``, or name and version of that of a plug-in."""
        return "robustgen" if name in self._built_in else _name_package(self._plugins[name])

    def _explain(self, name: str) -> str | None:
        """Return why a plug-in cannot be used; None if it can."""
        try:
            self[name]
        except ArgumentError as error:
            return str(error)
        return None


def load_row(name: str) -> Any:
    """Return the object called ``"package.module:NAME"``, or the module called ``"package.module"``."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute) if attribute else import_module(module)


_ENTRY_POINTS: Final = "entry_points.txt"


@lru_cache(maxsize=1)
def read_entry_points() -> dict[Path, str]:
    """Return the texts of all files of entry points, in a tenth of the time of `importlib.metadata`.

    Of packages whose file is damaged, pydantic and numba, which would fail at it, find no entry points from
    then on.
    """
    found = (path for folder in map(Path, sys.path) for path in folder.glob(f"*-info/{_ENTRY_POINTS}"))
    texts = {path.parent: path.read_text(encoding="utf-8", errors="replace") for path in found}
    if any(map(_is_damaged, texts.values())):
        from importlib import metadata

        read: Any = vars(metadata.Distribution)["entry_points"].fget

        def read_undamaged(self: metadata.Distribution) -> Any:
            try:
                return read(self)
            except (TypeError, ValueError):
                return metadata.EntryPoints()

        metadata.Distribution.entry_points = property(read_undamaged)  # type: ignore[method-assign,assignment]
    return texts


def _is_damaged(text: str) -> bool:
    """Return whether a file of entry points has a line that is none, or is not UTF-8."""
    lines = filter(None, map(str.strip, text.splitlines()))
    return "\ufffd" in text or any(
        "=" not in line and line[0] != "#" and line[0] + line[-1] != "[]" for line in lines
    )


def _name_package(entry: "EntryPoint") -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "of unknown origin"


# --- names of formats and of `source_kind`, and where in their packages the rows stand -------------

FORMAT_ROWS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "jpeg": "encoders:JPEG",
        "png": "encoders:PNG",
        "webp": "encoders:WEBP",
        "original": "videos:ORIGINAL",
        "mp4": "videos:MP4",
        "npy": "arrays:NPY",
        "npz": "arrays:NPZ",
        "webdataset": "shards:WEBDATASET",
        "parquet": "shards:PARQUET",
        "table": "table:TABLE",
    }
)
"""Formats by their name for `--format`."""

SOURCE_ROWS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "labelled": "folder:LABELLED",
        "table": "table:TABLES",
        "parquet": "shards:PARQUET_FILES",
        "webdataset": "shards:WEBDATASET",
        "mnist": "published:MNIST",
        "medmnist": "published:MEDMNIST",
        "cifar": "published:CIFAR",
        "tiny-imagenet": "imagenet:TINY_IMAGENET",
        "arrays": "arrays:ARRAY_FILES",
        "folder": "folder:FOLDER",
        "clips": "clip_folder:CLIPS",
    }
)
"""Values of `source_kind`, in the order of recognition; plug-ins come before "arrays" and "folder"."""
