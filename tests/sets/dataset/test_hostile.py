"""Hostile and odd input through the command line: all is named, nothing crashes or leaves the output."""

import io
import json
import os
import pickle
import struct
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robustgen.files.storage.host import cache_folder
from robustgen.lab.inspection.verify import verify
from robustgen.sets.executors import workers
from tests.helpers import cli, cli_error, errors_of, photo, pictures, pixels_of, put_photo, run_negatives

PHOTO = photo(48, 48, seed=3)
ODD_NAMES = (
    *("with space", "żółw 🐢", "new\nline", "back\\slash", "-rf", "tab\t", "'\"$(touch owned)`touch owned`"),
    *("a.b.c", "%s{0}", "~", "clean", "dataset.json"),
)


# --- one folder of everything --------------------------------------------------------------------


def saved(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return buffer.getvalue()


def bomb(side=20_000):
    """A PNG file of 50 kB that holds 400 million pixels."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(1 + side // 8) * side)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def good_files():
    """Files that are odd but can be read, all of the same picture as far as their format can show it."""
    image = Image.fromarray(PHOTO)
    grey = np.asarray(image.convert("L"))
    frames = [image.convert("P", palette=Image.Palette.ADAPTIVE), Image.new("P", image.size)]
    exif = b"Exif\0\0MM\0*\xff\xff\xff\xff\x00\x10" + b"\xff" * 40
    files = {
        "odd/animated.gif": saved(frames[0], format="GIF", save_all=True, append_images=frames[1:]),
        "odd/sixteen.png": saved(Image.fromarray(grey.astype(np.uint16) * 257), format="PNG"),
        "odd/bits.png": saved(image.convert("1"), format="PNG"),
        "odd/cmyk.jpg": saved(image.convert("CMYK"), format="JPEG", quality=95),
        "odd/exif.jpg": saved(image, format="JPEG", quality=95, exif=exif),
        "a..b/x.png": saved(image, format="PNG"),
        "image.jpg/x.png": saved(image, format="PNG"),
    }
    return files | {f"{name}/{name}.png": files["a..b/x.png"] for name in ODD_NAMES}


# They are squeezed to 64 x 64.
TINY = {
    "size/speck.png": saved(Image.new("RGB", (1, 1)), format="PNG"),
    "size/ribbon.png": saved(Image.new("RGB", (20_000, 3)), format="PNG"),
}
BAD_FILES = {
    "bad/zero.jpg": (b"", "the file is empty"),
    "bad/truncated.jpg": (saved(Image.fromarray(PHOTO), format="JPEG")[:700], "truncated"),
    "bad/text.jpg": (b"this is no image", "in none of the formats"),
    "bad/bomb.png": (bomb(), "decompression bomb"),
    "bad/postscript.jpg": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 50 50\n", "in none of the formats"),
    "bad/secret.png": (saved(Image.fromarray(PHOTO), format="PNG"), "Permission denied"),
    "twin/x.png": (saved(Image.fromarray(PHOTO), format="PNG"), "would replace that of 'twin/x.bmp'"),
}
LINKS = {
    "loop/around": ("..", "symlink loop"),
    "loop/self.jpg": ("self.jpg", "symlink that cannot be followed"),
    "loop/there.png": ("back.png", "symlink that cannot be followed"),
    "loop/back.png": ("there.png", "symlink that cannot be followed"),
    "out/secret.png": ("../../outside/secret.png", "symlink that leaves the source"),
    "out/folder": ("../../outside", "symlink that leaves the source"),
    "out/up": ("../..", "symlink that leaves the source"),
    "out/passwd.jpg": ("/etc/passwd", "symlink that leaves the source"),
}
HIDDEN = ("..cat/x.png", ".../x.png", ".hidden.png")


def refusals():
    other = {
        "bad/pipe.png": "not a regular file",
        "bad/latin\\xff.png": "not valid UTF-8",
        "closed": "folder cannot be listed: Permission denied",
    }
    return other | {key: reason for key, (_, reason) in (BAD_FILES | LINKS).items()}


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A folder that holds, beside things that are none of a run's business, the source `src`."""
    home = tmp_path_factory.mktemp("hostile")
    put_photo(home / "outside" / "secret.png")
    source = home / "src"
    for key, data in (good_files() | TINY).items():
        write(source / key, data)
    for key, (data, _) in BAD_FILES.items():
        write(source / key, data)
    for key, (target, _) in LINKS.items():
        (source / key).parent.mkdir(exist_ok=True)
        (source / key).symlink_to(target)
    for key in (*HIDDEN, "twin/x.bmp", "closed/x.png"):
        write(source / key, b"")
        Image.fromarray(PHOTO).save(source / key)
    write(source / "bad" / os.fsdecode(b"latin\xff.png"), saved(Image.fromarray(PHOTO), format="PNG"))
    os.mkfifo(source / "bad" / "pipe.png")
    (source / "bad" / "secret.png").chmod(0)
    (source / "closed").chmod(0)
    yield home
    (source / "closed").chmod(0o755)


def run(home, command, *flags):
    """Run the command line where file permissions hold, root or not; report what it changed around it."""
    before = surroundings(home, without=command)
    drop = "import ctypes, os, sys; [ctypes.CDLL(None).prctl(24, cap, 0, 0, 0) for cap in (1, 2)]; "
    start = f"{drop}os.execv(sys.executable, [sys.executable, '-m', 'robustgen', *sys.argv[1:]])"
    flags = (command, "--source", "src", "--output", command, "--edition", "imagenet-64", *flags)
    done = subprocess.run(
        [sys.executable, "-c", start, *flags, "--jobs", "2"], cwd=home, capture_output=True, text=True
    )
    assert surroundings(home, without=command) == before
    assert "Traceback" not in done.stderr
    return done


def surroundings(home, without=None):
    """Everything below `home`, and when it was changed."""
    found = {}
    for folder, folders, files in os.walk(home):
        if folder == str(home):
            folders[:] = [name for name in folders if name != without]
        for name in (*folders, *files):
            path = Path(folder, name)
            # The modification time of `home` itself changes, that of nothing in it.
            found[path] = path.lstat().st_mtime_ns, path.lstat().st_size
    return found


def reasons(output):
    """Key to reason, of one entry for each key."""
    entries = errors_of(output)
    assert len({entry["key"] for entry in entries}) == len(entries)
    return {entry["key"]: entry["reason"] for entry in entries}


def assert_refused(output, expected):
    told = reasons(output)
    assert set(told) == set(expected)
    for key, reason in expected.items():
        assert reason in told[key], key


@pytest.fixture(scope="module")
def made_c(hostile):
    done = run(hostile, "make-c", "--corruptions", "contrast,pixelate", "--severities", "2")
    return done, hostile / "make-c"


def test_make_c_lists_every_refused_item_with_its_reason(made_c):
    done, output = made_c
    assert done.returncode == 1, done.stderr
    assert_refused(output, refusals())
    assert f"{len(refusals())} failures, listed in make-c/errors.jsonl" in done.stderr


def test_make_c_makes_all_that_can_be_read(made_c):
    names = {*good_files(), *TINY, "twin/x.bmp"}
    names = {name if name.endswith(".jpg") else f"{name[:-4]}.JPEG" for name in names}
    variants = ("clean", "contrast/2", "pixelate/2")
    assert pictures(made_c[1]) == {f"{variant}/{name}" for variant in variants for name in names}
    manifest = json.loads((made_c[1] / "dataset.json").read_text())
    assert manifest["counts"]["files"] == 3 * len(names)
    assert manifest["failures"] == len(refusals()) and manifest["complete"] is False


@pytest.mark.parametrize("name", ["animated", "sixteen", "cmyk", "exif", "bits"])
def test_odd_formats_show_the_right_picture(made_c, name):
    (path,) = (made_c[1] / "clean" / "odd").glob(f"{name}.*")
    got, want = pixels_of(path).astype(float), pixels_of(made_c[1] / "clean/a..b/x.JPEG").astype(float)
    if name in ("sixteen", "bits"):
        got, want = got.mean(2), want @ (0.299, 0.587, 0.114)
    if name == "bits":  # dithered: right only on average
        got, want = got.mean(), want.mean()
    assert np.abs(got - want).mean() < 12


def test_make_p_makes_and_refuses_likewise(hostile):
    done = run(hostile, "make-p", "--perturbations", "translate", "--format", "png")
    output = hostile / "make-p"
    assert done.returncode == 1, done.stderr
    assert_refused(output, refusals())
    names = {key.rpartition(".")[0] for key in (*good_files(), *TINY, "twin/x.bmp")}
    assert {name.rpartition("/")[0] for name in pictures(output)} == {f"translate/{n}" for n in names}


# --- names that stand in each other's way --------------------------------------------------------


SEQUENCES = ("make-p", "--perturbations", "translate", "--format")
IMAGES = ("make-c", "--corruptions", "contrast", "--severities", "1")


@pytest.mark.parametrize(
    ("command", "keys", "refused"),
    [
        ((*SEQUENCES, "png"), ["x.jpg", "x.png"], {"x.png"}),
        (IMAGES, ["x.jpg", "x.png", "x.bmp"], {"x.png"}),
        (IMAGES, ["cat/x.png", "cat/x.JPEG/y.png"], {"cat/x.png"}),
        (IMAGES, [f"cat/{'x' * 251}.png", "cat/y.png"], {f"cat/{'x' * 251}.png"}),
        ((*SEQUENCES, "mp4"), ["SHA256SUMS/x.png", "cat/x.png"], {"SHA256SUMS/x.png"}),
        ((*SEQUENCES, "mp4"), ["FRAMES.SHA256/x.png", "cat/x.png"], {"FRAMES.SHA256/x.png"}),
        ((*SEQUENCES, "png"), ["cat/SHA256SUMS.png"], set()),
    ],
    ids=["stem", "results", "folder", "long", "sums", "frames", "sequence"],
)
def test_names_that_stand_in_each_other_s_way_are_refused(tmp_path, command, keys, refused):
    """All other images are there, and `verify` finds no other fault."""
    for seed, key in enumerate(keys):
        put_photo(tmp_path / "src" / key, seed=seed)
    output, status = tmp_path / "out", 1 if refused else 0
    cli(*command, "--source", tmp_path / "src", "--output", output, "--jobs", "1", status=status)
    assert {finding.fault for finding in verify(output).problems} <= {"unfinished"}
    assert set(reasons(output) if refused else ()) == refused
    if command == IMAGES:
        assert len(pictures(output / "clean")) == len(keys) - len(refused)


@pytest.mark.usefixtures("negatives")
def test_a_class_folder_named_like_a_paper_of_a_set_without_variants(tmp_path):
    for folder in ("errors.jsonl", "cat"):
        put_photo(tmp_path / "src" / folder / "x.png")
    run_negatives(tmp_path / "src", tmp_path / "out", status=1)
    assert [entry["key"] for entry in errors_of(tmp_path / "out")] == ["errors.jsonl/x.png"]
    assert pictures(tmp_path / "out") == {"cat/x.png"}
    cli("verify", "--allow-failures", tmp_path / "out")


@pytest.mark.parametrize("command", ["verify", "report", "score", "preview"])
def test_a_path_that_is_too_long(tmp_path, command):
    path = tmp_path / ("n" * 300)
    # From Python 3.14 on, pathlib says of such a path that nothing is there.
    assert str(path) in cli_error(command, path)


# --- names that speak to the terminal ------------------------------------------------------------

# Sets the title of the window, and begins a line of its own.
SPEAKING = "a\x1b]0;owned\x07\nmissing   fog"


def told(*args, status=0):
    """What a command says, which is to hold no code for the terminal and no line out of a name."""
    result = cli(*args, status=status)
    for line in (result.stdout + result.stderr).split("\n"):
        assert line.isprintable(), (args, line)
        assert not line.startswith("missing   fog"), args
    return result.stdout + result.stderr


def test_names_are_printed_escaped_by_all_commands(tmp_path, monkeypatch):
    root = tmp_path / SPEAKING
    for i in range(3):
        put_photo(root / "in" / SPEAKING / f"{SPEAKING}{i}.png", 40, 40, i)
    (root / "in" / SPEAKING / f"{SPEAKING}.JPEG").write_bytes(b"no image")
    one, other = root / "out", root / "other"
    flags = ("--source", root / "in", "--corruptions", "contrast", "--jobs", 1)
    told("make-c", *flags, "--output", one, "--dry-run")
    told("make-c", *flags, "--output", one, status=1)
    told("make-c", *flags, "--output", one, "--seed", 1, status=2)
    told("make-c", *flags, "--output", other, "--quality", 90, status=1)
    changed = next((one / "contrast/1").rglob("*0.JPEG"))
    changed.write_bytes(changed.read_bytes() + b"x")
    next((one / "contrast/2").rglob("*0.JPEG")).unlink()
    shown = told("verify", one, status=1)
    assert "changed" in shown and "\\x1b]0;owned\\x07\\nmissing" in shown
    told("verify", one, "--against", other, status=1)
    told("compare", one, other, "--output", root / "page.html", status=1)
    told("report", other)
    told("preview", next((root / "in").rglob("*0.png")), "--corruptions", "fog", "--output", root / "a.png")
    told("preview", root / "none.png", status=2)
    told("calibrate", "--source", root / "in", "--corruptions", "contrast", "--images", 2)
    told("list", SPEAKING, status=2)
    told("score", root / "in", status=2)
    told("predict", one, "--model", root / "none.onnx", "--output", root / "p", status=2)
    monkeypatch.chdir(root)
    told("report", "other", "--output", f"{SPEAKING}.html")


# --- operations that fail ------------------------------------------------------------------------


def test_an_operation_that_fails_is_one_line_in_every_command(tmp_path, monkeypatch):
    def broken(*_, **settings):
        raise NameError("no such thing")

    monkeypatch.setattr("robustgen.pixels.benchmarks.registry.Corruption.apply", broken)
    put_photo(tmp_path / "in/a.png", 64, 64)
    flags = ("--source", tmp_path / "in", "--corruptions", "fog")
    make = ("make-c", *flags, "--jobs", 1, "--no-clean", "--output", tmp_path / "out")
    for words, status in (
        ((*make, "--dry-run"), 1),
        (make, 1),
        (("preview", tmp_path / "in/a.png", "--corruptions", "fog", "--output", tmp_path / "a.png"), 1),
        (("calibrate", *flags), 2),
    ):
        assert "NameError: no such thing" in cli(*words, status=status).stderr


# --- configs, pickles, archives ------------------------------------------------------------------


def refused_without_trace(home, *args):
    """The one line of a command that is wrong, and that touched nothing."""
    before = surroundings(home)
    message = cli_error(*args)
    assert surroundings(home) == before
    return message


YAML = {
    "bomb": ("source: &a [x, x]\nlabels: [*a, *a]", "line 2, column 10: aliases are not allowed"),
    "bomb of mappings": ("video: &v {preset: fast}\nparameters: {<<: *v}", "aliases are not allowed"),
    "tag": ("seed: !!python/object/apply:os.system ['touch owned']", "line 1, column 7: tags such as"),
    "twice below": ("video:\n  preset: fast\n  preset: slow", "line 3, column 3: 'preset' occurs twice"),
    "nested": ("[" * 5000, "my.yaml: "),
    "binary": ("seed: \0", "my.yaml: "),
    "documents": ("seed: 1\n---\nseed: 2", "my.yaml: "),
    "endless number": (f"seed: {'9' * 5000}", "my.yaml: "),
}


@pytest.mark.parametrize("name", YAML)
def test_a_hostile_config(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    put_photo(tmp_path / "src" / "x.png")
    text, reason = YAML[name]
    (tmp_path / "my.yaml").write_text(text)
    message = refused_without_trace(tmp_path, "make-c", "--config", "my.yaml", "--source", "src")
    assert message.startswith("my.yaml: ") and reason in message
    assert len(message) < 1000


class Attack:
    """Makes a file when an ordinary unpickler reads it."""

    def __reduce__(self):
        return os.system, ("touch owned",)


def batch(**changes):
    planes = np.zeros((2, 3072), np.uint8)
    return {b"data": planes, b"labels": [0, 1], **changes}


def archive(path, members):
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def make_cifar(tmp_path, source):
    return refused_without_trace(
        tmp_path, "make-c", "--dataset", "cifar-10", "--source", source, "--output", "out"
    )


@pytest.mark.parametrize("file", ["test_batch", "batches.meta"])
def test_a_malicious_pickle(tmp_path, monkeypatch, file):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "cifar-10-batches-py"
    write(folder / "test_batch", pickle.dumps(batch(), 2))
    write(folder / file, pickle.dumps(batch(labels=Attack()), 2))
    archive(tmp_path / "c.tar.gz", [(f"{folder.name}/{p.name}", p.read_bytes()) for p in folder.iterdir()])
    for source in (folder, "c.tar.gz"):
        message = make_cifar(tmp_path, source)
        assert "asks for the global posix.system, which is refused" in message and file in message
    pickle.loads((folder / file).read_bytes())
    assert (tmp_path / "owned").exists(), "the attack itself does not work"


def test_an_archive_of_links_and_devices(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").write_bytes(pickle.dumps(batch(), 2))
    with tarfile.open(tmp_path / "c.tar.gz", "w:gz") as tar:
        for flag in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            member = tarfile.TarInfo("x/test_batch")
            member.type, member.linkname = flag, str(tmp_path / "real")
            tar.addfile(member)
    assert "c.tar.gz: no images" in make_cifar(tmp_path, "c.tar.gz")


# --- read-only installations ---------------------------------------------------------------------


@pytest.mark.slow("compiles loops")
def test_a_read_only_home_keeps_its_loops_in_a_temporary_folder(photos, tmp_path):
    """One line says so, even if each worker starts by itself."""
    code = (
        f"import sys, robustgen; robustgen.make_c('folder', source={str(photos)!r}, output=sys.argv[1], "
        "corruptions='contrast', severities=[1], clean=False, jobs=2, quiet=True)"
    )
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    (place := tmp_path / "temporary").mkdir()
    environment |= {"TMPDIR": str(place), "XDG_CACHE_HOME": "/dev/null", workers.START_METHOD: "spawn"}

    def run(number):
        command = [sys.executable, "-c", code, tmp_path / str(number)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    for number in range(2):
        (line,) = run(number).stderr.splitlines()
        (folder,) = place.glob("robustgen-numba-*")
        assert str(folder) in line and "NUMBA_CACHE_DIR names one that lasts" in line
        assert any(folder.rglob("*.nbc"))
    folder.chmod(0o777)
    run(2)
    assert len(list(place.glob("robustgen-numba-*"))) == 2


def test_loops_in_a_folder_that_others_can_write_to_are_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("robustgen") == tmp_path / "robustgen"
    (tmp_path / "robustgen").chmod(0o777)
    with pytest.raises(PermissionError):
        cache_folder("robustgen")


def test_a_full_disk_behind_the_output_of_a_command_is_one_line(photos):
    for args in (
        ("list",),
        ("list", "--keys", photos),
        ("list", "--format", "json"),
        ("--help",),
        ("list", "--help"),
    ):
        with Path("/dev/full").open("w") as full:
            command = [sys.executable, "-m", "robustgen", *map(str, args)]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (1, "Error: standard output: No space left on device\n")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("make-p", "--severities", "3"), "make-p has no --severities; did you mean --difficulty?"),
        (("make-c", "--difficulty=2"), "make-c has no --difficulty; did you mean --severities?"),
        (("make-c", "--fps", "12"), "make-c has no --fps; did you mean --set fps=VALUE?"),
        (("make-c", "--frame-rate=12"), "make-c has no --frame-rate; did you mean --set fps=VALUE?"),
        (("make-c", "--mirror=copy"), "make-c has no --mirror; did you mean --set mirror=VALUE?"),
        (("evaluate", "--temporal=clip"), "evaluate has no --temporal; did you mean --set temporal=VALUE?"),
        (("make-c", "my photos"), "my photos: name the images with --source: --source 'my photos'"),
        (("calibrate", "photos"), "photos: name the images with --source: --source photos"),
        (
            ("make-c", "--source", "a-0.tar", "a-1.tar", "a-2.tar"),
            "a-1.tar: --source takes one folder, archive or pattern; "
            "put a pattern into quotes: --source 'val-*.tar'",
        ),
        (
            ("make-c", "--source", "$NOPE/photos"),
            "$NOPE/photos: No such file or directory; environment variable NOPE is not set",
        ),
        (("report", "$NOPE/c"), "$NOPE/c: no such folder; environment variable NOPE is not set"),
        (
            ("report", "$HOME/no-such-set"),
            "$HOME/no-such-set: no such folder; $HOME was not replaced: "
            "use no single quotes, and in a config write ${HOME}",
        ),
    ],
)
def test_what_was_probably_meant_is_named(args, says, monkeypatch):
    monkeypatch.delenv("NOPE", raising=False)
    assert cli_error(*args).replace(f"{Path.cwd()}/", "") == says


def test_no_key_is_offered_for_what_is_an_argument():
    assert "--set" not in cli("preprocess", "clahe", "a", "--output=b", status=2).stderr
    # A key of the other benchmark.
    assert "--set" not in cli("make-p", "--one-per-image", status=2).stderr
