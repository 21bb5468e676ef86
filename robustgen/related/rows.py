"""The rows of this wing: the only module of it that the rest of the package names."""

from types import MappingProxyType
from typing import Final

from robustgen.files.wings import CommandRow, Section, SetRow, Wing

_CLEANING: Final = "robustgen.related.cleaned_sets:plan_cleaning"

RELATED: Final = Wing(
    commands=(
        CommandRow("stream", Section.SCORE, "robustgen.related.cli.streams", resumes=True),
        CommandRow("make-augmix", Section.FAMILY, "robustgen.related.cli.training_copies", resumes=True),
        CommandRow("filter", Section.FAMILY, "robustgen.related.cli.filtration", resumes=True),
        CommandRow("make-icons", Section.FAMILY, "robustgen.related.cli.icons", resumes=True),
        CommandRow("make-subtypes", Section.FAMILY, "robustgen.related.cli.subtypes", resumes=True),
        CommandRow("preprocess", Section.FAMILY, "robustgen.related.cli.cleaning", resumes=True),
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
        {"robustgen": ("load_accuracy_table",), "robustgen.torch": ("CccDataset", "StreamDataset")}
    ),
)
