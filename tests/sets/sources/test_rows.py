"""Tables of rows about images: the column of files, the split, and the forms that tools export."""

import json

import pytest

from robustgen.errors import SourceError
from robustgen.sets.sources.labels import ImageNames, is_label_column, parse_labels
from robustgen.sets.sources.rows import Asked, list_tables, read_rows

IMAGES = [f"{number}.jpg" for number in range(1, 5)]
TRUE = {image: "ab"[number % 2] for number, image in enumerate(IMAGES)}
ROWS = [*enumerate(TRUE.items(), 1)]


def parse(text, name="labels.csv", are_classes=False, **asked):
    return parse_labels(text.encode(), f"/x/{name}", ImageNames(IMAGES), Asked(**asked), are_classes)


def lines(form, header=""):
    rows = (form.format(n=n, image=image, label=label, wrong=n % 4 + 1) for n, (image, label) in ROWS)
    return "\n".join([header] * bool(header) + [*rows])


READ = {
    "ids of a tool": lines("{wrong},/data/upload/1/1a2b3c4d-{image},{label},9", "id,image,choice,user"),
    "encoded addresses": lines("http://h/%3{n}.jpg?a=1,{label}", "url,label"),
    "addresses": lines("{wrong};https://h/f/{image}?sig=x;{label}", "id;url;label"),
    "JSON-MIN": json.dumps([{"id": 9, "image": f"/d/{image}", "choice": v} for image, v in TRUE.items()]),
    "FiftyOne": json.dumps(
        {"classes": ["a", "b"], "labels": {k[:-4]: "ab".index(v) for k, v in TRUE.items()}}
    ),
    "COCO": json.dumps(
        {
            "images": [{"id": n, "file_name": image} for n, (image, _) in ROWS],
            "annotations": [{"image_id": n, "category_id": ord(label)} for n, (_, label) in ROWS],
            "categories": [{"id": ord(label), "name": label} for label in "ab"],
        }
    ),
    "one-hot": "image,a,b\n" + "\n".join(f"{k},{int(v == 'a')},{v == 'b':d}.0" for k, v in TRUE.items()),
    "FiftyOne without numbers": json.dumps({"classes": None, "labels": {k[:-4]: v for k, v in TRUE.items()}}),
    "COCO without names of files": json.dumps(
        {
            "images": [
                {"id": n % 4, "coco_url": f"http://h/x/{image}", "height": n} for n, (image, _) in ROWS
            ],
            "annotations": [{"image_id": n % 4, "category_id": ord(label)} for n, (_, label) in ROWS * 2],
            "categories": [{"id": ord(label), "name": label} for label in "ab"],
        }
    ),
    "lists of one": json.dumps([{"images": [image], "label": [label]} for image, label in TRUE.items()]),
    "a count": lines("{image} {label}", "4\nimage_name category_label"),
    "row numbers": lines("{n} {image} {label}"),
    "comments": "# of people\n#\n" + lines("{image} {label}"),
}


@pytest.mark.parametrize("name", READ)
def test_exports_give_each_image_its_label(name):
    assert parse(READ[name]).classes == TRUE


