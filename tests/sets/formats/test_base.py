"""Written sets, whatever their format: how many images are read at once."""

import threading

import numpy as np

from robustgen.files.storage import open_store
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.formats.trees import TreeSet
from tests.helpers import make_c
from tests.sets.sources.test_source_urls import upload


def test_the_images_of_a_batch_are_read_at_once_from_a_server(photos, tmp_path, monkeypatch):
    flags = ("--corruptions", "contrast", "--severities", "1", "--edition", "imagenet-64")
    make_c(photos, tmp_path / "out", *flags)
    url = upload(tmp_path / "out", open_store(f"memory://{tmp_path.name}/set"))
    local, remote = open_set(tmp_path / "out"), open_set(url)
    # Each of five images waits for the others.
    barrier, load = threading.Barrier(5, timeout=60), TreeSet.load

    def load_together(dataset, variant, key):
        if dataset is remote:
            barrier.wait()
        return load(dataset, variant, key)

    monkeypatch.setattr(TreeSet, "load", load_together)
    for variant in remote:
        (expected,), (batch,) = local.batches(variant, 5), remote.batches(variant, 5)
        assert np.array_equal(batch, expected) and len(batch) == 5
