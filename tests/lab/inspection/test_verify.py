"""What can be checked of an output: checksums, the manifest, `verify`."""

import errno
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest

import robustgen
from robustgen.errors import SourceError
from robustgen.files.storage import base, open_store
from robustgen.files.storage.local import LocalStore
from robustgen.files.text_files import read_sums
from robustgen.lab.inspection import verify, verify_contents
from robustgen.sets.dataset import selection
from robustgen.sets.dataset.manifest import digest_checksums, list_checksums
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.dataset.recipes import CorruptionRecipe, PerturbationRecipe
from tests.helpers import (
    FEW,
    FEW_VARIANTS,
    cli,
    cli_error,
    errors_of,
    findings,
    kept,
    make_c,
    manifest,
    published,
    put_photo,
    uploaded,
    whole,
)

# --- SHA256SUMS and dataset.json -----------------------------------------------------------------


def sums_in(folder, name="SHA256SUMS"):
    return read_sums((folder / name).read_bytes())


ODD = ("with space", "-rf", "żółw 🐢", "new\nline", "back\\slash", "both\\\n", "\\n", "c\rr", "'\"$(id)")


def sha256sum(folder):
    """The files that plain `sha256sum -c` finds right in one folder; anything else is an error."""
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, capture_output=True, check=True
    )
    assert not done.stderr
    lines = done.stdout.decode().rstrip("\n").split("\n")
    assert all(line.endswith(": OK") for line in lines)
    return len(lines)


def test_sha256sum_accepts_the_sums_of_every_folder(output, cifar_output):
    assert [sha256sum(output / variant) for variant in FEW_VARIANTS] == [5] * 5
    assert sorted(path.parent for path in output.rglob("SHA256SUMS")) == [
        output / variant for variant in FEW_VARIANTS
    ]
    names = {"contrast.npy", "gaussian_noise.npy", "clean.npy", "labels.npy", "keys.txt"}
    assert set(sums_in(cifar_output)) == names
    assert sha256sum(cifar_output) == len(names)


def test_sha256sum_accepts_the_sums_of_odd_names(tmp_path):
    for name in ODD:
        put_photo(tmp_path / "src" / name / f"{name}.png")
    make_c(tmp_path / "src", tmp_path / "out", *FEW)
    assert sha256sum(tmp_path / "out" / "contrast" / "4") == len(ODD)
    sums = sums_in(tmp_path / "out" / "contrast" / "4")
    assert set(sums) == {f"{name}/{name}.JPEG" for name in ODD}
    assert findings(tmp_path / "out", status=0) == []


def test_a_link_in_place_of_a_listed_file_is_a_change_and_any_other_is_extra(copied):
    for name in ("a.JPEG", "more.JPEG"):
        path = copied / "contrast" / "4" / "cat" / name
        path.unlink(missing_ok=True)
        path.symlink_to(__file__)
    shutil.rmtree(copied / ".robustgen")
    found = sorted(line.partition(": ")[0] for line in findings(copied))
    assert found == ["changed contrast/4/cat/a.JPEG", "extra contrast/4/cat/more.JPEG"]


def test_videos_have_sums_of_their_files_and_of_their_frames(videos):
    folder = videos / "translate"
    assert sha256sum(folder) == 2
    assert set(sums_in(folder, "FRAMES.SHA256")) == set(sums_in(folder))
    assert findings(videos, "--deep", "all", status=0) == []
    versions = manifest(videos)["settings"]["versions"]["video"].lower()
    assert "av" in versions and "264" in versions


def test_the_manifest_says_what_from_where_and_how(output, photos):
    held = manifest(output)
    keys = ["cat/a.JPEG", "cat/b.jpg", "cat/c.png", "dog/a.JPEG", "dog/d.JPEG"]
    listing = "".join(f"{(photos / key).stat().st_size} {key}\n" for key in keys)
    assert held["source"] == {
        "location": photos.name,
        "images": 5,
        "digest": hashlib.sha256(listing.encode()).hexdigest(),
    }
    files = [data for name, data in whole(output).items() if name.lower().endswith((".jpeg", ".jpg"))]
    assert held["counts"] == {"files": 25, "bytes": sum(map(len, files))}
    assert (held["complete"], held["failures"], held["images"]) == (True, 0, 5)
    assert held["title"] == "ImageNet-C" and held["edition"] == held["settings"]["edition"] == "folder"
    assert "Hendrycks" in held["citation"] and "terms" in held["licence"]
    settings, encoder = held["settings"], {"format": "jpeg", "quality": 85, "libjpeg": "turbo"}
    assert settings["seed"] == 0 and settings["output"] == encoder
    assert set(settings["parameters"]) == set(FEW_VARIANTS)
    assert settings["parameters"]["gaussian_noise/4"]["224"] == {"sigma": 0.26}
    versions = settings["versions"]
    assert {"robustgen", "numpy", "scipy", "opencv", "pillow", "libjpeg"} <= set(versions)
    assert versions["numpy"] == np.__version__
    # OpenCV's, which encodes; not Pillow's.
    assert "turbo" in versions["libjpeg"] and versions["libjpeg"] in cv2.getBuildInformation()


