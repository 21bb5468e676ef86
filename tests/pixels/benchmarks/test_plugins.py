"""Families of corruptions from other packages: installed, found, used, and named where they are bad."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.errors import ArgumentError, ArgumentTypeError
from robustgen.pixels.benchmarks.registry import BENCHMARK_FAMILY, Family, corruption
from robustgen.plugins import conformance
from tests.helpers import cifar_folder, install, photo, pictures, put_photo
from tests.helpers import run_with as run

EXAMPLE = Path(__file__).parents[2] / "plugin"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder in which the example package is installed as its own pyproject.toml says."""
    project = (EXAMPLE / "pyproject.toml").read_text()
    section = project.split('[project.entry-points."robustgen.corruptions"]\n')[1].split("\n[")[0]
    entries = re.findall(r'^(\w+) = "(.+)"$', section, re.MULTILINE)
    package = re.search(r'^name = "(.+)"$', project, re.MULTILINE)[1]
    folder = tmp_path_factory.mktemp("site")
    install(folder, package, entries, {path.stem: path.read_text() for path in EXAMPLE.glob("*.py")})
    return folder


def test_the_example_is_short_and_whole():
    page = (EXAMPLE.parents[1] / "docs" / "benchmarks" / "plugins.md").read_text()
    for module, most in (("robustgen_darkness.py", 45), ("robustgen_lamps.py", 80)):
        text = (EXAMPLE / module).read_text()
        assert 30 <= len(text.splitlines()) <= most and text in page


def test_a_plugin_is_listed_with_its_means(site):
    listed = run(site, "list").stdout
    assert "ImageNet-Darkness (robustgen make-c --corruptions darkness)" in listed
    assert re.search(r"^  darkness:dusk +weather +common +light$", listed, re.MULTILINE)
    one = run(site, "list", "darkness:dusk").stdout
    assert "scale 224, severity 5: light 0.2" in one and "AlexNet: 42.0 %" in one
    assert "darkness" not in run(site.parent, "list").stdout


@pytest.mark.slow("starts many processes")
def test_a_plugin_makes_sets_that_verify(site, tmp_path):
    put_photo(tmp_path / "in" / "class" / "a.jpg", 64, 64)
    out = tmp_path / "out"
    flags = ["--source", tmp_path / "in", "--edition", "imagenet", "--severities", "1,5"]
    run(site, "make-c", *flags, "--corruptions", "fog,darkness:all", "--output", out, "--jobs", "2")
    folders = {"clean", *(f"{n}/{s}" for n in ("fog", "darkness.dusk", "darkness.shadow") for s in (1, 5))}
    assert pictures(out) == {f"{folder}/class/a.jpg" for folder in folders}
    manifest = json.loads((out / "dataset.json").read_text())
    assert "On Darkness" in manifest["citation"] and "Hendrycks" in manifest["citation"]
    run(site, "verify", out, "--deep", "3")
    report = run(site, "report", out, "--output", tmp_path / "report.html")
    assert report.stdout and "darkness" in (tmp_path / "report.html").read_text()
    flags = ("--source", tmp_path / "in", "--corruptions")
    run(site, "preview", *flags, "darkness", "--output", tmp_path / "p.png")
    measured = run(site, "calibrate", *flags, "darkness:shadow")
    assert "darkness:shadow" in measured.stdout


@pytest.mark.slow("processes with a plug-in")
def test_a_plugin_fills_arrays_and_obeys_configs(site, tmp_path):
    folder, images, _ = cifar_folder(tmp_path, images=3)
    config = tmp_path / "my.yaml"
    config.write_text(
        f"edition: cifar-10\nsource: {folder}\ncorruptions: [darkness]\nseverities: [2]\n"
        "parameters: {'darkness:dusk': {2: {light: 0.25}}}\n"
    )
    refused = run(site, "make-c", "--config", config, "--corruptions", "darkness:shadow", status=2)
    assert re.search(r"darkness:shadow .*\b32\b.*\b224\b", refused.stderr)
    run(site, "make-c", "--config", config, "--output", tmp_path / "out")
    made = np.load(tmp_path / "out" / "darkness.dusk.npy")
    assert np.array_equal(made, (images * 0.25).astype(np.uint8))


