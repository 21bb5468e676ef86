"""Digital corruptions of MedMNIST-C: those of ImageNet-C, with other constants."""

from robustgen.pixels.benchmarks.corruptions import digital as common
from robustgen.pixels.benchmarks.corruptions.digital import JpegCompression, Pixelate
from robustgen.pixels.benchmarks.corruptions.medmnist_c.family import LIKE_ORGANAMNIST, MEDMNIST_C
from robustgen.pixels.benchmarks.registry import corruption

corruption(
    "digital",
    Pixelate,
    {
        "pathmnist": (0.8, 0.6, 0.4, 0.3, 0.25),
        "bloodmnist": (0.6, 0.5, 0.4, 0.3, 0.25),
        "dermamnist": (0.7, 0.5, 0.4, 0.3, 0.25),
        "retinamnist": (0.8, 0.6, 0.5, 0.4, 0.35),
        "tissuemnist": (0.40, 0.30, 0.20, 0.15, 0.10),
        "octmnist": (0.30, 0.25, 0.20, 0.15, 0.10),
        "breastmnist": (0.30, 0.25, 0.20, 0.15, 0.10),
        "chestmnist": (0.30, 0.25, 0.20, 0.15, 0.10),
        "pneumoniamnist": (0.8, 0.7, 0.6, 0.5, 0.4),
        "organamnist": (0.7, 0.6, 0.5, 0.40, 0.35),
        **LIKE_ORGANAMNIST,
    },
    family=MEDMNIST_C,
    random=False,
)(common.pixelate)


def _by_turbo(*qualities: int) -> tuple[tuple[int, str], ...]:
    """Return rows for libjpeg-turbo, which Pillow had when the sets were published."""
    return tuple((quality, "turbo") for quality in qualities)


corruption(
    "digital",
    JpegCompression,
    {
        "pathmnist": _by_turbo(50, 30, 15, 10, 7),
        "bloodmnist": _by_turbo(50, 30, 15, 10, 7),
        "dermamnist": _by_turbo(30, 20, 15, 10, 7),
        "retinamnist": _by_turbo(30, 25, 20, 10, 5),
        "tissuemnist": _by_turbo(25, 20, 15, 10, 7),
        "octmnist": _by_turbo(30, 15, 10, 7, 5),
        "breastmnist": _by_turbo(50, 30, 15, 10, 7),
        "chestmnist": _by_turbo(50, 30, 15, 10, 7),
        "pneumoniamnist": _by_turbo(50, 30, 15, 10, 7),
        "organamnist": _by_turbo(50, 30, 15, 10, 7),
        **LIKE_ORGANAMNIST,
    },
    family=MEDMNIST_C,
    random=False,
)(common.jpeg_compression)