def test_the_dataset_digest_is_that_of_the_sums(output):
    lines = []
    for path in sorted(output.rglob("SHA256SUMS")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"{digest}  {path.relative_to(output).as_posix()}\n")
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert manifest(output)["digest"] == digest
    assert digest in cli("verify", output).stdout


def test_findings_as_json(output, tmp_path):
    told = json.loads(cli("verify", output, "--format", "json").stdout)
    expected = {"problems": [], "failed": [], "images": 5, "checked": 25, "remade": 0}
    expected |= {"known_as": None, "published": {}, "notes": [], "noun": "image"}
    assert told == {**expected, "digest": manifest(output)["digest"]}
    copied = Path(shutil.copytree(output, tmp_path / "out"))
    (copied / "odd\nname").touch()
    told = json.loads(cli("verify", copied, "--format", "json", status=1).stdout)
    assert told["problems"] == [{"fault": "extra", "path": "odd\nname", "detail": ""}]


def test_no_clock_and_no_output_path_in_the_manifest(output, photos, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 4e9)
    make_c(photos, tmp_path / "elsewhere", *FEW)
    assert whole(tmp_path / "elsewhere") == whole(output)


@pytest.fixture
def failed(source, tmp_path):
    """An output of which one image of six failed, and its source."""
    (source / "cat" / "empty.png").write_bytes(b"")
    make_c(source, tmp_path / "out", *FEW, status=1)
    return tmp_path / "out", source


def test_failures_of_images_that_are_gone_are_forgotten(failed):
    root, source = failed
    assert manifest(root)["failures"] == 1
    (source / "cat" / "link.png").symlink_to(__file__)
    make_c(source, root, *FEW, status=1)
    for name in ("empty.png", "link.png"):
        (source / "cat" / name).unlink()
    make_c(source, root, *FEW)
    assert manifest(root)["failures"] == 0
    assert not (root / "errors.jsonl").exists()


def fail_in(variant, error, monkeypatch):
    """Have nothing made of cat/b.jpg by `variant`."""
    make = CorruptionRecipe.make

    def fail(recipe, wanted, key, *args):
        if (wanted.folder, key) == (variant, "cat/b.jpg"):
            raise error
        return make(recipe, wanted, key, *args)

    monkeypatch.setattr(CorruptionRecipe, "make", fail)


