"""fetch: the files that packages of others carry."""

import click

from robustgen.cli.app import Section, command, echo
from robustgen.cli.options import complete
from robustgen.errors import ConfigError, UnknownNameError


@command("fetch", Section.MAKE)
@click.argument("names", nargs=-1, metavar="[frost|ink]...", shell_complete=complete("frost", "ink"))
@click.option("--wheel", metavar="FILE", help="Take the files from this wheel instead of downloading it.")
def fetch(names: tuple[str, ...], wheel: str | None) -> None:
    """Download the photographs of frost, or masks of ink.

    Without a name, those of frost; the masks of ink are for medmnist-c:stain_deposit. pip downloads the
    wheel that carries them; nothing is installed. Each file is checked by its SHA-256.

    \b
    Examples:
      robustgen fetch
      robustgen fetch frost --wheel imagecorruptions-1.1.2-py3-none-any.whl
    """
    from robustgen.imaging.carried import EVERYTHING

    names = names or ("frost",)
    if wheel and len(names) > 1:
        raise ConfigError("--wheel: name one of frost and ink, whose wheel it is")
    for name in names:
        if name not in EVERYTHING:
            raise UnknownNameError("set of files", name, EVERYTHING)
        echo(f"{name}: {EVERYTHING[name].fetch(wheel)}")
