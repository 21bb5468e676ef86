"""`robustgen score-answers`: files of VLMEvalKit and lmms-eval, plain ones, and numbers by plain counting."""

import base64
import csv
import json
import sys
from itertools import product

import numpy as np
import pytest

from robustgen.lab.scores.answers import AnswerReport
from robustgen.metrics.intervals import clustered_interval, mean_interval
from tests.browser import NO_BROWSER
from tests.helpers import cli, cli_error
from tests.lab.inspection.test_pages import PAPER_A4, page_data, print_on, resize

CELLS = (("fog", 3), ("contrast", 3))
PATTERNS = ("--results", "{model}/{corruption}-{severity}", "--clean-results", "{model}/clean")


def put(path, rows):
    """Write a table in the format of its suffix, with the columns of its first row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in [[*rows[0]], *(row.values() for row in rows)]:
            book.active.append([*row])
        book.save(path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*rows[0]], delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)


def put_all(root, make, suffix=".csv", models=("one",), cells=CELLS, name="{}"):
    """Write the tables of models: `make` returns the rows of a model and a variant."""
    for model, variant in product(models, ["clean", *(f"{name}-{level}" for name, level in cells)]):
        put(root / model / f"{name.format(variant)}{suffix}", make(model, variant))


def command(root, suffix=".csv", *more):
    words = [each if each.startswith("--") else f"{root}/{each}{suffix}" for each in PATTERNS]
    return ("score-answers", *words, *more)


def scores(*given):
    """All scores of the first model by name and category, and the content of the JSON."""
    content = json.loads(cli(*given, "--format", "json").stdout)
    first = content["scores"][0]["model"]
    return {(e["of"], e["category"]): e for e in content["scores"] if e["model"] == first}, content


def plain(model, variant, drop=0.3, seed=0, **more):
    """Rows of 60 questions about 20 pictures; a corruption makes some right answers wrong."""
    right = np.random.default_rng(seed).random(60) < 0.8
    kept = np.random.default_rng([seed, sum(variant.encode()), len(model)]).random(60) >= drop
    right = right if variant == "clean" else right & kept
    return [
        {"question": q, "score": int(right[q]), "image": f"{q // 3}.jpg", "kind": "ab"[q % 2], **more}
        for q in range(60)
    ]


def test_numbers_are_those_of_plain_counting(tmp_path):
    put_all(tmp_path, plain)
    found, content = scores(*command(tmp_path, ".csv", "--category", "kind"))
    tables = {
        v: np.array([row["score"] for row in plain("one", v)]) for v in ("clean", "fog-3", "contrast-3")
    }
    clean, fog, mean = tables["clean"], tables["fog-3"], (tables["fog-3"] + tables["contrast-3"]) / 2
    assert content["questions"] == 60 and content["pictures"] == 20 and content["unmatched"] == {"one": 0}
    for name, values in (("clean", clean), ("fog", fog), ("fog/3", fog), ("accuracy", mean)):
        assert found[name, ""]["accuracy"] == pytest.approx(values.mean())
        # Pictures of as many questions each are a mean over pictures.
        ends = mean_interval(values.reshape(20, 3).mean(axis=1)[:, None])
        assert [found[name, ""][end] for end in ("low", "high")] == pytest.approx([float(e[0]) for e in ends])
    own = found["accuracy", ""]
    assert own["drop"] == pytest.approx(clean.mean() - mean.mean())
    assert own["relative_drop"] == pytest.approx(1 - mean.mean() / clean.mean())
    assert own["drop_low"] < own["drop"] < own["drop_high"] and own["p"] < 0.001
    assert own["relative_drop_low"] < own["relative_drop"] < own["relative_drop_high"]
    odd = np.arange(60) % 2 == 1
    assert found["accuracy", "b"]["accuracy"] == pytest.approx(mean[odd].mean())
    assert found["accuracy", "b"]["questions"] == 30
    assert found["clean", ""]["drop"] is None


def test_one_corruption_and_its_severities_need_no_flag(tmp_path):
    cells = [("fog", level) for level in (1, 2, 3)]
    put_all(tmp_path, plain, cells=cells)
    result = cli(*command(tmp_path))
    assert "incomplete" not in result.stdout + result.stderr and "severities 1, 2, 3" in result.stdout
    (tmp_path / "one/snow-1.csv").write_text((tmp_path / "one/fog-1.csv").read_text())
    assert "incomplete: 4 of 6 tables" in cli_error(*command(tmp_path))
    assert "snow/2" in cli(*command(tmp_path, ".csv", "--partial")).stderr


def test_scores_between_0_and_1_are_taken_and_others_refused(tmp_path):
    put_all(
        tmp_path, lambda model, variant: [row | {"score": row["score"] / 4} for row in plain(model, variant)]
    )
    found, _ = scores(*command(tmp_path))
    assert found["clean", ""]["accuracy"] == pytest.approx(sum(r["score"] for r in plain("", "clean")) / 240)
    put_all(tmp_path, lambda model, variant: [row | {"score": 5} for row in plain(model, variant)])
    assert "score '5' is not from 0 to 1" in cli_error(*command(tmp_path))
    put_all(tmp_path, lambda model, variant: [row | {"score": "good"} for row in plain(model, variant)])
    assert "question 0" in cli_error(*command(tmp_path))


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".json", ".xlsx"])
def test_every_format_gives_the_same_numbers(tmp_path, suffix):
    put_all(tmp_path, plain)
    put_all(tmp_path, plain, suffix)
    assert scores(*command(tmp_path, suffix))[0] == scores(*command(tmp_path))[0]


def test_semicolons_and_byte_order_marks_are_read_and_other_encodings_refused(tmp_path):
    put_all(tmp_path, plain)
    known = scores(*command(tmp_path))[0]
    for path in tmp_path.rglob("*.csv"):
        path.write_text("\ufeff" + path.read_text().replace(",", ";"))
    assert scores(*command(tmp_path))[0] == known
    (tmp_path / "one/fog-3.csv").write_bytes((tmp_path / "one/fog-3.csv").read_text().encode("utf-16"))
    error = cli_error(*command(tmp_path))
    assert "fog-3.csv" in error and "UTF-8" in error


def test_excel_files_need_openpyxl(tmp_path, monkeypatch):
    put_all(tmp_path, plain, ".xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert cli_error(*command(tmp_path, ".xlsx")).endswith("pip install 'robustgen[answers]'")


def test_right_answers_are_those_that_pandas_has_written(tmp_path):
    texts = {"clean": ["1.50", "007", "None", "TRUE"], "fog-3": ["1.5", "7", "", "True"]}

    def make(_, variant):
        rights = texts.get(variant, texts["clean"])
        return [{"index": q, "hit": 1, "answer": rights[q % 4], "image": q} for q in range(20)]

    put_all(tmp_path, make, ".tsv")
    assert scores(*command(tmp_path, ".tsv"))[1]["unmatched"] == {"one": 0}


# --- VLMEvalKit -----------------------------------------------------------------------------------


def put_mmbench(root, encode=lambda number: bytes([number] * 90)):
    """MMBench's table: 10 pictures, two questions each, in four circles; pictures refer to the first row."""
    rows = []
    for question, circle in product(range(20), range(4)):
        options = [f"thing {question} {number}" for number in range(4)]
        options = options[circle:] + options[:circle]
        first = question // 2 * 2
        picture = base64.b64encode(encode(question)).decode() if (question, circle) == (first, 0) else first
        row = {"index": question + 1_000_000 * circle, "question": f"What is {question}?"}
        row |= dict(zip("ABCD", options, strict=True))
        rows.append(
            row | {"answer": "ABCD"[options.index(f"thing {question} 1")], "category": "x", "image": picture}
        )
    put(root / "MMBench_DEV_EN.tsv", rows)
    return rows


