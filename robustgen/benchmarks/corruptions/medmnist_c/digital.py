"""Digital corruptions of MedMNIST-C: those of ImageNet-C, with other constants."""

from robustgen.benchmarks.corruptions import digital as common
from robustgen.benchmarks.corruptions.digital import JpegCompression, Pixelate
from robustgen.benchmarks.corruptions.medmnist_c.family import MEDMNIST_C
from robustgen.benchmarks.registry import corruption

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
        "organcmnist": "organamnist",
        "organsmnist": "organamnist",
    },
    family=MEDMNIST_C,
    random=False,
)(common.pixelate)

corruption(
    "digital",
    JpegCompression,
    {
        "pathmnist": (50, 30, 15, 10, 7),
        "bloodmnist": (50, 30, 15, 10, 7),
        "dermamnist": (30, 20, 15, 10, 7),
        "retinamnist": (30, 25, 20, 10, 5),
        "tissuemnist": (25, 20, 15, 10, 7),
        "octmnist": (30, 15, 10, 7, 5),
        "breastmnist": (50, 30, 15, 10, 7),
        "chestmnist": (50, 30, 15, 10, 7),
        "pneumoniamnist": (50, 30, 15, 10, 7),
        "organamnist": (50, 30, 15, 10, 7),
        "organcmnist": "organamnist",
        "organsmnist": "organamnist",
    },
    family=MEDMNIST_C,
    random=False,
)(common.jpeg_compression)
