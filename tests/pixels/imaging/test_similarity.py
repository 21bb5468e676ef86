"""PSNR, SSIM and MS-SSIM: against scikit-image, and on small images."""

import numpy as np
import pytest
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from robustgen.errors import ArgumentError
from robustgen.pixels.imaging.similarity import Reference, scales_for, similarity, weights_of
from tests.helpers import photo


def noisy(image, sigma, seed=1):
    values = image + np.random.default_rng(seed).normal(0, sigma, image.shape)
    return np.clip(values, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("shape", [(224, 224), (65, 97), (32, 32)])
@pytest.mark.parametrize("sigma", [3, 60])
def test_psnr_and_ssim_are_those_of_scikit_image(shape, sigma):
    a = photo(*shape)
    b = noisy(a, sigma)
    wanted = structural_similarity(
        a, b, channel_axis=2, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255
    )
    found = similarity(a, b)
    assert found.ssim == pytest.approx(wanted, abs=1e-5)
    assert found.psnr == pytest.approx(peak_signal_noise_ratio(a, b), abs=1e-9)


def ms_ssim_of_skimage(a, b, scales):
    """MS-SSIM put together from what scikit-image gives: the maps of SSIM, with and without luminance."""
    totals = []
    a, b = a.astype(float), b.astype(float)
    for scale in range(scales):
        options = {"channel_axis": 2, "gaussian_weights": True, "sigma": 1.5, "data_range": 255}
        options |= {"use_sample_covariance": False, "full": True}
        last = scale == scales - 1
        # With an enormous K1 the factor of luminance is 1.
        _, full = structural_similarity(a, b, **options, K1=0.01 if last else 1e6)
        totals.append(full[5:-5, 5:-5].mean(axis=(0, 1)))
        height, width = a.shape[0] // 2, a.shape[1] // 2
        a, b = (
            x[: 2 * height, : 2 * width].reshape(height, 2, width, 2, 3).mean(axis=(1, 3)) for x in (a, b)
        )
    return float(np.prod(np.array(totals) ** weights_of(scales)[:, None], axis=0).mean())


@pytest.mark.parametrize(
    ("shape", "scales"), [((224, 224), 5), ((299, 201), 5), ((64, 64), 3), ((32, 40), 2)]
)
def test_ms_ssim_is_that_put_together_from_scikit_image(shape, scales):
    a = photo(*shape)
    b = noisy(a, 40)
    assert scales_for(min(shape)) == scales
    assert similarity(a, b).ms_ssim == pytest.approx(ms_ssim_of_skimage(a, b, scales), abs=1e-5)


def test_a_reference_serves_many_images_in_any_order():
    a = photo(64, 64)
    others = [noisy(a, sigma) for sigma in (5, 20)]
    reference = Reference(a)
    forth = [reference.similarity(other) for other in others]
    assert forth == [reference.similarity(other) for other in others]
    assert forth == [similarity(a, other) for other in others]


def test_fewer_scales_can_be_asked_for():
    a = photo(224, 224)
    b = noisy(a, 40)
    assert Reference(a, 3).similarity(b).ms_ssim == pytest.approx(ms_ssim_of_skimage(a, b, 3), abs=1e-5)
    with pytest.raises(ArgumentError):
        Reference(a, 6)


def test_equal_and_opposite_images():
    a = photo(64, 64)
    found = similarity(a, a.copy())
    assert (found.psnr, found.ssim, found.ms_ssim) == pytest.approx((100, 1, 1), abs=1e-12)
    assert similarity(a, 255 - a).ms_ssim == 0


def test_small_images_have_fewer_scales_and_unfit_ones_are_refused():
    sides = {176: 5, 175: 4, 88: 4, 44: 3, 32: 2, 11: 1}
    assert {side: scales_for(side) for side in sides} == sides
    for scales in range(1, 6):
        assert weights_of(scales).sum() == pytest.approx(1)
    for a, b in ((photo(32, 32), photo(32, 40)), (photo(10, 40), photo(10, 40))):
        with pytest.raises(ArgumentError, match=r"32|10"):
            similarity(a, b)
