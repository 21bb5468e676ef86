"""The rows of the commands: `robustgen --help` imports no command."""

from typing import Final

from robustgen.files.wings import CommandRow, Section

COMMANDS: Final = (
    CommandRow(
        "make-c",
        Section.MAKE,
        "robustgen.cli.make",
        "Write ImageNet-C: corrupted copies of every image.",
        resumes=True,
    ),
    CommandRow(
        "make-p",
        Section.MAKE,
        "robustgen.cli.make",
        "Write ImageNet-P: perturbation sequences of every image.",
        resumes=True,
    ),
    CommandRow(
        "run",
        Section.MAKE,
        "robustgen.cli.make",
        "Run a plan that a make command wrote with --plan.",
        resumes=True,
    ),
    CommandRow("verify", Section.MAKE, "robustgen.cli.finished", "Verify checksums."),
    CommandRow(
        "list",
        Section.MAKE,
        "robustgen.cli.list",
        "List corruptions, perturbations, editions, formats, data sets.",
    ),
    CommandRow(
        "config", Section.MAKE, "robustgen.cli.list", "Show every key of a config, its value and its origin."
    ),
    CommandRow("croissant", Section.MAKE, "robustgen.cli.finished", "Complete croissant.json."),
    CommandRow("fetch", Section.MAKE, "robustgen.cli.warm", "Fetch the frost photographs, or the ink masks."),
    CommandRow("warm", Section.MAKE, "robustgen.cli.warm", "Compile the loops in advance."),
    CommandRow(
        "preview",
        Section.SEE,
        "robustgen.cli.preview",
        "Draw an image with all its corruptions on one sheet.",
    ),
    CommandRow(
        "report",
        Section.SEE,
        "robustgen.cli.finished",
        "Write a page or pictures of a finished set.",
    ),
    CommandRow("compare", Section.SEE, "robustgen.cli.finished", "Test whether two sets are equivalent."),
    CommandRow(
        "calibrate", Section.SEE, "robustgen.cli.calibrate", "Measure the strength of every corruption."
    ),
    CommandRow(
        "evaluate",
        Section.SCORE,
        "robustgen.cli.evaluate",
        "Score models on images corrupted on the fly.",
        resumes=True,
    ),
    CommandRow("predict", Section.SCORE, "robustgen.cli.evaluate", "Run a model on a set.", resumes=True),
    CommandRow("score", Section.SCORE, "robustgen.cli.score", "Print the papers' tables for predictions."),
    CommandRow(
        "score-ood", Section.SCORE, "robustgen.cli.score", "Print how well a model detects unknown classes."
    ),
    CommandRow(
        "score-detection", Section.SCORE, "robustgen.cli.score", "Print P, mPC and rPC of a detector."
    ),
    CommandRow(
        "score-segmentation",
        Section.SCORE,
        "robustgen.cli.score",
        "Print mIoU, mCD and rCD of a model from label maps.",
    ),
)
