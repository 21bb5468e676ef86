"""compare: a test of whether two sets are equivalent."""

import sys

from robustgen.cli.app import command, echo, echo_text, table_width
from robustgen.cli.flags import takes
from robustgen.display.text import format_path
from robustgen.errors import ConfigError, UnknownNameError
from robustgen.settings.inspecting import Comparing


@command("compare")
@takes(options=Comparing)
def compare(options: Comparing) -> None:
    """Test whether two sets are equivalent.

    A and B are two C or P sets of the same images, created by robustgen or published, as paths or URLs.
    Exits with 0 if they are identical or equivalent within the margin and nothing is missing, otherwise 1.

    Examples
    --------
    robustgen compare out/imagenet-c /data/ImageNet-C
    robustgen compare out/imagenet-c /data/ImageNet-C --output compare.html
    """
    from robustgen.display.html import check_page_path
    from robustgen.files.storage import is_url, save
    from robustgen.lab.inspection.compare.comparison import compare_sets
    from robustgen.lab.inspection.compare.equivalence import METRICS, PIXELS
    from robustgen.lab.inspection.compare.layouts import format_comparison
    from robustgen.lab.inspection.compare.page import render_comparison

    metrics = [metric.key for metric in (*METRICS, PIXELS)]
    for name in options.margin.keys() - {*metrics}:
        raise ConfigError(f"--margin: {UnknownNameError('metric', name, metrics)}")
    if options.output:
        check_page_path(options.output, *(each for each in (options.a, options.b) if not is_url(each)))
    found = compare_sets(options)
    echo_text(format_comparison(found, options.format, table_width()))
    if options.output:
        save(options.output, render_comparison(found), f"--output {options.output}")
        echo(format_path(options.output), err=True)
    sys.exit(0 if found.equivalent else 1)
