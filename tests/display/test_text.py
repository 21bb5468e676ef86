"""Tables: one value as text of any width, as Markdown and as LaTeX; and CSV."""

import json
import re

from robustgen.display.text import Cell, Table, as_csv, format_as, format_signed, format_tables

HEADS = ("Model", "Clean", "Mean", "a heading of many words")
ROWS = (
    ("a_model|1", Cell(0.2, (0.18, 0.22), sense=-1), Cell(0.5), Cell(None)),
    (
        "runs/2024/of-another-model",
        Cell(0.3, (0.17, 0.43), sense=-1),
        Cell(0.45),
        Cell(1.5, form="+.2f", factor=1),
    ),
)
TABLE = Table("Errors in %", HEADS, ROWS, ("", "", "Rest", "Rest"))


def test_text_has_names_to_the_left_and_numbers_below_each_other():
    assert format_tables([TABLE]).splitlines() == [
        "Errors in %, ± half a 95 % interval",
        "                                        ------------ Rest -----------",
        "Model                            Clean  Mean  a heading of many words",
        "a_model|1                   20.0 ± 2.0  50.0                        -",
        "runs/2024/of-another-model  30.0 ±13.0  45.0                    +1.50",
    ]


def test_any_width_has_all_numbers():
    for width in range(27, 80):
        text = format_tables([TABLE], width=width)
        assert max(map(len, text.splitlines())) <= width
        numbers = ["20.0", "50.0", "30.0", "45.0", "+1.50"]
        assert re.findall(r"\d\d\.\d|\+1\.50", re.sub("±.*?0 ", "", text)) == sorted(numbers, key=text.index)


def test_what_does_not_fit_goes_in_an_order():
    found = {width: TABLE.fit(width) for width in range(27, 80)}
    kept = {
        width: (
            len(parts),
            "±" in format_tables(parts),
            str(parts[0].rows[1][0]).startswith("runs"),
            "a heading of many words" in parts[-1].heads,
        )
        for width, parts in found.items()
    }
    stages = [kept[width] for width in sorted(kept, reverse=True)]
    assert list(dict.fromkeys(stages)) == [
        (1, True, True, True),
        (1, True, True, False),
        (1, True, False, False),
        (1, False, False, False),
        (2, False, False, False),
        # The group "Rest" is not divided between tables that have other columns.
        (3, False, False, False),
    ]
    # The end of a path tells models apart.
    assert found[27][0].rows[1][0] == "…other-model"


def test_markdown_and_latex_of_the_same_value():
    lines = format_tables([TABLE], "markdown").splitlines()
    assert lines[0] == "**Errors in %, ± half a 95 % interval**"
    assert lines[3] == "| --- | ---: | ---: | ---: |"
    assert lines[4] == r"| a_model\|1 | 20.0 ± 2.0 | 50.0 |  |"
    lines = format_tables([TABLE], "latex").splitlines()
    assert lines[2] == r"\begin{tabular}{@{}lrrr@{}}" and lines[4] == r" &  & \multicolumn{2}{c}{Rest} \\"
    assert lines[5] == r"\cmidrule(lr){3-4}"
    # Only the column with a sense has a best value.
    assert lines[8] == r"a\_model\textbar{}1 & \textbf{20.0 $\pm$ 2.0} & 50.0 & -- \\"
    assert lines[9] == r"runs/2024/of-another-model & 30.0 $\pm$ 13.0 & 45.0 & +1.50 \\"


def test_values_that_are_equal_in_print_are_bold_together():
    rows = [(str(n), Cell(value, sense=1)) for n, value in enumerate((0.10001, 0.1, 0.05, None))]
    text = format_tables([Table("", ("", "AP"), rows)], "latex")
    assert text.count(r"\textbf{10.0}") == 2 and r"\textbf{5.0}" not in text
    assert "textbf" not in format_tables([Table("", ("", "AP"), rows[:1])], "latex")


def test_csv_has_the_columns_of_all_records():
    assert as_csv([{"a": 1, "b": None}, {"a": 2, "c": "x,y"}]) == 'a,b,c\n1,,\n2,,"x,y"'


def test_a_report_computes_only_the_layout_that_is_wanted():
    def fail():
        raise AssertionError

    assert format_as("json", fail, fail, lambda: {"x": float("nan")}) == json.dumps({"x": None}, indent=1)
    assert format_as("csv", fail, lambda: [{"x": 1}], fail) == "x\n1"
    assert format_as("table", lambda: [TABLE], fail, fail, 20).startswith("Errors in %\n")


def test_zero_has_no_minus():
    assert [format_signed(value, 2) for value in (-0.001, 0.0, 0.001, -0.5)] == ["+0.00"] * 3 + ["-0.50"]


def test_names_are_no_formulas_of_spreadsheets_and_no_marks_of_markdown():
    assert as_csv([{"model": "=1+1", "mean": -0.5}]) == "model,mean\n'=1+1,-0.5"
    names = ["@sum", "_b_c", "a|b", "<b>x", "a\nb", "[x](y)", "`x`", "a$b$"]
    table = Table("Errors of _b_c", ("Model",), [(name,) for name in names])
    title, _, _, _, *rows = format_tables([table], "markdown").splitlines()
    assert title == r"**Errors of \_b_c**"
    assert rows == [
        *("| @sum |", r"| \_b_c |", r"| a\|b |", r"| \<b>x |", r"| a\\nb |", r"| \[x\](y) |"),
        *(r"| \`x\` |", r"| a\$b\$ |"),
    ]
    assert len(format_tables([table]).splitlines()) == 2 + len(names)
