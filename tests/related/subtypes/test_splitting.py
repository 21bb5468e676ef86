"""Subtype robustness: WordNet read, subtypes assigned, and lists written."""

import errno
import json
import os
from pathlib import Path

import pytest

from robustgen.errors import SourceError
from robustgen.files.storage.local import LocalStore
from robustgen.files.text_files import imagenet_classes
from robustgen.related.subtypes.splitting import BroadType, SplitPlace, assign_places, broad_types
from robustgen.related.subtypes.wordnet import open_wordnet
from tests.helpers import cli, cli_error, tree

ROBIN, JAY, DOVE, GREAT_AUK = "n01558993", "n01580077", "n01812337", "n01812662"
BIRD, SONGBIRD, BEAR = "n01503061", "n01527347", "n02131653"


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def line(wnid, word, below=(), instances=(), more=()):
    """One noun as in data.noun."""
    pointers = [*more, *(f"~ {w[1:]} n 0000" for w in below), *(f"~i {w[1:]} n 0000" for w in instances)]
    return " ".join(
        [wnid[1:], "05", "n", "01", word, "0", f"{len(pointers):03d}", *pointers, "| a | gloss  "]
    )


LICENCE = "  1 You may use this.  \n  2 WordNet {} Copyright 2006 by Nobody.  \n"


def wordnet_text(nouns=None, release="3.0", extra=()):
    """A data.noun with the types, ImageNet-1K's ids, and below bird songbirds and an auk."""
    lines = {each.wnid: line(each.wnid, each.word) for each in broad_types()}
    lines |= {wnid: line(wnid, "something") for wnid in imagenet_classes()}
    lines[BIRD] = line(BIRD, "bird", below=[SONGBIRD], more=["@ 01471682 n 0000"])
    lines[SONGBIRD] = line(SONGBIRD, "songbird", below=[ROBIN, JAY, DOVE], instances=[GREAT_AUK])
    lines |= {wnid: line(wnid, word) for wnid, word in ((DOVE, "dove"), (GREAT_AUK, "auk"))}
    lines |= nouns or {}
    return LICENCE.format(release) + "".join(f"{text}\n" for text in [*lines.values(), *extra])


def put_wordnet(folder, *args, **more):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data.noun").write_text(wordnet_text(*args, **more))
    return folder


@pytest.fixture
def wordnet(tmp_path):
    return put_wordnet(tmp_path / "wordnet")


@pytest.fixture
def imagenet(tmp_path):
    """A few folders: a seen and two unseen birds, an empty one, a noun of no type, and none of WordNet."""
    root = tmp_path / "image net"
    images = {
        ROBIN: ["b.JPEG", "a é.JPEG"],
        DOVE: ["x.jpg"],
        SONGBIRD: ["y.png"],
        GREAT_AUK: [],
        "n04356056": ["sunglasses.JPEG"],
        "n00000001": ["z.JPEG"],
        "others": ["z.JPEG"],
    }
    for folder, names in images.items():
        (root / folder).mkdir(parents=True)
        for name in [*names, "notes.txt", ".hidden.JPEG"]:
            (root / folder / name).touch()
    return root


# --- the types -----------------------------------------------------------------------------------

PAPER = """
    n01627424 n02729837 n02062017 n01503061 n02131653 n07881800 n02127808 n02913152 n02121620 n03051540
    n02084071 n03278248 n02512053 n03380867 n13134947 n12992868 n09287968 n02370806 n02159955 n03800933
    n02469914 n01661091 n04516672 n07707451 n04576211
"""


def test_the_types_are_those_of_the_paper_in_the_order_in_which_folders_sort():
    types = broad_types()
    assert {each.wnid for each in types} == set(PAPER.split()) and len(types) == 25
    names = [each.name for each in types]
    assert names == sorted(set(names))
    assert types[names.index("hoofed_animal")] == ("hoofed_animal", "n02370806", "hoofed_mammal")


# --- reading WordNet -----------------------------------------------------------------------------


def test_nouns_their_words_and_what_is_below_them(wordnet):
    found = open_wordnet(wordnet)
    assert found.release == "3.0"
    assert found.words[SONGBIRD] == ("songbird",)
    assert found.narrower[BIRD] == (SONGBIRD,)  # not the broader noun it points to
    assert found.below(BIRD) == {SONGBIRD, ROBIN, JAY, DOVE, GREAT_AUK}  # instances too
    assert found.below(ROBIN) == frozenset()


def test_several_words_are_counted_in_hexadecimal(tmp_path):
    words = " ".join(f"word{i} 0" for i in range(17))
    folder = put_wordnet(tmp_path, {DOVE: f"{DOVE[1:]} 05 n 11 {words} 000 | gloss"})
    assert len(open_wordnet(folder).words[DOVE]) == 17


def test_ways_that_meet_or_go_round_are_walked_once(tmp_path):
    nouns = {
        SONGBIRD: line(SONGBIRD, "songbird", below=[ROBIN, JAY]),
        ROBIN: line(ROBIN, "robin", below=[DOVE]),
        JAY: line(JAY, "jay", below=[DOVE, SONGBIRD]),
    }
    found = open_wordnet(put_wordnet(tmp_path, nouns))
    assert found.below(SONGBIRD) == {ROBIN, JAY, DOVE}


