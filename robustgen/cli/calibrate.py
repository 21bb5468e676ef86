"""calibrate: the strength of corruptions, and constants for other image sizes."""

import sys
from pathlib import Path

from robustgen.cli.app import command, echo, echo_failures, echo_text, table_width
from robustgen.cli.flags import takes
from robustgen.display.text import format_path
from robustgen.errors import ConfigError
from robustgen.settings.config import Config
from robustgen.settings.fields import Part
from robustgen.settings.inspecting import Calibrating


@command("calibrate")
@takes(
    "c",
    demo=True,
    parts=(Part.SOURCE, Part.EDITION, Part.OPERATIONS, Part.JOBS),
    also=("seed", "libjpeg"),
    config=Config,
    options=Calibrating,
)
def calibrate(config: Config, options: Calibrating) -> None:
    """Measure the strength of every corruption.

    The strength is the MS-SSIM to the clean image. --for-size searches for constants for another size.
    Without --dataset, --config or --source, bundled photographs are used.

    Examples
    --------
    robustgen calibrate --dataset imagenet
    robustgen calibrate --dataset imagenet --for-size 384 --output parameters-384.yaml
    """
    if options.for_size is not None:
        _propose(config, options, options.for_size, options.output)
        return
    if options.output:
        raise ConfigError("--output is for the constants of --for-size")
    from robustgen.lab.inspection.calibrate_text import format_calibration
    from robustgen.lab.inspection.strengths import measure_strengths

    measured = measure_strengths(config, options.sample)
    echo_text(format_calibration(measured, options.format, table_width()))
    _end(measured.failures)


def _propose(config: Config, options: Calibrating, size: int, output: Path | None) -> None:
    if output is None:
        raise ConfigError("--for-size needs --output FILE for the constants")
    if "edition" in config.flagged or "constants_for" in config.flagged:
        raise ConfigError("--edition cannot be combined with --for-size, which uses the edition imagenet")
    from robustgen.files.storage import save
    from robustgen.lab.inspection.calibrate_text import format_proposal, write_config
    from robustgen.lab.inspection.matching import propose_constants

    proposal = propose_constants(config, size, options.sample)
    echo_text(format_proposal(proposal, options.format, table_width()))
    save(output, write_config(proposal), f"--output {output}")
    echo(format_path(output), err=True)
    _end(proposal.failures)


def _end(failures: dict[str, str]) -> None:
    """Print failed images, and exit with status 1 if there are any."""
    echo_failures(failures.items())
    sys.exit(1 if failures else 0)
