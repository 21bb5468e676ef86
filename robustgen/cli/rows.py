"""The rows of the commands: `robustgen --help` imports no command."""

from typing import Final

from robustgen.files.wings import CommandRow, Section

COMMANDS: Final = (
    CommandRow("make-c", Section.MAKE, "robustgen.cli.make", resumes=True),
    CommandRow("make-p", Section.MAKE, "robustgen.cli.make", resumes=True),
    CommandRow("run", Section.MAKE, "robustgen.cli.make", resumes=True),
    CommandRow("verify", Section.MAKE, "robustgen.cli.finished"),
    CommandRow("list", Section.MAKE, "robustgen.cli.list"),
    CommandRow("config", Section.MAKE, "robustgen.cli.list"),
    CommandRow("croissant", Section.MAKE, "robustgen.cli.finished"),
    CommandRow("fetch", Section.MAKE, "robustgen.cli.warm"),
    CommandRow("warm", Section.MAKE, "robustgen.cli.warm"),
    CommandRow("preview", Section.SEE, "robustgen.cli.preview"),
    CommandRow("report", Section.SEE, "robustgen.cli.finished"),
    CommandRow("compare", Section.SEE, "robustgen.cli.finished"),
    CommandRow("calibrate", Section.SEE, "robustgen.cli.calibrate"),
    CommandRow("evaluate", Section.SCORE, "robustgen.cli.evaluate", resumes=True),
    CommandRow("predict", Section.SCORE, "robustgen.cli.evaluate", resumes=True),
    CommandRow("score", Section.SCORE, "robustgen.cli.score"),
    CommandRow("score-ood", Section.SCORE, "robustgen.cli.score"),
    CommandRow("score-detection", Section.SCORE, "robustgen.cli.score"),
    CommandRow("score-segmentation", Section.SCORE, "robustgen.cli.score"),
    CommandRow("score-answers", Section.SCORE, "robustgen.cli.score"),
)