def test_failures_of_variants_stand_until_these_are_made(source, tmp_path, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        fail_in("contrast/4", ArithmeticError("no luck"), patch)
        make_c(source, out, *FEW, status=1)
    # Other variants tell nothing of it, nor do other images.
    make_c(source, out, "--corruptions", "fog", "--severities", "1", "--jobs", "1")
    make_c(source, out, *FEW, "--limit", "1")
    (entry,) = errors_of(out)
    assert entry == {"key": "cat/b.jpg", "variant": "contrast/4", "reason": "ArithmeticError: no luck"}
    assert (manifest(out)["failures"], manifest(out)["complete"]) == (1, False)
    make_c(source, out, *FEW)
    assert not (out / "errors.jsonl").exists()
    assert (manifest(out)["failures"], manifest(out)["complete"]) == (0, True)


def test_verify_names_the_lines_of_errors_that_are_none(failed):
    out, _ = failed
    shutil.rmtree(out / ".robustgen")
    errors = out / "errors.jsonl"
    errors.write_text("{\n" + errors.read_text() + '{"key": 3}\n' + "[" * 100_000 + "\n")
    assert [line for line in findings(out) if "errors" in line] == ["changed errors.jsonl"] + [
        f"damaged errors.jsonl: line {number} is not a robustgen entry" for number in (1, 3, 4)
    ]


@pytest.mark.parametrize("form", ["png", "mp4"])
def test_an_operation_that_fails_between_frames_is_no_full_disk(photos, tmp_path, monkeypatch, form):
    stream = PerturbationRecipe.stream

    def fail(recipe, variant, key, prepared):
        frames = stream(recipe, variant, key, prepared)
        yield next(frames)
        if key == "cat/b.jpg":
            raise FileNotFoundError(2, "No such file or directory", "/usr/share/frost.png")
        yield from frames

    monkeypatch.setattr(PerturbationRecipe, "stream", fail)
    flags = ("--perturbations", "brightness", "--format", form, "--jobs", "1")
    cli("make-p", "--source", photos, "--output", tmp_path / "out", *flags, status=1)
    (entry,) = errors_of(tmp_path / "out")
    assert (entry["key"], entry["variant"]) == ("cat/b.jpg", "brightness")
    assert entry["reason"].startswith("FileNotFoundError: ") and "frost.png" in entry["reason"]
    assert not [*(tmp_path / "out" / "brightness" / "cat").glob("b*")]


# --- verify --------------------------------------------------------------------------------------


def damage(root):
    (root / "contrast/1/cat/a.JPEG").unlink()
    (root / "clean/mine.txt").write_text("not listed")
    changed = root / "contrast/4/dog/d.JPEG"
    changed.write_bytes(bytes(len(changed.read_bytes())))
    cut = root / "clean/cat/b.jpg"
    cut.write_bytes(cut.read_bytes()[:100])


def test_verify_has_nothing_to_say_of_a_clean_tree(output, tmp_path):
    # A copy has other times.
    copied = Path(shutil.copytree(output, tmp_path / "copy", copy_function=shutil.copyfile))
    assert findings(copied, "--jobs", "2", status=0) == []
    assert whole(copied) == whole(output)


@pytest.mark.parametrize("with_state", [True, False])
def test_verify_lists_missing_extra_changed_and_truncated_files(copied, output, tmp_path, with_state):
    root = copied if with_state else published(output, tmp_path / "public")
    assert findings(root, status=0) == []
    damage(root)
    assert findings(root) == [
        *(["changed clean/cat/b.jpg"] if not with_state else []),
        "changed contrast/4/dog/d.JPEG",
        "extra clean/mine.txt",
        "missing contrast/1/cat/a.JPEG",
        # Only the records know the sizes.
        *(["truncated clean/cat/b.jpg"] if with_state else []),
    ]
    assert (root / ".robustgen").exists() == with_state


def test_verify_sees_a_truncated_array(cifar_output, tmp_path):
    root = Path(shutil.copytree(cifar_output, tmp_path / "out"))
    whole = (cifar_output / "contrast.npy").read_bytes()
    for size in (len(whole) // 2, len(whole) - 1):
        (root / "contrast.npy").write_bytes(whole[:size])
        assert findings(root) == ["truncated contrast.npy"]


def test_verify_notices_an_variant_that_is_gone_with_its_sums(output, tmp_path):
    public = published(output, tmp_path / "public")
    shutil.rmtree(public / "gaussian_noise" / "4")
    assert any("dataset.json" in line for line in findings(public))


@pytest.mark.parametrize("with_state", [True, False])
def test_verify_of_an_output_with_failures_names_them(failed, tmp_path, with_state):
    root = failed[0] if with_state else published(failed[0], tmp_path / "public")
    held = manifest(root)
    assert (held["failures"], held["complete"], held["images"]) == (1, False, 6)
    assert held["counts"]["files"] == 25
    for flags, status in (((), 1), (("--allow-failures",), 0)):
        said = cli("verify", root, *flags, status=status).stdout.splitlines()
        assert said[0] == "complete but for 1 of 6 images: 'cat/empty.png'; see errors.jsonl"
        assert said[1].startswith("25 files checked, 0 findings; digest ") and len(said) == 2
    damage(root)
    assert len(findings(root, "--allow-failures")) == 4


def test_make_c_with_failures_allowed_ends_with_status_0(failed, tmp_path):
    root, source = failed
    said = make_c(source, root, *FEW, "--allow-failures")
    assert "1 failure, listed in " in said.stderr and "'cat/empty.png': " in said.stderr
    make_c(source, root, *FEW, status=1)
    new = make_c(source, tmp_path / "new", *FEW, "--allow-failures")
    assert new.stdout.startswith("25 images in ") and "1 failure, listed in " in new.stderr
    assert whole(tmp_path / "new") == whole(root)


def test_a_set_that_lacks_more_than_failed_images_is_unfinished(failed, tmp_path):
    _, source = failed
    for number in (1, 2):
        make_c(source, tmp_path / "parts", *FEW, "--shard", f"{number}/3", status=number % 2)
    said = cli("verify", tmp_path / "parts", "--allow-failures", status=1).stdout
    assert re.search("^unfinished dataset.json: .*6 images", said, re.M)
    assert "complete but for" not in said
    # Failed images keep their arrays from being written.
    flags = ("--format", "npy", "--edition", "imagenet@32", "--no-clean", *FEW, "--corruptions", "contrast")
    said = make_c(source, tmp_path / "out", *flags, "--overwrite", status=1).stderr
    assert "contrast.npy" in said
    said = cli("verify", tmp_path / "out", "--allow-failures", status=1).stdout
    assert "unfinished contrast.npy: " in said
    assert "complete but for" not in said


def test_verify_and_readers_of_a_stopped_run_say_which_command_resumes(copied):
    (copied / "dataset.json").unlink()
    remedy = "the same 'robustgen make-c ...' command writes it again"
    message = f"{copied}: its dataset.json was deleted, or a run was stopped; {remedy}"
    assert cli_error("verify", copied) == message
    assert not (copied / "dataset.json").exists()
    record = next((copied / ".robustgen" / "records").iterdir())
    record.unlink()
    assert any(
        re.match("unfinished dataset.json: .*5 images .*'robustgen make-c ...'", line)
        for line in findings(copied)
    )
    (copied / "dataset.json").unlink()
    with pytest.raises(
        SourceError, match=r"not finished; the same 'robustgen make-c ...' command resumes it"
    ):
        open_set(copied)


def put_sums(path, sums):
    path.write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))