REFUSED = {
    "ages": (lines("case-{n}.png,{wrong},{label}", "image,age,label"), "case-1.png"),
    "ages alone": (lines("{wrong},{label}", "age,label"), "file_column"),
    "scores": (lines("p{n},{wrong},{label}", "patient,frame,label"), "file_column"),
    "a column that is not there": (lines("{image},{label}", "image,label"), "no column 'x'"),
    "a column of other names": (lines("z{n},{image},{label}", "x,image,label"), "line 2.*read 'z1'"),
    "another file": (lines("{wrong},scan_{n}.png,{label}", ",file,label"), "file_column"),
    "several": (lines("{image},x|{label}", "image,label"), "several labels"),
    "a title above": ("My labels\n\n" + lines("{image},{label}", "image,label"), "above the header"),
    "splits with a letter": (lines("{image},{label},test_{n}").replace("test_1", "train_1"), "split"),
    "several numbers": (lines("{image},{n} 1{n}", "Id,Target"), "several labels"),
    "several words": (lines("{image},{label}", "image,label") + "\n5.png,b a", "several labels"),
    "measurements": (lines("{image},23.{n}", "image,label"), "regression"),
    "a list as text": (lines("{image},\"['x', 'y']\"", "image,label"), "several labels"),
    "no label": (lines("{image},NA", "image,label"), r"'NA' \(4\)"),
    "no name": (lines("{image}"), "subset: @labels.csv"),
    "names under a header": (lines("{image}", "image"), "subset: @labels.csv"),
    "two words": (lines("{image} big {label}"), "tabs"),
    "a long name": (lines("{image},{label}" + "x" * 255, "image,label"), "label_column"),
    "chats": (
        json.dumps([{"messages": [{"content": [{"type": "image", "image": k}]}]} for k in IMAGES]),
        "jq",
    ),
    "chats beside pictures": (json.dumps([{"image": k, "conversations": [{}, {}]} for k in IMAGES]), "jq"),
    "numbers of images": (lines("{n}1 {n}2"), "join"),
    "two marks": ("image,a,b\n1.jpg,1,1\n", "2 of the columns"),
    "a slash": (lines("{image},x/{label}", "image,label"), "label_column"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_label_is_refused(name):
    text, message = REFUSED[name]
    with pytest.raises(SourceError, match=message):
        parse(text, file="x" if name.startswith("a column") else None)


@pytest.mark.parametrize(
    "content", [b"MATLAB 5.0\0\1", b"\x80\x04x", "a".encode("utf-32"), b"PK\3\4"], ids=repr
)
def test_a_binary_file_is_refused(content):
    with pytest.raises(SourceError, match="CSV in UTF-8"):
        [*list_tables(content, "x.bin")]


def test_an_attribute_is_found_below_a_header_without_the_column_of_files():
    text = "4\nYoung Male\n" + "".join(
        f"{image}  1 {'1' if v == 'a' else '-1'}\n" for image, v in TRUE.items()
    )
    labels = parse(text, label="Male", are_classes=True)
    assert labels.classes == {image: {"a": "1", "b": "-1"}[v] for image, v in TRUE.items()}
    missing = parse(text, label="Male")
    assert [*missing.classes.values()].count(None) == 2 and "'-1' (2)" in missing.remarks[0]
    assert len(labels.shown) == 1 + 3 and labels.shown[1].endswith("-> 1.jpg")


def test_another_encoding_is_named():
    with pytest.raises(SourceError, match=r"line 2: .*iconv"):
        [*list_tables("1.jpg,a\n2.jpg,é\n".encode("latin1"), "x.csv")]


def test_missing_words_are_counted_and_may_be_classes():
    text = "image,label\n1.jpg,a\n2.jpg,NA\n3.jpg,none\n4.jpg,NA\n"
    labels = parse(text)
    assert labels.classes == {"1.jpg": "a", "2.jpg": None, "3.jpg": None, "4.jpg": None}
    assert "'NA' (2), 'none' (1)" in labels.remarks[0]
    assert parse(text, are_classes=True).classes["3.jpg"] == "none"
    both = parse("image,label\n1.jpg,True\n2.jpg,true\n3.jpg,FALSE\n4.jpg,NA\n")
    assert {*both.classes.values()} == {"true", "false", None}


SPLITS = {
    "words": ("image,label,split", ("train", "val", "test", "test"), "testing"),
    "numbers": ("image,label,partition", ("0", "1", "2", "2"), "2.0"),
    "yes or no": ("image,label,is_valid", ("False", "False", "True", "True"), "val"),
    "third of three": ("9.jpg,a,0", ("0", "1", "2", "2"), "2"),
    "any name": ("image,label,fold", ("training", "validation", "testing", "testing"), "test"),
}


@pytest.mark.parametrize("name", SPLITS)
def test_a_column_of_splits_is_never_ignored(name):
    header, values, split = SPLITS[name]
    text = "\n".join([header, *(f"{k},{TRUE[k]},{v}" for k, v in zip(IMAGES, values, strict=True))])
    with pytest.raises(SourceError, match=r"--set split="):
        parse(text)
    labels = parse(text, split=split)
    assert labels.classes == {image: TRUE[image] for image in IMAGES[2:]}
    assert labels.left_out == {*IMAGES[:2]}
    with pytest.raises(SourceError, match="no row of the split"):
        parse(text, split="9")


def test_images_in_the_folder_of_a_split_are_of_no_other_split():
    rows = [f"{image},{label},test" for image, label in TRUE.items()]
    elsewhere = ["5.jpg,a,train", f"1.jpg,{TRUE['1.jpg']},train"]
    text = "\n".join(["image,label,split", *rows, *elsewhere])
    assert parse(text, split="test", in_folder=True).classes == TRUE
    with pytest.raises(SourceError, match=r"line 2: an image of the folder 'test' is of another split"):
        parse(text.replace(rows[0], "1.jpg,a,val"), split="test", in_folder=True)


@pytest.mark.parametrize("name", ["list_eval_partition.txt", "test_split1.txt"])
def test_a_file_of_splits_says_so_by_its_name(name):
    text = "1.jpg 0\n2.jpg 1\n3.jpg 2\n4.jpg 2\n"

    def read(where, **asked):
        tables = [*list_tables(text.encode(), where, of_lines=True)]
        return read_rows(tables, where, ImageNames(IMAGES).match, Asked(**asked), is_label_column)

    with pytest.raises(SourceError, match=r"2 \(2\)"):
        read(name)
    assert read(name, split="2").found == [["3.jpg"], ["4.jpg"]]
    assert len(read("list.txt").found) == len(IMAGES)


def test_a_column_that_may_say_splits_is_named():
    text = lines("{image},{label},{n}", "image,label,part").replace(",4", ",0").replace(",3", ",0")
    assert "part" in parse(text).remarks[0] and not parse(text.replace(",0", ",7")).remarks


@pytest.mark.parametrize("title", ["img_filename", "Photo Path", "relative_path", "FName", "video-id", "key"])
def test_columns_of_numbers_called_like_files_name_images(title):
    assert parse(lines("{n},{wrong},{label}", f"{title},age,class")).classes == TRUE


@pytest.mark.parametrize("title", ["file_size", "image_width", "path_length", "score", "idol"])
def test_columns_of_numbers_called_otherwise_name_none(title):
    with pytest.raises(SourceError, match="file_column"):
        parse(lines("{n},{label}", f"{title},class"))


@pytest.mark.parametrize(
    ("title", "values", "split"),
    [
        ("split_id", "0011", "1"),
        ("dataset-split", "1233", "3"),
        ("set", "1123", "2"),
        ("test", ("False", "True", "True", "False"), "test"),
        ("training", ("yes", "no", "no", "yes"), "train"),
        ("is_training_image", "0110", "train"),
        ("train_or_test", ("test", "train", "train", "test"), "train"),
    ],
)
def test_columns_of_splits_are_known_by_their_words(title, values, split):
    rows = [f"{image},{label},{value}" for (image, label), value in zip(TRUE.items(), values, strict=True)]
    text = "\n".join([f"image,class,{title}", *rows])
    with pytest.raises(SourceError, match="--set split="):
        parse(text)
    chosen = parse(text, split=split, needs_split=True).classes
    assert 0 < len(chosen) < len(TRUE) and chosen.items() <= TRUE.items()


@pytest.mark.parametrize(("title", "values"), [("test", "3568"), ("dataset", "abca"), ("spl", "0011")])
def test_other_columns_say_no_split(title, values):
    rows = [f"{image},{label},{value}" for (image, label), value in zip(TRUE.items(), values, strict=True)]
    assert parse("\n".join([f"image,class,{title}", *rows])).classes == TRUE
