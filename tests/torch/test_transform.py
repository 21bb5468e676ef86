"""Corrupt, the transform for torchvision."""

import sys
from importlib import import_module

import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.errors import ArgumentError, ArgumentTypeError, MissingDependencyError
from robustgen.pixels.benchmarks.corruptions import ALL_CORRUPTIONS, FAMILIES, get_corruption
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from robustgen.torch import SeededDataset
from tests.helpers import photo


def test_without_torchvision_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.delitem(sys.modules, "robustgen.torch.transform", raising=False)
    with pytest.raises(MissingDependencyError, match=r"pip install 'robustgen\[torch\]'"):
        import_module("robustgen.torch").Corrupt  # noqa: B018


@pytest.fixture
def torch():
    pytest.importorskip("torchvision")
    return pytest.importorskip("torch")


@pytest.fixture
def tv_tensors(torch):
    from torchvision import tv_tensors

    return tv_tensors


PIXELS = photo(40, 50)


def corrupt(*args, **choices):
    from robustgen.torch import Corrupt

    return Corrupt(*args, **choices)


def planes(torch, pixels=PIXELS):
    return torch.from_numpy(pixels).permute(2, 0, 1)


def test_every_image_keeps_its_type_and_gets_the_pixels_of_corrupt(torch, tv_tensors):
    transform = corrupt("fog", 3)
    torch.manual_seed(5)
    drawn = transform.make_params([PIXELS])
    expected = robustgen.corrupt(PIXELS, "fog", 3, edition="folder", rng=drawn["seed"])
    for image in (Image.fromarray(PIXELS), planes(torch), tv_tensors.Image(planes(torch))):
        torch.manual_seed(5)
        result = transform(image)
        assert type(result) is type(image)
        array = np.asarray(result) if isinstance(result, Image.Image) else result.permute(1, 2, 0).numpy()
        np.testing.assert_array_equal(array, expected)


def test_grey_images_get_three_channels(torch):
    grey = PIXELS[:, :, :1]
    torch.manual_seed(1)
    result = corrupt("contrast", 2)(planes(torch, grey))
    expected = robustgen.corrupt(grey[:, :, 0], "contrast", 2, edition="folder")
    np.testing.assert_array_equal(result.permute(1, 2, 0).numpy(), expected)
    assert corrupt("contrast", 2)(Image.fromarray(grey[:, :, 0])).mode == "RGB"


def test_the_generator_of_pytorch_decides(torch):
    transform = corrupt(("gaussian_noise", "shot_noise", "brightness"))

    def five(seed):
        torch.manual_seed(seed)
        return torch.stack([transform(planes(torch)) for _ in range(5)])

    assert torch.equal(five(0), five(0))
    assert not torch.equal(five(0), five(1))
    assert len({bytes(image.numpy()) for image in five(0)}) > 1


def test_all_corruptions_and_severities_are_drawn_equally(torch):
    transform = corrupt(("fog", "snow"), (1, 3, 5), p=0.75)
    torch.manual_seed(0)
    drawn = [transform.make_params([PIXELS]) for _ in range(4000)]
    kept = [(each["corruption"], each["severity"]) for each in drawn if each]
    assert abs(len(kept) / 4000 - 0.75) < 0.03
    counts = [kept.count((name, severity)) for name in ("fog", "snow") for severity in (1, 3, 5)]
    assert sum(counts) == len(kept)
    assert all(abs(count / len(kept) - 1 / 6) < 0.03 for count in counts)


def sample(torch, tv_tensors):
    return {
        "image": tv_tensors.Image(planes(torch)),
        "boxes": tv_tensors.BoundingBoxes([[1, 2, 30, 20]], format="XYXY", canvas_size=(40, 50)),
        "mask": tv_tensors.Mask(torch.ones(40, 50, dtype=torch.uint8)),
        "label": torch.tensor(3),
    }


