"""The data set of corrupted clips: the clips that make-c writes, as tensors."""

import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.errors import ArgumentError, ImageError
from robustgen.pixels.benchmarks.kinds import Variant
from robustgen.torch import ClipDataset
from tests.helpers import make_c, photo

pytest.importorskip("av")
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    root = tmp_path_factory.mktemp("clips")
    for number, key in enumerate(("cat/a", "dog/b")):
        (root / key).mkdir(parents=True)
        picture = photo(60, 80, number)
        for frame in range(9):
            window = picture[frame : frame + 40, 2 * frame : 2 * frame + 48]
            Image.fromarray(window).save(root / key / f"{frame}.png")
    return root


@pytest.mark.parametrize(("name", "level"), [("fog", 3), ("video-c:rain", 1), ("video-c:motion_blur", 1)])
def test_the_clips_are_those_that_make_c_writes(clips, tmp_path, name, level):
    flags = ("--dataset", "clips", "--corruptions", name, "--severities", level, "--jobs", "1")
    make_c(clips, tmp_path, *flags)
    written, dataset = robustgen.open_set(tmp_path), ClipDataset(clips, name, level)
    variant = robustgen.IMAGENET_C.variant(name, level)
    assert (len(dataset), dataset.keys, dataset.classes) == (2, ("cat/a", "dog/b"), ("cat", "dog"))
    for index, key in enumerate(("cat/a.mp4", "dog/b.mp4")):
        clip, label = dataset[index]
        expected = written.load(variant, key)
        assert clip.dtype == torch.uint8 and label == index
        assert np.array_equal(clip.permute(0, 2, 3, 1).numpy(), expected)
    assert [ClipDataset(clips, word).variant.level for word in ("fog", "clean")] == [3, 0]
    clean, _ = ClipDataset(clips, "clean")[0]
    assert np.array_equal(clean.permute(0, 2, 3, 1), written.load(Variant("clean", 0, "clean"), "cat/a.mp4"))


def test_frames_are_chosen_and_transformed(clips):
    clip, _ = ClipDataset(clips, "clean", frames=4, transform=lambda clip: clip.float())[1]
    whole, _ = ClipDataset(clips, "clean")[1]
    assert clip.dtype == torch.float32
    assert torch.equal(clip.byte(), whole[[0, 2, 4, 6]])
    assert ClipDataset(clips, "clean", edition="kinetics@32")[0][0].shape == (9, 3, 32, 32)


def test_bad_clips_and_choices_are_named(clips, tmp_path):
    (tmp_path / "a.mp4").write_bytes(b"no video")
    with pytest.raises(ImageError, match="a"):
        ClipDataset(tmp_path, "fog", 1)[0]
    for name, level, more in (
        ("fogg", 1, {}),
        ("fog", 9, {}),
        ("fog", 1, {"frames": 0}),
        ("fog", 1, {"temporal": "still"}),
        ("fog", 1, {"fps": 0}),
    ):
        with pytest.raises(ArgumentError):
            ClipDataset(clips, name, level, **more)
