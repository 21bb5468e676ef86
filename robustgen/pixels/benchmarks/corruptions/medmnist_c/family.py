"""The family MedMNIST-C, and the order of its sets."""

from robustgen.pixels.benchmarks.registry import Family

MEDMNIST_C = Family(
    "medmnist-c",
    "MedMNIST-C",
    "Francesco Di Salvo, Sebastian Doerrich and Christian Ledig: MedMNIST-C: Comprehensive Benchmark and "
    "Improved Classifier Robustness by Simulating Realistic Image Corruptions. arXiv:2406.17536, 2024.",
    licence="Apache-2.0",
)
"""The corruptions of the twelve sets; a set has those with constants for it."""

LIKE_ORGANAMNIST = dict.fromkeys(("organcmnist", "organsmnist"), "organamnist")
"""Rows of the sets with the constants of organamnist."""

_ORDER = (
    *("pixelate", "jpeg_compression", "gaussian_noise", "speckle_noise", "impulse_noise", "shot_noise"),
    *("defocus_blur", "motion_blur", "zoom_blur", "gaussian_blur", "brightness_up", "brightness_down"),
    *("contrast_up", "contrast_down", "saturate", "stain_deposit", "bubble", "black_corner", "characters"),
    *("gamma_corr_up", "gamma_corr_down"),
)


def published_names(data_set: str) -> tuple[str, ...]:
    """Return the full names of the corruptions of `data_set`, in the published order."""
    every = (MEDMNIST_C.corruptions[MEDMNIST_C.full_name(name)] for name in _ORDER)
    return tuple(each.name for each in every if data_set in each.table)