def test_boxes_masks_and_labels_are_left_alone(torch, tv_tensors):
    given = sample(torch, tv_tensors)
    result = corrupt("brightness", 5)(given)
    assert not torch.equal(result["image"], given["image"])
    for name in ("boxes", "mask", "label"):
        assert result[name] is given[name]
    image, target = corrupt("brightness", 5)(Image.fromarray(PIXELS), {"mask": given["mask"]})
    assert image.size == (50, 40) and target["mask"] is given["mask"]


def test_what_displaces_the_image_is_refused_with_boxes_unless_told(torch, tv_tensors):
    given = sample(torch, tv_tensors)
    # Refused before anything is drawn: with many corruptions it would else happen now and then.
    transform = corrupt(("brightness", "elastic_transform"), p=0)
    with pytest.raises(ArgumentError, match=r"elastic_transform moves the content .* but not the BoundingB"):
        transform(given)
    with pytest.raises(ArgumentError, match="but not the Mask"):
        transform(given["image"], given["mask"])
    result = corrupt("elastic_transform", 5, move=True)(given)
    assert not torch.equal(result["image"], given["image"])
    assert result["boxes"] is given["boxes"]
    assert isinstance(corrupt("elastic_transform", 5)(given["image"], 7)[0], tv_tensors.Image)


def test_which_corruptions_displace():
    assert {name for name, entry in ALL_CORRUPTIONS.items() if entry.displaces} == {
        *("elastic_transform", "caustic_refraction", "pinch_and_twirl", "ripple", "ccc:elastic"),
        *("laion-c:glitched", "laion-c:vertical_lines"),
        *("mnist-c:shear", "mnist-c:scale", "mnist-c:rotate", "mnist-c:translate"),
    }
    assert get_corruption("elastic_transform", "imagecorruptions").displaces


def test_scales_are_taken_as_given(torch):
    torch.manual_seed(0)
    result = corrupt("contrast", 5, scale=224)(planes(torch)).permute(1, 2, 0).numpy()
    np.testing.assert_array_equal(result, robustgen.corrupt(PIXELS, "contrast", 5, scale=224))
    assert (result != robustgen.corrupt(PIXELS, "contrast", 5, scale=32)).any()


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        ({"corruptions": "fgo"}, ArgumentError, "unknown corruption 'fgo' .did you mean 'fog'"),
        ({"corruptions": ()}, ArgumentError, "at least one corruption"),
        ({"severities": 6}, ArgumentError, "severity 6 of fog does not exist"),
        ({"severities": ("3",)}, ArgumentTypeError, "severity must be"),
        ({"severity": 3}, TypeError, "severity"),
        ({"p": 1.5}, ArgumentError, "p must be from 0 to 1, not 1.5"),
        ({"corruptions": "ripple", "scale": 64}, ArgumentError, "no published strength at scale 64"),
    ],
)
def test_wrong_choices_are_refused_at_once(torch, choices, error, message):
    with pytest.raises(error, match=message):
        corrupt(**({"corruptions": "fog"} | choices))


def test_wrong_images_are_refused(torch, tv_tensors):
    image = planes(torch)
    for sample, error, message in (
        ((image / 255,), ArgumentTypeError, r"uint8 tensors, not torch\.float32; put it"),
        ((image.expand(1, 2, 3, 40, 50),), ArgumentError, r"or 1, H, W\), not \(1, 2, 3, 40, 50\)"),
        ((tv_tensors.Image(image), tv_tensors.Image(image[None])), ArgumentError, "or batches of one size"),
        ((PIXELS, 3), ArgumentTypeError, "the sample has no image"),
        ((image[:, :20],), ArgumentError, "each side needs at least 32"),
    ):
        with pytest.raises(error, match=message):
            corrupt("fog")(*sample)


def test_a_video_is_corrupted_as_one_clip(torch, tv_tensors):
    still = tv_tensors.Video(planes(torch)[None].repeat(3, 1, 1, 1))
    torch.manual_seed(0)
    foggy = corrupt("fog")(still)
    assert isinstance(foggy, tv_tensors.Video) and foggy.shape == still.shape
    assert torch.equal(foggy[0], foggy[2]) and not torch.equal(foggy, still)
    noisy = corrupt("shot_noise")(still)
    assert not torch.equal(noisy[0], noisy[1])
    # Each clip of a batch has a draw of its own.
    both = corrupt("fog", 5)(tv_tensors.Video(torch.stack([still, still])))
    assert both.shape == (2, *still.shape) and not torch.equal(both[0], both[1])
    assert corrupt("fog", p=0)(still) is still
    fewer = corrupt("video-c:motion_blur", 1)(tv_tensors.Video(planes(torch)[None].repeat(8, 1, 1, 1)))
    assert fewer.shape[0] == 8 - 6


