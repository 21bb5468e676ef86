"""The state folder of an output: every file in it is named, written and read here.

    .robustgen/lock                     held while a run writes here; dies with its process
    .robustgen/agreement.lock           held while shards that start together settle what the output is
    .robustgen/shard-2-of-3-<plan>.lock held by one shard of a plan
    .robustgen/finishing                there while the last shard takes its last steps
    .robustgen/settings.json            all that decides the bytes
    .robustgen/about.json               what dataset.json says beside settings and counts
    .robustgen/source-index             where images lie in the archives that are the source
    .robustgen/journal.jsonl            receipts; journal-2-of-3.jsonl of a shard
    .robustgen/assembled/fog.npy.json   record of a file that holds many images, once it is whole
    .robustgen/partial/                 such files while they are being filled
    .robustgen/tmp/                     files that are not whole yet

Of predictions there are besides, as `robustgen.evaluation.store` shows them, and of shortlists:

    .robustgen/written.jsonl            a record of each file that is whole
    .robustgen/failed.json              images of which `evaluate` could make nothing
    .robustgen/filter.json              all that decides the shortlist
    .robustgen/opinions.jsonl           what models said of the candidates

Where class folders lie at the root of an output, every folder there is taken for a class; so the state folder
of `icons` lies beside it as `.icons.robustgen`, on the same file system, as files come out of it by renaming.

An example of each:

    settings.json   {"edition": "imagenet", "kind": "c", "output": {"format": "jpeg", "quality": 85},
                     "parameters": {"fog/3": {"strength": 2.5, ...}, ...}, "seed": 0, ...}
    about.json      {"arms": ["clean", "fog/3"], "arrays": [], "dataset": "custom", "images": 50000, ...}
    source-index    <SHA-256 of the next line>
                    {"of": [1, "0.1.0", ..., [["/data/val.tar", [<bytes>, <time>, <inode>]]]], "index": [...]}
    assembled       {"files": [["file", "fog.npy", 153600128, "5891b5b5...", ""]], "layout": "f3a9-8c1d"}

A line of a journal is shown in `robustgen.output.journal`.
"""

import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from robustgen.errors import OutputError, RobustgenError, WriteError
from robustgen.output.files import (
    STATE,
    FileWriter,
    check_real,
    find_state,
    open_to_append,
    place_beside,
    remove_tree,
)
from robustgen.output.journal import Journal, JournalReader, keep_whole_lines
from robustgen.output.records import Receipt, WrittenFile, from_json, to_json
from robustgen.regular_file import open_regular

ANEW: Final = "Choose another output, or begin anew with --overwrite"
"""What helps where nothing tells any more what the files of an output are."""
_AGAIN: Final = "Give the make command again"

SETTINGS: Final = f"{STATE}/settings.json"
PARTIAL: Final = f"{STATE}/partial"
WRITTEN, FAILED = f"{STATE}/written.jsonl", f"{STATE}/failed.json"
SHORTLISTED, OPINIONS = f"{STATE}/filter.json", f"{STATE}/opinions.jsonl"
"""Files in the state folder, POSIX paths below the output."""


@dataclass(frozen=True)
class Assembled:
    """Files that were put together from the results of many images.

    Attributes
    ----------
    files : list of WrittenFile
        As they were when they were whole.
    layout : str
        Of which list of images they are.
    """

    files: list[WrittenFile]
    layout: str = ""


