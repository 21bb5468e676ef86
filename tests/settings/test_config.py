"""Configs and flags: what is wrong is told in one line that names the file or flag and the key."""

import os
import re
import sys
from pathlib import Path

import pytest
import yaml

from robustgen import CORRUPTIONS, EDITIONS, FAMILIES, PERTURBATIONS
from robustgen.errors import ArgumentError, ConfigError
from robustgen.pixels.benchmarks.binding import check_overrides
from robustgen.pixels.benchmarks.registry import CLIP_SETS, DATA_SETS
from robustgen.settings.config import Config
from robustgen.settings.loading import load
from robustgen.settings.yaml_files import config_folder, dataset_file, dataset_names
from tests.helpers import cli, cli_error, make_c, manifest, pictures, put_photo, words


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Every test works in an empty folder of its own, with one photograph in `src`."""
    monkeypatch.chdir(tmp_path)
    put_photo(tmp_path / "src" / "cat" / "a.png")
    return tmp_path


def write(text, name="my.yaml"):
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return Path(name)


def error_of(text, command="make-c"):
    """What the command line says about a config of this text."""
    usual = {"source": "src", "output": "out", "jobs": "1"}
    flags = [part for key in usual if key not in str(text) for part in (f"--{key}", usual[key])]
    message = cli_error(command, "--config", write(text), *flags)
    assert not Path("out").exists()
    return message


# --- files that are wrong ------------------------------------------------------------------------

# Keys to values that each is refused with; in the second table, texts to the place that the message names.
VALUES = {
    # The second row is what YAML 1.1 reads as 8, 16, 1000 and a date.
    "seed": ("'3'", "1.0", "true", "", "-1", str(10**18 + 1), "x" * 900_000)
    + ("010", "0x10", "1_000", "2020-01-01"),
    "severities": ("{}", "1.5-2.5", "0.5", ".nan", "true", "3-1", "6", "[1, 0]", "[]")
    + (f"[{'1.5, ' * 60_000}2]",),
    "corruptions": ("3", "{fog: 1}", f"[{'x, ' * 500}y]"),
    "difficulty": ("4",),
    "limit": ("1:30",),
    "clean": ("1", "no"),
    "jobs": ("0", "5000"),
    "quality": ("100",),
    "constants_for": ("100",),
    "format": ("avi",),
    "edition": (f"imagenet@{'9' * 5000}",),
    "dataset": ("3", "../../evil", "/" * 90_000),
    "output": ('"a\\0b"',),
    "video": ("3",),
    "with": ("frost", "[frost]"),
}
WRONG = {f"{key}: {value}": f"{key}: " for key, values in VALUES.items() for value in values} | {
    # names
    "corruptions: [fog, frost, forst]": "corruptions[2]: unknown corruption 'forst' (did you mean 'frost'?)",
    "corruptions: fog, Frost": "corruptions[1]: ",
    "corruptions: [3]": "corruptions[0]: ",
    f"corruptions: {'x ' * 90_000}": "corruptions[0]: ",
    "perturbations: [rotat]": "perturbations[0]: unknown perturbation 'rotat' (did you mean 'rotate'?)",
    "edition: imagnet": "edition: unknown edition 'imagnet' (did you mean 'imagenet'?)",
    "source_kind: foldr": "source_kind: unknown kind of source 'foldr' (did you mean 'folder'?)",
    "video: {preset: fats}": "video.preset: unknown preset 'fats' (did you mean 'fast'?)",
    "corruption: fog": "unknown key 'corruption' (did you mean 'corruptions'?)",
    "video: {presett: fast}": "video: unknown key 'presett' (did you mean 'preset'?)",
    "qqq: 1": "unknown key 'qqq' (known: dataset, source, ",
    # values in sections
    "video: {crf: x}": "video.crf: ",
    "video: {crf: 60}": "video.crf: ",
    "parameters: {frost: 3}": "parameters.frost: ",
    "with: {frost: '${NO_SUCH_VARIABLE}'}": "with.frost: environment variable NO_SUCH_VARIABLE ",
    "with: {frost: 3}": "with.frost: ",
    "with: {frost: {place: ''}}": "with.frost: ",
    # YAML
    "<<: {seed: 3}": "unknown key '<<'",
    "seed: 1\nseed: 2": "line 2, column 1: 'seed' ",
    "video:\n  crf: 1\n  crf: 2": "line 3, column 3: 'crf' ",
    "dataset: &x 1\nseed: *x": "line 2, column 7: ",
    "a: &a [*a]": "line 1, column 8: ",
    "seed: !!python/object/apply:os.system ['touch owned']": "line 1, column 7: ",
    "seed: !mine 3": "line 1, column 7: tags such as '!mine' ",
    **{
        f"seed: !!{value}": "line 1, column 7: "
        for value in ("bool x", "int ''", "float ''", "timestamp abc", "map [a]", "set [a]", "float 1:1:1")
    },
    f"seed: !!int {':'.join(['1'] * 300)}": "line 1, column 7: ",
    "? !!map [a]\n: 1": "line 1, column 3: ",
    "seed: [1": "line 1, column 9: ",
    "\tseed: 1": "line 1, column 1: ",
    "seed: 1\n---\nseed: 2": "line 2, column 1: ",
    "seed: " + "9" * 5000: "line 1, column 7: ",
    f"parameters: {{fog: {{1: {{strength: {'9' * 400}}}}}}}": "line 1, column 34: ",
    # half a character
    **{
        f'{key}: "\\ud800"': f"line 1, column {len(key) + 3}: "
        for key in ("source", "output", "dataset", "subset", "corruptions")
    },
    'with: {frost: "\\ud800"}': "line 1, column 15: ",
    **dict.fromkeys(
        ("[1, 2]", "hello", "1: 2", "null: 2", "[" * 3000, "? [a, b]\n: 1", f"source: /{'s' * 90_000}"), ""
    ),
    **dict.fromkeys((b"seed: \xe9", b"\xff\xfes\x00", b"seed: 1\x00"), ""),
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: repr(text[:40]))
def test_a_wrong_file_is_told_in_one_line(text):
    message = error_of(text, "make-p" if "perturb" in str(text) else "make-c")
    # A path that the system refuses has no line.
    beginnings = (f"my.yaml:1: {WRONG[text]}", f"my.yaml: {WRONG[text]}")
    assert message.startswith(("/sss",) if "/sss" in str(text) else beginnings)
    assert len(message) < 2500
    assert not Path("owned").exists()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        # A group is one entry, however many names it stands for.
        ("corruptions: [common, forst]", "1: corruptions[1]: unknown"),
        ("# mine\nseed: 1\ncorruptions:\n  - fog\n  # not this\n  - forst", "6: corruptions[1]: unknown"),
        ("seed: 1\nvideo:\n  preset: fast\n  crf: 60", "4: video.crf: must be"),
        ("seed: 1\n\nvideo:\n  presett: fast", "4: video: unknown key 'presett'"),
        ("seed: 1\nsed: 2", "2: unknown key 'sed'"),
        ("parameters:\n  fog: 3", "2: parameters.fog: must be"),
        ("seed: 1\nsource:\n  a: 1", "2: source: must be"),
    ],
)
def test_the_line_of_the_mistake_is_named(text, place):
    assert error_of(text).startswith(f"my.yaml:{place}")


@pytest.mark.parametrize(
    ("name", "parameter", "value", "limits"),
    [
        ("zoom_blur", "step", "1e-9", "0.001 to 100"),
        ("defocus_blur", "radius", "1e8", "0 to 500"),
        ("shot_noise", "photons", "0", "0.1 to 1e+06"),
        # The counts of photons are tabulated, with 2 kB each.
        ("3dcc:iso_noise", "photons", "1e6", "0.1 to 100000"),
        ("ccc:jpeg", "quality", "10000", "1 to 100"),
        ("jpeg_compression", "quality", "0", "1 to 100"),
    ],
)
def test_constants_that_would_hang_or_mean_nothing_are_refused(tmp_path, name, parameter, value, limits):
    put_photo(tmp_path / "a.png")
    key = f"parameters.{name}.1.{parameter}"
    line = cli_error("make-c", "--source", tmp_path, "--corruptions", name, "--set", f"{key}={value}")
    assert f"{name}.1.{parameter}: must be from {limits}, not" in line


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/dev/zero", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("large.yaml", "has 2097152 bytes; at most 1048576 are allowed"),
    ],
)
def test_what_is_no_config_is_refused_without_being_read_whole(path, reason):
    write("#" * (2 << 20), "large.yaml")
    os.mkfifo("pipe")
    assert cli_error("make-c", "--config", path) == f"{path}: cannot be read: {reason}"
    assert reason in cli_error("croissant", "src", "--rai", path)


def test_no_class_list_is_read_from_a_pipe():
    os.mkfifo("pipe")
    command = ("predict", "src", "--model", "m", "--output", "o", "--classes", "pipe")
    assert cli_error(*command).startswith("--classes: pipe ")


@pytest.mark.parametrize("severity", ["decay", True, 2.5, None, (3,)])
def test_parameters_without_a_severity_are_refused_in_python_too(severity):
    with pytest.raises(ArgumentError, match=r"^fog\..*: name a severity from 1 to 5, as in fog: "):
        check_overrides({"fog": {severity: {"decay": 2}}})
    with pytest.raises(ArgumentError, match=r"^fog\.3: name a severity"):
        check_overrides({"fog": {3: 2}})
    assert check_overrides({"fog": {"3": {"decay": 2}}}) == {"fog": {3: {"decay": 2.0}}}


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ("{fog: {decay: 1.5}}", "parameters: fog.decay: name a severity from 1 to 5, as in fog: {3: {...}}"),
        ("{fog: {true: {decay: 1.5}}}", "fog.True: name a severity"),
        ("{fog: {}}", "parameters: fog: no severity given; write fog: {3: {...}}"),
        ("{fog: {3: {}}}", "fog.3: name a severity"),
        ("{forst: {1: {shrink: 1}}}", "unknown corruption 'forst' (did you mean 'frost'?)"),
        ("{frost: {6: {shrink: 1}}}", "severity 6 of frost does not exist"),
        ("{frost: {1: {shrnk: 1}}}", "unknown parameter of frost 'shrnk' (did you mean 'shrink'?)"),
        ("{glass_blur: {1: {iterations: 1.5}}}", "iterations"),
        ("{gaussian_noise: {1: {sigma: [1]}}}", "sigma"),
    ],
)
def test_wrong_parameters_are_told_in_one_line(parameters, says):
    message = error_of(f"parameters: {parameters}")
    assert says in message and message.startswith("my.yaml:1: parameters")


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}"])
def test_an_empty_file_is_all_defaults(text):
    assert load(Config, write(text)) == load(Config)


# --- flags ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        # The values of flags are read as those of files are.
        ("--severities 6", "--severities: "),
        ("--corruptions fog,forst", "--corruptions: unknown corruption 'forst' (did you mean 'frost'?)"),
        ("--corruptions=", "--corruptions: "),
        ("--difficulty 7", "--difficulty: "),
        (f"--seed {'9' * 5000}", "--seed: "),
        ("--set temporal=fast", "--set temporal: "),
        ("--set sed=3", "--set: unknown key 'sed' (did you mean 'seed'?)"),
        ("--set video.crff=3", "--set: unknown key 'crff' (did you mean 'crf'?)"),
        ("--set video.crf=60", "--set video.crf: "),
        ("--set video={", "--set video: "),
        ("--set seed", "--set: must be KEY=VALUE, not 'seed'"),
        ("--set video=!!map", "--set video: "),
        ('--set with={"frost":"\\ud800"}', "--set with: "),
        (f"--set parameters.fog.1.strength={'9' * 5000}", "--set parameters.fog.1.strength: "),
        ("--set parameters.fog.3.decay=x", "--set parameters.fog.3.decay: fog.3.decay: "),
        ("--dataset imagnet", "unknown dataset 'imagnet' (did you mean 'imagenet'?)"),
        ("--dataset demo --config my.yaml", "give --dataset or --config, not both"),
        ("--config nowhere.yaml", "nowhere.yaml: "),
        ("--config src", "src: "),
    ],
)
def test_a_wrong_flag_is_told_in_one_line(flags, message):
    command = "make-p" if "--difficulty" in flags else "make-c"
    assert cli_error(command, "--source", "src", "--output", "out", *flags.split()).startswith(message)


@pytest.mark.parametrize(
    "flags", [["--seed", "x"], ["--nonsense"], ["--overwrite", "3"], ["--severities"]], ids=str
)
def test_flags_that_do_not_parse_end_with_status_2(flags):
    assert "Error: " in cli("make-c", "--source", "src", *flags, status=2).stderr


def test_nothing_to_work_on():
    assert cli_error("make-c") == "no source: give --dataset, --config or --source"
    assert "no source" in cli_error("make-c", "--dataset", "folder")


@pytest.mark.parametrize(
    "flag", [("--with", "frost=nowhere"), ("--subset", "nowhere"), ("--labels", "nowhere")]
)
def test_a_path_that_is_not_there_is_wrong_and_not_the_fault_of_an_image(flag):
    message = cli_error("make-c", "--source", "src", "--output", "out", *flag, "--jobs", "1")
    assert "nowhere" in message


@pytest.mark.parametrize("flag", ["--output", "--source"])
def test_an_empty_path_is_not_the_current_folder(flag, tmp_path_factory):
    """What a shell makes of an unset variable must neither be read from nor written to."""
    before = sorted(Path().iterdir())
    places = {"--source": "src", "--output": str(tmp_path_factory.mktemp("outside") / "out")} | {flag: ""}
    few = ("--corruptions", "contrast", "--severities", "1", "--jobs", "1")
    message = cli_error("make-c", *few, *(part for pair in places.items() for part in pair))
    assert flag.removeprefix("--") in message and sorted(Path().iterdir()) == before


# --- what comes of a config ----------------------------------------------------------------------


def test_defaults():
    config = load(Config)
    assert config.edition == "folder"
    assert config.severities == (1, 2, 3, 4, 5)
    assert config.corruptions == tuple(CORRUPTIONS)[:15]
    assert config.perturbations == tuple(PERTURBATIONS)[:10]
    assert (config.seed, config.quality, config.clean, config.difficulty) == (0, 85, True, (1,))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("common", tuple(CORRUPTIONS)[:15]),
        ("extra", tuple(CORRUPTIONS)[15:]),
        ("all", tuple(CORRUPTIONS)),
        ("noise,digital", ("gaussian_noise", "shot_noise", "impulse_noise", *tuple(CORRUPTIONS)[11:15])),
        ("weather", tuple(CORRUPTIONS)[7:11]),
        ("blur", tuple(CORRUPTIONS)[3:7]),
        ("[fog, extra]", ("fog", *tuple(CORRUPTIONS)[15:])),
        ("fog, frost , snow", ("fog", "frost", "snow")),
        ("[fog, frost, fog]", ("fog", "frost")),
    ],
)
def test_ways_to_name_corruptions(written, meant):
    assert load(Config, write(f"corruptions: {written}")).corruptions == meant
    assert load(Config, None, {"corruptions": written.strip("[]")}).corruptions == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [("3", (3,)), ("1-5", (1, 2, 3, 4, 5)), ("[2, 4]", (2, 4)), ("1-2,5", (1, 2, 5)), ("3,3", (3,))],
)
def test_ways_to_name_severities(written, meant):
    assert load(Config, write(f"severities: {written}")).severities == meant


@pytest.mark.parametrize(
    ("written", "names", "own"),
    [
        ("fog:2,4,5,snow:1-3", ("fog", "snow"), {"fog": (2, 4, 5), "snow": (1, 2, 3)}),
        ("[fog:2, 4, snow]", ("fog", "snow"), {"fog": (2, 4)}),
        ("snow:2.5,fog:4,snow:1", ("snow", "fog"), {"snow": (1, 2.5), "fog": (4,)}),
        ("robodepth:dark:3-4", ("robodepth:dark",), {"robodepth:dark": (3, 4)}),
        (
            "blur:2,zoom_blur:4",
            ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
            {"defocus_blur": (2,), "glass_blur": (2,), "motion_blur": (2,), "zoom_blur": (4,)},
        ),
    ],
)
def test_ways_to_name_severities_of_one_corruption(written, names, own):
    for config in (
        load(Config, write(f"corruptions: {written}")),
        load(Config, None, {"corruptions": written.strip("[]")}),
        load(Config, None, {"corruptions": list(names), "severities_of": own}),
    ):
        assert (config.corruptions, config.severities_of) == (names, own)
        wanted = {(name, level) for name in names for level in own.get(name, (1, 2, 3, 4, 5))}
        assert {(each.name, each.level) for each in config.variants("c") if each.level} == wanted


@pytest.mark.parametrize("written", ["fog,2", "2,fog", "fog:6", "fog:3-2", "fog:2-x"])
def test_severities_that_belong_to_no_corruption_are_refused(written):
    message = cli_error("make-c", "--dataset", "demo", "--corruptions", written)
    assert message.startswith("--corruptions: ")


def test_severities_that_a_corruption_lacks_are_refused():
    for flags in (["robobev:fog:2,4"], ["robobev:fog,fog", "--severities", "4,5"]):
        assert "robobev:fog" in cli_error("make-c", "--dataset", "demo", "--corruptions", *flags)
    assert "snow" in cli_error(
        "make-c", "--dataset", "demo", *words("--corruptions fog --set severities_of.snow=2")
    )


def test_set_gives_any_key_and_keys_of_sections():
    path = write("video: {preset: fast}\nseed: 1\ncorruptions: fog\nparameters: {fog: {2: {decay: 3}}}")
    pairs = ("video.crf=20", "seed=3", "corruptions=frost,snow", "parameters.fog.3.decay=2", "mirror=none")
    config = load(Config, path, {"seed": 2}, settings=pairs)
    assert (config.video.preset, config.video.crf, config.video.playable) == ("fast", 20, False)
    assert (config.seed, config.corruptions, config.mirror) == (3, ("frost", "snow"), None)
    assert config.parameters == {"fog": {2: {"decay": 3}, 3: {"decay": 2}}}
    assert config.origins["seed"] == "--set seed" and config.origins["video.crf"] == "--set video.crf"


def test_flags_win_over_the_file():
    path = write("seed: 3\nseverities: 1\ncorruptions: fog\nquality: 50")
    config = load(Config, path, {"seed": 7, "severities": "2-3", "corruptions": None, "quality": None})
    assert (config.seed, config.severities) == (7, (2, 3))
    assert (config.corruptions, config.quality) == (("fog",), 50)


def test_a_flag_saves_a_file_whose_variable_is_not_set():
    path = write("source: ${NO_SUCH_VARIABLE}")
    assert load(Config, path, {"source": "src"}).source == "src"
    with pytest.raises(
        ConfigError, match=r"my\.yaml:1: source: .* NO_SUCH_VARIABLE is not set; name the images"
    ):
        load(Config, path)


def test_variables_and_the_home_folder_are_filled_in(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("WHERE", "/data/val")
    monkeypatch.setenv("WHAT", "set")
    config = load(Config, write("source: ${WHERE}/${WHAT}\noutput: ~/out-{kind}\nlabels: a~b"))
    assert (config.source, config.output, config.labels) == ("/data/val/set", "/home/me/out-{kind}", "a~b")


@pytest.mark.parametrize("name", ["imagenet", "cifar-10", "tiny-imagenet"])
def test_the_variable_of_a_shipped_config_is_asked_for(name, monkeypatch):
    for variable in ("IMAGENET_VAL", "CIFAR_10", "TINY_IMAGENET"):
        monkeypatch.delenv(variable, raising=False)
    message = cli_error("make-c", "--dataset", name)
    assert re.search(rf"/{name}\.yaml:\d+: source: environment variable \w+ is not set", message)


# --- shipped configs -----------------------------------------------------------------------------


def test_every_edition_has_a_config():
    assert set(EDITIONS) <= set(dataset_names())


@pytest.mark.parametrize("name", dataset_names())
def test_shipped_configs_load_and_name_themselves(name, monkeypatch):
    for variable in ("IMAGENET_VAL", "CIFAR_10", "CIFAR_100", "TINY_IMAGENET", *map(str.upper, DATA_SETS)):
        monkeypatch.setenv(variable, "/data")
    config = load(Config, dataset_file(name))
    # Sets of one's own are named after their source.
    assert config.dataset == (None if name in ("clips", "folder", "table") else name)
    editions = {"clips": "kinetics", "demo": "imagenet", "smoke": "imagenet-64", "table": "folder"}
    assert config.edition == editions.get(name, name)
    # Of coco-c there is no P set.
    named = f"out/{name}-{{kind}}" if name != "coco-c" else "out/coco-c"
    assert config.output == named or "{dataset}" in config.output
    if name in (*DATA_SETS, "clips"):
        family = {each.partition(":")[0] for each in config.corruptions}
        others = dict.fromkeys((*CLIP_SETS, "clips"), "video-c") | {"mnist": "mnist-c"}
        assert family == {others.get(name, "medmnist-c")}
    elif name != "smoke":
        assert (config.corruptions, config.severities, config.seed) == (
            tuple(FAMILIES["laion-c"].names() if name == "laion-c" else CORRUPTIONS)[:15],
            (1, 2, 3, 4, 5),
            0,
        )


def test_configs_hold_choices_and_no_published_constants():
    for path in config_folder().glob("*.yaml"):
        assert "parameters" not in yaml.safe_load(path.read_text())


def test_a_data_set_works_from_any_folder():
    few = ("--corruptions", "fog", "--severities", "1", "--limit", "1", "--jobs", "1")
    cli("make-c", "--dataset", "smoke", *few)
    assert len(pictures("out/smoke-c")) == 2


# --- parameters, subset, limit -------------------------------------------------------------------


PLAIN = "corruptions: contrast\nseverities: 1-2\nclean: false\njobs: 1\n"


def make(*flags, text=PLAIN):
    output = () if "--output" in flags else ("--output", "out")
    cli("make-c", "--config", write(text), "--source", "src", *output, *flags)
    return {name: Path("out", name).read_bytes() for name in pictures("out")}


def test_parameters_replace_the_published_constants_where_they_are_given():
    published = make()
    own = make("--overwrite", text=f"{PLAIN}parameters: {{contrast: {{2: {{factor: 0.01}}}}}}")
    assert own["contrast/1/cat/a.JPEG"] == published["contrast/1/cat/a.JPEG"]
    assert own["contrast/2/cat/a.JPEG"] != published["contrast/2/cat/a.JPEG"]


def test_without_jpeglib_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jpeglib", None)
    message = error_of("libjpeg: ijg")
    assert message.startswith("libjpeg: ijg needs jpeglib") and message.endswith("'robustgen[ijg]'")


def test_a_scale_replaces_the_edition_s_constants():
    assert make("--set", "constants_for=224") != make("--set", "constants_for=32", "--overwrite")


IJG_PLAIN = "corruptions: [contrast, jpeg_compression]\nseverities: 1\njobs: 1\n"


def test_ijg_writes_the_files_and_jpeg_compression_is_always_its_own():
    def check_own(settings):
        assert settings["parameters"]["jpeg_compression/1"]["224"] == {"quality": 25, "library": "ijg"}

    turbo = make(text=IJG_PLAIN)
    check_own(manifest("out")["settings"])
    ijg = make("--libjpeg", "ijg", "--overwrite", text=IJG_PLAIN)
    assert all(ijg[name] != turbo[name] for name in turbo)
    settings = manifest("out")["settings"]
    check_own(settings)
    assert settings["output"]["libjpeg"] == "ijg"
    assert settings["versions"]["libjpeg"].startswith("IJG libjpeg 9c")
    cli("verify", "out", "--deep", "2")


def test_limit_takes_the_first_images_and_subset_those_it_lists():
    for name in ("b", "c", "d"):
        put_photo(Path(f"src/dog/{name}.png"))
    write("# mine\ndog/c.png\n\n  cat/a.png  \r\ndog/d.png\n", "keys.txt")
    assert set(make("--limit", "2", "--severities", "1")) == {
        f"contrast/1/{k}.JPEG" for k in ("cat/a", "dog/b")
    }
    subset = make("--subset", "@keys.txt", "--severities", "1", "--output", "other", "--limit", "2")
    assert pictures("other") == {f"contrast/1/{key}.JPEG" for key in ("cat/a", "dog/c")}
    assert subset


def test_a_list_of_imagenets_images_fits_a_flat_folder_too(tmp_path):
    for number in (1, 2, 3):
        put_photo(tmp_path / "val" / f"ILSVRC2012_val_0000000{number}.JPEG")
    ids = tmp_path / "ids.txt"
    ids.write_text("n01440764/ILSVRC2012_val_00000003.JPEG\nn01751748/ILSVRC2012_val_00000001.JPEG\n")
    flags = ("--corruptions", "contrast", "--severities", "1", "--no-clean", "--jobs", "1")
    cli("make-c", "--source", tmp_path / "val", "--subset", f"@{ids}", "--output", tmp_path / "c", *flags)
    made = sorted(path.stem for path in (tmp_path / "c" / "contrast" / "1").rglob("*.JPEG"))
    assert made == ["ILSVRC2012_val_00000001", "ILSVRC2012_val_00000003"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cat/a.png\n\ncat/b.png\n", "keys.txt, line 3: read 'cat/b.png', but the source has no such image"),
        ("cat/a.png\nd.png\n", "keys.txt, line 2: read 'd.png', but the source has no such image"),
        ("# nothing\n\n", "keys.txt: lists no image"),
        ("", "keys.txt: lists no image"),
    ],
)
def test_a_wrong_subset_is_told(text, message):
    write(text, "keys.txt")
    said = cli_error("make-c", "--source", "src", "--output", "out", "--subset", "@keys.txt")
    assert said.startswith(message)


def test_a_subset_takes_names_as_they_are():
    names = ["a\fb.png", "c\u2028d.png", "#e.png", " f.png", "g\nh.png", "i\\j.png"]
    for name in names:
        put_photo(Path("odd", name))
    write("# a comment\n" + "\n".join(names[:3]) + "\r\n f.png\n\\g\\nh.png\ni\\j.png\n", "keys.txt")
    few = ("--corruptions", "contrast", "--severities", "1", "--no-clean", "--jobs", "1")
    make_c("odd", "out", "--subset", "@keys.txt", *few)
    made = {path.stem for path in Path("out/contrast/1").glob("*.JPEG")}
    assert made == {name.removesuffix(".png") for name in names}


# --- sources and outputs that cannot be ----------------------------------------------------------


def test_wrong_sources():
    Path("empty").mkdir()
    write("no image", "text.txt")
    for source, says in (
        ("nowhere", "nowhere"),
        ("empty", "empty: no images"),
        ("text.txt", "text.txt: neither a folder, an image nor an archive"),
    ):
        assert says in cli_error("make-c", "--source", source, "--output", "out")


def test_wrong_outputs():
    write("a file", "file")
    Path("link").symlink_to("src")
    for output, says in (
        ("src/out", "inside the source"),
        ("src", "inside the source"),
        ("link/out", "inside the source"),
        ("file", "file: is a file"),
        ("file/out", "file: is a file"),
    ):
        assert says in cli_error("make-c", "--source", "src", "--output", output, "--jobs", "1")
    assert pictures("src") == {"cat/a.png"}


# --- other commands ------------------------------------------------------------------------------


def test_jobs_can_be_all():
    few = ("--source", "src", "--corruptions", "contrast", "--output", "out")
    cli("make-c", *few, "--jobs", "all")
    cli("verify", "out", "--jobs", "all")
    for wrong in ("0", "most", "-1"):
        assert "--jobs: must be" in cli_error("make-c", *few, "--jobs", wrong)


@pytest.mark.parametrize(
    "args", [["--help"], ["-h"], ["make-c", "--help"], ["make-p", "-h"], ["--version"]], ids=str
)
def test_help_and_version(args):
    assert "robustgen" in cli(*args).stdout.lower() or "Usage" in cli(*args).stdout
