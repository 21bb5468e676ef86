"""Digits in class folders."""

import pytest

from tests.digits import put_folder


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    return put_folder(tmp_path_factory.mktemp("digits") / "digits", 30)