class State:
    """The state folder of the output at `root`.

    Parameters
    ----------
    root : Path
    beside : bool
        Whether it is to lie beside the output, if there is none yet.
    """

    def __init__(self, root: Path, *, beside: bool = False) -> None:
        # What lies beside an output that is gone is the state of nothing.
        found = find_state(root) if os.path.exists(root) else None  # noqa: PTH110
        self._use(root, found or (place_beside(root) if beside else root / STATE))

    def _use(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.partial = self.folder / "partial"
        self._settings, self._about = self.folder / "settings.json", self.folder / "about.json"
        self._finishing, self._temporary = self.folder / "finishing", self.folder / "tmp"

    # --- where it lies

    @property
    def is_beside(self) -> bool:
        """Whether it lies beside the output, not in it."""
        return self.folder.parent != self.root

    def establish(self) -> None:
        """Make this folder and the output, where they are not there yet.

        Raises
        ------
        OutputError
            It would have to lie where nothing can be written, or on another file system than the output.
        OSError
            The output cannot be made.
        """
        if self.is_beside and self.root.resolve().is_mount():
            raise self._refuse_place(self.folder, "would be on another file system")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if self.is_beside:
                raise self._refuse_place(self.folder, f"cannot be made: {error.strerror}") from error
            raise
        self.root.mkdir(exist_ok=True)
        self.check()

    def move_beside(self) -> None:
        """Move the folder out of the output, where an earlier release put it; its locks go with it.

        Raises
        ------
        OutputError
            It cannot be moved.
        """
        beside = place_beside(self.root)
        if not self.is_beside:
            try:
                self.folder.rename(beside)
            except OSError as error:
                raise self._refuse_place(beside, f"cannot be made: {error.strerror}") from error
            self._use(self.root, beside)

    def _refuse_place(self, place: Path, reason: str) -> OutputError:
        return OutputError(
            f"{place} {reason}; what robustgen records of {self.root} lies beside it, as all folders in it "
            "are classes. Choose another output"
        )

    # --- settings

    @property
    def has_settings(self) -> bool:
        """Whether a run of robustgen began here."""
        return self._settings.exists()

    @property
    def has_journals(self) -> bool:
        """Whether a run of robustgen recorded anything here."""
        return any(self.folder.glob("journal*.jsonl"))

    def check(self) -> None:
        """Refuse a state folder with links in it: what is kept here lies here.

        Raises
        ------
        OutputError
            The message names the link.
        """
        check_real(self.folder.parent, f"{self.folder.name}/")
        for folder, folders, files in os.walk(self.folder):
            for name in (*folders, *files):
                if (place := Path(folder, name)).is_symlink():
                    raise OutputError(f"{place}: is a link; what robustgen records lies in real files only")

    def settings(self) -> dict[str, Any]:
        """The settings that the output was made with; empty where there are none.

        Raises
        ------
        OutputError
            They are damaged.
        """
        if not self.has_settings:
            return {}
        settings = _read_with_remedy(self._settings, ANEW)
        if missing := {"output", "parameters", "versions"} - settings.keys():
            raise OutputError(f"{self._settings} is damaged: it has no {min(missing)!r}. {ANEW}")
        return settings

    def write_settings(self, settings: dict[str, Any]) -> None:
        """Record `settings`; they must outlive a power cut, as nothing else tells what the files are."""
        self._write(self._settings, settings, durable=True)

    # --- what dataset.json says

    @property
    def has_about(self) -> bool:
        """Whether a run came so far as to describe the data set."""
        return self._about.exists()

    def about(self) -> dict[str, Any]:
        """The description of the data set.

        Raises
        ------
        OutputError
            It is damaged.
        """
        about = _read_with_remedy(self._about, _AGAIN)
        for name, kind in {"arms": list, "arrays": list, "images": int, "source": dict}.items():
            if not isinstance(about.get(name), kind):
                raise OutputError(f"{self._about} is damaged: it has no {name!r}. {_AGAIN}")
        if not all(isinstance(text, str) for text in (*about["arms"], *about["arrays"])):
            raise OutputError(f"{self._about} is damaged: 'arms' and 'arrays' must be names. {_AGAIN}")
        return about

    def write_about(self, about: dict[str, Any]) -> None:
        """Record what `dataset.json` will say beside settings and counts."""
        self._write(self._about, about)

    # --- the source

    @property
    def source_index(self) -> Path:
        """Where a run keeps the index of its source; there need not be one."""
        return self.folder / "source-index"

    def write_source_index(self, index: bytes) -> None:
        """Keep the `index` of a source for runs to come; two shards may do so at once."""
        self._write_bytes(self.source_index, index, durable=False)

    # --- receipts

    def journal(self, part: str = "") -> Journal:
        """The journal of a run, or of one `part` of it (``"2-of-3"``), open for appending."""
        name = f"journal-{part}.jsonl" if part else "journal.jsonl"
        return Journal(self.folder / name, self.journals().last_run() + 1)

    def journals(self) -> JournalReader:
        """What reads all journals."""
        return JournalReader(self.folder)

    def receipts(self) -> Iterator[Receipt]:
        """The receipts of all journals that can be relied on, in the order written."""
        return self.journals().receipts()

    def mend_journals(self) -> None:
        """Drop the lines that are not as they were written; what they told of will be made again."""
        for path in sorted(self.folder.glob("journal*.jsonl")):
            lines = b"".join(keep_whole_lines(path))
            if len(lines) != path.stat().st_size:
                self._write_bytes(path, lines, durable=True)

    # --- assembled files

    def assembled(self, name: str) -> Assembled | None:
        """The record of the files assembled under `name`; None if there is none that can be read."""
        try:
            return _read_assembled(self._assembled(name))
        except (OSError, ValueError):
            return None

    def record_assembled(self, name: str, files: Sequence[WrittenFile], layout: str = "") -> None:
        """Record that `files`, assembled under `name`, are whole."""
        content = {"files": [to_json(file) for file in files], "layout": layout}
        self._write(self._assembled(name), content, durable=True)

    def forget_assembled(self, name: str) -> None:
        """Remove the record of `name`."""
        self._assembled(name).unlink(missing_ok=True)

    def assembled_files(self) -> Iterator[WrittenFile]:
        """All files that were assembled.

        Raises
        ------
        OutputError
            A record is damaged.
        """
        for path in self._assembled_records():
            try:
                yield from _read_assembled(path).files
            except ValueError as error:
                raise OutputError(f"{path} is damaged: {error}. {_AGAIN}") from error

    def assembled_names(self) -> list[str]:
        """The names under which files were assembled."""
        folder = self.folder / "assembled"
        return [
            path.relative_to(folder).as_posix().removesuffix(".json") for path in self._assembled_records()
        ]

    def _assembled_records(self) -> list[Path]:
        return sorted((self.folder / "assembled").rglob("*.json"))

    def _assembled(self, name: str) -> Path:
        return self.folder / "assembled" / f"{name}.json"

    # --- temporary files

    def clear_temporary(self) -> None:
        """Empty the folder of files that are not whole; what a killed run left there is of no use."""
        self.remove_temporary()
        self.make_temporary()

    def make_temporary(self) -> None:
        """Make the folder of files that are not whole, if it is not there."""
        self._temporary.mkdir(exist_ok=True)

    def remove_temporary(self) -> None:
        """Remove the folder of files that are not whole."""
        self._remove_tree(self._temporary.name)

    def remove_all(self) -> None:
        """Remove everything but the locks."""
        for entry in self.folder.iterdir():
            if entry.suffix != ".lock" and entry.name != "lock":
                self._remove_tree(entry.name) if entry.is_dir() else entry.unlink()
        self.make_temporary()

    def remove(self) -> None:
        """Remove the folder."""
        remove_tree(self.folder.parent, self.folder.name)

    def _remove_tree(self, name: str) -> None:
        remove_tree(self.folder.parent, f"{self.folder.name}/{name}")

    # --- locks

    def lock(self, *, shared: bool = False, wait: bool = False) -> IO[bytes]:
        """Keep all other runs out, or with `shared` all that do not share; the lock ends with the file.

        Raises
        ------
        OutputError
            Another run is writing here.
        """
        return lock_file(self.folder / "lock", self.root, shared=shared, wait=wait)

    def lock_agreement(self) -> IO[bytes]:
        """Wait until no other shard is settling what the output is."""
        return lock_file(self.folder / "agreement.lock", self.root, wait=True)

    def lock_partial(self) -> IO[bytes]:
        """Wait until no other shard is laying out the files that are being filled."""
        self.partial.mkdir(parents=True, exist_ok=True)
        return lock_file(self.partial / "lock", self.root, wait=True)

    def lock_shard(self, number: int, count: int, plan: str) -> IO[bytes]:
        """Hold shard `number` of `count` of the plan with the digest `plan`, and keep other plans out."""
        for path in self.folder.glob("shard-*.lock"):
            if not path.name.endswith(f"-of-{count}-{plan}.lock"):
                lock_file(path, self.root).close()
        return lock_file(self.folder / f"shard-{number}-of-{count}-{plan}.lock", self.root)

    @property
    def is_finishing(self) -> bool:
        """Whether a shard holds the lock only for its last steps, so that waiting is worth it."""
        return self._finishing.exists()

    def mark_finishing(self, finishing: bool) -> None:
        """Say whether the last shard takes its last steps."""
        if finishing:
            self._finishing.touch()
        else:
            self._finishing.unlink(missing_ok=True)

    def _write(self, path: Path, content: dict[str, Any], *, durable: bool = False) -> None:
        text = json.dumps(content, indent=1, sort_keys=True)
        self._write_bytes(path, text.encode(), durable=durable)

    def _write_bytes(self, path: Path, data: bytes, *, durable: bool) -> None:
        base = self.folder.parent
        with closing(FileWriter(base, self._temporary)) as files:
            files.write(path.relative_to(base).as_posix(), data, durable=durable)


def _read_assembled(path: Path) -> Assembled:
    content = read_object(path)
    entries, layout = content.get("files"), content.get("layout")
    if not isinstance(entries, list) or not isinstance(layout, str):
        raise ValueError("it is no record of assembled files")
    written = from_json(entries)
    files = [file for file in written if isinstance(file, WrittenFile)]
    if files != written:
        raise ValueError("it is no record of assembled files")
    return Assembled(files, layout)


def _read_with_remedy(path: Path, remedy: str) -> dict[str, Any]:
    try:
        return read_object(path)
    except OutputError as error:
        raise OutputError(f"{error}. {remedy}") from error


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in the file at `path`.

    Raises
    ------
    OutputError
        The file is damaged, or not robustgen's.
    """
    try:
        with open_regular(path) as file:
            content = json.loads(file.read())
    except ValueError as error:
        raise OutputError(f"{path} is damaged: {error}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise OutputError(f"{path} {error.strerror}") from error
    if not isinstance(content, dict):
        raise OutputError(f"{path} is damaged: it holds no object")
    return content


# --- locks -----------------------------------------------------------------------------------------


def lock_file(path: Path, root: Path, *, shared: bool = False, wait: bool = False) -> IO[bytes]:
    """Lock the file at `path`, for the output at `root`; closing it lets go.

    Raises
    ------
    OutputError
        Another run holds it, or the file system has no locks.
    """
    new = not path.exists()
    lock = open_to_append(path)
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    try:
        fcntl.flock(lock, how)
    except OSError as error:
        lock.close()
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise OutputError(f"{root}: another run is writing here") from error
        if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
            if new:
                path.unlink(missing_ok=True)
            raise OutputError(
                f"{root}: its file system has no locks ({error.strerror}), "
                "by which runs keep each other out; write to another one"
            ) from error
        raise
    return lock


@contextmanager
def lock_output(root: Path) -> Iterator[None]:
    """Keep every run out of the output at `root`; temporary files can be made there meanwhile.

    Raises
    ------
    OutputError
        A run is writing there.
    """
    state = State(root)
    state.check()
    with state.lock():
        state.clear_temporary()
        try:
            yield
        finally:
            state.remove_temporary()


@contextmanager
def claim_output(output: Path, source: Path, check: Callable[[Path], None]) -> Iterator[None]:
    """As `lock_output`, of a folder that may not be there yet; what the disk refuses becomes a WriteError.

    `check` is called with `output` before anything is made, to refuse what is not of an earlier run.

    Raises
    ------
    OutputError
        `output` cannot be written, lies inside `source`, or is held by another run.
    """
    if output.resolve().is_relative_to(source.resolve()):
        raise OutputError(f"{output}: lies inside the source {source}")
    if output.exists() and not output.is_dir():
        raise OutputError(f"{output}: is a file")
    new = [path for path in (output / STATE, output, *output.parents) if not path.exists()]
    try:
        check(output)
        (output / STATE).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if isinstance(error, RobustgenError):
            raise
        raise OutputError(f"{output}: cannot be written: {error.strerror}") from error
    try:
        with lock_output(output):
            yield
    except RobustgenError:
        # Nothing is left of an output that could not even be locked; what holds a lock is not empty.
        with suppress(OSError):
            for folder in new:
                folder.rmdir()
        raise
    except OSError as error:
        raise WriteError(f"{output}: {error.strerror or error}") from error