def correct_sums(root, file):
    """Write the sum of an altered file anew, and with it the digest of the set."""
    folder = next(folder for folder in file.parents if (folder / "SHA256SUMS").exists())
    name = file.relative_to(folder).as_posix()
    put_sums(folder / "SHA256SUMS", sums_in(folder) | {name: hashlib.sha256(file.read_bytes()).hexdigest()})
    store = open_store(root)
    digest, _ = digest_checksums(store, *list_checksums(store))
    (root / "dataset.json").write_text(json.dumps(manifest(root) | {"digest": digest}))
    described = hashlib.sha256((root / "dataset.json").read_bytes()).hexdigest()
    put_sums(root / "MANIFEST.SHA256", sums_in(root, "MANIFEST.SHA256") | {"dataset.json": described})


def forge(root, path):
    """Alter one file of a tree, and its sum with it."""
    file = root / path
    file.write_bytes(file.read_bytes()[:-3] + b"!\xff\xd9")
    correct_sums(root, file)


@pytest.mark.parametrize("deep", ["5", "all"])
def test_deep_finds_a_file_altered_with_its_sum(output, photos, tmp_path, deep):
    public = published(output, tmp_path / "public")
    forge(public, "gaussian_noise/4/dog/d.JPEG")
    assert findings(public, status=0) == []
    (line,) = findings(public, "--deep", deep, "--source", photos)
    assert line.startswith("differs gaussian_noise/4/dog/d.JPEG")


def test_deep_lets_images_fail_that_failed_before(failed, monkeypatch):
    root, source = failed
    said = cli("verify", root, "--deep", "all", "--allow-failures").stdout
    assert "5 images regenerated, 0 findings" in said
    (source / "dog" / "d.JPEG").write_bytes(b"")
    (line,) = findings(root, "--deep", "all", "--allow-failures")
    assert line.startswith("differs dog/d.JPEG: ")


def test_deep_lets_variants_fail_that_failed_before(photos, tmp_path, monkeypatch):
    fail_in("contrast/4", ArithmeticError("no luck"), monkeypatch)
    make_c(photos, tmp_path / "out", *FEW, status=1)
    assert findings(tmp_path / "out", "--deep", "all", "--allow-failures", status=0) == []
    fail_in("contrast/1", ArithmeticError("no luck"), monkeypatch)
    (line,) = findings(tmp_path / "out", "--deep", "all", "--allow-failures")
    assert line == "differs cat/b.jpg: ArithmeticError: no luck"


def test_deep_takes_a_sample(output, photos, tmp_path, monkeypatch):
    taken = []
    source = selection.open_source(photos)
    read = source.open
    monkeypatch.setattr(type(source), "open", lambda _, key: taken.append(key) or read(key))
    assert findings(output, "--deep", "2", status=0) == []
    assert len(set(taken)) == len(taken) == 2


