"""Facts about a finished set: description, coverage of the benchmark, constants, failures."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final, NamedTuple

from robustgen import metrics
from robustgen.display.text import format_constant, format_name
from robustgen.errors import SourceError
from robustgen.files.set_files import ERRORS
from robustgen.files.storage import Store
from robustgen.lab.inspection.report.sampling import SetSample
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, CLEAN, Kind, Variant
from robustgen.sets.dataset.manifest import read_errors
from robustgen.sets.dataset.opening import EQUALISED
from robustgen.sets.formats import FORMATS
from robustgen.sets.formats.base import WrittenSet

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


def list_facts(dataset: WrittenSet, sample: SetSample) -> Iterator[tuple[str, str]]:
    """Yield label and value of each fact, in the order of the page."""
    manifest, settings = dataset.manifest, get_part(dataset.manifest, "settings")
    yield "Size", _sizes(sample)
    if not manifest:
        yield "Images" if dataset.kind == "c" else "Sequences", f"{sample.total:,}"
        return
    if clahe := get_part(manifest, EQUALISED):
        yield (
            "Preprocessing",
            f"CLAHE, clip limit {clahe.get('clip_limit')}, {clahe.get('tiles')} tiles a side",
        )
    if scale := settings.get("scale"):
        which = "the size nearest to each image's" if scale == "nearest" else f"{scale} pixels"
        yield "Edition", f"{manifest.get('edition')}, constants for {which}"
    yield "Images", _images(manifest)
    yield "Source", str(get_part(manifest, "source").get("location", "not recorded"))
    yield "Files", _files(get_part(manifest, "counts"))
    yield "Format", _format(get_part(settings, "output"))
    if "seed" in settings:
        yield "Seed", str(settings["seed"])
    if own := sorted(get_part(manifest, "config", "parameters")):
        yield "Own constants", ", ".join(map(format_name, own))
    yield "Made by", f"robustgen {get_part(settings, 'versions').get('robustgen', '')}"


def _sizes(sample: SetSample) -> str:
    """Return width x height in pixels of the sampled images, with the number of frames for sequences."""
    shapes = sorted({shape for view in sample.views.values() for shape in view.shapes})
    named = dict.fromkeys(f"{width} x {height}" for *_, height, width, _ in shapes)
    return " or ".join([*named][:2]) + ", and others" * (len(named) > 2) if named else "not readable"


def _images(manifest: Mapping[str, Any]) -> str:
    count, available = _number(manifest.get("images")), _number(get_part(manifest, "source").get("images"))
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


def describe_coverage(dataset: WrittenSet) -> Iterator[str]:
    """Yield sentences on which part of the benchmark the set contains."""
    there = {variant.folder for variant in dataset}
    for group, names in _GROUPS[dataset.kind].items():
        levels = [f"/{level}" for level in range(1, metrics.SEVERITIES + 1)] if dataset.kind == "c" else [""]
        wanted = {name: {f"{name}{level}" for level in levels} for name in names}
        whole = [name for name, folders in wanted.items() if folders <= there]
        parts = [name for name, folders in wanted.items() if folders & there and name not in whole]
        yield (
            f"{len(whole)} of {len(names)} {group}"
            + "; in part " * bool(parts)
            + ", ".join(map(format_name, parts))
        )


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
        {key: each.get(key, "") for key in ("key", "variant", "reason")} for each in entries[:_FAILURES_SHOWN]
    ]
    # Many reasons begin with the name, which the page shows separately.
    shown = [each | {"reason": each["reason"].removeprefix(f"{each['key']!r}: ")} for each in shown]
    return shown, len(entries)


def tabulate_constants(parameters: Mapping[str, Any], dataset: WrittenSet) -> Iterator[ConstantsTable]:
    """Yield one table; or one for each scale, if each image uses the nearest."""
    variants = [variant for variant in dataset if variant.folder in parameters and variant.name != CLEAN]
    first: Any = next((parameters[variant.folder] for variant in variants), {})
    scales = [*first] if isinstance(first, dict) and all(map(str.isdecimal, first)) else [""]
    for scale in scales if variants else []:
        values = {
            variant: get_part(parameters, variant.folder, *filter(None, [scale])) for variant in variants
        }
        rows = []
        for same in group_variants(variants, "c"):
            shown = [", ".join(map(format_constant, values[variant].values())) for variant in same]
            rows.append((same[0].name, ", ".join(values[same[0]]), shown))
        yield ConstantsTable(scale, rows)


def group_variants(variants: list[Variant], kind: Kind) -> list[list[Variant]]:
    """Return the severities of each corruption, or each perturbation by itself."""
    return [list(same) for _, same in groupby(variants, lambda variant: BENCHMARKS[kind].array_name(variant))]
