"""The charts of `score`: what they show, and that nothing in them is cut, hidden or told twice."""

import re
from functools import cache

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import robustgen
from robustgen.display import charts
from robustgen.display.charts import look_of
from robustgen.lab.scores import score_charts
from robustgen.lab.scores.intervals import error_interval
from robustgen.lab.scores.measures import ALEXNET
from robustgen.lab.scores.results import ModelScores
from robustgen.lab.scores.score_charts import plot
from robustgen.lab.scores.scoreboard import Scoreboard
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from robustgen.settings.scoring import ChartForm
from tests.helpers import cli, cli_error, slow_after
from tests.lab.scores.test_scoring import put_p, random_set

LONG = "model-with-a-rather-long-name-and-the-number"


def simulate(names, images=300, corruptions=IMAGENET_C.common):
    """Scores of models, the best first, on shared draws."""
    draws = np.random.default_rng(0).random(images)
    models = []
    for place, name in enumerate(names):
        chances = {"clean": 0.1 + 0.02 * place}
        for corruption in corruptions:
            for level in IMAGENET_C.levels:
                folder = IMAGENET_C.variant(corruption, level).folder
                chances[folder] = min(1, 0.1 * level + 0.02 * place)
        mistakes = {folder: draws < chance for folder, chance in chances.items()}
        models.append(ModelScores(name, "c", images, (), mistakes=mistakes))
    return models


