"""Rules that compare an answer with the right ones, by cases worked by hand."""

import pytest

from robustgen.errors import ArgumentError
from robustgen.lab.scores.answer_rules import MATCHES, compute_anls, list_values, score_answer

OPTIONS = {"A": "a red cat", "B": "two dogs", "C": "3.5", "D": "-3.5"}


@pytest.mark.parametrize(
    ("rule", "answer", "right", "score"),
    [
        ("exact", " Cat ", "Cat", 1),
        ("exact", "cat", "Cat", 0),
        ("words", "The cat!", "the cat", 1),
        ("words", "3.5", "35", 0),
        ("words", "-3", "3", 0),
        ("words", "ST. JOHN'S", "st john s", 1),
        ("words", "+", "-", 0),
        ("choice", "b", "B", 1),
        ("choice", "(B)", "B", 1),
        ("choice", "B. two dogs", "B", 1),
        ("choice", "Two dogs.", "B", 1),
        ("choice", "-3.5", "C", 0),
        ("choice", "The answer is (B), not A.", "B", 1),
        ("choice", "A cat and I sit here, so D", "D", 1),
        ("choice", "B or C", "B", None),
        ("choice", "A cat", "A", None),
        ("choice", "I'd say nothing", "A", None),
        ("choice", "<think>A? C?</think> B", "B", 1),
        ("choice", "B", "two dogs", 1),
        ("yes-no", "Yes, there is.", "yes", 1),
        ("yes-no", "No", "Yes", 0),
        ("yes-no", "yes and no", "Yes", None),
        ("yes-no", "nothing", "No", None),
        ("number", "104.9", "100", 1),
        ("number", "105.1", "100", 0),
        ("number", "-95", "-100", 1),
        ("number", "5%", "0.05", 1),
        ("number", "0.01", "0", 0),
        ("number", "Blue", "blue", 1),
        ("anls", "Henry  Ford", "henry ford", 1),
        ("anls", "abcd", "abcx", 0.75),
        ("anls", "ab", "ax", 0.5),
        ("anls", "abc", "axy", 0),
        ("words", "seven", "['7', 'Seven']", 1),
        ("words", ["7", "8"], "7", 0.5),
    ],
)
def test_an_answer_is_compared_as_its_rule_says(rule, answer, right, score):
    assert score_answer(rule, answer, right, OPTIONS) == score


def test_a_right_answer_that_is_no_choice_is_an_error():
    for rule in ("choice", "yes-no"):
        with pytest.raises(ArgumentError, match="does not fit"):
            score_answer(rule, "A", "eleven", OPTIONS)


def test_distances_are_those_of_plain_recursion():
    def distance(one, other):
        if not one or not other:
            return len(one) + len(other)
        change = distance(one[1:], other[1:]) + (one[0] != other[0])
        return min(change, distance(one[1:], other) + 1, distance(one, other[1:]) + 1)

    for one, other in (("kitten", "sitting"), ("", "ab"), ("flaw", "lawn"), ("abab", "baba"), ("x", "x")):
        similarity = 1 - distance(one, other) / max(len(one), len(other))
        assert compute_anls(one, other) == (similarity if similarity >= 0.5 else 0)


def test_matches_have_the_rule_of_their_set():
    matches = list_values("[0.0, True, 0.25]")
    assert [MATCHES[name](matches) for name in ("mean", "max", "distance")] == [pytest.approx(1.25 / 3), 1, 1]
    assert MATCHES["distance"]([0.75, 0.6]) == 0
    assert list_values("[not a list") == ["[not a list"]
