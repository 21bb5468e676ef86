"""The operations of the benchmarks in the order of the papers' tables, and the number of severities."""

from typing import Final

from robustgen.pixels.benchmarks.kinds import IMAGENET_C, IMAGENET_P

COMMON_CORRUPTIONS: Final = IMAGENET_C.common
"""The fifteen corruptions of mCE, in the order of [C] Table 1."""
EXTRA_CORRUPTIONS: Final = IMAGENET_C.extra
"""The four corruptions for validation, which no mean includes; [C] appendix B."""
COMMON_PERTURBATIONS: Final = IMAGENET_P.common
"""The ten perturbations of mFR and mT5D, in the order of [C] Table 3."""
EXTRA_PERTURBATIONS: Final = IMAGENET_P.extra
"""The four perturbations for validation, which no mean includes; [C] appendix E."""
NOISE_PERTURBATIONS: Final = IMAGENET_P.noises
"""The perturbations whose frames are compared with the first, clean one; [C] section 4.2."""
SEVERITIES: Final = len(IMAGENET_C.levels)
"""Severities of each corruption; [C] section 4.1."""
