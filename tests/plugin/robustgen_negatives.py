"""Negatives of photographs: the rows of a set and of its command in a plug-in."""

from robustgen.plugins import CommandRow, Section, SetRow, Wing

WING = Wing(
    commands=(
        CommandRow(
            "make-negatives",
            Section.FAMILY,
            "robustgen_negatives_command",
            "Write the negatives of images.",
            resumes=True,
        ),
    ),
    sets={
        "Negatives": SetRow(
            "make-negatives",
            "robustgen_negatives_command:NegativeChoices",
            "robustgen_negatives_command:plan_negatives",
        )
    },
)
