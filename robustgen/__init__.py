"""robustgen regenerates ImageNet-C and ImageNet-P from your own images."""

from typing import TYPE_CHECKING

from robustgen.files.wings import list_public, load_lazily

if TYPE_CHECKING:
    from robustgen.api import CorruptObservation, augmix, corrupt, corrupt_clip, perturb, prepare
    from robustgen.commands import Scores, evaluate, make_c, make_p, preview, score, verify
    from robustgen.lab.evaluation.predictions import EvaluateResult, write_predictions
    from robustgen.lab.inspection.verify_contents import Findings
    from robustgen.pixels.benchmarks.corruptions import CORRUPTIONS, FAMILIES
    from robustgen.pixels.benchmarks.corruptions.laion_c import published_preparation
    from robustgen.pixels.benchmarks.editions import EDITIONS
    from robustgen.pixels.benchmarks.kinds import IMAGENET_C, IMAGENET_P
    from robustgen.pixels.benchmarks.perturbations import PERTURBATIONS
    from robustgen.pixels.imaging.cleaning import clahe
    from robustgen.pixels.imaging.three_d_cc_effects import depth_from_midas, prepare_depth
    from robustgen.pixels.imaging.video import read_sequence
    from robustgen.related.streams.accuracy_files import load_accuracy_table
    from robustgen.sets.dataset.opening import open_set
    from robustgen.sets.dataset.recipes import item_rng
    from robustgen.sets.dataset.run import RunResult

__version__ = "1.0.0rc1"

__all__ = [
    "CORRUPTIONS", "EDITIONS", "FAMILIES", "IMAGENET_C", "IMAGENET_P", "PERTURBATIONS", "CorruptObservation",
    "EvaluateResult", "Findings", "RunResult", "Scores", "__version__", "augmix", "clahe", "corrupt",
    "corrupt_clip", "depth_from_midas", "evaluate", "item_rng", "make_c", "make_p", "open_set", "perturb",
    "prepare", "prepare_depth", "preview", "published_preparation", "read_sequence", "score", "verify",
    "write_predictions",
]  # fmt: skip

if TYPE_CHECKING:
    __all__ += ["load_accuracy_table"]
else:  # `robustgen --help` need not import OpenCV and numba; and every misspelled name would have a type
    __all__ += list_public("robustgen")
    __getattr__ = load_lazily(__name__, __file__, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
