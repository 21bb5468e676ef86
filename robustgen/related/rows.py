"""The rows of this wing: the only module of it that the rest of the package names."""

from types import MappingProxyType
from typing import Final

from robustgen.files.wings import CommandRow, Section, SetRow, Wing

_CLEANING: Final = "robustgen.related.cleaned_sets:plan_cleaning"

RELATED: Final = Wing(
    commands=(
        CommandRow(
            "stream",
            Section.SCORE,
            "robustgen.related.cli.streams",
            "Draw a stream for test-time adaptation.",
            resumes=True,
        ),
        CommandRow(
            "make-augmix",
            Section.FAMILY,
            "robustgen.related.cli.training_copies",
            "Write AugMix copies of training images.",
            resumes=True,
        ),
        CommandRow(
            "filter",
            Section.FAMILY,
            "robustgen.related.cli.filtration",
            "Find images as in ImageNet-A and ImageNet-O.",
            resumes=True,
        ),
        CommandRow(
            "make-icons",
            Section.FAMILY,
            "robustgen.related.cli.icons",
            "Write icons of several styles, as in Icons-50.",
            resumes=True,
        ),
        CommandRow(
            "make-subtypes",
            Section.FAMILY,
            "robustgen.related.cli.subtypes",
            "List seen and unseen subtypes of broad types.",
            resumes=True,
        ),
        CommandRow(
            "preprocess",
            Section.FAMILY,
            "robustgen.related.cli.cleaning",
            "Clean a data set: CLAHE, non-local means, median filter.",
            resumes=True,
        ),
    ),
    sets=MappingProxyType(
        {
            "AugMix": SetRow(
                "make-augmix",
                "robustgen.related.settings:AugMixChoices",
                "robustgen.related.training_copies:plan_copies",
            ),
            "icons in the manner of Icons-50": SetRow(
                "make-icons",
                "robustgen.related.settings:IconChoices",
                "robustgen.related.icons.icon_set:plan_icons",
            ),
            "CLAHE": SetRow("preprocess clahe", "robustgen.related.settings:ClaheChoices", _CLEANING),
            "Denoising": SetRow("preprocess denoise", "robustgen.related.settings:DenoiseChoices", _CLEANING),
            "Median filter": SetRow(
                "preprocess median", "robustgen.related.settings:MedianChoices", _CLEANING
            ),
        }
    ),
    public=MappingProxyType(
        {
            "robustgen": {
                "load_accuracy_table": "robustgen.related.streams.accuracy_files:load_accuracy_table"
            },
            "robustgen.torch": {
                "CccDataset": "robustgen.related.streams.torch_datasets:CccDataset",
                "StreamDataset": "robustgen.related.streams.torch_datasets:StreamDataset",
            },
        }
    ),
)
