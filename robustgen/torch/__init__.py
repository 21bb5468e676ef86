"""PyTorch: data sets that create their images on the fly, transforms, and losses.

Each name loads on first use; PyTorch is imported only by objects that need it.
"""

from typing import TYPE_CHECKING

from robustgen.files.wings import list_public, load_lazily

if TYPE_CHECKING:
    from robustgen.related.streams.torch_datasets import CccDataset, StreamDataset
    from robustgen.torch.clip_dataset import ClipDataset
    from robustgen.torch.consistency import AugMixDataset, jensen_shannon_loss
    from robustgen.torch.datasets import CorruptedDataset, PerturbedDataset, SourceDataset, VariantsDataset
    from robustgen.torch.items import SeededDataset
    from robustgen.torch.transform import Corrupt

__all__ = [
    "AugMixDataset", "ClipDataset", "Corrupt", "CorruptedDataset", "PerturbedDataset", "SeededDataset",
    "SourceDataset", "VariantsDataset", "jensen_shannon_loss",
]  # fmt: skip

if TYPE_CHECKING:
    __all__ += ["CccDataset", "StreamDataset"]
else:
    __all__ += list_public("robustgen.torch")
    __getattr__ = load_lazily(__name__, __file__, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