@pytest.fixture
def lit(tmp_path):
    """Two photographs, and maps of light: the left half of each is lit."""
    maps = tmp_path / "maps"
    for key in ("cat/a.png", "dog/b.png"):
        put_photo(tmp_path / "in" / key, 60, 80)
        light = np.zeros((60, 80), np.float32)
        light[:, :40] = 2
        (maps / key).parent.mkdir(parents=True)
        np.save(maps / f"{key}.npy", light)
    return tmp_path


@pytest.mark.slow("starts many processes")
def test_a_plugin_brings_its_own_ingredient(site, lit):
    maps, out = lit / "maps", lit / "out"
    flags = ["--source", lit / "in", "--edition", "imagenet@48", "--severities", "1,5"]
    flags += ["--corruptions", "lamps", "--format", "png", "--output", out, "--jobs"]
    run(site, "make-c", *flags, "2", "--with", f"lamps={maps},gain=0.5")
    (clean, night) = (np.asarray(Image.open(out / name / "cat/a.png")) for name in ("clean", "lamps.night/5"))
    # The map was resized and cropped like the image.
    assert np.array_equal(night[:, :24], clean[:, :24]) and not night[:, 24:].any() and clean[:, 24:].any()
    held = json.loads((out / "dataset.json").read_text())
    assert held["settings"]["parameters"]["lamps.night/5"]["lamps"].endswith(", gain 0.5")
    assert held["licence"].endswith("The maps of light are free.")
    assert held["config"]["with"] == {"lamps": {"place": "maps", "gain": "0.5"}}
    run(site, "verify", out, "--deep", "all")
    refused = run(site, "make-c", *flags, "1", "--with", f"lamps={maps}", status=2).stderr
    assert "parameters.lamps.night/1.lamps was" in refused
    assert "needs lamps: maps of light, in a folder" in run(site, "list", "lamps:night").stdout


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ((), "lamps:night needs maps of light, in a folder of .npy files with the keys of the images: give"),
        (("lamps={}/maps,gain=much",), "with: lamps.gain: could not convert string to float: 'much'"),
        (("lamps={}/in",), "lamps: no map of cat/a.png in "),
        (("lamps={}/maps", "frost={}/in"), "with: frost: none of the corruptions needs it (they"),
    ],
)
def test_an_ingredient_of_a_plugin_is_checked_before_the_run(site, lit, named, reason):
    flags = ["--source", lit / "in", "--corruptions", "lamps", "--output", lit / "out"]
    flags += [word for each in named for word in ("--with", each.format(lit))]
    assert reason in run(site, "make-c", *flags, status=2).stderr
    assert not (lit / "out").exists()


def test_a_plugin_serves_python(site):
    code = """
import numpy, robustgen
image = numpy.full((40, 40, 3), 100, 'uint8')
assert (robustgen.corrupt(image, 'darkness:dusk', 2) == 50).all()
assert list(robustgen.FAMILIES)[:2] == ['imagenet-c', 'c-bar']
assert list(robustgen.FAMILIES)[-2:] == ['darkness', 'lamps']
assert robustgen.FAMILIES['darkness'].means['darkness:dusk'] == 0.42
given = {'light': 0, 'lamps': numpy.eye(40)}
assert (robustgen.corrupt(image, 'lamps:night', 1, parameters=given) == 100 * numpy.eye(40)[..., None]).all()
assert len(robustgen.CORRUPTIONS) == 19
"""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