@pytest.mark.parametrize("inside", ["", "db", "dict", "package/db", "package/dict"])
def test_the_file_is_found_where_packages_put_it(tmp_path, inside):
    put_wordnet(tmp_path / "npm" / inside)
    assert open_wordnet(tmp_path / "npm").path == tmp_path / "npm" / inside / "data.noun"


def test_a_folder_without_it_is_refused_with_a_remedy(tmp_path):
    for folder, what in ((tmp_path, "no data.noun in it"), (tmp_path / "none", "no such folder")):
        with pytest.raises(SourceError, match=f"{folder}: {what}; Debian's wordnet-base"):
            open_wordnet(folder)


@pytest.mark.parametrize(
    "bad",
    [
        "nonsense",
        "01812337 05 n 02 dove 0 000 | gloss",  # fewer words than it says
        "01812337 05 n 01 dove 0 002 ~ 01558993 n 0000 | gloss",  # fewer pointers
        "01812337 05 v 01 dove 0 000 | gloss",
        "1812337 05 n 01 dove 0 000 | gloss",
        "01812337 05 n 01 dove 0 001 ~ 1558993 n 0000 | gloss",
    ],
)
def test_a_malformed_line_is_named(tmp_path, bad):
    folder = put_wordnet(tmp_path, extra=[bad])
    number = len((folder / "data.noun").read_text().splitlines())
    with pytest.raises(SourceError, match=f"data.noun, line {number}: not a noun of WordNet"):
        open_wordnet(folder)


def test_a_file_without_nouns_or_cut_off_between_two_lines_is_refused(tmp_path):
    path = put_wordnet(tmp_path) / "data.noun"
    kept = [text for text in path.read_text().splitlines(True) if "auk" not in text]
    for content, reason in (
        (b"", "data.noun: contains no nouns"),
        (LICENCE.encode(), "data.noun: contains no nouns"),
        (b"\xff\xfe\x00", "data.noun: is not text"),
        ("".join(kept).encode(), f"{SONGBIRD} points to {GREAT_AUK}, which is missing"),
    ):
        path.write_bytes(content)
        with pytest.raises(SourceError, match=reason):
            open_wordnet(tmp_path)


# --- assigning -----------------------------------------------------------------------------------


def test_a_subtype_is_seen_if_imagenet_1k_has_it(wordnet):
    places = assign_places(broad_types(), imagenet_classes(), open_wordnet(wordnet))
    number = [each.wnid for each in broad_types()].index(BIRD)
    assert places == {
        ROBIN: SplitPlace(number, "seen"),
        JAY: SplitPlace(number, "seen"),
        SONGBIRD: SplitPlace(number, "unseen"),
        DOVE: SplitPlace(number, "unseen"),
        GREAT_AUK: SplitPlace(number, "unseen"),
    }


def test_another_release_is_refused_and_the_missing_ids_are_named(tmp_path):
    gone = imagenet_classes()[-12:]
    text = wordnet_text(release="3.1").splitlines(True)
    kept = [each for each in text if f"n{each[:8]}" not in gone]
    (tmp_path / "data.noun").write_text("".join(kept))
    says = f"is WordNet 3.1: it lacks 12 of ImageNet's 1000 ids.*{', '.join(gone[:10])}, \\.\\.\\."
    with pytest.raises(SourceError, match=says):
        assign_places(broad_types(), imagenet_classes(), open_wordnet(tmp_path))


def test_an_id_that_stands_for_something_else_is_refused(tmp_path):
    wordnet = open_wordnet(put_wordnet(tmp_path, {BEAR: line(BEAR, "teapot")}))
    with pytest.raises(SourceError, match=f"is not WordNet 3.0: {BEAR} is not 'bear'"):
        assign_places(broad_types(), imagenet_classes(), wordnet)


def test_what_belongs_to_two_types_is_refused(tmp_path, wordnet):
    bear = open_wordnet(put_wordnet(tmp_path, {BEAR: line(BEAR, "bear", below=[DOVE])}))
    with pytest.raises(SourceError, match=rf"{DOVE} \(dove\) is in two types, bear and bird"):
        assign_places(broad_types(), imagenet_classes(), bear)
    types = [BroadType("bird", BIRD, "bird"), BroadType("songbird", SONGBIRD, "songbird")]
    for order in (types, types[::-1]):
        with pytest.raises(SourceError, match="is in two types"):
            assign_places(order, imagenet_classes(), open_wordnet(wordnet))


# --- lists ---------------------------------------------------------------------------------------


def make(imagenet, wordnet, output, *flags, status=0):
    return cli("make-subtypes", imagenet, "--wordnet", wordnet, "--output", output, *flags, status=status)