def test_deep_finds_a_row_altered_with_the_sum_of_its_array(cifar, cifar_output, tmp_path):
    public, deep = published(cifar_output, tmp_path / "public"), ("--deep", "all", "--source", cifar[0])
    assert findings(public, *deep, status=0) == []
    np.load(public / "contrast.npy", mmap_mode="r+")[2 * 20 + 7, 5, 5, 0] ^= 1
    correct_sums(public, public / "contrast.npy")
    assert findings(public, status=0) == []
    (line,) = findings(public, *deep)
    assert line.startswith("differs contrast.npy: 00007 in contrast/3")


def test_deep_covers_what_earlier_runs_made(photos, tmp_path):
    make_c(photos, tmp_path / "out", *FEW, "--corruptions", "contrast")
    make_c(photos, tmp_path / "out", *FEW, "--corruptions", "gaussian_noise")
    public = published(tmp_path / "out", tmp_path / "public")
    forge(public, "contrast/4/dog/d.JPEG")
    found = findings(public, "--deep", "all", "--source", photos)
    assert any("contrast/4/dog/d.JPEG" in line for line in found)


def put_numbered(root, *numbers):
    for number in numbers:
        put_photo(root / "c" / f"{number}.png", seed=number)
    return root


SELECTIONS = {
    "limit": ("--limit", 3),
    "sample": ("--sample", 3),
    "pattern": ("--subset", "*[135].png"),
    "list": ("--subset", "@list.txt"),
}


@pytest.mark.parametrize("form", ["jpeg", "original", "webdataset", "parquet"])
@pytest.mark.parametrize("chosen", SELECTIONS)
@pytest.mark.parametrize("with_state", [True, False])
def test_deep_compares_with_the_images_of_the_set(tmp_path, monkeypatch, form, chosen, with_state):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.txt").write_text("c/1.png\nc/3.png\nc/5.png\n")
    source, own = (
        put_numbered(tmp_path / "src", 1, 3, 5, *([7] if chosen == "limit" else [])),
        tmp_path / "out",
    )
    few = ("--corruptions", "contrast", "--severities", 1, "--jobs", 1, "--format", form)
    make_c(source, own, *few, *SELECTIONS[chosen])
    out = own if with_state else published(own, tmp_path / "public")
    deep = ("verify", out, "--deep", "all", "--source", source, "--format", "json")
    found = json.loads(cli(*deep).stdout)
    assert (found["remade"], found["problems"], found["notes"]) == (3, [], [])
    # One that comes before the others is none of the set.
    put_numbered(source, 0)
    if chosen in ("limit", "sample"):
        found = json.loads(cli(*deep).stdout)
        assert (found["remade"], found["problems"]) == (3, [])
        assert chosen == "sample" or "'c/0.png'" in found["notes"][0]
    # One is gone.
    (source / "c" / "3.png").unlink()
    found = json.loads(cli(*deep, status=1).stdout)
    (lacking,) = (each["path"] for each in found["problems"])
    assert found["remade"] == 2 and lacking.startswith("c/3.")
    # All are others.
    for number in (1, 5, 7):
        (source / "c" / f"{number}.png").unlink(missing_ok=True)
    found = json.loads(cli(*deep, status=1).stdout)
    assert found["remade"] == 0 and len(found["problems"]) == 3
    assert findings(out, "--deep", 1, "--source", source, status=1)


@pytest.mark.parametrize("form", ["", "webdataset", "parquet"])
def test_deep_reads_many_files_of_a_server_at_once(small_set, photos, tmp_path, gather, form):
    local = small_set("c", form)
    store = open_store(uploaded(local, f"memory://{tmp_path.name}/set"))
    source = uploaded(photos, f"memory://{tmp_path.name}/photos")
    # The first image of the source is read alone, and four others ahead.
    outputs, images = (
        gather("/(contrast|gaussian_noise)/", 3),
        gather("/photos/(dog|cat/[b-z])", 3),
    )
    count, differing, _ = verify.remake_images(store, manifest(local), "all", source)
    assert (count, differing) == (5, []) and outputs.is_set() and images.is_set()


def test_deep_holds_few_bytes(output, photos, tmp_path, monkeypatch):
    store, held, most = open_store(uploaded(output, f"memory://{tmp_path.name}/set")), [], []

    def find(*given):
        held.append(given)
        most.append(len(held))
        found = find_output(*given)
        held.pop()
        return found

    find_output = verify._find_output
    monkeypatch.setattr(base, "MOST_BYTES", 1)
    monkeypatch.setattr(verify, "_find_output", find)
    assert verify.remake_images(store, manifest(output), "all", str(photos))[:2] == (5, [])
    assert max(most) == 1 and len(most) == 25