GOOD = """
from dataclasses import dataclass
from robustgen.pixels.benchmarks.registry import Family, corruption
@dataclass(frozen=True)
class Nothing:
    amount: float
{family} = Family("{family}", "Good")
@corruption("noise", Nothing, {{224: (1, 2, 3, 4, 5)}}, family={family})
def same(image, parameters, rng):
    \"\"\"Leave the image as it is.\"\"\"
    return image
"""
TWICE = "corruption('noise', Nothing, {224: range(5)}, family=twice)(same)"
BAD = {
    "absent": ("import no_such_library\n", "No module named 'no_such_library'"),
    "short": (GOOD.format(family="short").replace("4, 5)", "4)"), "scale 224 needs a row for each"),
    "oddly": (GOOD.format(family="oddly").replace("224:", "225:"), "no scale 225"),
    "rows": (GOOD.format(family="rows").replace("(1, 2,", "((1, 1), 2,"), "table of same: scale 224"),
    "twice": (GOOD.format(family="twice") + TWICE,
              "same' is registered twice"),
    "lost": (GOOD.format(family="lost").replace(", family=lost", ""), "same needs its own family"),
    "other": (GOOD.format(family="other").replace('"other"', '"another"'), "must be called 'other'"),
    "odd": ("odd = 3\n", "must name a robustgen.pixels.benchmarks.registry.Family"),
    "hollow": (
        "from robustgen.pixels.benchmarks.registry import Family\nhollow = Family('hollow', 'H')\n",
        "registers no",
    ),
    "quits": ("raise SystemExit(3)\n", "SystemExit: 3"),
    "means": (GOOD.format(family="means").replace('"Good"', '"Good", means={"means:so": 0.1}'),
              "means: 'means:so' must be one of its corruptions"),
    "title": (GOOD.format(family="title").replace('"Good"', "3"),
              "title, citation and reference must be texts"),
    "measure": (GOOD.format(family="measure").replace('"Good"', '"Good", measure="beauty"'), "measure: "),
    "array": (
        GOOD.format(family="array").replace("(1, 2, 3, 4, 5)", "(object(),) * 5"),
        "array:same: not numbers or texts: Object of type object is not JSON",
    ),
    "mute": (
        "class Mute(Exception):\n    def __str__(self): return self.words\nraise Mute\n",
        "Mute, which cannot be printed (AttributeError)",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def bad_site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    install(folder, "good", [("fine", "good_module:fine")], {"good_module": GOOD.format(family="fine")})
    for name, (text, _) in BAD.items():
        install(folder, f"bad-{name}", [(name, f"bad_{name}:{name}")], {f"bad_{name}": text})
    install(folder, "thief", [("c-bar", "good_module:fine"), ("fine", "thief:fine")], {"thief": "fine = 1\n"})
    return folder


def test_bad_plugins_are_named_with_their_package_and_the_others_work(bad_site):
    done = run(bad_site, "list")
    assert "--corruptions fine)" in done.stdout
    for name, (_, reason) in BAD.items():
        (line,) = [line for line in done.stderr.splitlines() if f"package bad-{name} 1.0" in line]
        assert reason in line, line
    for name, owner in (("c-bar", "robustgen"), ("fine", "good 1.0")):
        assert f"'thief 1.0: {name}' " in done.stderr and owner in done.stderr


def test_a_plugin_without_a_docstring_that_prints_is_listed(tmp_path):
    text = (
        GOOD.format(family="bare").replace('    """Leave the image as it is."""\n', "") + "print('hello')\n"
    )
    install(tmp_path, "bare", [("bare", "bare_module:bare")], {"bare_module": text})
    done = run(tmp_path, "list", "--format", "json")
    (entry,) = [each for each in json.loads(done.stdout) if each["name"] == "bare:same"]
    assert entry["summary"] == "" and done.stderr == "hello\n"
    assert run(tmp_path, "list", "bare:same").stdout.startswith("corruption bare:same\n  scale 224, ")
    assert "bare:same" in run(tmp_path, "list").stdout


@pytest.mark.slow("processes with a plug-in")
def test_other_names_import_no_plugin(tmp_path):
    install(tmp_path, "loud", [("loud", "loud:loud")], {"loud": "import sys\nsys.stderr.write('imported')\n"})
    put_photo(tmp_path / "in" / "a.jpg", 64, 64)
    flags = ("--severities", "1", "--output", tmp_path / "out")
    made = ("make-c", "--source", tmp_path / "in", "--corruptions", "fog,c-bar", *flags)
    for args in (("list", "fog"), ("list", "c-bar"), ("list", "cifar-10"), made):
        assert "imported" not in run(tmp_path, *args).stderr


def test_asking_for_a_bad_plugin_says_why(bad_site, tmp_path):
    put_photo(tmp_path / "in" / "class" / "a.jpg", 64, 64)
    flags = ["make-c", "--source", tmp_path / "in", "--edition", "imagenet", "--output", tmp_path / "out"]
    for asked in ("absent", "absent:all", "absent:same"):
        (line,) = run(bad_site, *flags, "--corruptions", asked, status=2).stderr.splitlines()
        assert "package bad-absent 1.0 cannot be used" in line and "no_such_library" in line
    (line,) = run(bad_site, *flags, "--corruptions", "fine:sane", status=2).stderr.splitlines()
    assert "unknown corruption 'fine:sane' (did you mean 'fine:same'?)" in line
    run(bad_site, *flags, "--corruptions", "fine,fog", "--severities", "1")


NOTHING = type(robustgen.CORRUPTIONS["brightness"].parameters(1, 224))
TABLE = {224: (1, 2, 3, 4, 5)}


def leave(image):
    return sys.exit(3)


def black_out(image):
    image[:] = 0
    return image


def register(function, family="trial"):
    """Register `function` as the corruption of a family of its own, and return it as it is registered."""
    own = Family(family, "Trial")
    corruption("noise", NOTHING, TABLE, family=own)(function)
    return own.find(f"{family}:{function.__name__}")


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (lambda image: None, "trial:made gave NoneType, not uint8 of shape (40, 48, 3)"),
        (lambda image: image[:5], "gave uint8 of shape (5, 48, 3), not uint8 of shape (40, 48, 3)"),
        (lambda image: image / 3, "gave float64 of shape (40, 48, 3), not uint8"),
        (leave, "trial:made ended the program: SystemExit: 3"),
        (black_out, "read-only"),
    ],
)
def test_what_a_plugin_makes_is_checked(function, complaint):
    def made(image, parameters, rng):
        return function(image)

    image = photo(40, 48)
    with pytest.raises(ValueError, match=re.escape(complaint)):
        register(made).apply(image, None, None)
    assert np.array_equal(image, photo(40, 48))


