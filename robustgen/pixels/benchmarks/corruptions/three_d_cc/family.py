"""The family 3DCC, and its corruptions that robustgen does not have."""

from robustgen.pixels.benchmarks.registry import Family

NOT_MADE = {
    "flash": "needs a map of the shading, which a network estimates",
    "xy_motion_blur": "needs the networks of 3D Ken Burns, which paint what the camera uncovers",
    "z_motion_blur": "needs the networks of 3D Ken Burns, which paint what the camera uncovers",
    "h265_crf": "needs the video of xy_motion_blur",
    "h265_abr": "needs the video of xy_motion_blur",
    "bit_error": "needs the video of xy_motion_blur",
}
"""The other corruptions of ImageNet-3DCC, and the reasons why they are missing."""

THREE_D_CC = Family(
    "3dcc",
    "ImageNet-3DCC (without networks)",
    "Oguzhan Fatih Kar, Teresa Yeo, Andrei Atanov and Amir Zamir: 3D Common Corruptions and Data "
    "Augmentation. Conference on Computer Vision and Pattern Recognition, 2022.",
    licence="CC BY-NC 4.0 (formulas and constants alone are used)",
    not_made=NOT_MADE,
)
"""Six of the twelve corruptions of ImageNet-3DCC."""
