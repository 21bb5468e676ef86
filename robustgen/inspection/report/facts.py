"""Facts about a finished set: description, coverage of the benchmark, constants, failures."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final, NamedTuple

from robustgen import metrics
from robustgen.benchmarks.kinds import BENCHMARKS, CLEAN, Kind, Variant
from robustgen.dataset.manifest import read_errors
from robustgen.dataset.names import ERRORS
from robustgen.dataset.opening import EQUALISED
from robustgen.errors import SourceError
from robustgen.files.storage import Store
from robustgen.formats import FORMATS, Dataset
from robustgen.inspection.report.sampling import SetSample

_FAILURES_SHOWN: Final = 50


class ConstantsTable(NamedTuple):
    """Constants of one scale: a row per corruption or perturbation, a cell per level."""

    scale: str
    rows: list[tuple[str, str, list[str]]]


def get_part(content: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return the mapping under `keys`; an empty one if the value is not a mapping."""
    for key in keys:
        inner = content.get(key)
        content = inner if isinstance(inner, dict) else {}
    return content


def list_facts(dataset: Dataset, sample: SetSample) -> Iterator[tuple[str, str]]:
    """Yield label and value of each fact, in the order of the page."""
    about, settings = dataset.about, get_part(dataset.about, "settings")
    yield "Size", _sizes(sample)
    if not about:
        yield "Images" if dataset.kind == "c" else "Sequences", f"{sample.total:,}"
        return
    if clahe := get_part(about, EQUALISED):
        yield (
            "Preprocessing",
            f"CLAHE, clip limit {clahe.get('clip_limit')}, {clahe.get('tiles')} tiles a side",
        )
    if "scale" in settings:
        yield "Edition", f"{about.get('edition')}, constants of {_scale(settings['scale'])}"
    yield "Images", _images(about)
    yield "Source", str(get_part(about, "source").get("location", "not recorded"))
    yield "Files", _files(get_part(about, "counts"))
    yield "Format", _format(get_part(settings, "output"))
    if "seed" in settings:
        yield "Seed", str(settings["seed"])
    if own := sorted(get_part(about, "config", "parameters")):
        yield "Own constants", ", ".join(own)
    yield "Made by", f"robustgen {get_part(settings, 'versions').get('robustgen', '')}"


def _sizes(sample: SetSample) -> str:
    """Return width x height in pixels of the sampled images, with the number of frames for sequences."""
    shapes = sorted({shape for view in sample.views.values() for shape in view.shapes})
    named = dict.fromkeys(f"{width} x {height}" for *_, height, width, _ in shapes)
    return " or ".join([*named][:2]) + ", and others" * (len(named) > 2) if named else "not readable"


def _scale(scale: object) -> str:
    return "the scale nearest to each image" if scale == "nearest" else f"scale {scale}"


def _images(about: Mapping[str, Any]) -> str:
    count, available = _number(about.get("images")), _number(get_part(about, "source").get("images"))
    return count if count == available else f"{count} of {available} in the source"


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "not recorded"


def _files(counts: Mapping[str, Any]) -> str:
    size = counts.get("bytes")
    return _number(counts.get("files")) + (f", {size / 1e6:,.1f} MB" if isinstance(size, int) else "")


def _format(output: Mapping[str, Any]) -> str:
    kind, encoding = str(output.get("format", "not recorded")), get_part(output, "video")
    if kind == "mp4":
        return f"MP4, H.264 {encoding.get('pixel_format')}, preset {encoding.get('preset')}"
    if kind == "jpeg":
        return f"JPEG, quality {output.get('quality')}"
    title, sample = FORMATS[kind].title if kind in FORMATS else kind, get_part(output, "sample")
    return f"{title} of {_format(sample)}" if sample else title


def describe_coverage(dataset: Dataset) -> Iterator[str]:
    """Yield sentences on which part of the benchmark the set contains."""
    there = {arm.folder for arm in dataset.arms}
    for group, names in _GROUPS[dataset.kind].items():
        levels = [f"/{level}" for level in range(1, metrics.SEVERITIES + 1)] if dataset.kind == "c" else [""]
        wanted = {name: {f"{name}{level}" for level in levels} for name in names}
        whole = [name for name, folders in wanted.items() if folders <= there]
        parts = [name for name, folders in wanted.items() if folders & there and name not in whole]
        yield f"{len(whole)} of {len(names)} {group}" + "; in part " * bool(parts) + ", ".join(parts)


_GROUPS: Final[Mapping[Kind, Mapping[str, tuple[str, ...]]]] = {
    "c": {
        "common corruptions at all five severities": metrics.COMMON_CORRUPTIONS,
        "extra corruptions": metrics.EXTRA_CORRUPTIONS,
    },
    "p": {
        "common perturbations": metrics.COMMON_PERTURBATIONS,
        "extra perturbations": metrics.EXTRA_PERTURBATIONS,
    },
}


def read_failures(store: Store) -> tuple[list[dict[str, str]], int]:
    """Return the first entries of `errors.jsonl`, and their total number."""
    entries, damage = read_errors(store)
    if damage:
        raise SourceError(f"{store.location}/{ERRORS}: {damage[0]}")
    shown = [
        {key: each.get(key, "") for key in ("key", "arm", "reason")} for each in entries[:_FAILURES_SHOWN]
    ]
    # Many reasons begin with the name, which the page shows separately.
    shown = [each | {"reason": each["reason"].removeprefix(f"{each['key']!r}: ")} for each in shown]
    return shown, len(entries)


def tabulate_constants(parameters: Mapping[str, Any], dataset: Dataset) -> Iterator[ConstantsTable]:
    """Yield one table; or one for each scale, if each image uses the nearest."""
    arms = [arm for arm in dataset.arms if arm.folder in parameters and arm.name != CLEAN]
    first: Any = next((parameters[arm.folder] for arm in arms), {})
    scales = [*first] if isinstance(first, dict) and all(map(str.isdecimal, first)) else [""]
    for scale in scales if arms else []:
        values = {arm: get_part(parameters, arm.folder, *filter(None, [scale])) for arm in arms}
        rows = []
        for same in group_arms(arms, "c"):
            shown = [", ".join(map(_short, values[arm].values())) for arm in same]
            rows.append((same[0].name, ", ".join(values[same[0]]), shown))
        yield ConstantsTable(scale, rows)


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def group_arms(arms: list[Variant], kind: Kind) -> list[list[Variant]]:
    """Return the severities of each corruption, or each perturbation by itself."""
    return [list(same) for _, same in groupby(arms, lambda arm: BENCHMARKS[kind].array_name(arm))]
