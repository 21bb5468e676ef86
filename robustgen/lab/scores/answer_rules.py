"""Rules that compare the text that a model answers with the right answers: scores from 0 to 1."""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from statistics import fmean
from typing import Any, Final

from robustgen.errors import ArgumentError

Options = Mapping[str, str]
"""Texts of the choices of a question by their letters."""
# Punctuation, but for signs and decimal points of numbers.
_PUNCTUATION: Final = re.compile(r"(?!(?<!\w)-\d|(?<=\d)\.\d)[^\w\s]")
# A letter alone; a letter that begins an answer, as in "B. a cat"; a letter that a sentence names.
_ALONE: Final = re.compile(r"\W*([A-Za-z])\W*")
_FIRST: Final = re.compile(r"\W*([A-Z])\s*[).:,\n]")
_NAMED: Final = re.compile(r"(?:answer|option|choice)(?:\s+is)?\W+([A-Z])\b(?!['\u2019])", re.IGNORECASE)
# "A" and "I" are also words.
_LETTER: Final = re.compile(r"\b(?![AI]\s+[a-z])([A-Z])\b(?!['\u2019])")
_YES_OR_NO: Final = {"yes", "no"}
# Published tolerances of ChartQA and of ANLS.
_RELATIVE: Final = 0.05
_LEAST_SIMILARITY: Final = 0.5


def simplify(text: str) -> str:
    """Return a text in small letters without punctuation; signs and decimal points of numbers stay."""
    folded = text.strip().casefold()
    return " ".join(_PUNCTUATION.sub(" ", folded).split()) or folded


def read_choice(text: str, options: Options) -> str | None:
    """Return the letter of the choice that a text names; None if it names none, or several."""
    if found := _ALONE.fullmatch(text):
        return found[1].upper()
    if named := [letter for letter, option in options.items() if simplify(option) == simplify(text)]:
        return named[0]
    if found := _FIRST.match(text):
        return found[1]
    letters = {each.upper() for each in _NAMED.findall(text)} or {*_LETTER.findall(text)}
    return letters.pop() if len(letters) == 1 else None


def read_yes_or_no(text: str, _: Options) -> str | None:
    """Return yes or no; None if a text has neither word, or both."""
    words = _YES_OR_NO & {*simplify(text).split()}
    return words.pop() if len(words) == 1 else None


def is_near(text: str, right: str) -> bool:
    """Return whether a number is within 5 % of the right one, or a text equal but for case; ChartQA."""
    try:
        number, wanted = (
            float(each.rstrip("%")) / (100 if each.endswith("%") else 1)
            for each in (text.strip(), right.strip())
        )
    except ValueError:
        return text.strip().lower() == right.strip().lower()
    return abs(number - wanted) <= _RELATIVE * abs(wanted) if wanted else text.strip() == right.strip()


def compute_anls(text: str, right: str) -> float:
    """Return 1 minus Levenshtein's distance over the longer length, 0 if that is below one half.

    Case and repeated spaces do not count; Biten et al. 2019, section 4.
    """
    one, other = (" ".join(each.casefold().split()) for each in (text, right))
    longest = max(len(one), len(other), 1)
    if abs(len(one) - len(other)) > _LEAST_SIMILARITY * longest:
        return 0.0
    distances = [*range(len(other) + 1)]
    for row, letter in enumerate(one, 1):
        last, distances[0] = distances[0], row
        for column, wanted in enumerate(other, 1):
            change = last + (letter != wanted)
            last = distances[column]
            distances[column] = min(change, last + 1, distances[column - 1] + 1)
    similarity = 1 - distances[-1] / longest
    return similarity if similarity >= _LEAST_SIMILARITY else 0.0


_READERS: Final[Mapping[str, Callable[[str, Options], str | None]]] = {
    "choice": read_choice,
    "yes-no": read_yes_or_no,
}
_COMPARISONS: Final[Mapping[str, Callable[[str, str], float]]] = {
    "exact": lambda text, right: text.strip() == right.strip(),
    "words": lambda text, right: simplify(text) == simplify(right),
    "number": is_near,
    "anls": compute_anls,
}
MATCHES: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "mean": fmean,
    "max": max,
    "distance": lambda values: (1 - min(values)) * (1 - min(values) >= _LEAST_SIMILARITY),
}
"""Rules of VLMEvalKit's sets for the matches of an answer with all right ones."""


def list_values(value: Any) -> list[Any]:
    """Return the values of a list, or of a text that is one in Python; anything else is a single value."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            value = ast.literal_eval(value.strip())
    return [*value] if isinstance(value, (list, tuple)) else [value]


def score_answer(rule: str, answer: object, right: object, options: Options) -> float | None:
    """Return the score of an answer, the best over all right ones; the mean of several answers.

    None if a choice is asked for, or yes or no, and the answer names none.

    Raises
    ------
    ArgumentError
        A right answer is no choice, or neither yes nor no.
    """
    wanted = [*map(str, list_values(right))]
    # Models that reason aloud answer at the end.
    texts = [
        str(each).rpartition("</think>")[2] for each in (answer if isinstance(answer, list) else [answer])
    ]
    if rule in _COMPARISONS:
        return fmean(max(float(_COMPARISONS[rule](text, each)) for each in wanted) for text in texts)
    read = _READERS[rule]
    known, found = ({read(each, options) for each in wanted}, [read(each, options) for each in texts])
    if None in known:
        raise ArgumentError(f"the right answer {wanted[0]!r} does not fit --rule {rule}")
    return None if None in found and len(found) == 1 else fmean(each in known for each in found)
