"""All exceptions that robustgen raises on purpose.

    RobustgenError
      + ArgumentError        (ValueError)    an argument has an invalid value
      |   + UnknownNameError                 an unknown corruption, edition, ...; names the nearest
      |   + ConfigError                      a YAML file or a flag is wrong; names file and key
      |   + SourceError                      a source of images is missing, empty or malformed
      |   |   + UnfinishedError              a run has not finished what is to be read
      |   + OutputError                      an output folder cannot be used
      + ArgumentTypeError    (TypeError)     an argument has the wrong type
      + WriteError           (OSError)       the output can no longer be written (disk full ...)
      + ImageError           (ValueError)    one image cannot be read or used; the others can
      + MissingDependencyError (ImportError) a library or its files are missing; says what to install

`exit_code` is the exit status of the command line: 1 if some images failed, 2 if the
command or its config is wrong.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Final

__all__ = [
    "ArgumentError", "ArgumentTypeError", "ConfigError", "DecodingWarning", "ImageError",
    "MissingDependencyError", "OutputError", "RobustgenError", "SourceError", "UnfinishedError",
    "UnknownNameError", "WriteError",
]  # fmt: skip

_MOST_QUOTED: Final = 200
_MOST_LISTED: Final = 50


def __dir__() -> list[str]:
    return __all__


def quote(value: object) -> str:
    """Return the representation of a value for a message; a long one without its middle."""
    text = repr(value)
    return text if len(text) <= _MOST_QUOTED else f"{text[: _MOST_QUOTED - 50]} ... {text[-40:]}"


class RobustgenError(Exception):
    """Base class of robustgen's own exceptions."""

    exit_code = 2


class ArgumentError(RobustgenError, ValueError):
    """An argument has an invalid value; the message says why."""


class UnknownNameError(ArgumentError):
    """A name is unknown.

    Parameters
    ----------
    noun : str
        Noun for what has the name, for instance ``"corruption"``.
    name : str
        The name as given.
    known : iterable of str
        The valid names.
    """

    def __init__(self, noun: str, name: str, known: Iterable[str]) -> None:
        self.noun: str = noun
        self.name: str = name
        self.known: tuple[str, ...] = tuple(known)
        by_lower = {each.lower(): each for each in self.known}
        near = get_close_matches(str(name)[:_MOST_QUOTED].lower(), by_lower, n=1)
        listed = ", ".join([*self.known[:_MOST_LISTED], *["..."] * (len(self.known) > _MOST_LISTED)])
        hint = f"did you mean {by_lower[near[0]]!r}?" if near else f"known: {listed or 'none'}"
        super().__init__(f"unknown {noun} {quote(name)} ({hint})")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.noun, self.name, self.known)


class ConfigError(ArgumentError):
    """A config file or command-line flag is wrong; the message names the file and the key."""


class SourceError(ArgumentError):
    """A source of images is missing, empty or malformed."""


class UnfinishedError(SourceError):
    """A run has not finished what is to be read; the same command resumes it."""


class OutputError(ArgumentError):
    """An output folder cannot be used."""


class ArgumentTypeError(RobustgenError, TypeError):
    """An argument has the wrong type."""


class WriteError(RobustgenError, OSError):
    """The output can no longer be written; finished files stay, and the run can be resumed."""

    exit_code = 1


class ImageError(RobustgenError, ValueError):
    """One image cannot be read or used; a run records it and continues with the others.

    Parameters
    ----------
    reason : str
        Why the image cannot be used.
    key : str, optional
        Key or name of the image, with which the message begins.
    """

    exit_code = 1

    def __init__(self, reason: str, key: str = "") -> None:
        self.reason: str = reason
        self.key: str = key
        super().__init__(f"{key!r}: {reason}" if key else reason)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.reason, self.key)


class MissingDependencyError(RobustgenError, ImportError):
    """A library, or a file of a library, is missing; the message says what to install."""


@contextmanager
def raise_as(kind: type[RobustgenError], problem: str, *caught: type[BaseException]) -> Iterator[None]:
    """Turn an error of one of the types `caught` into one of `kind`: the `problem`, and the reason."""
    try:
        yield
    except caught as error:
        raise kind(f"{problem}: {getattr(error, 'strerror', None) or error}") from error


@contextmanager
def explain_import(lacking: str, extra: str) -> Iterator[None]:
    """Turn an ImportError into a MissingDependencyError: what is `lacking`, and the `extra` that has it."""
    try:
        yield
    except ImportError as error:
        raise MissingDependencyError(f"{lacking}: pip install 'robustgen[{extra}]'") from error


class DecodingWarning(UserWarning):
    """Warning about an image that could be read: of its decoder, or of few grey levels."""


def explain_failure(error: Exception, key: str) -> str:
    """Return why the image `key` failed, without the key; errors other than `ImageError` with their type."""
    if isinstance(error, ImageError):
        return error.reason if error.key == key else str(error)
    return name_error(error)


def name_error(error: BaseException) -> str:
    """Return the type and message of a foreign error, even if it cannot be printed."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as failure:
        return f"{type(error).__name__}, which cannot be printed ({type(failure).__name__})"