def answer_mmbench(rows, wrong):
    """Predictions as VLMEvalKit stores them: no pictures; wrong in one circle of the questions in `wrong`."""
    return [
        {name: cell for name, cell in row.items() if name != "image"}
        | {"prediction": "no idea" if row["index"] in wrong else row["answer"]}
        for row in rows
    ]


def test_mmbench_asks_in_circles(tmp_path):
    rows = put_mmbench(tmp_path)
    wrong = {"clean": {3}, "fog-3": {3, 1_000_005, 7, 2_000_007}, "contrast-3": {3, 3_000_001}}
    put_all(tmp_path, lambda _, variant: answer_mmbench(rows, wrong[variant]), ".xlsx")
    table = ("--questions", tmp_path / "MMBench_DEV_EN.tsv")
    found, content = scores(*command(tmp_path, ".xlsx", *table, "--rule", "choice"))
    assert [found[name, ""]["accuracy"] for name in ("clean", "fog", "contrast")] == [0.95, 0.85, 0.9]
    assert content["questions"] == 20 and content["pictures"] == 10
    assert any("80 rows ask 20 questions in circles" in note for note in content["notes"])
    assert any("name no choice" in note for note in content["notes"])

    # The file of results has the first circle alone, with the judgement of all four.
    def judge(_, variant):
        return [
            {**row, "hit": int(all(row["index"] + 1_000_000 * c not in wrong[variant] for c in range(4)))}
            | {"g_index": row["index"]}
            for row in answer_mmbench(rows, wrong[variant])[::4]
        ]

    put_all(tmp_path, judge, ".tsv")
    judged, _ = scores(*command(tmp_path, ".tsv", *table))
    assert judged == found
    # Without the table, nothing tells which questions share a picture.
    assert "without a picture" in cli(*command(tmp_path, ".tsv")).stderr
    # A question without one of its circles has no score.
    put(tmp_path / "one/fog-3.xlsx", answer_mmbench(rows, set())[:-1])
    error = cli_error(*command(tmp_path, ".xlsx", *table, "--rule", "choice"))
    assert "incomplete: 19 of 20 questions" in error and "19" in error and "--partial" in error
    _, partial = scores(*command(tmp_path, ".xlsx", *table, "--rule", "choice", "--partial"))
    assert partial["questions"] == 19