def test_groups_and_families_stand_for_their_members(torch):
    assert corrupt("common").corruptions == IMAGENET_C.common
    assert corrupt(["extra", "fog"]).corruptions == (*IMAGENET_C.extra, "fog")
    assert corrupt("all").corruptions == IMAGENET_C.names
    bar = FAMILIES["c-bar"]
    assert corrupt("c-bar").corruptions == corrupt("c-bar", scale=224).corruptions == bar.names(224)
    assert corrupt("c-bar", scale=32).corruptions == bar.names(32)
    assert {*corrupt("c-bar:all").corruptions} >= {*bar.names(224)}


def test_each_image_of_a_batch_is_drawn_by_itself(torch, tv_tensors):
    transform = corrupt(("fog", "contrast", "gaussian_noise"), p=0.6)
    batch = torch.stack([planes(torch, photo(40, 50, seed)) for seed in range(12)])
    torch.manual_seed(3)
    results = transform(batch)
    torch.manual_seed(3)
    drawn = transform.make_params([batch])["batch"]
    assert len({each.get("corruption") for each in drawn}) > 2 and {} in drawn
    for seed, (result, params) in enumerate(zip(results, drawn, strict=True)):
        expected = photo(40, 50, seed)
        if params:
            how = (params["corruption"], params["severity"])
            expected = robustgen.corrupt(expected, *how, edition="folder", rng=params["seed"])
        np.testing.assert_array_equal(result.permute(1, 2, 0).numpy(), expected)
    torch.manual_seed(3)
    wrapped, labels = transform(tv_tensors.Image(batch), torch.arange(12))
    assert type(wrapped) is tv_tensors.Image and torch.equal(wrapped, results)
    assert labels.tolist() == [*range(12)]


def test_grey_batches_get_three_channels_and_images_left_alone_stay(torch):
    grey = torch.stack([planes(torch)[:1]] * 4)
    torch.manual_seed(0)
    assert corrupt("contrast", 2, p=0.5)(grey).shape == (4, 3, 40, 50)
    for image in (grey, grey[0]):
        assert corrupt("contrast", p=0)(image) is image


class Noisy:
    """A data set with a transform inside."""

    def __init__(self, torch):
        self.image, self.transform = planes(torch), corrupt(("gaussian_noise", "shot_noise"))

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return self.transform(self.image), index


def test_seeded_items_depend_on_seed_epoch_and_index_alone(torch):
    seeded = SeededDataset(Noisy(torch), seed=3)

    def images(workers, dataset=seeded):
        loader = torch.utils.data.DataLoader(dataset, batch_size=2, num_workers=workers)
        return torch.cat([batch for batch, _ in loader])

    first = images(0)
    assert all(torch.equal(first, images(workers)) for workers in (1, 2))
    assert len({bytes(image.numpy()) for image in first}) == 6
    assert torch.equal(seeded[4][0], first[4]) and torch.equal(seeded[-2][0], first[4])
    assert not torch.equal(images(0, SeededDataset(Noisy(torch), seed=4)), first)
    seeded.set_epoch(1)
    assert not torch.equal(images(2), first)
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    torch.rand(1)
    seeded[0]
    assert torch.equal(torch.rand(1), expected[1:])
    with pytest.raises(ArgumentError, match="seed must be from 0"):
        SeededDataset(Noisy(torch), seed=-1)
    with pytest.raises(IndexError):
        seeded[6]


def test_it_shows_what_it_does(torch):
    assert repr(corrupt("fog", 3)) == "Corrupt(corruptions=('fog',), severities=(3,), p=1.0, move=False)"