@cache
def report_of(*names, **more):
    return Scoreboard(simulate(names, **more), ALEXNET)


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draw a chart of a report, and return the figure, laid out, and the sentences."""

    def draw(report, **form):
        figures = []

        def keep(path, size, fill):
            with matplotlib.rc_context(charts._STYLE):
                figure = Figure(figsize=size, layout="constrained")
                fill(figure)
                figure.draw_without_rendering()
            figures.append(figure)

        monkeypatch.setattr(score_charts, "draw_chart", keep)
        told = plot(report, tmp_path / "chart.png", ChartForm(**form))
        return figures[0], told

    return draw


def list_names(figure):
    """The names in the legend, whole, without the breaks of lines."""
    return [text.get_text().replace("\n", "") for text in figure.legends[0].get_texts()]


def find_cut(figure):
    """Texts of the figure that are not inside it, or below which a panel lies."""
    legends = [*figure.legends, *filter(None, (axes.get_legend() for axes in figure.axes))]
    panels = [axes.get_window_extent() for axes in figure.axes if axes.get_visible()]
    texts = [text for legend in legends for text in [legend.get_title(), *legend.get_texts()]]
    cut = [text for text in texts if any(text.get_window_extent().overlaps(panel) for panel in panels)]
    for axes in figure.axes:
        if axes.get_visible():
            low, high = sorted(axes.get_ylim())
            ticks = [text for text in axes.get_yticklabels() if low <= text.get_position()[1] <= high]
            texts += [axes.title, axes.xaxis.label, axes.yaxis.label, *ticks]
    texts = [text for text in texts if text.get_text() and text.get_visible()]
    width, height = figure.bbox.width, figure.bbox.height
    for text in texts:
        box = text.get_window_extent()
        if box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1:
            cut.append(text)
    return [text.get_text() for text in cut]


def test_looks_differ():
    looks = [look_of(place) for place in range(49)]
    assert len({(look.color, look.marker) for look in looks}) == 49
    for part in range(3):
        assert len({look[part] for look in looks[:7]}) == 7


MODELS = {
    "odd": ["_hidden", "no $formula$ x_y", "third"],
    "one": ["one"],
    "seven": [f"{LONG}-{i:02d}.augmix_in1k_224" for i in range(7)],
    "twenty": [f"{LONG}-{i:02d}.augmix_in1k_224" for i in range(20)],
    "endless": ["x" * 150, "very-long-" * 14 + "y"],
}


@pytest.mark.parametrize("chart", ["curves", "dots"])
@pytest.mark.parametrize("width", slow_after(1, "as the others, wider", ["column", "page"]))
@pytest.mark.parametrize("names", slow_after(1, "many texts", [*MODELS.values()]), ids=[*MODELS])
def test_nothing_is_cut(drawn, names, chart, width):
    figure, told = drawn(report_of(*names, images=40), chart=chart, chart_width=width)
    assert find_cut(figure) == []
    assert figure.get_figwidth() == {"column": 3.3, "page": 6.9}[width]
    most = 7 if chart == "curves" else len(names)
    if len(names) > 1:
        assert list_names(figure) == names[:most]
    assert bool(told) == (len(names) > most)
    if told:
        assert "7 of 20 models" in told[0] and "mCE" in told[0]
        assert "7 of 20 models" in figure.legends[0].get_title().get_text()


def test_curves_have_intervals_and_equal_ones_stand_apart(drawn):
    models = simulate(["a", "b"])
    report = Scoreboard([*models, ModelScores("equal", "c", 300, (), mistakes=models[1].mistakes)], ALEXNET)
    figure, _ = drawn(report)
    noise = figure.axes[0]
    assert [axes.get_title() for axes in figure.axes] == ["Noise", "Blur", "Weather", "Digital"]
    lines = [container.lines[0] for container in noise.containers]
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in lines}
    assert len(looks) == len({line.get_color() for line in lines}) == 3
    np.testing.assert_array_equal(lines[1].get_ydata(), lines[2].get_ydata())
    assert (np.abs(lines[1].get_xdata() - lines[2].get_xdata()) > 0.05).all()
    assert [label.get_text() for label in noise.get_xticklabels()] == ["clean", "1", "2", "3", "4", "5"]
    (low, high) = noise.containers[0].lines[2][0].get_segments()[0][:, 1]
    assert (low, high) == pytest.approx([100 * end for end in report.clean.interval(0)])
    folders = [f"{name}/3" for name in IMAGENET_C.categories["noise"]]
    (low, high) = noise.containers[1].lines[2][0].get_segments()[3][:, 1]
    assert (low, high) == pytest.approx([100 * end for end in error_interval(report.models[1], folders)])
    assert low < lines[1].get_ydata()[3] < high


def test_no_panel_is_cut_because_the_first_is_lower(drawn):
    report = report_of("model A", "model B")
    for model in report.models:
        model.mistakes["pixelate/5"][:] = True
        model.mistakes["jpeg_compression/5"][:] = True
        model.mistakes["contrast/5"][:] = True
    figure, _ = drawn(report)
    for axes in figure.axes:
        for container in axes.containers:
            highest = max(segment[:, 1].max() for segment in container.lines[2][0].get_segments())
            assert highest <= axes.get_ylim()[1]


def test_dots_are_sorted_by_the_mean_with_a_row_for_each_corruption(drawn):
    names = [f"m{i}" for i in range(20)]
    report = report_of(*names[::-1], images=50)
    figure, told = drawn(report, chart="dots")
    (axes,) = figure.axes
    assert told == [] and list_names(figure) == names[::-1]
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert rows == ["mCE", *(name.replace("_", " ") for name in IMAGENET_C.common)]
    means = [container.lines[0].get_xdata()[0] for container in axes.containers]
    assert means == sorted(means) and len({*means}) > 10
    # In each row, the models stand below each other in the order of the legend.
    heights = np.array([container.lines[0].get_ydata() for container in axes.containers])
    assert (np.diff(heights, axis=0) > 0).all() and np.ptp(heights, axis=0).max() < 1
    low, high = axes.containers[3].lines[2][0].get_segments()[0][:, 0]
    assert (low, high) == pytest.approx([100 * end for end in report.leading.interval(3)])


def test_named_models_are_drawn(drawn):
    report = report_of(*[f"m{i}" for i in range(9)], images=40)
    figure, told = drawn(report, chart_models="m8,m2")
    assert list_names(figure) == ["m2", "m8"] and "2 of 9 models" in told[0]
    figure, told = drawn(report, chart="dots", chart_models=["m3"])
    assert not figure.legends and "1 of 9 models" in told[0]


def test_other_families_have_panels_and_rows(drawn):
    names = robustgen.FAMILIES["c-bar"].names()
    report = report_of("a", "b", images=60, corruptions=names)
    figure, _ = drawn(report)
    titles = [axes.get_title() for axes in figure.axes if axes.get_visible()]
    assert len(titles) > 1 and all(title.startswith("ImageNet-C-bar, ") for title in titles)
    assert len(figure.axes[0].containers[0].lines[0].get_ydata()) == 6
    figure, _ = drawn(report, chart="dots")
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows[0] == "Mean error" and len(rows) == 11 and "sparkles" in rows
    both = report_of("a", "b", images=60, corruptions=(*IMAGENET_C.common, *names))
    assert len([axes for axes in drawn(both)[0].axes if axes.get_visible()]) == 4 + len(titles)
    assert len(drawn(both, chart="dots")[0].axes) == 2


def test_the_panels_of_one_model_repeat_no_colour(drawn):
    names = robustgen.FAMILIES["medmnist-c"].names()
    report = report_of("a", images=60, corruptions=names)
    figure, _ = drawn(report)
    panels = [axes for axes in figure.axes if axes.get_visible()]
    for axes in panels:
        colours = [each.lines[0].get_color() for each in axes.containers]
        assert len(colours) == len({*colours}) > 1
    assert sum(len(axes.containers) - 1 for axes in panels) == len(report.leading.names) > 10


def test_a_column_of_one_model_is_one_panel_with_intervals(drawn):
    figure, _ = drawn(report_of("a", images=60), chart_width="column")
    (axes,) = figure.axes
    assert len(axes.containers) == 4 and all(each.has_yerr for each in axes.containers)
    assert figure.get_figheight() < 4


def test_files_have_the_width_of_a_column_or_a_page(tmp_path):
    root = random_set(tmp_path / "a", 0.3)
    for flags, points in (((), 496.8), (("--chart-width", "column"), 237.6)):
        outputs = ("--output", tmp_path / "x.svg", "--output", tmp_path / "x.pdf")
        cli("score", root, "--partial", "--replicates", 50, *outputs, *flags)
        width = re.search(r'width="([\d.]+)pt"', (tmp_path / "x.svg").read_text())[1]
        box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", (tmp_path / "x.pdf").read_bytes())[1]
        assert float(width) == float(box) == pytest.approx(points)
        # Publishers refuse fonts of type 3.
        assert b"/Type3" not in (tmp_path / "x.pdf").read_bytes()


def test_charts_that_do_not_exist(tmp_path):
    put_p(tmp_path / "p")
    flags = ("--output", tmp_path / "x.png")
    assert "--chart dots" in cli_error("score", tmp_path / "p", *flags, "--chart", "curves")
    roots = [random_set(tmp_path / f"m{i}", 0.3) for i in range(8)]
    command = ("score", *roots, "--partial", "--replicates", 0, *flags)
    assert "'m9'" in cli_error(*command, "--chart-models", "m1,m9")
    everyone = ",".join(root.name for root in roots)
    assert "--chart-models" in cli_error(*command, "--chart-models", everyone)
    assert not (tmp_path / "x.png").exists()


def test_a_chart_without_a_file_for_it_is_refused():
    for flags in ((), ("--output", "a.html")):
        assert "--output FILE.pdf" in cli_error("score", "preds", "--chart", "dots", *flags)
