"""make-c of tables with columns of images: laid out as MMBench, MathVista and LLaVA have them."""

import base64
import csv
import io
import json
import shutil

import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.files.containers.tables import TabSeparated
from robustgen.pixels.benchmarks.kinds import parse_variant
from robustgen.sets.dataset.opening import open_set
from robustgen.sets.dataset.recipes import CorruptionRecipe
from robustgen.sets.formats.encoders import OriginalEncoder
from robustgen.sets.sources.table import EncodedCell, list_images, replace_images
from tests.helpers import (
    cli,
    cli_error,
    encode_tagged,
    errors_of,
    make_c,
    photo,
    put_photo,
    put_tagged,
    read_upright,
    tree,
)

pandas = pytest.importorskip("pandas")
parquet = pytest.importorskip("pyarrow.parquet")
pyarrow = pytest.importorskip("pyarrow")

FEW = ("--dataset", "table", "--corruptions", "contrast,fog", "--severities", "1,4", "--jobs", "1")
FOLDERS = ("clean", "contrast/1", "contrast/4", "fog/1", "fog/4")
FOG = parse_variant("fog/4", "c")


def encoded(seed, form="JPEG"):
    buffer = io.BytesIO()
    Image.fromarray(photo(40, 48, seed)).save(buffer, form)
    return buffer.getvalue()


def as_text(data):
    return base64.b64encode(data).decode()


