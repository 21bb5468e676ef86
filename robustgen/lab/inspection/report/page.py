"""Page of `robustgen report` about a finished C or P set: facts, pictures, curves, failures."""

import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from robustgen.display.html import check_page_path, render_page
from robustgen.display.text import format_count
from robustgen.errors import SourceError
from robustgen.files.set_files import MANIFEST
from robustgen.files.storage import open_store, save
from robustgen.lab.inspection.report.facts import (
    ConstantsTable,
    describe_coverage,
    get_part,
    list_facts,
    read_failures,
    tabulate_constants,
)
from robustgen.lab.inspection.report.pictures import Category, Picture, draw_categories, list_faces
from robustgen.lab.inspection.report.sampling import SetSample, sample_set
from robustgen.pixels.benchmarks.kinds import CLEAN, TITLES, Kind
from robustgen.sets.dataset.opening import open_set

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
    digest, verify, licence, bibtex : str
        The dataset digest, the command that checks it, and terms; empty if unknown.
    """

    name: str
    title: str
    kind: Kind
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
    bibtex: str

    @property
    def lead(self) -> str:
        """Return a one-line description of the set."""
        names = {row.name for category in self.categories for row in category.rows}
        images = format_count(self.sample.total, "image")
        if self.kind == "p":
            return f"{format_count(len(names), 'sequence')} of each of {images}"
        levels = len({head for category in self.categories for head in category.heads})
        severities = f"{levels} severit{'y' if levels == 1 else 'ies'}"
        return f"{format_count(len(names), 'corruption')} at {severities} of {images}"

    @property
    def columns(self) -> int:
        """Return the largest number of pictures in a row."""
        return max((len(category.heads) for category in self.categories), default=1)

    @property
    def floor(self) -> float:
        """Return where the axis of the curves begins: at 0, or higher if all curves stay high."""
        values = [value for category in self.categories for curve in category.curves for value in curve.low]
        return max(0.0, math.floor(5 * min(values, default=0)) / 5) if self.kind == "p" else 0.0

    @property
    def elastic_peak(self) -> float:
        """Return the severity at which elastic transform was found to be strongest; 0 without it."""
        curves = (curve for category in self.categories for curve in category.curves)
        found = (curve for curve in curves if curve.name == "elastic_transform")
        return next((curve.x[curve.mean.index(min(curve.mean))] for curve in found), 0)

    @property
    def has_curves(self) -> bool:
        """Return whether any similarity was measured."""
        return any(category.curves for category in self.categories)


def write_report(root: str | Path, output: Path | None = None, images: int = 3) -> tuple[Path, int]:
    """Write the page about the set at `root`, and return its path and size.

    Parameters
    ----------
    root : path or URL
    output : Path, optional
        Default ``<name>-report.html`` next to the folder; for a URL, in the current folder.
    images : int
        Number of images to show.

    Returns
    -------
    Path
        The page.
    int
        Its size in bytes.

    Raises
    ------
    SourceError, OutputError
        There is no finished set, or the page cannot be written.
    """
    store = open_store(root)
    parent, _, name = store.location.rpartition("/")
    path = output or Path(parent if store.is_local else ".", f"{name or 'dataset'}-report.html")
    check_page_path(path, *[store.location] * store.is_local)
    page = render_page("report.html", summary=summarise_set(root, images))
    save(path, page)
    return path, len(page)


def summarise_set(root: str | Path, images: int = 3) -> SetSummary:
    """Describe the set at `root`, with `images` of its images.

    Raises
    ------
    SourceError
        There is no finished C or P set, or its manifest is damaged.
    """
    dataset = open_set(root)
    manifest = dataset.manifest
    if manifest and manifest.get("kind") not in TITLES:
        raise SourceError(
            f"{dataset.root}/{MANIFEST}: report supports ImageNet-C and -P, not {manifest.get('kind')!r}"
        )
    name = dataset.root.rpartition("/")[2] or "dataset"
    sample = sample_set(dataset, images)
    failures, failed = read_failures(dataset.store)
    return SetSummary(
        name=name,
        title=_name_set(dataset.benchmark.title, name, manifest.get("dataset")),
        kind=dataset.kind,
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
        bibtex=BIBTEX,
    )


def _name_set(kind: str, folder: str, dataset: str | None) -> str:
    """Return ``"ImageNet-C of cifar-10"``; a folder that is named after the benchmark by its name alone."""
    if dataset in _UNNAMED:
        letter = kind[-2:].lower()
        return folder if kind.lower() in folder.lower() else f"{kind} of {folder.removesuffix(letter)}"
    return f"{kind} of {dataset}"