@pytest.mark.parametrize("form", ["", "webdataset"])
def test_against_reads_many_files_of_a_server_at_once(small_set, tmp_path, gather, form):
    local = small_set("c", form)
    store, content = open_store(local), manifest(local)
    other = uploaded(published(local, tmp_path / "same"), f"memory://{tmp_path.name}/other")
    folders = gather("/SHA256SUMS$", 4)
    sums, _ = list_checksums(store)
    assert verify.compare_outputs(store, sums, other, content["digest"]) == [] and folders.is_set()


def test_deep_notes_what_was_added(source, tmp_path):
    make_c(source, tmp_path / "out", *FEW)
    put_photo(source / "cat" / "0.png")
    put_photo(source / "dog" / "z.png")
    done = cli("verify", tmp_path / "out", "--deep", "all")
    assert "2 images" in done.stderr and "'cat/0.png'" in done.stderr


def test_deep_compares_rows_after_one_is_gone(tmp_path):
    source = put_numbered(tmp_path / "src", *range(5))
    few = ("--corruptions", "contrast", "--severities", 1, "--jobs", 1, "--format", "npy")
    make_c(source, tmp_path / "out", *few)
    for number in (0, 3):
        (source / "c" / f"{number}.png").unlink()
    put_numbered(source, 9)
    out = published(tmp_path / "out", tmp_path / "public")
    for root in (tmp_path / "out", out):
        found = json.loads(
            cli("verify", root, "--deep", "all", "--source", source, "--format", "json", status=1).stdout
        )
        assert sorted(each["path"] for each in found["problems"]) == ["c/0.png", "c/3.png"]
        assert found["remade"] == 3 and "'c/9.png'" in found["notes"][0]


def test_deep_counts_only_what_it_compared(output, source):
    (source / "dog" / "d.JPEG").write_bytes(b"damaged")
    done = cli("verify", output, "--deep", "all", "--source", source, status=1).stdout
    assert "4 images regenerated, 1 finding" in done


def test_deep_leaves_the_random_numbers_of_the_caller_alone(output):
    random.seed(5)
    before = random.getstate()
    robustgen.verify(output, deep=2)
    assert random.getstate() == before


def test_deep_works_from_any_folder(photos, tmp_path, monkeypatch):
    monkeypatch.chdir(photos.parent)
    make_c(photos.name, tmp_path / "out", *FEW, "--limit", "1")
    monkeypatch.chdir(tmp_path)
    assert findings("out", "--deep", "all", status=0) == []


@pytest.mark.parametrize("loss", ["missing", "cut off"])
def test_deep_survives_a_lost_array(cifar, cifar_output, tmp_path, loss):
    public = published(cifar_output, tmp_path / "public")
    (public / "contrast.npy").write_bytes(b"\x93NUMPY")
    if loss == "missing":
        (public / "contrast.npy").unlink()
    found = findings(public, "--deep", "1", "--source", cifar[0])
    assert any("contrast.npy" in line for line in found)


def test_deep_needs_the_source(output, photos, source, tmp_path):
    public = published(output, tmp_path / "public")
    message = f"--deep: dataset.json does not locate {photos.name!r}; pass it with --source"
    assert cli_error("verify", public, "--deep", "1") == message
    assert findings(public, "--deep", "all", "--source", photos, status=0) == []
    make_c(source, tmp_path / "out", *FEW, "--limit", "1")
    shutil.rmtree(source)
    assert "src" in cli_error("verify", tmp_path / "out", "--deep", "1")


FORMATS = ("jpeg", "original", "png", "webp", "npy", "npz", "webdataset", "parquet")


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_published_names_no_folder_of_this_machine(photos, tmp_path, form):
    source, out = tmp_path / "src", tmp_path / "out"
    for key in ("cat/a.JPEG", "dog/a.JPEG"):
        (source / key).parent.mkdir(parents=True)
        shutil.copy(photos / key, source / key)
    (tmp_path / "subset.txt").write_text("cat/a.JPEG\ndog/a.JPEG\n")
    flags = (*FEW, "--format", form, "--subset", f"@{tmp_path}/subset.txt")
    make_c(source, out, *flags)
    private = str(tmp_path).encode()
    assert [name for name, data in whole(out).items() if private in data] == []
    config = manifest(out)["config"]
    assert (config["source"], config["subset"]) == ("src", "@subset.txt")
    assert findings(out, "--deep", "all", status=0) == []
    assert kept(make_c(source, out, *flags))


