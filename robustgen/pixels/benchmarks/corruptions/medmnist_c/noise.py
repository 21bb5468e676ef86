"""Noise of MedMNIST-C: that of ImageNet-C, with other constants."""

from robustgen.pixels.benchmarks.corruptions import noise as common
from robustgen.pixels.benchmarks.corruptions.medmnist_c.family import LIKE_ORGANAMNIST, MEDMNIST_C
from robustgen.pixels.benchmarks.corruptions.noise import ImpulseNoise, Noise, ShotNoise
from robustgen.pixels.benchmarks.registry import corruption

corruption(
    "noise",
    Noise,
    {
        "dermamnist": (0.04, 0.08, 0.12, 0.18, 0.26),
        "retinamnist": (0.04, 0.08, 0.12, 0.16, 0.20),
        "chestmnist": (0.04, 0.08, 0.12, 0.18, 0.26),
        "pneumoniamnist": (0.04, 0.05, 0.06, 0.07, 0.08),
        "organamnist": (0.04, 0.08, 0.12, 0.16, 0.20),
        **LIKE_ORGANAMNIST,
    },
    family=MEDMNIST_C,
)(common.gaussian_noise)

corruption(
    "noise",
    Noise,
    {
        "dermamnist": (0.05, 0.15, 0.2, 0.35, 0.45),
        "retinamnist": (0.10, 0.15, 0.20, 0.25, 0.30),
        "octmnist": (0.15, 0.30, 0.40, 0.50, 0.60),
        "breastmnist": (0.10, 0.15, 0.20, 0.25, 0.30),
        "chestmnist": (0.05, 0.15, 0.2, 0.35, 0.45),
        "pneumoniamnist": (0.05, 0.07, 0.10, 0.15, 0.20),
        "organamnist": (0.05, 0.10, 0.20, 0.30, 0.40),
        **LIKE_ORGANAMNIST,
    },
    family=MEDMNIST_C,
)(common.speckle_noise)

corruption(
    "noise",
    ImpulseNoise,
    {
        "dermamnist": (0.01, 0.03, 0.06, 0.09, 0.17),
        "tissuemnist": (0.01, 0.015, 0.02, 0.025, 0.03),
        "chestmnist": (0.01, 0.03, 0.06, 0.09, 0.17),
        "pneumoniamnist": (0.005, 0.01, 0.013, 0.017, 0.02),
        "organamnist": (0.01, 0.02, 0.03, 0.05, 0.08),
        **LIKE_ORGANAMNIST,
    },
    family=MEDMNIST_C,
)(common.impulse_noise)

corruption(
    "noise",
    ShotNoise,
    {
        "dermamnist": (60, 25, 18, 10, 5),
        "chestmnist": (60, 25, 18, 10, 5),
        "pneumoniamnist": (300, 200, 150, 100, 80),
        "organamnist": (200, 100, 50, 25, 15),
        **LIKE_ORGANAMNIST,
    },
    family=MEDMNIST_C,
)(common.shot_noise)
