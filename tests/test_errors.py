"""Errors: they say why, name the image once, and travel between processes."""

import pickle

import pytest

from robustgen.errors import ImageError, UnknownNameError, explain_failure


@pytest.mark.parametrize(
    "error",
    [ImageError("damaged", "a/b.jpg"), ImageError("too small"), UnknownNameError("edition", "x", ["y"])],
)
def test_errors_are_equal_in_another_process(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_a_reason_does_not_repeat_the_key_but_names_other_files():
    assert str(ImageError("damaged", "a/b.jpg")) == "'a/b.jpg': damaged"
    assert explain_failure(ImageError("damaged", "a/b.jpg"), "a/b.jpg") == "damaged"
    assert explain_failure(ImageError("damaged", "maps/b.npy"), "a/b.jpg") == "'maps/b.npy': damaged"
    assert explain_failure(OSError("gone"), "a/b.jpg") == "OSError: gone"
