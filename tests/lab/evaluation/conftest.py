"""Digits in class folders, and records that wait."""

from threading import Event

import pytest

from robustgen.lab.evaluation.store import PredictionStore
from robustgen.lab.models.onnx import OnnxModel
from tests.digits import put_folder
from tests.helpers import PATIENCE


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    return put_folder(tmp_path_factory.mktemp("digits") / "digits", 30)


@pytest.fixture
def records_wait(monkeypatch):
    """Record no unit of eight images until the model has seen images of the next one; hold that it has."""
    seen, is_next, run, put = [], Event(), OnnxModel.run, PredictionStore.put_unit

    def watch(self, images, own):
        seen.extend(images)
        # At most two images find out whether all fits.
        if len(seen) > 2 + 8:
            is_next.set()
        return run(self, images, own)

    def wait(*arguments):
        assert is_next.wait(PATIENCE)
        put(*arguments)

    monkeypatch.setattr(OnnxModel, "run", watch)
    monkeypatch.setattr(PredictionStore, "put_unit", wait)
    yield
    assert is_next.is_set()
