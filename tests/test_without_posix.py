"""The whole of make, resume, verify, evaluate and score without what only POSIX has, as on Windows."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import robustgen
from robustgen.files.storage import host, local
from robustgen.files.storage.local import LocalStore
from tests.digits import put_folder, put_model
from tests.helpers import cli, put_photo, tree

pytestmark = pytest.mark.slow("runs every command without POSIX")

# Python runs it in every process before anything else, in those that workers are started as too.
WITHOUT = """
import os, signal, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in ("fcntl", "termios", "resource", "pwd", "grp", "pty", "tty", "posixshmem"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
for name in ("fcntl", "termios", "resource", "pwd", "grp"):
    sys.modules.pop(name, None)

def refuse_link(*args, **settings):
    raise OSError(1, "a required privilege is not held by the client")

os.link = os.symlink = refuse_link
# What libraries themselves use on Linux stays: uname, sysconf, sched_getaffinity.
for name in (
    "fork forkpty getuid geteuid getgid getegid pread pwrite preadv pwritev chown lchown fchmod fchown "
    "mkfifo mknod killpg setsid statvfs fstatvfs sync nice getpriority setpriority posix_fallocate "
    "posix_fadvise openpty ttyname O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_DSYNC O_SYNC"
).split():
    if hasattr(os, name):
        delattr(os, name)
for name in ("supports_dir_fd", "supports_fd", "supports_follow_symlinks"):
    setattr(os, name, set())
for name in "SIGHUP SIGALRM SIGUSR1 SIGUSR2 SIGSTOP SIGCONT SIGPIPE pthread_sigmask setitimer alarm".split():
    if hasattr(signal, name):
        delattr(signal, name)
"""
FEW = ("--set", "constants_for=32", "--corruptions", "gaussian_noise,fog", "--severities", "3,1")


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    """Run the command line in processes without POSIX."""
    site = tmp_path_factory.mktemp("site")
    (site / "sitecustomize.py").write_text(WITHOUT)
    path = os.pathsep.join([str(site), str(Path(robustgen.__file__).parents[1])])

    def run(*args, status=0):
        command = [sys.executable, "-m", "robustgen", *map(str, args)]
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=site)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    return run


def test_a_set_is_made_resumed_verified_evaluated_and_scored(windows, tmp_path):
    digits = put_folder(tmp_path / "digits", 30)
    flags = ("--source", digits, *FEW)
    cli("make-c", *flags, "--output", tmp_path / "here", "--jobs", "1")
    output = tmp_path / "out"
    windows("make-c", *flags, "--output", output, "--jobs", "2")
    assert tree(output) == tree(tmp_path / "here")

    victim = next(output.glob("fog/1/*/*"))
    victim.unlink()
    shutil.rmtree(output / "gaussian_noise")
    assert "missing" in windows("verify", output, status=1)
    assert "150 images in" in windows("make-c", *flags, "--output", output, "--jobs", "2")
    assert tree(output) == tree(tmp_path / "here")
    assert "0 findings" in windows("verify", output)

    model = put_model(tmp_path / "digits.onnx")
    plain = ("--model", model, "--mean", "0", "--std", "1", "--batch-size", "8")
    windows("evaluate", *flags, *plain, "--output", tmp_path / "p", "--jobs", "2")
    cli("evaluate", *flags, *plain, "--output", tmp_path / "q", "--jobs", "1")
    predictions = [{n: d for n, d in tree(tmp_path / each).items() if n.endswith(".npz")} for each in "pq"]
    assert predictions[0] == predictions[1] and predictions[0]
    assert "Top-1 error in %" in windows("score", tmp_path / "p" / "digits", "--partial")


def test_shards_and_videos_are_made_too(windows, tmp_path):
    put_photo(tmp_path / "photos" / "cat" / "a.JPEG")
    fog, tilt = ("--corruptions", "fog", "--severities", "1"), ("--perturbations", "tilt")
    for command, name, few in (
        ("make-c", "webdataset", fog),
        ("make-c", "npy", fog),
        ("make-p", "mp4", tilt),
    ):
        flags = ("--source", tmp_path / "photos", "--format", name, *few)
        windows(command, *flags, "--output", tmp_path / name)
        cli(command, *flags, "--output", tmp_path / f"{name}-here", "--jobs", "1")
        assert tree(tmp_path / name) == tree(tmp_path / f"{name}-here")


def test_a_file_that_somebody_reads_is_replaced_a_moment_later(tmp_path, monkeypatch):
    store, refusals, replace = LocalStore(tmp_path), [PermissionError(13, "is used"), None], os.replace

    def refuse_once(*args, **places):
        if error := refusals.pop(0):
            raise error
        replace(*args, **places)

    monkeypatch.setattr(local, "_PAUSES", (0.0, 0.0))
    monkeypatch.setattr(os, "replace", refuse_once)
    store.put("a.txt", b"content")
    assert (tmp_path / "a.txt").read_bytes() == b"content" and not refusals


@pytest.mark.parametrize(
    "name",
    ["NUL", "con.JPEG", "a/Aux.tar.gz/b", "com1", "LPT\u00b2.txt", "nul .txt", "C:b.txt", "a.txt:s"]
    + ["a\\..\\b", "b.", "c ", "d./e", "what?.png", "tab\t", "a*"],
)
def test_what_is_no_name_on_windows_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr(local, "IS_WINDOWS", True)
    with pytest.raises(OSError, match="cannot be a file name on Windows") as refused:
        LocalStore(tmp_path).put(name, b"content")
    assert refused.value.errno == errno.EINVAL and tree(tmp_path) == {}


def test_other_names_are_written_on_windows(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "IS_WINDOWS", True)
    names = ["console.txt", "aux_1.png", "com10.txt", ".hidden/state.json", "a b/n02.JPEG", "null"]
    for name in names:
        LocalStore(tmp_path).put(name, b"content")
    assert tree(tmp_path) == dict.fromkeys(names, b"content")


@pytest.mark.parametrize("enabled", [False, True])
def test_a_path_too_long_for_the_settings_of_windows_is_refused(tmp_path, monkeypatch, enabled):
    monkeypatch.setattr(local, "IS_WINDOWS", True)
    monkeypatch.setattr(host, "_has_long_paths", lambda: enabled)
    store, room = LocalStore(tmp_path), 259 - len(str(tmp_path)) - 1
    longest = f"{'a' * 100}/{'b' * (room - 101)}"
    store.put(longest, b"content")
    if enabled:
        store.put(f"{longest}b", b"content")
    else:
        with pytest.raises(OSError, match="enable long paths in Windows") as refused:
            store.put(f"{longest}b", b"content")
        assert refused.value.errno == errno.ENAMETOOLONG
    assert tree(tmp_path).keys() == ({longest, f"{longest}b"} if enabled else {longest})
