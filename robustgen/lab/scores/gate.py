"""Conditions that scores must not fulfil, such as ``mCE > 70``."""

from collections.abc import Sequence

from robustgen.errors import ConfigError, UnknownNameError
from robustgen.lab.scores.layouts import name_mean
from robustgen.lab.scores.reporting import Report
from robustgen.settings.scoring import Threshold


def find_failures(report: Report, conditions: Sequence[Threshold]) -> list[str]:
    """Return a line for each of the `conditions` that holds for a model.

    Raises
    ------
    ConfigError
        No score has the name.
    """
    found = []
    for index, model in enumerate(report.models if conditions else ()):
        short, long = _list_scores(report, index)
        for each in conditions:
            value = (short | long).get(each.name)
            if value is None:
                error = UnknownNameError("score", each.name, long if "." in each.name else short)
                raise ConfigError(f"--fail-if: {model.model}: {error}")
            if each.holds(value):
                condition = f"{each.name} {each.sign} {each.limit:g}"
                found.append(f"failed: {model.model}: {each.name} is {value:.2f} ({condition})")
    return found


def _list_scores(report: Report, index: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return a model's scores in the unit of the tables, by short names, and by ``measure.name``.

    The short name of an operation is for its value of the first measure.
    """
    model, short, long = report.models[index], dict[str, float](), dict[str, float]()
    if model.clean_error is not None:
        short["clean_error"] = 100 * model.clean_error
    for measure in report.measures:
        factor, mean = measure.formula.factor, report.mean(measure, model)
        values = {name: factor * value for name, value in measure.values[index].items()}
        if measure is report.measures[0]:
            short |= values
        if mean is not None:
            values["mean"] = short[name_mean(report, measure)] = factor * mean
        long |= {f"{measure.key}.{name}": value for name, value in values.items()}
    for family in report.families:
        long[f"{family.family}.mean_error"] = 100 * family.mean(index)
        own = ((each.key, each.values[index]) for each in family.scores)
        long |= {f"{family.family}.{key}": 100 * value for key, value in own if value is not None}
    return short, long
