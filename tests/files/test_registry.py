"""Tables of rows: what listing them imports, and plug-ins that cannot be used."""

import subprocess
import sys

import pytest

from tests.helpers import install, put_photo, run_with

# Group to the class that its rows have.
GROUPS = {
    "robustgen.formats": "robustgen.sets.formats.Format",
    "robustgen.sources": "robustgen.sets.sources.SourceKind",
    "robustgen.executors": "collections.abc.Callable",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Packages that cannot be imported, name no row, or take a built-in name; and one that can be used."""
    folder = tmp_path_factory.mktemp("site")
    for group in GROUPS:
        room = group.partition(".")[2]
        entries = [("absent", f"{room}_absent:ROW"), ("odd", f"{room}_odd:ROW")]
        modules = {f"{room}_absent": "import no_such_library\n", f"{room}_odd": "ROW = 3\n"}
        install(folder, f"bad-{room}", entries, modules, group)
    taken = {"thief": "import sys\nsys.stderr.write('imported')\n"}
    install(folder, "thief", [("jpeg", "thief:ROW")], taken, "robustgen.formats")
    return folder


def test_listing_names_imports_nothing_heavy(site):
    code = (
        "import sys; from robustgen.sets.formats import FORMATS; from robustgen.sets.sources import SOURCES\n"
        "from robustgen.sets.executors import EXECUTORS\n"
        "print([*FORMATS, *SOURCES, *EXECUTORS]); print(*sys.modules, sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{site}"},
        capture_output=True,
        text=True,
        check=True,
    )
    names, *modules = done.stdout.splitlines()
    assert all(f"'{name}'" in names for name in ("jpeg", "cifar", "dask", "absent", "odd"))
    assert not {"numpy", "PIL", "pyarrow", "distributed", "ray", "formats_odd"} & {*modules}


def test_packages_that_cannot_be_used_are_listed_with_the_reason(site):
    told = run_with(site, "list").stderr
    for group, row in GROUPS.items():
        package = f"of package bad-{group.partition('.')[2]} 1.0 cannot be used"
        assert f"'absent' {package}: ModuleNotFoundError: No module named 'no_such_library'" in told
        assert f"'odd' {package}: its entry point must name a {row}, not 3" in told
    assert "format 'thief 1.0: jpeg' cannot be used: the name is taken by robustgen" in told
    assert "imported" not in told


WING = "from robustgen.plugins import *\nWING = Wing(commands={})\n"
ROW = "(CommandRow({}, Section.SEE, {!r}, 'S.'),)"
# Package to what follows the group in its entry points, and its module.
BROKEN = {
    "no-value": (b"a\n", ""),
    "two-lines": (b"b =\n  two_lines:WING\n", ""),
    "not-utf8": (b"c = not_utf8:W\xe9NG\n", ""),
    "no-module": (b"d = nowhere:WING\n", ""),
    "no-text": (b"e = no_text:WING\n", WING.format(ROW.format(3, "no_text"))),
    "no-rows": (b"f = no_rows:WING\n", WING.format("None")),
    "shadow": (b"g = shadow:WING\n", WING.format(ROW.format("'make-c'", "shadow"))),
}


def test_every_command_works_beside_packages_that_are_broken(tmp_path):
    site, photo = tmp_path / "site", put_photo(tmp_path / "photos" / "a.png")
    for package, (text, module) in BROKEN.items():
        name = package.replace("-", "_")
        install(site, package, [], {name: module}, "robustgen.wings")
        (site / f"{name}-1.0.dist-info" / "entry_points.txt").write_bytes(b"[robustgen.wings]\n" + text)
    row = ROW.format("'count'", "gone.module")
    install(site, "gone", [("gone", "gone:WING")], {"gone": WING.format(row)}, "robustgen.wings")
    flags = ("--source", photo.parent, "--corruptions", "contrast", "--severities", "1", "--jobs", "1")
    told = [
        run_with(site, *words, status=status).stderr
        for words, status in ((("--help",), 0), (("list",), 0), (("no-such-command",), 2))
    ]
    for package in BROKEN:
        assert all(f"package {package} 1.0 cannot be used" in each for each in told)
    assert "package gone 1.0" in run_with(site, "count", status=2).stderr
    assert not run_with(site, "make-c", *flags, "--output", tmp_path / "out", "--quiet").stderr


def test_only_those_who_ask_for_a_bad_package_are_refused(site, tmp_path):
    put_photo(tmp_path / "photos" / "a" / "b.png")
    flags = ("--source", tmp_path / "photos", "--corruptions", "contrast", "--output", tmp_path / "out")
    config = tmp_path / "my.yaml"
    config.write_text("source_kind: absent\n")
    for wrong, noun in (
        (("--format", "absent"), "format"),
        (("--on", "absent:4"), "--on: executor"),
        (("--config", config), "kind of source"),
    ):
        (line,) = run_with(site, "make-c", *flags, *wrong, status=2).stderr.splitlines()
        assert line.startswith(f"Error: {noun} 'absent' of package bad-")
    run_with(site, "make-c", *flags, "--severities", "1")