def test_failures_that_are_published_name_no_folder_of_this_machine(tmp_path):
    put_photo(tmp_path / "src" / "cat" / "a.png")
    (tmp_path / "src" / "cat" / "damaged.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "src" / "cat" / "outside.png").symlink_to(put_photo(tmp_path / "private.png"))
    make_c(tmp_path / "src", tmp_path / "out", *FEW, status=1)
    assert len(errors_of(tmp_path / "out")) == 2
    assert str(tmp_path) not in (tmp_path / "out" / "errors.jsonl").read_text()


def test_against_another_output_or_digest(output, photos, tmp_path):
    other = tmp_path / "other"
    make_c(photos, other, *FEW, "--seed", "1", "--corruptions", "gaussian_noise", "--severities", "1-2")
    assert findings(output, "--against", published(output, tmp_path / "same"), status=0) == []
    lines = findings(output, "--against", other)
    assert len([line for line in lines if line.startswith("differs gaussian_noise/1/")]) == 5
    assert len([line for line in lines if line.startswith("missing gaussian_noise/2/")]) == 5
    assert len([line for line in lines if line.startswith("extra ")]) == 15
    assert len(lines) == 25
    digest = manifest(output)["digest"]
    assert findings(output, "--against", digest, status=0) == []
    (line,) = findings(output, "--against", digest[::-1])
    assert line.startswith("differs .: the digest is")


def test_against_files_without_sums_reads_many_at_once(output, tmp_path, gather):
    bare = shutil.copytree(
        output, tmp_path / "bare", ignore=shutil.ignore_patterns(".*", "SHA256SUMS", "*.md", "croissant.json")
    )
    other, files = uploaded(bare, f"memory://{tmp_path.name}/bare"), gather(r"/clean/\w+/", 4)
    assert findings(output, "--against", other, status=0) == [] and files.is_set()


def test_against_videos_that_another_release_encoded(videos, tmp_path):
    """The lists are changed as another release of x264 would: other files, and only one with other frames."""
    other = Path(shutil.copytree(videos, tmp_path / "other"))
    folder = other / "translate"
    first, second = frames = sums_in(folder, "FRAMES.SHA256")
    put_sums(folder / "SHA256SUMS", dict.fromkeys(frames, "0" * 64))
    put_sums(folder / "FRAMES.SHA256", frames | {second: "1" * 64})
    assert findings(videos, "--against", other) == [
        f"differs translate/{first}: from {other}, with the same frames",
        f"differs translate/{second}: from {other}",
    ]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--against", "nonsense"), "'nonsense' is neither a folder nor a dataset digest"),
        (("--against", "A" * 64), "neither a folder nor"),
        (("--against", "."), "contains no SHA256SUMS"),
        (("--deep", "0"), "must be a number of images, or all"),
        (("--deep", "some"), "not 'some'"),
        (("--deep", "-1"), "not '-1'"),
    ],
    ids=str,
)
def test_verify_refuses_nonsense(output, tmp_path, monkeypatch, flags, message):
    monkeypatch.chdir(tmp_path)
    assert message in cli_error("verify", output, *flags)


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"{}", b"\xff\xfe"])
def test_verify_refuses_a_folder_that_is_no_output(tmp_path, content):
    if content is not None:
        (tmp_path / "dataset.json").write_bytes(content)
    assert "dataset.json" in cli_error("verify", tmp_path)
    assert "no such folder" in cli_error("verify", tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "says"),
    [("plans/*.json", ".robustgen: contains no plan"), ("settings.json", "settings.json: cannot be read")],
)
def test_verify_tells_of_damaged_state(copied, name, says):
    (path,) = (copied / ".robustgen").glob(name)
    path.write_bytes(b"")
    assert says in cli_error("verify", copied)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("croissant.json", "missing croissant.json"),
        ("errors.jsonl", "missing errors.jsonl"),
        ("MANIFEST.SHA256", "missing MANIFEST.SHA256"),
        (".robustgen/settings.json", "missing .robustgen/settings.json: restore it, "),
        (
            ".robustgen/finished",
            "changed .robustgen: plans or records have changed since the set was finished; ",
        ),
        (
            f".robustgen/records/{16 * '?'}.json",
            "unfinished dataset.json: not all of the 6 images have all files",
        ),
        (
            ".robustgen/records/companions.json",
            "unfinished dataset.json: the files of the record companions ",
        ),
    ],
)
def test_verify_misses_each_file_that_describes_the_set(failed, name, says):
    path = min(failed[0].glob(name))
    path.unlink()
    assert [line for line in findings(failed[0], "--allow-failures") if line.startswith(says)]
    make_c(failed[1], failed[0], *FEW, status=2 if "settings" in name else 1)
    assert path.exists() or "settings" in name


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("dataset.json", "Hendrycks", "Hendrycke"),
        ("croissant.json", "Not for training", "Now for training"),
        ("errors.jsonl", '"reason": "', '"reason": "!'),
        ("README.md", "robustgen", "robustgem"),
        ("MANIFEST.SHA256", "  croissant.json", "  croissant.jsom"),
    ],
)
def test_verify_finds_a_flip_in_the_prose_of_a_published_set(failed, tmp_path, name, old, new):
    make_c(failed[1], tmp_path / "rows", *FEW, "--format", "parquet", status=1)
    public = published(tmp_path / "rows", tmp_path / "public")
    assert findings(public, "--allow-failures", status=0) == []
    text = (public / name).read_text()
    assert old in text
    (public / name).write_text(text.replace(old, new, 1))
    changed = "croissant.json" if name == "MANIFEST.SHA256" else name
    assert findings(public, "--allow-failures") == [f"changed {changed}"]


