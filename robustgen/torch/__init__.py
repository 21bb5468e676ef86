"""PyTorch: data sets that create their images on the fly, transforms, and losses.

Each name loads on first use; PyTorch is imported only by objects that need it.
"""

from typing import TYPE_CHECKING, Any

from robustgen.files.wings import list_public

if TYPE_CHECKING:
    from robustgen.related.streams.torch_datasets import CccDataset as CccDataset
    from robustgen.related.streams.torch_datasets import StreamDataset as StreamDataset
    from robustgen.torch.clips import ClipDataset as ClipDataset
    from robustgen.torch.consistency import AugMixDataset as AugMixDataset
    from robustgen.torch.consistency import jensen_shannon_loss as jensen_shannon_loss
    from robustgen.torch.consistency import stability_loss as stability_loss
    from robustgen.torch.datasets import CorruptedDataset as CorruptedDataset
    from robustgen.torch.datasets import PerturbedDataset as PerturbedDataset
    from robustgen.torch.datasets import SourceDataset as SourceDataset
    from robustgen.torch.datasets import VariantsDataset as VariantsDataset
    from robustgen.torch.items import SeededDataset as SeededDataset
    from robustgen.torch.transform import Corrupt as Corrupt
    from robustgen.torch.uniform_noise import UniformNoise as UniformNoise

_PUBLIC = {
    "AugMixDataset": "robustgen.torch.consistency",
    "ClipDataset": "robustgen.torch.clips",
    "Corrupt": "robustgen.torch.transform",
    "CorruptedDataset": "robustgen.torch.datasets",
    "PerturbedDataset": "robustgen.torch.datasets",
    "SeededDataset": "robustgen.torch.items",
    "SourceDataset": "robustgen.torch.datasets",
    "UniformNoise": "robustgen.torch.uniform_noise",
    "VariantsDataset": "robustgen.torch.datasets",
    "jensen_shannon_loss": "robustgen.torch.consistency",
    "stability_loss": "robustgen.torch.consistency",
    **list_public("robustgen.torch"),
}

__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'robustgen.torch' has no attribute {name!r}")
    from importlib import import_module

    module, _, attribute = _PUBLIC[name].partition(":")
    return getattr(import_module(module), attribute or name)


def __dir__() -> list[str]:
    return sorted(__all__)
