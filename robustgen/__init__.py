"""robustgen regenerates ImageNet-C and ImageNet-P from your own images."""

from typing import TYPE_CHECKING, Any

from robustgen.files.wings import list_public

if TYPE_CHECKING:
    from robustgen.api import augmix as augmix
    from robustgen.api import corrupt as corrupt
    from robustgen.api import corrupt_clip as corrupt_clip
    from robustgen.api import perturb as perturb
    from robustgen.api import prepare as prepare
    from robustgen.commands import Scores as Scores
    from robustgen.commands import evaluate as evaluate
    from robustgen.commands import make_c as make_c
    from robustgen.commands import make_p as make_p
    from robustgen.commands import score as score
    from robustgen.commands import verify as verify
    from robustgen.lab.evaluation.predictions import EvaluateResult as EvaluateResult
    from robustgen.lab.evaluation.predictions import write as write_predictions  # noqa: F401
    from robustgen.lab.inspection.verify_contents import Findings as Findings
    from robustgen.pixels.benchmarks.corruptions import CORRUPTIONS as CORRUPTIONS
    from robustgen.pixels.benchmarks.corruptions import FAMILIES as FAMILIES
    from robustgen.pixels.benchmarks.corruptions.laion_c import published_preparation as published_preparation
    from robustgen.pixels.benchmarks.editions import EDITIONS as EDITIONS
    from robustgen.pixels.benchmarks.kinds import IMAGENET_C as IMAGENET_C
    from robustgen.pixels.benchmarks.kinds import IMAGENET_P as IMAGENET_P
    from robustgen.pixels.benchmarks.perturbations import PERTURBATIONS as PERTURBATIONS
    from robustgen.pixels.imaging.cleaning import clahe as clahe
    from robustgen.pixels.imaging.three_d_cc_effects import depth_from_midas as depth_from_midas
    from robustgen.pixels.imaging.three_d_cc_effects import prepare_depth as prepare_depth
    from robustgen.pixels.imaging.video import read_sequence as read_sequence
    from robustgen.related.streams.accuracy_files import load_table as load_accuracy_table  # noqa: F401
    from robustgen.sets.dataset.opening import open_set  # noqa: F401
    from robustgen.sets.dataset.recipes import item_rng as item_rng
    from robustgen.sets.dataset.run import RunResult as RunResult

__version__ = "1.0.0rc1"

_PUBLIC = {
    "CORRUPTIONS": "robustgen.pixels.benchmarks.corruptions",
    "EDITIONS": "robustgen.pixels.benchmarks.editions",
    "FAMILIES": "robustgen.pixels.benchmarks.corruptions",
    "PERTURBATIONS": "robustgen.pixels.benchmarks.perturbations",
    "augmix": "robustgen.api",
    "corrupt": "robustgen.api",
    "corrupt_clip": "robustgen.api",
    "perturb": "robustgen.api",
    "prepare": "robustgen.api",
    "Scores": "robustgen.commands",
    "evaluate": "robustgen.commands",
    "make_c": "robustgen.commands",
    "make_p": "robustgen.commands",
    "score": "robustgen.commands",
    "verify": "robustgen.commands",
    "read_sequence": "robustgen.pixels.imaging.video",
    "IMAGENET_C": "robustgen.pixels.benchmarks.kinds",
    "IMAGENET_P": "robustgen.pixels.benchmarks.kinds",
    "clahe": "robustgen.pixels.imaging.cleaning",
    "depth_from_midas": "robustgen.pixels.imaging.three_d_cc_effects",
    "prepare_depth": "robustgen.pixels.imaging.three_d_cc_effects",
    "published_preparation": "robustgen.pixels.benchmarks.corruptions.laion_c",
    "item_rng": "robustgen.sets.dataset.recipes",
    "open_set": "robustgen.sets.dataset.opening:open_set",
    "write_predictions": "robustgen.lab.evaluation.predictions:write",
    "RunResult": "robustgen.sets.dataset.run",
    "Findings": "robustgen.lab.inspection.verify_contents",
    "EvaluateResult": "robustgen.lab.evaluation.predictions",
    **list_public("robustgen"),
}

__all__ = ["__version__", *_PUBLIC]


if not TYPE_CHECKING:  # else every misspelled name would have a type

    def __getattr__(name: str) -> Any:
        # Public names load on first use, so that `robustgen --help` need not import OpenCV and numba.
        if name not in _PUBLIC:
            raise AttributeError(f"module 'robustgen' has no attribute {name!r}")
        from importlib import import_module

        module, _, attribute = _PUBLIC[name].partition(":")
        try:
            return getattr(import_module(module), attribute or name)
        except RuntimeError as error:
            # Modules that start threads cannot be imported while Python ends.
            from robustgen.errors import WriteError
            from robustgen.files.storage.host import explain_refusal

            if not (reason := explain_refusal(error)):
                raise
            raise WriteError(reason) from error


def __dir__() -> list[str]:
    return sorted(__all__)
