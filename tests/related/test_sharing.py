"""The filters and `stream measure`, started three times at once: they divide the work between them."""

import pytest

from tests.digits import put_folder
from tests.lab.evaluation.test_sharing import PLAIN, check_resuming, check_sharing

pytestmark = pytest.mark.slow("three processes share each result")


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return put_folder(tmp_path_factory.mktemp("digits") / "digits", 24)


def test_filter(digits, model, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("".join(f"digit {number}\n" for number in range(10)))
    flags = (*PLAIN, "--classes", names, "--batch-size", "1", "--max-confidence", "1")
    check_sharing(tmp_path, ("filter", "a", digits, "--model", model, *flags))


def test_measure(digits, model, tmp_path):
    flags = (*PLAIN, "--input-size", "32", "--limit", "6", "--jobs", "1")
    flags = (*flags, "--target", "0", "--severities", "0,2,5")
    command = ("stream", "measure", "--source", digits, "--model", model, *flags)
    check_sharing(tmp_path, command, file="accuracies.json")
    check_resuming(tmp_path, command, file="accuracies.json")
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["accuracies.json"]
