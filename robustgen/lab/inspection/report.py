"""Page of `robustgen report` about a finished C or P set: facts, pictures, curves, failures."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from robustgen import metrics
from robustgen.display.html import check_page_path, render_page
from robustgen.display.text import format_constant, format_count, format_name
from robustgen.errors import SourceError
from robustgen.files.set_files import ERRORS, MANIFEST
from robustgen.files.storage import Store, open_store, save
from robustgen.lab.inspection.report_pictures import (
    Category,
    Picture,
    SetSample,
    draw_categories,
    group_variants,
    list_faces,
    name_variants,
    sample_set,
)
from robustgen.pixels.benchmarks.corruptions import ALL_CORRUPTIONS, FAMILIES
from robustgen.pixels.benchmarks.kinds import BENCHMARKS, CLEAN, TITLES, Kind
from robustgen.pixels.benchmarks.registry import BENCHMARK_FAMILY, Family
from robustgen.pixels.imaging.cleaning import CLEANINGS
from robustgen.sets.dataset.manifest import read_errors
from robustgen.sets.dataset.opening import CLEANED, open_set
from robustgen.sets.formats import FORMATS
from robustgen.sets.formats.base import WrittenSet
from robustgen.settings.inspecting import Reporting

# --- facts ----------------------------------------------------------------------------------------

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
        yield f"{dataset.benchmark.noun}s".capitalize(), f"{sample.total:,}"
        return
    for name, parameters in get_part(manifest, CLEANED).items():
        told = [f"{key.replace('_', ' ')} {value}" for key, value in parameters.items()]
        yield "Preprocessing", ", ".join([CLEANINGS[name].title, *told])
    if scale := settings.get("scale"):
        nearest = f"the size nearest to each {dataset.benchmark.medium.name}'s"
        which = nearest if scale == "nearest" else f"{scale} pixels"
        yield "Edition", f"{manifest.get('edition')}, constants for {which}"
    yield f"{dataset.benchmark.medium.name}s".capitalize(), _images(manifest)
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
    form, encoding = str(output.get("format", "not recorded")), get_part(output, "video")
    if form == "mp4":
        return f"MP4, H.264 {encoding.get('pixel_format')}, preset {encoding.get('preset')}"
    if form == "jpeg":
        return f"JPEG, quality {output.get('quality')}"
    title, sample = FORMATS[form].title if form in FORMATS else form, get_part(output, "sample")
    return f"{title} of {_format(sample)}" if sample else title


def describe_coverage(dataset: WrittenSet) -> Iterator[str]:
    """Yield sentences on which part of each of its families, or of ImageNet-P, the set contains."""
    there, name = {(variant.name, variant.level) for variant in dataset}, name_variants(dataset)
    for group, names, levels in _list_groups(dataset):
        wanted = {each: {(each, level) for level in levels} for each in names}
        whole = [each for each, variants in wanted.items() if variants <= there]
        parts = [each for each, variants in wanted.items() if variants & there and each not in whole]
        if whole or parts:
            known = ", ".join(format_name(name(each)) for each in parts)
            yield f"{len(whole)} of {len(names)} {group}" + "; in part " * bool(parts) + known


def find_families(dataset: WrittenSet) -> list[Family]:
    """Return the families of the corruptions of a C set."""
    known = {variant.name for variant in dataset} & {*ALL_CORRUPTIONS} if dataset.kind == "c" else ()
    found = {ALL_CORRUPTIONS[name].family for name in known}
    return [FAMILIES[name] for name in FAMILIES if name in found]


def _list_groups(dataset: WrittenSet) -> Iterator[tuple[str, tuple[str, ...], Sequence[float]]]:
    """Yield for each group of operations its title, their names and their levels."""
    if dataset.kind == "p":
        yield "common perturbations", metrics.COMMON_PERTURBATIONS, [1]
        yield "extra perturbations", metrics.EXTRA_PERTURBATIONS, [1]
    edition, own = dataset.manifest.get("edition"), {variant.name for variant in dataset}
    for family in find_families(dataset):
        levels = [level for level in family.severities if level]
        at_all = " at all five severities" * (len(levels) == metrics.SEVERITIES)
        if family is BENCHMARK_FAMILY:
            yield f"common corruptions{at_all}", metrics.COMMON_CORRUPTIONS, levels
            yield "extra corruptions", metrics.EXTRA_CORRUPTIONS, levels
            continue
        scales = dict.fromkeys(scale for each in family.corruptions.values() for scale in each.table)
        sets = [family.names(scale) for scale in ([edition] if edition in scales else scales)]
        # Other image sizes and data sets have other corruptions.
        names = max(sets, key=lambda each: (len(own & {*each}), -len(each)))
        yield f"corruptions of {family.title}{at_all}", names, levels


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
    name = name_variants(dataset)
    scales = [*first] if isinstance(first, dict) and all(map(str.isdecimal, first)) else [""]
    for scale in scales if variants else []:
        values = {
            variant: get_part(parameters, variant.folder, *filter(None, [scale])) for variant in variants
        }
        rows = []
        for same in group_variants(variants, "c"):
            shown = [", ".join(map(format_constant, values[variant].values())) for variant in same]
            rows.append((name(same[0].name), ", ".join(values[same[0]]), shown))
        yield ConstantsTable(scale, rows)


# --- page -----------------------------------------------------------------------------------------

BIBTEX: Final = """\
@inproceedings{hendrycks2019robustness,
  title     = {Benchmarking Neural Network Robustness to Common Corruptions and Perturbations},
  author    = {Dan Hendrycks and Thomas Dietterich},
  booktitle = {International Conference on Learning Representations},
  year      = {2019}
}"""
# The name in `dataset.json` of a set without a named config.
_UNNAMED: Final = (None, "", "custom", "folder")


@dataclass(frozen=True)
class SetSummary:
    """A finished set, as far as it can be described.

    Attributes
    ----------
    name : str
        Name of its folder.
    title : str
        Title of the set.
    kind : {"c", "p"}
    source_noun : str
        Name of an item of the source: image or clip.
    known : bool
        Whether there is a `dataset.json`.
    complete : bool
        Whether, according to it, every image has all its files.
    facts : list of (str, str)
        Label and value, in the order of the page.
    coverage : list of str
        Sentences on which part of the benchmark the set contains.
    sample : Sample
    has_clean : bool
        Whether the set contains the clean images.
    faces : list of Picture
        The images shown: clean, or the first available picture of each.
    categories : list of Category
    failures : list of dict
        The first entries of `errors.jsonl`: key, variant (or empty) and reason.
    failed : int
        Their total number.
    versions : dict
        Library to version.
    constants : list of Table
    digest, verify, licence : str
        The dataset digest, the command that checks it, and terms; empty if unknown.
    citations : list of str
        The publications of its families.
    """

    name: str
    title: str
    kind: Kind
    source_noun: str
    known: bool
    complete: bool
    facts: list[tuple[str, str]]
    coverage: list[str]
    sample: SetSample
    has_clean: bool
    faces: list[Picture]
    categories: list[Category]
    failures: list[dict[str, str]]
    failed: int
    versions: dict[str, str]
    constants: list[ConstantsTable]
    digest: str
    verify: str
    licence: str
    citations: list[str]

    @property
    def lead(self) -> str:
        """Return a one-line description of the set."""
        names = {row.name for category in self.categories for row in category.rows if not row.is_strip}
        images = format_count(self.sample.total, self.source_noun)
        if self.kind == "p":
            return f"{format_count(len(names), 'sequence')} of each of {images}"
        rows = [row.strips[0] for each in self.categories for row in each.rows if not row.is_strip]
        counts = [sum(bool(picture.caption) for picture in strip) for strip in rows] or [0]
        span = " to ".join(map(str, sorted({min(counts), max(counts)})))
        severities = f"{span} severit{'y' if max(counts) == 1 else 'ies'}"
        return f"{format_count(len(names), 'corruption')} at {severities} of {images}"

    @property
    def columns(self) -> int:
        """Return the largest number of pictures in a row."""
        rows = (row for category in self.categories for row in category.rows)
        return max((len(strip) for row in rows for strip in row.strips[:1]), default=1)

    @property
    def floor(self) -> float:
        """Return where the axis of the curves begins: at 0, or higher if all curves stay high."""
        values = [value for category in self.categories for curve in category.curves for value in curve.low]
        return max(0.0, math.floor(5 * min(values, default=0)) / 5) if self.kind == "p" else 0.0

    @property
    def has_curves(self) -> bool:
        """Return whether any similarity was measured."""
        return any(category.curves for category in self.categories)

    @property
    def uncompared(self) -> list[str]:
        """Return the corruptions or perturbations without a curve."""
        rows = [row.name for category in self.categories for row in category.rows if not row.is_strip]
        curves = {curve.name for category in self.categories for curve in category.curves}
        return [name for name in rows if name not in curves]


def write_report(options: Reporting) -> Path:
    """Write the page about a set, and return its path.

    The default path is ``<name>-report.html`` next to the folder; for a URL, in the current folder.

    Raises
    ------
    SourceError, OutputError
        There is no finished set, or the page cannot be written.
    """
    store = open_store(options.directory)
    parent, _, name = store.location.rpartition("/")
    default = Path(parent if store.is_local else ".", f"{name or 'dataset'}-report.html")
    path = options.output or default
    check_page_path(path, *[store.location] * store.is_local)
    save(path, render_page("report.html", summary=summarise_set(options.directory, options.images)))
    return path


def summarise_set(root: str | Path, images: int = 3) -> SetSummary:
    """Describe the set at `root`, with `images` of its images.

    Raises
    ------
    SourceError
        There is no finished C or P set, or its manifest is damaged.
    """
    dataset = open_set(root)
    manifest = dataset.manifest
    if manifest and manifest.get("title") not in TITLES:
        raise SourceError(f"{dataset.root}/{MANIFEST}: report takes C and P, not {manifest.get('title')!r}")
    name = dataset.root.rpartition("/")[2] or "dataset"
    sample = sample_set(dataset, images)
    failures, failed = read_failures(dataset.store)
    families = find_families(dataset) or [BENCHMARK_FAMILY]
    return SetSummary(
        name=name,
        title=_name_set(dataset.kind, families, name, manifest.get("dataset")),
        kind=dataset.kind,
        source_noun=dataset.benchmark.medium.name,
        known=bool(manifest),
        complete=bool(manifest.get("complete")),
        facts=[*list_facts(dataset, sample)],
        coverage=[*describe_coverage(dataset)],
        sample=sample,
        has_clean=dataset.variants[0].name == CLEAN,
        faces=list_faces(sample),
        categories=[*draw_categories(dataset, sample)],
        failures=failures,
        failed=failed,
        versions={key: str(value) for key, value in get_part(manifest, "settings", "versions").items()},
        constants=[*tabulate_constants(get_part(manifest, "settings", "parameters"), dataset)],
        digest=str(manifest.get("digest", "")),
        verify=f"robustgen verify {shlex.quote(name)}",
        licence=str(manifest.get("licence", "")),
        citations=[BIBTEX if each is BENCHMARK_FAMILY else each.citation for each in families],
    )


def _name_set(kind: Kind, families: list[Family], folder: str, dataset: str | None) -> str:
    """Return ``"ImageNet-C of cifar-10"``; a folder that is named after the benchmark by its name alone."""
    title = families[0].title if len(families) == 1 and kind == "c" else BENCHMARKS[kind].title
    if dataset in _UNNAMED:
        return folder if title.lower() in folder.lower() else f"{title} of {folder.removesuffix(f'-{kind}')}"
    return f"{title} of {dataset}"