@pytest.mark.parametrize("draw", [np.random.rand, lambda: np.random.default_rng().random()])
def test_a_plugin_that_draws_from_another_generator_does_not_conform(draw):
    def drawn(image, parameters, rng):
        return (image * draw()).astype(np.uint8)

    def made(image, parameters, rng):
        return (image * rng.random()).astype(np.uint8)

    family = Family("trial", "Trial")
    corruption("noise", NOTHING, TABLE, family=family)(made)
    conformance.check_family(family)
    corruption("noise", NOTHING, TABLE, family=family)(drawn)
    with pytest.raises(AssertionError, match="trial:drawn must draw from rng alone"):
        conformance.check_family(family)


def same(image, parameters, rng):
    return image


def test_a_plugin_may_give_the_image_itself():
    image = photo(40, 48)
    given = register(same).apply(image, None, None)
    assert np.array_equal(given, image) and given.flags.writeable and not np.shares_memory(given, image)


def test_what_cannot_be_registered_is_refused_at_once():
    family = Family("trial", "Trial")
    for arguments, error in (
        (("nose", NOTHING, TABLE), ArgumentError),
        (("noise", dict, TABLE), ArgumentTypeError),
        (("noise", NOTHING, 3), ArgumentTypeError),
        (("noise", NOTHING, {}), ArgumentTypeError),
        (("noise", NOTHING, {224: 32}), ArgumentError),
    ):
        with pytest.raises(error, match="same"):
            corruption(*arguments, family=family)(same)
    assert not family.corruptions
    with pytest.raises(ArgumentError, match="needs its own family"):
        corruption("noise", NOTHING, TABLE)(same)
    assert len(BENCHMARK_FAMILY.corruptions) == 19
