"""UniformNoise, the noise to train with."""

import numpy as np
import pytest
from PIL import Image

from robustgen.errors import ArgumentError, ArgumentTypeError
from tests.helpers import photo

torch = pytest.importorskip("torch")
tv_tensors = pytest.importorskip("torchvision.tv_tensors")

PIXELS = torch.from_numpy(photo(40, 50)).permute(2, 0, 1)


def add_noise(bound, image):
    from robustgen.torch import UniformNoise

    torch.manual_seed(3)
    return UniformNoise(bound)(image)


@pytest.mark.parametrize("bound", [0.01, 0.05, 0.1])
def test_noise_is_uniform_between_its_bounds(bound):
    grey = torch.full((3, 200, 200), 0.5)
    noise = add_noise(bound, grey) - grey
    assert noise.min() >= -bound and noise.max() <= bound
    shares = torch.histc(noise, 10, -bound, bound) / noise.numel()
    assert (shares - 0.1).abs().max() < 0.005
    coarse = add_noise(bound, torch.full((3, 200, 200), 100, dtype=torch.uint8)).float() - 100
    assert coarse.max() == -coarse.min() == np.ceil(255 * bound - 0.5)


def test_every_image_keeps_its_type_and_is_clipped():
    single = PIXELS / 255
    for image in (PIXELS, tv_tensors.Image(PIXELS), single, single.double(), single.half(), single[None]):
        result = add_noise(1.0, image)
        assert type(result) is type(image)
        assert (result.dtype, result.shape) == (image.dtype, image.shape)
        assert result.min() == 0 and result.max() == (255 if image.dtype == torch.uint8 else 1)
        assert torch.equal(result, add_noise(1.0, image))
    picture = add_noise(0.1, Image.fromarray(PIXELS[0].numpy()))
    assert picture.mode == "RGB" and picture.size == (50, 40)
    assert np.abs(np.asarray(picture) - PIXELS[0].numpy()[..., None].astype(float)).max() <= 26


def test_labels_and_masks_are_left_alone():
    mask, label = tv_tensors.Mask(PIXELS[:1]), torch.tensor(3)
    image, others = add_noise(0.1, (tv_tensors.Image(PIXELS), {"mask": mask, "label": label}))
    assert not torch.equal(image, PIXELS) and others["mask"] is mask and others["label"] is label


@pytest.mark.parametrize(
    ("bound", "image", "error", "message"),
    [
        *((bound, PIXELS, ArgumentError, "bound must be above 0") for bound in (0, -0.1, 1.1, float("nan"))),
        (0.1, PIXELS / 100, ArgumentError, "put it before Normalize"),
        (0.1, PIXELS / 255 - 0.5, ArgumentError, "put it before Normalize"),
        (0.1, PIXELS.long(), ArgumentTypeError, "not torch.int64"),
    ],
)
def test_wrong_images_are_refused(bound, image, error, message):
    with pytest.raises(error, match=message):
        add_noise(bound, image)
