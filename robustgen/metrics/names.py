"""The operations of the benchmarks in the order of the papers' tables, and how many levels there are."""

from typing import Final

COMMON_CORRUPTIONS: Final = (
    *("gaussian_noise", "shot_noise", "impulse_noise"),
    *("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness"),
    *("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
)
"""The fifteen corruptions of mCE, in the order of [C] Table 1."""


EXTRA_CORRUPTIONS: Final = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
"""The four corruptions for validation, which no mean includes; [C] appendix B."""


COMMON_PERTURBATIONS: Final = (
    *("gaussian_noise", "shot_noise", "motion_blur", "zoom_blur", "snow", "brightness"),
    *("translate", "rotate", "tilt", "scale"),
)
"""The ten perturbations of mFR and mT5D, in the order of [C] Table 3."""


EXTRA_PERTURBATIONS: Final = ("speckle_noise", "gaussian_blur", "spatter", "shear")
"""The four perturbations for validation, which no mean includes; [C] appendix E."""


NOISE_PERTURBATIONS: Final = ("gaussian_noise", "shot_noise", "speckle_noise")
"""The perturbations whose frames are compared with the first, clean one; [C] section 4.2."""


SEVERITIES: Final = 5
"""Severities of each corruption; [C] section 4.1."""
