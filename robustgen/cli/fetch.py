"""fetch: files from the packages of others."""

from robustgen.cli.app import command, echo
from robustgen.cli.flags import takes
from robustgen.errors import ConfigError, UnknownNameError
from robustgen.settings.inspecting import Fetching


@command("fetch")
@takes(options=Fetching)
def fetch(options: Fetching) -> None:
    """Fetch the frost photographs, or the ink masks.

    The masks are for medmnist-c:stain_deposit. The default is frost. pip downloads the wheel with the
    files, without installing it. robustgen checks the SHA-256 of each file.

    Examples
    --------
    robustgen fetch
    robustgen fetch frost --wheel imagecorruptions-1.1.2-py3-none-any.whl
    """
    from robustgen.pixels.imaging.third_party import EVERYTHING

    names = options.names or ("frost",)
    if options.wheel and len(names) > 1:
        raise ConfigError("--wheel: name either frost or ink, the content of the wheel")
    for name in names:
        if name not in EVERYTHING:
            raise UnknownNameError("set of files", name, EVERYTHING)
        echo(f"{name}: {EVERYTHING[name].fetch(options.wheel)}")