def test_verify_takes_time_in_proportion_to_the_files(tmp_path, monkeypatch):
    monkeypatch.setattr(verify_contents, "_check_file", lambda store, path, digest: (1, []))

    def measure(count):
        names = [f"{number:06d}.png" for number in range(count)]
        sums = "".join(f"{'0' * 64}  {name}\n" for name in names).encode()
        entries = [(name, "") for name in ("SHA256SUMS", *names)]
        monkeypatch.setattr(LocalStore, "walk", lambda store: iter(entries))
        monkeypatch.setattr(LocalStore, "read", lambda store, path: sums)
        began = time.process_time()
        found, counts, _ = verify_contents.check_contents(open_store(tmp_path), 1, ())
        assert counts == {"": (count, count)} and found == []
        return time.process_time() - began

    # A comparison of each path with all others would take 256 times as long.
    assert measure(32_000) < 64 * min(measure(2_000) for _ in range(3))


def test_verify_walks_the_tree_once(small_set, tmp_path, monkeypatch):
    root = shutil.copytree(small_set("p"), tmp_path / "set")
    # Without checksums of its own, a folder belongs to the one above.
    (root / "notes" / "old").mkdir(parents=True)
    (root / "notes" / "old" / "a.txt").write_text("")
    (root / "notes" / "b.txt").symlink_to("old/a.txt")
    (root / "notes" / "gone").symlink_to("nowhere")
    (root / "void").mkdir()
    scan, scanned = os.scandir, Counter()
    under = (each for each in root.rglob("*") if each.is_dir() and not each.is_symlink())
    folders = {each for each in under if ".robustgen" not in each.parts}

    def count(path):
        scanned[Path(path)] += 1
        return scan(path)

    monkeypatch.setattr(os, "scandir", count)
    found = {(each.fault, each.path) for each in verify.verify(root).problems}
    names = ("notes/old/a.txt", "notes/b.txt", "notes/gone", "void/")
    assert found == {("extra", name) for name in names}
    assert folders and {scanned[each] for each in folders} == {1}


def without_privileges(*args):
    """Run the command line as one to whom file permissions apply, root or not."""
    drop = "import ctypes, os, sys; [ctypes.CDLL(None).prctl(24, cap, 0, 0, 0) for cap in (1, 2)]; "
    command = [sys.executable, "-c", f"{drop}os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"]
    return subprocess.run([*command, "-m", "robustgen", *map(str, args)], capture_output=True, text=True)


@pytest.fixture
def read_only(output, tmp_path):
    """A copy of a finished output that nobody can write to."""
    copied = Path(shutil.copytree(output, tmp_path / "copied", copy_function=shutil.copyfile))
    folders = [copied, *(path for path in copied.rglob("*") if path.is_dir())]
    for path in (copied, *copied.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield copied
    for folder in folders:
        folder.chmod(0o755)


def test_who_cannot_write_can_verify_and_run_what_is_finished(read_only, photos):
    done = without_privileges("verify", read_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert "25 files checked, 0 findings" in done.stdout
    done = without_privileges("make-c", "--source", photos, "--output", read_only, *FEW)
    assert (done.returncode, done.stderr) == (0, "")
    assert kept(done) == 25


def test_a_folder_that_cannot_be_listed_is_named(copied, monkeypatch):
    scandir = os.scandir

    def look(path):
        if str(path) == f"{copied}/contrast/1":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", look)
    assert "contrast/1" in cli_error("verify", copied)