def test_yes_or_no_of_vlmevalkit(tmp_path):
    def make(_, variant):
        flags = [q % 4 != 0 or variant == "clean" for q in range(40)]
        return [
            {"index": q, "answer": "Yes", "extracted": "No", "score": f, "image_path": f"{q // 2}.jpg"}
            for q, f in enumerate(flags)
        ]

    for suffix in (".xlsx", ".tsv"):
        put_all(tmp_path, make, suffix)
        found, content = scores(*command(tmp_path, suffix))
        assert found["clean", ""]["accuracy"] == 1 and found["fog", ""]["accuracy"] == 0.75
        assert content["pictures"] == 20


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [
        ("ChartQA_TEST", 1.0),
        ("OCRVQA_TEST", 1.0),
        ("DocVQA_VAL", 0.8),
        ("InfoVQA_VAL", 0.8),
        ("TextVQA_VAL", 0.6),
        ("GQA_TestDev", 0.6),
        ("Mine", None),
    ],
)
def test_open_questions_have_the_rule_of_their_set(tmp_path, name, accuracy):
    def make(_, variant):
        return [
            {"index": q, "answer": "x", "eval_match": "[0.2, 1.0]", "eval_score": 0.5, "image_path": q}
            for q in range(20)
        ]

    put_all(tmp_path, make, ".xlsx", name=f"m_{name}_{{}}_results")
    given = [f"{each}" for each in command(tmp_path, ".xlsx")]
    given = [
        each.replace("/{corr", f"/m_{name}_{{corr")
        .replace("/clean", f"/m_{name}_clean")
        .replace(".xlsx", "_results.xlsx")
        for each in given
    ]
    if accuracy is None:
        assert "--rule mean, max or distance" in cli_error(*given)
        accuracy, given = 1.0, [*given, "--rule", "max"]
    assert scores(*given)[0]["fog", ""]["accuracy"] == pytest.approx(accuracy)


# --- lmms-eval ------------------------------------------------------------------------------------


def samples(metric, targets=None, count=20):
    """Rows as lmms-eval writes them, with `metric` of a question and a variant."""
    return lambda _, variant: [
        {"doc_id": q, "target": (targets or str)(q), "filtered_resps": ["x"], "doc_hash": None, "input": "Q"}
        | metric(q, variant)
        for q in range(count)
    ]


