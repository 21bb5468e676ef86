"""The classifier of digits, and digits in class folders."""

import pytest

from tests.digits import put_folder, put_model


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return put_model(tmp_path_factory.mktemp("model") / "digits.onnx")


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    return put_folder(tmp_path_factory.mktemp("digits") / "digits", 30)
