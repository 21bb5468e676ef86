"""Every exception robustgen raises on purpose.

    RobustgenError
      + ArgumentError        (ValueError)    a value a caller passed cannot be used
      |   + UnknownNameError                 no such corruption, edition, ...; names the nearest
      |   + ConfigError                      a YAML file or a flag is wrong; names file and key
      |   + SourceError                      a source of images is missing, empty or malformed
      |   + OutputError                      an output folder cannot be used
      + ArgumentTypeError    (TypeError)     an argument has the wrong type
      + WriteError           (OSError)       the output could not be written any more (disk full ...)
      + ImageError           (ValueError)    one image cannot be read or used; the others can
      + MissingDependencyError (ImportError) a library or its files are absent; says the remedy

`exit_code` is the status with which the command line ends: 1 where some images
failed, 2 where the command or its config is wrong.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class RobustgenError(Exception):
    """Base of all of robustgen's own exceptions."""

    exit_code = 2


class ArgumentError(RobustgenError, ValueError):
    """A value cannot be used; the message says why."""


class UnknownNameError(ArgumentError):
    """A name is not among the known ones.

    Parameters
    ----------
    kind : str
        What the name was to be, for instance ``"corruption"``.
    name : str
        The name as given.
    known : iterable of str
        The names that would have been right.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        near = get_close_matches(str(name).lower(), self.known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "known: " + ", ".join(self.known)
        super().__init__(f"unknown {kind} {name!r} ({hint})")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.kind, self.name, self.known)


class ConfigError(ArgumentError):
    """A config file or command-line flag is wrong; the message names the file and the key."""


class SourceError(ArgumentError):
    """A source of images is missing, empty or malformed."""


def explain_no_folder(path: Path) -> str:
    """Return why `path` is no folder: ``"no such folder"``, or ``"not a folder"`` of something else."""
    return "not a folder" if path.exists() else "no such folder"


class OutputError(ArgumentError):
    """An output folder cannot be used."""


class ArgumentTypeError(RobustgenError, TypeError):
    """An argument has the wrong type."""


class WriteError(RobustgenError, OSError):
    """The output could not be written any more; what is done stays done, and the run can be continued."""

    exit_code = 1


class ImageError(RobustgenError, ValueError):
    """One image cannot be read or used; a run records it and goes on with the rest."""

    exit_code = 1


class MissingDependencyError(RobustgenError, ImportError):
    """A library, or a file that a library should carry, is absent; the message says the remedy."""


def explain_failure(error: Exception) -> str:
    """Return why an image could not be made; an error that is no `ImageError` with its type."""
    return str(error) if isinstance(error, ImageError) else name_error(error)


def name_error(error: BaseException) -> str:
    """Return the type of an error of someone else's and what it says, if it can be made to."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as failure:
        return f"{type(error).__name__}, which cannot be printed ({type(failure).__name__})"