METRICS = {
    "a number": (lambda q, v: {"exact_match": float(q % 2 == 0 or v == "clean")}, ()),
    "a number for some": (
        lambda q, v: {"relaxed_overall": float(q % 2 == 0 or v == "clean"), f"relaxed_{q % 3}": 0.0},
        (),
    ),
    "a dictionary": (
        lambda q, v: {"acc": {"score": float(q % 2 == 0 or v == "clean"), "question_id": 7 * q}},
        (),
    ),
    "several": (
        lambda q, v: {n: {"score": float(q % 2 == 0 or v == "clean")} for n in ("acc", "f1")},
        ("--score", "acc"),
    ),
    "an answer to judge": (
        lambda q, v: {
            "acc": {"answer": "B", "parsed_pred": ["B" if q % 2 == 0 or v == "clean" else "C"]},
            "submission": {},
        },
        ("--score", "acc", "--rule", "choice"),
    ),
    "a prediction to judge": (
        lambda q, v: {"acc": {"answer": "yes", "prediction": "Yes." if q % 2 == 0 or v == "clean" else "no"}},
        ("--rule", "yes-no"),
    ),
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_of_lmms_eval(tmp_path, name):
    metric, flags = METRICS[name]
    put_all(tmp_path, samples(metric), ".jsonl", name="20261129_101500_samples_bench_{}")
    given = [
        each.replace("/{corr", "/*_samples_bench_{corr").replace("/clean", "/*_samples_bench_clean")
        for each in command(tmp_path, ".jsonl", *flags)
    ]
    put(tmp_path / "bench.jsonl", [{"question": "?", "image": f"{q // 4}.jpg"} for q in range(20)])
    found, content = scores(*given, "--questions", tmp_path / "bench.jsonl")
    assert found["clean", ""]["accuracy"] == 1 and found["fog", ""]["accuracy"] == 0.5
    assert content["pictures"] == 5
    if flags:
        assert "--score" in cli_error(*given[:5])
    # A second run appends, or has another date.
    (path,) = (tmp_path / "one").glob("*fog-3*")
    path.write_text(2 * path.read_text())
    assert "20 answers are there twice" in cli(*given).stderr
    path.with_name(path.name.replace("2026", "2027")).write_text("")
    assert "both" in cli_error(*given)


def test_answers_to_other_questions_are_counted_and_named(tmp_path):
    metric = METRICS["a number"][0]
    put_all(tmp_path, samples(metric), ".jsonl")
    rows = samples(metric)("one", "fog-3")
    put(tmp_path / "one/fog-3.jsonl", [*rows, rows[0] | {"doc_id": 77}, rows[0] | {"doc_id": 78}])
    _, content = scores(*command(tmp_path, ".jsonl"))
    assert content["unmatched"] == {"one": 2} and any("77 in " in note for note in content["notes"])
    assert cli(*command(tmp_path, ".jsonl", "--fail-if", "unmatched > 0"), status=1)
    # The rows of another task have other right answers.
    put(tmp_path / "one/fog-3.jsonl", samples(metric, lambda q: f"other {q}")("one", "fog-3"))
    assert "none of its 20 answers" in cli_error(*command(tmp_path, ".jsonl"))
    put(tmp_path / "one/fog-3.jsonl", samples(metric, lambda q: str(min(q, 17)))("one", "fog-3"))
    assert "incomplete: 18 of 20 questions" in cli_error(*command(tmp_path, ".jsonl"))
    _, content = scores(*command(tmp_path, ".jsonl", "--partial"))
    assert content["questions"] == 18 and content["unmatched"] == {"one": 2}


def test_damaged_and_hostile_tables_are_refused(tmp_path):
    put_all(tmp_path, plain)
    path, rows = tmp_path / "one/fog-3.csv", plain("one", "fog-3")

    def refuse(rows):
        put(path, rows)
        error = cli_error(*command(tmp_path))
        assert "fog-3.csv" in error
        return error

    def refuse_text(text):
        path.write_text(text)
        return cli_error(*command(tmp_path))

    assert "incomplete: 59 of 60" in refuse(
        [row | {"score": "nan"} if row["question"] == 5 else row for row in rows]
    )
    assert "two different rows" in refuse([*rows, rows[0] | {"score": 1 - rows[0]["score"]}])
    assert "incomplete: 57 of 60" in refuse(rows[3:])
    assert "--score" in refuse([{"question": row["question"]} for row in rows])
    assert "--key" in refuse([{"score": row["score"]} for row in rows])
    for text in ("", "question,score\n1\n", "question,score\n"):
        path.write_text(text)
        assert "fog-3.csv" in cli_error(*command(tmp_path))
    assert "'score' occurs twice" in refuse_text("question,score,score\n1,1,1\n")
    assert "none of its 1 answer" in refuse_text("question,score\n" + "9" * 5000 + ",1\n")
    assert "3 cells, the header 2" in refuse_text("question,score\n1,1,1\n")
    for name, text in (
        ("a.pkl", "x"),
        ("f.jsonl", "[" * 99_999),
        ("b.xlsx", "x"),
        ("c.json", "{}"),
        ("d.jsonl", "[1]"),
        ("e.parquet", "x"),
    ):
        (tmp_path / name).write_text(text)
        given = command(tmp_path, ".csv", "--questions", tmp_path / name)
        assert name in cli_error(*given)
    for place, wrong in (
        (2, "{corruption}.csv"),
        (4, "{severity}.csv"),
        (2, "none-{corruption}-{severity}"),
        (4, "none"),
    ):
        given = [*command(tmp_path)]
        given[place] = f"{tmp_path}/{wrong}"
        assert wrong in cli_error(*given)
    assert ".html" in cli_error(*command(tmp_path, ".csv", "--output", tmp_path / "page.png"))


# --- several models, conditions, pages ------------------------------------------------------------


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Tables of two models, of which the second is worse on corrupted pictures."""
    root = tmp_path_factory.mktemp("two")
    put_all(
        root,
        lambda model, variant: plain(model, variant, 0.1 if model == "base" else 0.6),
        models=("base", "<b>worse"),
    )
    return root


def test_models_are_compared_on_the_same_questions(two):
    _, content = scores(*command(two))
    clean, corrupted = content["differences"]
    assert (
        (clean["difference"], clean["p"]) == (0, 1)
        and corrupted["difference"] > 0.3
        and corrupted["p"] < 0.001
    )
    table = cli(*command(two, ".csv", "--format", "markdown")).stdout
    assert "Differences from" in table
    rows = [*csv.DictReader(cli(*command(two, ".csv", "--format", "csv")).stdout.splitlines())]
    assert {"base", "<b>worse"} <= {row["row"] for row in rows}


def test_conditions_fail_by_limits_and_by_significant_drops(two):
    def verdicts(*conditions, status):
        flags = [word for each in conditions for word in ("--fail-if", each)]
        result = cli(*command(two, ".csv", "--format", "json", *flags), status=status)
        held = json.loads(result.stdout)["evidence"]["conditions"]
        return {(each["model"], each["condition"]): each["verdict"] for each in held}

    assert verdicts("accuracy < 60", status=1) == {
        ("base", "accuracy < 60"): "passed",
        ("<b>worse", "accuracy < 60"): "failed",
    }
    assert [*verdicts("fog worse than base by 2", status=1).values()] == ["failed"]
    assert [*verdicts("fog worse than base by 70", "clean worse than base", status=0).values()] == 2 * [
        "passed"
    ]
    few = ("--picture", "kind", "--fail-if", "fog worse than base")
    assert "2 pictures" in cli(*command(two, ".csv", *few), status=2).stderr
    assert "accuracy, clean" in cli_error(*command(two, ".csv", "--fail-if", "xyz worse than base"))
    assert "base" in cli_error(*command(two, ".csv", "--fail-if", "accuracy worse than bose"))


def test_intervals_cover_and_tests_hold_with_several_questions_about_a_picture():
    rng, reps, hits, false = np.random.default_rng(3), 200, np.zeros(3), 0
    true = []
    for count in (200_000, *[100] * reps):
        pictures = np.repeat(np.arange(count), rng.integers(1, 6, count))
        own = 1.2 * rng.standard_normal(count)[pictures]
        draw = {
            s: (rng.random(len(own)) < 1 / (1 + np.exp(s - own))).astype(float) for s in (-0.5, 0.4, -0.50001)
        }
        clean, fog, other = draw.values()
        if not true:
            true = [clean.mean(), fog.mean(), 1 - fog.mean() / clean.mean()]
            continue
        answers = {"m": {None: clean, ("fog", 1): fog}, "other": {None: other, ("fog", 1): fog}}
        report = AnswerReport(answers, pictures, None, [("fog", 1)], {}, [])
        mean, own = report.scores["m", "accuracy", ""], report.scores["m", "clean", ""]
        ends = (own[2:4], mean[2:4], mean[-2:])
        hits += [low <= value <= high for value, (low, high) in zip(true, ends, strict=True)]
        false += report.differences["other", "clean"].p < 0.05
    assert (hits >= 0.9 * reps).all() and (hits <= 0.995 * reps).all() and 0 < false < 0.1 * reps
    # As if each question had a picture of its own, intervals are too narrow.
    naive = clustered_interval(clean, np.arange(len(clean)))
    assert naive[1] - naive[0] < own.high - own.low


def test_extreme_answers_have_finite_ends():
    pictures, ones = np.repeat(np.arange(30), 2), np.ones(60)
    for clean, fog in product((ones, 0 * ones), repeat=2):
        report = AnswerReport(
            {"m": {None: clean, ("fog", 1): fog}}, pictures, None, [("fog", 1)], {"m": 0}, []
        )
        own = report.scores["m", "accuracy", ""]
        assert np.isfinite([each for each in own if each is not None]).all()
        assert (own.relative_drop is None) == (not clean.any())
        assert own.drop_low <= own.drop <= own.drop_high


def test_the_page_has_all_numbers_and_no_tags_of_names(two, tmp_path):
    page = tmp_path / "page.html"
    cli(*command(two, ".csv", "--category", "kind", "--output", page))
    assert page_data(page) == json.loads(
        cli(*command(two, ".csv", "--category", "kind", "--format", "json")).stdout
    )
    assert "<b>worse" not in page.read_text()


@NO_BROWSER
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_every_width(browser, two, tmp_path, width):
    page = tmp_path / "page.html"
    cli(*command(two, ".csv", "--category", "kind", "--fail-if", "accuracy < 1", "--output", page))
    browser.open(page)
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
    )
    assert browser.run("document.documentElement.scrollWidth") <= width
    text = browser.run("document.body.innerText")
    assert "SHA-256" not in text and not any(
        word in text for word in ("NaN", "Infinity", "undefined", "None")
    )
    assert not browser.errors()


@NO_BROWSER
def test_names_stay_in_sight_and_paper_has_two_columns(browser, tmp_path):
    models, page = [f"model-{number}-of-a-long-family" for number in range(6)], tmp_path / "page.html"
    put_all(tmp_path, plain, models=models, cells=[*product(("fog", "contrast"), (1, 2, 3, 4, 5))])
    cli(*command(tmp_path, ".csv", "--category", "kind", "--output", page))
    browser.open(page)
    resize(browser, 390)
    # Of each table that is wider than the window: how far its names are from its edge once it is scrolled.
    moved = """[...document.querySelectorAll('.scroll')].filter(
        (each) => each.scrollWidth > each.clientWidth
    ).map((each) => {
      each.scrollLeft = 9999;
      const name = each.querySelector('tbody td').getBoundingClientRect().left;
      return [each.scrollLeft, name - each.getBoundingClientRect().left]; })"""
    found = browser.run(moved)
    assert found and all(scrolled > 0 and abs(left) < 1 for scrolled, left in found)
    drawn = "[...document.querySelectorAll('.panel')].filter((each) => each.checkVisibility()).length"
    assert browser.run("document.querySelectorAll('.panel').length") == 12 and browser.run(drawn) == 2
    print_on(browser, PAPER_A4)
    # Neighbouring columns do not overlap.
    boxes = """[...document.querySelectorAll('.tables > section')].map((each) => {
      const own = each.getBoundingClientRect(), table = each.querySelector('table').getBoundingClientRect();
      return [own.left, own.right, table.right]; })"""
    found = browser.run(boxes)
    assert all(table <= right + 1 for _, right, table in found) and len({left for left, *_ in found}) == 2
    assert browser.run(drawn) == 2 and "Bars go" not in browser.run("document.body.innerText")
    browser.run("document.querySelectorAll('details')[3].open = true")
    assert browser.run(drawn) == 4
    browser.call("Emulation.setEmulatedMedia", media="")
