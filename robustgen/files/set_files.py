"""Files of a set: their names, finished files, and the JSON objects that describe it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from robustgen.errors import OutputError, SourceError
from robustgen.files.storage import Store
from robustgen.files.text_files import parse_object

STATE: Final = ".robustgen"
"""Folder of the output state."""


SUMS, FRAMES, MANIFEST = "SHA256SUMS", "FRAMES.SHA256", "dataset.json"
ERRORS, NOTES = "errors.jsonl", "notes.jsonl"


TABLES: Final = "data"
"""Parent of the folders of Parquet; it has only tables, as pandas, Polars and Dask read whole folders."""


MANIFEST_SUMS: Final = "MANIFEST.SHA256"
"""Checksums of the manifest and of the other files that describe the set, which `SUMS` does not list."""


SCHEMA: Final = 1
"""Number of the schemas in `robustgen/files/schemas`; any change that older readers misread increases it."""


START_OVER: Final = "Choose another output, or start over with --overwrite"


class AnotherSetError(OutputError):
    """Error: the output was created with other settings, from other images, or by another version."""


def read_described(store: Store, path: str, schema: int | None = SCHEMA) -> dict[str, Any]:
    """Read the JSON object that robustgen wrote at `path`, with the number of its `schema`, if it has any.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        There is no such file.
    AnotherSetError
        The file is damaged, or has another schema number.
    """
    try:
        content = parse_object(store.read(path))
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError) as error:
        raise AnotherSetError(f"{store.location}/{path}: cannot be read ({error}). {START_OVER}") from error
    if content.get("schema") != schema:
        found = f"schema {content['schema']!r}" if "schema" in content else "no schema number"
        raise AnotherSetError(
            f"{store.location}/{path}: has {found}, and this version of robustgen reads schema {schema}: "
            f"another version or program wrote it. {START_OVER}"
        )
    return content


def has_mirror(manifest: Mapping[str, Any]) -> bool:
    """Return whether a set repeats other files of its source, which may be pictures too."""
    return bool(manifest.get("config", {}).get("mirror"))


class WrittenFile(NamedTuple):
    """A finished file.

    Attributes
    ----------
    path : str
        POSIX path below the output; for a file of one image, below the folder of the variant.
    size : int
        Bytes.
    sha256 : str
        Hexadecimal digest of the file.
    frames : str
        Digest of the decoded frames of a video; empty for other files.
    """

    path: str
    size: int
    sha256: str
    frames: str = ""


def check_folder(store: Store) -> None:
    """Raise a SourceError unless a local folder exists, or a remote one contains files."""
    path = Path(store.location)
    if store.is_local and not path.is_dir():
        raise SourceError(f"{path}: {'not a folder' if path.exists() else 'no such folder'}")
    if not store.is_local and next(iter(store.list()), None) is None:
        raise SourceError(f"{store.location}: contains no files")