def test_lists_hold_paths_and_numbers_of_types_and_the_manifest_what_is_missing(imagenet, wordnet, tmp_path):
    output = tmp_path / "out"
    done = make(imagenet, wordnet, output)
    bird = (output / "types.txt").read_text().splitlines().index("bird")
    assert (output / "seen.txt").read_text() == f"{ROBIN}/a é.JPEG {bird}\n{ROBIN}/b.JPEG {bird}\n"
    assert (output / "unseen.txt").read_text() == f"{SONGBIRD}/y.png {bird}\n{DOVE}/x.jpg {bird}\n"
    assert "seen   2 images of 1 subtype" in done.stdout
    assert f"without images: 1 subtype ({JAY})" in done.stderr
    assert "without images: the types amphibian, appliance" in done.stderr
    assert "unknown to WordNet: 1 folder (n00000001)" in done.stderr
    types = json.loads((output / "subtypes.json").read_text())
    (bird,) = (each for each in types["types"] if each["name"] == "bird")
    assert (bird["wnid"], len(types["types"])) == (BIRD, 25)
    counts = {"subtypes": 1, "images": 2, "wnids": {ROBIN: 2}}
    assert bird["seen"] == counts | {"empty": [], "missing": [JAY]}
    counts = {"subtypes": 2, "images": 2, "wnids": {SONGBIRD: 1, DOVE: 1}}
    assert bird["unseen"] == counts | {"empty": [GREAT_AUK], "missing": []}
    assert types["wordnet"]["release"] == "3.0" and types["source"] == imagenet.name
    assert (types["unknown_folders"], types["folders_of_other_nouns"]) == (["n00000001"], 1)
    for name in ("out", "other"):
        make(imagenet, wordnet, tmp_path / name)
    assert tree(output) == tree(tmp_path / "other") != {}


def test_names_that_no_line_can_hold_are_left_out_and_told(imagenet, wordnet, tmp_path):
    (imagenet / DOVE / "a\nb.jpg").touch()
    Path(os.fsdecode(os.fsencode(imagenet / DOVE) + b"/\xff.jpg")).touch()
    done = make(imagenet, wordnet, tmp_path / "out", status=1)
    assert len((tmp_path / "out" / "unseen.txt").read_text().splitlines()) == 2
    refused = json.loads((tmp_path / "out" / "subtypes.json").read_text())["refused"]
    assert set(refused) == {f"{DOVE}/a\nb.jpg", f"{DOVE}/\\xff.jpg"}
    assert "left out:" in done.stderr


def test_a_run_that_was_cut_off_leaves_no_manifest_and_can_be_repeated(
    imagenet, wordnet, tmp_path, monkeypatch
):
    output = tmp_path / "out"
    make(imagenet, wordnet, output)
    before = tree(output)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "put", full)
        done = make(imagenet, wordnet, output, status=1)
    assert done.stderr.startswith(f"Error: {output}: No space left on device")
    assert "subtypes.json" not in tree(output)
    make(imagenet, wordnet, output)
    assert tree(output) == before


def test_lists_behind_a_url(imagenet, wordnet, tmp_path):
    from fsspec.implementations.memory import MemoryFileSystem

    make(imagenet, wordnet, tmp_path / "out")
    make(imagenet, wordnet, "memory://subtypes/out")
    for name, data in tree(tmp_path / "out").items():
        assert MemoryFileSystem().cat(f"/subtypes/out/{name}") == data


def test_wrong_input_is_answered_with_one_line(imagenet, wordnet, tmp_path):
    def error(source, output=tmp_path / "out", folder=wordnet):
        return cli_error("make-subtypes", source, "--wordnet", folder, "--output", output)

    assert error(tmp_path / "none").endswith("cannot be listed: No such file or directory")
    (tmp_path / "tars").mkdir()
    (tmp_path / "tars" / f"{BIRD}.tar").touch()
    assert "extract each n########.tar" in error(tmp_path / "tars")
    (tmp_path / "other" / "n04356056").mkdir(parents=True)
    assert "none of its 1 folders is a subtype" in error(tmp_path / "other")
    assert "no data.noun in it" in error(imagenet, folder=tmp_path)
    assert "is inside the source" in error(imagenet, imagenet / "lists")
    assert "no run recorded data.noun" in error(imagenet, wordnet)
    (tmp_path / "file").touch()
    assert error(imagenet, tmp_path / "file").endswith("is a file, not a folder")


# --- the real WordNet ----------------------------------------------------------------------------

REAL = Path(os.environ.get("ROBUSTGEN_WORDNET", "/usr/share/wordnet"))


@pytest.mark.skipif(not REAL.is_dir(), reason="WordNet 3.0 is not installed (Debian: wordnet-base)")
def test_the_real_wordnet_has_543_seen_subtypes_of_single_types():
    real = open_wordnet(REAL)
    assert (real.release, len(real.words)) == ("3.0", 82115)
    places = assign_places(broad_types(), imagenet_classes(), real)  # which refuses what belongs to two
    assert not {each.wnid for each in broad_types()} & places.keys()
    seen = [broad_types()[place.type].name for place in places.values() if place.split == "seen"]
    assert len(seen) == 543
    assert [seen.count(name) for name in ("dog", "bird", "bear", "footwear")] == [118, 59, 4, 5]
    assert {SplitPlace(number, "unseen") for number in range(25)} <= set(places.values())
