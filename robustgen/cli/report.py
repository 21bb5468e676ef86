"""report: one HTML page about a finished set."""

from robustgen.cli.app import command, echo
from robustgen.cli.flags import takes
from robustgen.display.text import format_path, format_size
from robustgen.settings.inspecting import Reporting


@command("report")
@takes(options=Reporting)
def report(options: Reporting) -> None:
    """Write an HTML page about a finished set.

    DIRECTORY is an output of make-c or make-p, or a published set, as a path or a URL.

    Examples
    --------
    robustgen report out/imagenet-c
    robustgen report out/imagenet-p --images 5 --output report.html
    """
    from robustgen.lab.inspection.report import write_report

    written, size = write_report(options.directory, options.output, options.images)
    echo(f"{format_path(written)}, {format_size(size)}")