def decoded(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def made_of(data, key, variant=FOG):
    """The file that make-c writes of an encoded image."""
    recipe = CorruptionRecipe("folder")
    pixels = recipe.make(variant, key, recipe.prepare(decoded(data)))
    return OriginalEncoder(85).encode(variant, key, pixels)[0].data


# --- tab-separated values with base64 ------------------------------------------------------------


@pytest.fixture(scope="module")
def mmbench(tmp_path_factory):
    """Questions in pairs, of which the second one refers to the row of the image, and 70 rows in all."""
    rows = []
    for number in range(35):
        question = f'What is "this"?\tNumber {number}\nof 35'
        own = as_text(encoded(number % 3, "PNG" if number % 2 else "JPEG"))
        rows.append((number, question, "NA" if number % 2 else "", "1.50", own, "A"))
        rows.append((1000 + number, "again", "", "é", str(number), "B"))
    path = tmp_path_factory.mktemp("mmbench") / "MMBench_DEV.tsv"
    names = ["index", "question", "hint", "A", "image", "answer"]
    pandas.DataFrame(rows, columns=names).to_csv(path, sep="\t", index=False)
    return path


@pytest.fixture(scope="module")
def mmbench_output(mmbench, tmp_path_factory):
    root = tmp_path_factory.mktemp("made") / "out"
    make_c(mmbench, root, *FEW)
    return root


def read_as_vlmevalkit(path):
    """The images of all rows, as its ImageBaseDataset resolves them."""
    data = pandas.read_csv(path, sep="\t")
    images = dict(zip(map(str, data["index"]), map(str, data["image"]), strict=True))
    for index, image in images.items():
        if len(image) <= 64:
            assert len(images[image]) > 64
            images[index] = images[image]
    return [base64.b64decode(image) for image in images.values()]


def test_a_table_of_text_keeps_all_but_its_images(mmbench, mmbench_output):
    before = pandas.read_csv(mmbench, sep="\t", keep_default_na=False, dtype=str)
    images = read_as_vlmevalkit(mmbench)
    assert {name for name in tree(mmbench_output) if name.endswith(".tsv")} == {
        f"{folder}/MMBench_DEV.tsv" for folder in FOLDERS
    }
    for folder in FOLDERS:
        after = pandas.read_csv(
            mmbench_output / folder / "MMBench_DEV.tsv", sep="\t", keep_default_na=False, dtype=str
        )
        pandas.testing.assert_frame_equal(after.drop(columns="image"), before.drop(columns="image"))
        assert (after["image"][1::2] == before["image"][1::2]).all()
    made = read_as_vlmevalkit(mmbench_output / "fog" / "4" / "MMBench_DEV.tsv")
    for row, data in enumerate(made):
        # The twelfth row after it has the same picture.
        first = (row - row % 2) % 12
        key = f"MMBench_DEV/{first:08d}/image.{'png' if first % 4 else 'jpg'}"
        assert data == made_of(images[first], key)


def test_a_part_of_the_images_keeps_their_rows(mmbench, tmp_path):
    make_c(mmbench, tmp_path / "out", *FEW, "--limit", "3", "--format", "table:png")
    data = pandas.read_csv(tmp_path / "out" / "fog" / "4" / "MMBench_DEV.tsv", sep="\t")
    # Every sixth picture is the same.
    assert data["index"].tolist() == [number for number in range(35) if number % 6 < 3]
    assert base64.b64decode(data["image"][0]).startswith(b"\x89PNG")
    cli("verify", tmp_path / "out", "--deep", "all")
    make_c(mmbench, tmp_path / "sample", *FEW, "--sample", "3")
    assert len(open_set(tmp_path / "sample").keys_of(FOG)) == 3


# --- Parquet with structs ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mathvista(tmp_path_factory):
    """Two files of structs, bytes and lists, with rows that lack some or all of their images."""
    root = tmp_path_factory.mktemp("mathvista")
    struct = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    metadata = {"huggingface": json.dumps({"info": {"features": {"decoded_image": {"_type": "Image"}}}})}
    columns = {
        "pid": pyarrow.string(),
        "decoded_image": struct,
        "image_2": pyarrow.binary(),
        "images": pyarrow.list_(struct),
        "choices": pyarrow.list_(pyarrow.string()),
        "metadata": pyarrow.struct([("grade", pyarrow.float64())]),
    }
    schema = pyarrow.schema(list(columns.items()), metadata=metadata)
    for file in range(2):
        rows = [
            {
                "pid": f"{file}-{row}",
                "decoded_image": {"bytes": encoded(row), "path": f"{row}.jpg"} if row % 4 else None,
                "image_2": encoded(row, "PNG") if row == 3 else None,
                "images": [{"bytes": encoded(n), "path": None} for n in range(2)] if row == 5 else [],
                "choices": ["a", None] if row % 2 else None,
                "metadata": {"grade": row / 3},
            }
            for row in range(9)
        ]
        table = pyarrow.Table.from_pylist(rows, schema)
        parquet.write_table(table, root / f"testmini-{file:05d}-of-00002.parquet", row_group_size=4)
    return root


def test_structs_bytes_and_lists_of_parquet(mathvista, tmp_path):
    columns = ("--set", "image_columns=decoded_image,image_2,images")
    result = make_c(f"{mathvista}/*.parquet", tmp_path / "out", *FEW, *columns)
    assert "6 rows without an image kept: row 0 of testmini-00000-of-00002.parquet, row 4 of" in result.stderr
    first = {}
    for file in range(2):
        name = f"testmini-{file:05d}-of-00002.parquet"
        before = parquet.read_table(mathvista / name)
        after = parquet.read_table(tmp_path / "out" / "fog" / "4" / name)
        assert after.schema.equals(before.schema, check_metadata=True)
        for column in ("pid", "choices", "metadata"):
            assert after[column].equals(before[column])
        stem = name.removesuffix(".parquet")
        for row, (old, new) in enumerate(zip(before.to_pylist(), after.to_pylist(), strict=True)):
            if not old["decoded_image"]:
                assert new["decoded_image"] is None
            else:
                own = old["decoded_image"]["bytes"]
                data = made_of(own, first.setdefault(own, f"{stem}/{row:08d}/decoded_image.jpg"))
                assert new["decoded_image"] == {"bytes": data, "path": f"{row}.jpg"}
            if row == 3:
                key = first.setdefault(old["image_2"], f"{stem}/{row:08d}/image_2.png")
                assert new["image_2"] == made_of(old["image_2"], key)
            assert [each["bytes"] for each in new["images"]] == [
                made_of(each["bytes"], first.setdefault(each["bytes"], f"{stem}/{row:08d}/images/{slot}.jpg"))
                for slot, each in enumerate(old["images"])
            ]
    cli("verify", tmp_path / "out", "--deep", "all")


# --- JSON lines with paths -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def llava(tmp_path_factory):
    """Questions of which several are about one image, one about none."""
    root = tmp_path_factory.mktemp("llava")
    for number in range(3):
        put_photo(root / "images" / "coco" / f"{number:03d}.jpg", 40, 48, seed=number)
    rows = [
        {
            "question_id": number,
            "image": f"coco/{number % 3:03d}.jpg",
            "text": "Wo? é",
            "turns": [1, {"a": None}],
        }
        for number in range(7)
    ]
    rows.append({"question_id": 7, "text": "none"})
    lines = [json.dumps(row, ensure_ascii=number % 2 == 0) for number, row in enumerate(rows)]
    (root / "questions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


def test_files_that_a_table_names_lie_beside_it(llava, tmp_path):
    result = make_c(
        llava / "questions.jsonl", tmp_path / "out", *FEW, "--set", f"image_root={llava / 'images'}"
    )
    assert "1 row without an image kept: row 7 of questions.jsonl" in result.stderr
    made = tree(tmp_path / "out")
    for folder in FOLDERS:
        assert made[f"{folder}/questions.jsonl"] == (llava / "questions.jsonl").read_bytes()
        names = {name for name in made if name.startswith(f"{folder}/coco/")}
        assert names == {f"{folder}/coco/00{number}.jpg" for number in range(3)}
    # They are those of the folder of images.
    make_c(llava / "images", tmp_path / "folder", *FEW[2:], "--format", "original")
    own = {name: data for name, data in made.items() if name.endswith(".jpg")}
    assert own == {name: data for name, data in tree(tmp_path / "folder").items() if name.endswith(".jpg")}
    cli("verify", tmp_path / "out", "--deep", "all")
    assert open_set(tmp_path / "out").keys_of(FOG) == tuple(f"coco/00{number}.jpg" for number in range(3))


# --- what is wrong -------------------------------------------------------------------------------


def put_lines(path, *rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_broken_images_are_named_and_their_cells_are_empty(tmp_path):
    good, bad, uri = as_text(encoded(1)), as_text(b"no picture" * 20), "data:image/jpeg;base64,"
    rows = (
        *({"image": good, "n": 0}, {"image": bad, "n": 1}, {"image": None, "n": 2}),
        *({"image": uri + good, "n": 3}, {"image": 5, "n": 4}, {"n": 5}),
    )
    source = put_lines(tmp_path / "table.jsonl", *rows)
    result = make_c(source, tmp_path / "out", *FEW, status=1)
    assert "2 rows without an image kept: row 2 of table.jsonl, row 5 of table.jsonl" in result.stderr
    reasons = {each["key"]: each["reason"] for each in errors_of(tmp_path / "out")}
    assert "in none of the formats" in reasons["table/00000001/image.png"]
    assert "neither bytes, base64 text nor" in reasons["row 4 of table.jsonl, image"]
    after = [json.loads(line) for line in (tmp_path / "out/fog/4/table.jsonl").read_text().splitlines()]
    assert [row["n"] for row in after] == [0, 1, 2, 3, 4, 5]
    assert [bool(row.get("image")) for row in after] == [True, False, False, True, False, False]
    # One picture, corrupted once.
    assert after[3]["image"] == uri + after[0]["image"]
    assert "image" not in after[5]


def test_rows_of_one_picture_see_one_corrupted_picture(tmp_path, monkeypatch):
    shared, other = encoded(1), encoded(2)
    for number, images in enumerate([[shared, other, shared], [other, shared]]):
        rows = [
            {"image": {"bytes": each, "path": "a.jpg"}, "category": "xy"[each == other]} for each in images
        ]
        parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / f"{number}.parquet", row_group_size=1)
    noise = ("--corruptions", "gaussian_noise", "--severities", "3", "--no-clean")
    made, make = list[str](), CorruptionRecipe.make
    monkeypatch.setattr(
        CorruptionRecipe,
        "make",
        lambda self, variant, key, *args: made.append(key) or make(self, variant, key, *args),
    )
    for jobs in "12":
        result = cli(
            *("make-c", "--dataset", "table", "--source", f"{tmp_path}/*.parquet", *noise),
            *("--jobs", jobs, "--output", tmp_path / jobs),
        )
        tables = [parquet.read_table(tmp_path / jobs / f"gaussian_noise/3/{n}.parquet") for n in (0, 1)]
        cells = [cell["bytes"] for table in tables for cell in table["image"].to_pylist()]
        assert cells[0] == cells[2] == cells[4] != cells[1] == cells[3]
        # Once in each table.
        assert "4 images, 2 classes" in result.output
        assert (tmp_path / jobs / "keys.txt").read_text().count("\n") == 4
    keys = ["0/00000000", "0/00000001", "1/00000000", "1/00000001"]
    assert [key for key in made if key] == [f"{key}/image.jpg" for key in keys]
    cli("verify", tmp_path / "1", "--deep", "all")


def test_scores_count_a_picture_of_several_rows_once(tmp_path):
    # The strongest contrast makes the first two pictures equal.
    greys = [100, 101, 250]
    rows = [
        {"image": as_text(encode_grey(greys[n % 3])), "label": n % 3, "n": n} for n in (0, 1, 2, 1, 0, 0, 2)
    ]
    source = put_lines(tmp_path / "table.jsonl", *rows)

    def model(batch):
        return -np.abs(batch.mean((1, 2, 3))[:, None] - np.array(greys))

    few = {"corruptions": ["contrast"], "severities": [5], "jobs": 1, "quiet": True}
    robustgen.evaluate(model, source=str(source), source_kind="table", output=tmp_path / "p", name="a", **few)
    for file in (tmp_path / "p").rglob("*.npz"):
        assert len(np.load(file)["labels"]) == 3
    make_c(source, tmp_path / "out", "--dataset", "table", "--corruptions", "contrast", "--severities", "5")
    written = open_set(tmp_path / "out")
    for variant in written.variants:
        assert len(written.keys_of(variant)) == 3
        assert written.labels(variant).tolist() == [0, 1, 2]


def encode_grey(grey):
    buffer = io.BytesIO()
    Image.new("RGB", (40, 40), (grey,) * 3).save(buffer, "PNG")
    return buffer.getvalue()


def test_a_struct_without_bytes_gets_those_of_its_file(tmp_path):
    put_photo(tmp_path / "a" / "there.jpg", 40, 48)
    source = put_lines(tmp_path / "table.jsonl", {"image": {"bytes": None, "path": "a/there.jpg"}, "n": 1.0})
    make_c(source, tmp_path / "out", *FEW)
    (row,) = map(json.loads, (tmp_path / "out/fog/4/table.jsonl").read_text().splitlines())
    assert row["image"]["path"] == "a/there.jpg" and row["n"] == 1
    want = made_of((tmp_path / "a" / "there.jpg").read_bytes(), "table/00000000/image.jpg")
    assert row["image"]["bytes"] == as_text(want)


def test_files_that_are_missing_or_elsewhere_are_named(tmp_path):
    put_photo(tmp_path / "a" / "there.jpg", 40, 48)
    put_photo(tmp_path / "secret.jpg", 40, 48)
    names = ("there.jpg", "gone.jpg", "../secret.jpg", "/etc/secret.jpg")
    source = put_lines(tmp_path / "a" / "table.jsonl", *({"image": name} for name in names))
    make_c(source, tmp_path / "out", *FEW, status=1)
    reasons = {each["key"]: each["reason"] for each in errors_of(tmp_path / "out")}
    assert set(reasons) == {"gone.jpg", "row 2 of table.jsonl, image", "row 3 of table.jsonl, image"}
    assert "row 1 of table.jsonl, below" in reasons["gone.jpg"]
    assert "leaves the folder of the images" in reasons["row 2 of table.jsonl, image"]


BASE64 = as_text(encoded(0))


@pytest.mark.parametrize(
    ("name", "content", "flags", "message"),
    [
        (
            "t.jsonl",
            '{"picture": "x"}',
            (),
            "t.jsonl: no column 'image' in picture; see image_columns",
        ),
        ("t.jsonl", '{"image": "x"}', (), "column 'image' has no images; see image_columns"),
        ("t.jsonl", '{"image": "x"', (), "t.jsonl: line 1: Expecting"),
        ("t.jsonl", "[1]", (), "t.jsonl: line 1: contains list, not an object"),
        ("t.jsonl", '{"image": "a.jpg"}', (), "see the key image_root): No such file"),
        (
            "t.jsonl",
            f'{{"image": "{BASE64}", "b": "a.jpg"}}',
            ("--set", "image_columns=image,b"),
            "name files",
        ),
        ("t.tsv", "image\timage\n1\t2\n", (), "t.tsv: column 'image' occurs twice in the header"),
        ("t.tsv", "image\ta\n1\n", (), "t.tsv: row 0 has 1 cells, the header 2"),
        ("t.tsv", "", (), "t.tsv: has no header"),
        ("t.parquet", "no parquet", (), "t.parquet: "),
        ("t.csv", "image\n", (), "t.csv: not a table (.parquet, .jsonl, .tsv)"),
        ("photos/a.txt", "", (), "photos: matches no file (.parquet, .jsonl, .tsv)"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(tmp_path, name, content, flags, message):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    source = path.parent if "/" in name else path
    assert message in cli_error("make-c", "--source", source, "--output", tmp_path / "out", *FEW, *flags)
    assert not (tmp_path / "out").exists()


def test_tables_in_several_layouts_are_made_together(tmp_path):
    put_lines(tmp_path / "tables" / "a.jsonl", {"image": BASE64})
    (tmp_path / "tables" / "b.tsv").write_text(f"image\n{BASE64}\n")
    (tmp_path / "tables" / "a.tsv").write_text(f"image\n{BASE64}\n")
    make_c(tmp_path / "tables", tmp_path / "out", *FEW, status=1)
    reasons = {each["key"]: each["reason"] for each in errors_of(tmp_path / "out")}
    assert reasons == {"a/00000000/image.jpg": "occurs twice"}
    assert "b.tsv" in {path.name for path in (tmp_path / "out" / "fog" / "4").iterdir()}


def test_flags_of_tables_are_for_tables(photos, tmp_path):
    out = ("--output", tmp_path / "out")
    message = cli_error("make-c", "--source", photos, "--format", "table", *out, *FEW[2:])
    assert message == "format: table is for source_kind=table (--dataset table)"


def test_tab_separated_values_are_those_of_the_csv_module():
    rng, layout = np.random.default_rng(0), TabSeparated()
    for number in range(200):
        columns = rng.integers(1, 5)
        cells = rng.choice(
            ["", "a", "é b", '"', "x\ty", "p\nq", "'", '""'], (rng.integers(0, 5), columns)
        ).tolist()
        rows, text, plain = [[f"c{n}" for n in range(columns)], *cells], io.StringIO(), io.StringIO()
        csv.writer(text, delimiter="\t", lineterminator=("\n", "\r\n")[number % 2]).writerows(rows)
        csv.writer(plain, delimiter="\t", lineterminator="\n").writerows(rows)
        file, copied = io.BytesIO(text.getvalue().encode()), io.BytesIO()
        chunks = [*layout.read(file)]
        assert [[*row.cells.values()] for chunk in chunks for row in chunk.rows] == rows[1:]
        for place, row in zip((place for chunk in chunks for place in chunk.places), rows[1:], strict=True):
            assert [layout.read_cell(file, place, name) for name in rows[0]] == row
        with layout.write(copied, file) as add:
            for chunk in chunks:
                add(chunk, {}, [True] * len(chunk.rows))
        assert copied.getvalue() == plain.getvalue().encode()
    with pytest.raises(ValueError, match="a row is damaged"):
        [*layout.read(io.BytesIO(b'a\n"never closed\n'))]


def test_cells_of_all_types():
    data, other = encoded(1), EncodedCell(b"new", ".png")
    cases = {
        b"": b"",
        "": "",
        "12": "12",
        data: b"new",
        as_text(data): as_text(b"new"),
        f"data:image/jpeg;base64,{as_text(data)}": f"data:image/png;base64,{as_text(b'new')}",
        "a/b.jpg": "a/b.png",
        f"['{as_text(data)}', 'a.png']": f"['{as_text(b'new')}', 'a.png']",
    }
    for cell, want in cases.items():
        assert replace_images(cell, lambda _: other) == want
    assert replace_images({"bytes": data, "path": "x.JPG"}, lambda _: other) == {
        "bytes": b"new",
        "path": "x.png",
    }
    assert replace_images({"bytes": None, "path": None}, lambda _: other) == {"bytes": None, "path": None}
    assert replace_images([data, None], lambda _: None) == [None, None]
    assert [image.suffix for image in list_images([data, encoded(1, "PNG"), encoded(1, "GIF")])] == [
        *(".jpg", ".png", ".png")
    ]
    for cell in (5, {"a": 1}, "[1", "[1]", "../a.png"):
        with pytest.raises(ValueError):
            list_images(cell)


def test_tables_on_a_web_server(web, llava, mathvista, tmp_path):
    url, served, _ = web
    shutil.copytree(llava, served / "llava")
    shutil.copytree(mathvista, served / "mathvista")
    own = ("--set", "image_columns=decoded_image", "--no-clean")
    for place, flags in (
        ("llava/questions.jsonl", ("--set", "image_root={}/llava/images")),
        ("mathvista/testmini-0000{{0,1}}-of-00002.parquet", own),
    ):
        for root, name in ((url, "remote"), (served, "local")):
            given = [each.format(root) for each in flags]
            make_c(f"{root}/{place.format()}", tmp_path / name, *FEW, *given, "--overwrite")
        assert tree(tmp_path / "remote") == tree(tmp_path / "local")


# --- orientation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["bytes", "struct", "list", "base64", "uri", "file"])
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_cells_keep_the_orientation(tmp_path, cell, form):
    pictures = [encode_tagged(photo(40, 48, number), form, number) for number in range(9)]
    suffix = {"JPEG": ".jpg", "TIFF": ".tif"}.get(form, f".{form.lower()}")
    if cell in ("base64", "uri", "file"):
        head = f"data:image/{form.lower()};base64," * (cell == "uri")
        cells = [head + as_text(data) for data in pictures]
        if cell == "file":
            cells = [f"images/{number}{suffix}" for number in range(9)]
            for number in range(9):
                put_tagged(tmp_path / cells[number], number)
        pandas.DataFrame({"image": cells}).to_json(tmp_path / "t.jsonl", orient="records", lines=True)
        source = tmp_path / "t.jsonl"
    else:
        structs = [{"bytes": data, "path": f"{number}{suffix}"} for number, data in enumerate(pictures)]
        cells = {"bytes": pictures, "struct": structs, "list": [[each] for each in structs]}[cell]
        parquet.write_table(pyarrow.table({"image": cells}), tmp_path / "t.parquet")
        source = tmp_path / "t.parquet"
    done = make_c(
        source, tmp_path / "out", "--dataset", "table", "--corruptions", "contrast", "--severities", 1
    )
    assert "7 of 9 images have an EXIF orientation" in done.stderr
    for folder in ("clean", "contrast/1"):
        made = tmp_path / "out" / folder / source.name
        rows = (
            pandas.read_parquet(made) if source.suffix == ".parquet" else pandas.read_json(made, lines=True)
        )
        for number, own in enumerate(rows["image"]):
            if cell == "file":
                data = (tmp_path / "out" / folder / own).read_bytes()
            else:
                data = own[0] if cell == "list" else own
                data = data["bytes"] if isinstance(data, dict) else data
                data = base64.b64decode(data.rpartition(",")[2]) if isinstance(data, str) else data
            found, wanted = read_upright(io.BytesIO(data)), read_upright(io.BytesIO(pictures[number]))
            assert found.shape == wanted.shape
            assert np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > 0.9
