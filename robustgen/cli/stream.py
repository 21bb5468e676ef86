"""stream: orders of corrupted images for test-time adaptation."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robustgen.cli import ccc
from robustgen.cli.app import Section, command, echo
from robustgen.cli.options import (
    combine,
    resolve_config,
    selection_options,
    source_options,
)
from robustgen.display.text import format_count, format_path
from robustgen.errors import ConfigError
from robustgen.related.streams.choices import (
    ALIASES,
    LAWS,
    MOST_SLOTS,
    MOST_VISITS,
    ORDERS,
    SETTINGS,
    Chain,
    Setting,
    StreamChoices,
    is_correlated,
    is_gradual,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustgen.related.streams.csid import Files
    from robustgen.settings.config import Config

_correlated_options = combine(
    click.option("--law", type=click.Choice(LAWS), help="correlated: law of the paper; default rotta."),
    click.option(
        "--concentration",
        type=float,
        metavar="X",
        help="correlated: parameter of the Dirichlet distribution; default 0.1.",
    ),
    click.option(
        "--slots",
        type=click.IntRange(1, MOST_SLOTS),
        metavar="N",
        help="correlated: pieces of each class; default one per class, with rotta at most 100.",
    ),
)
_chain_options = combine(
    click.option(
        "--class-correlation",
        type=float,
        metavar="X",
        help="markov: probability that a class stays; default 0.95.",
    ),
    click.option(
        "--domain-correlation",
        type=float,
        metavar="X",
        help="markov: probability that a corruption stays; default 0.85.",
    ),
    click.option(
        "--class-imbalance", type=float, metavar="X", help="markov: ratio of first to last class; default 1."
    ),
    click.option(
        "--domain-imbalance",
        type=float,
        metavar="X",
        help="markov: ratio of first to last corruption; default 1.",
    ),
    click.option(
        "--most-samples",
        type=click.IntRange(1),
        metavar="N",
        help="markov: images of the most frequent class with the most frequent corruption.",
    ),
)
_CORRELATED = ("law", "concentration", "slots")
_CHAIN = (
    *("class_correlation", "domain_correlation", "class_imbalance", "domain_imbalance"),
    "most_samples",
)


@command("stream", Section.SCORE)
@click.option(
    "--setting",
    type=click.Choice([*SETTINGS, *ALIASES, "csid", "ccc"]),
    help="Order of the images (docs/use/streams.md); csid is for OpenOOD, ccc is in docs/benchmarks/ccc.md.",
)
@source_options
@selection_options
@click.option(
    "--corruptions", metavar="NAMES", help="Corruptions in order; default the fifteen, as published."
)
@click.option(
    "--severities",
    metavar="LEVELS",
    help="Default 5; gradual settings 1-5, up and down; --measure-accuracy its grid, 0,1,2,3,4,5.",
)
@click.option("--seed", type=int, help="Seed, a non-negative whole number; default 0, for ccc 43.")
@click.option("--shuffle", is_flag=True, help="Draw the order of the corruptions.")
@click.option("--abrupt", is_flag=True, help="gradual: start at the highest severity, as CoTTA's code.")
@click.option(
    "--repeat",
    type=click.IntRange(1, MOST_VISITS),
    default=1,
    metavar="N",
    help="Pass N times through all corruptions; default 1, in PeTTA 20.",
)
@_correlated_options
@_chain_options
@ccc.run_options
@ccc.measuring_options
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["jsonl", "imglist", "webdataset"]),
    default="jsonl",
    help="Default jsonl; imglist for OpenOOD: path and label; webdataset for ccc: the images themselves.",
)
@click.option(
    "--files",
    type=click.Choice(["jpeg", "png", "original"]),
    default="jpeg",
    help="imglist: --format of the set that the paths belong to; default jpeg.",
)
@click.option(
    "--output",
    metavar="FILE",
    help="Default out/stream-SETTING.jsonl, or .txt; for webdataset a folder, default out/ccc.",
)
def stream(setting: str | None, file_format: str, files: "Files", output: str | None, **flags: Any) -> None:
    """Draw a stream for test-time adaptation.

    Each line names an image by its key, its corruption, severity and label. robustgen.torch.StreamDataset
    creates the images on the fly.
    """
    own = {flag: flags.pop(flag) for flag in ("shuffle", "abrupt", "repeat", *_CORRELATED)}
    chain = {flag: flags.pop(flag) for flag in _CHAIN}
    path = resolve_config(flags.pop("dataset"), flags.pop("config_file"))
    if not (path or flags["source"]):
        raise ConfigError("no source: give --dataset, --config or --source")
    measures = flags.pop("measure_accuracy")
    setting = setting or ("csid" if file_format == "imglist" else "ccc" if measures else None)
    if setting is None:
        raise ConfigError("give --setting; the default for --format imglist is csid")
    name: Setting | None = None
    if setting not in ("csid", "ccc"):
        name = ALIASES.get(setting, setting)  # type: ignore[arg-type]
    correlated = name is not None and is_correlated(name)
    _refuse({flag: own[flag] for flag in _CORRELATED}, "the correlated settings", correlated)
    _refuse(chain, "--setting markov", name == "markov")
    runs = {flag: flags[flag] for flag in ccc.FLAGS} | {"measure_accuracy": measures or None}
    _refuse(runs, "--setting ccc", setting == "ccc")
    _refuse({flag: flags[flag] for flag in ccc.MODEL_FLAGS}, "--measure-accuracy", measures)
    if setting == "ccc":
        others: dict[str, Any] = {flag: own[flag] or None for flag in ("shuffle", "abrupt")}
        others |= {
            "corruptions": flags["corruptions"],
            "repeat": own["repeat"] if own["repeat"] > 1 else None,
        }
        _refuse(others, "settings other than ccc", False)
        ccc.carry_out(path, flags, file_format, output, measures=measures)
        return
    for flag in (*ccc.FLAGS, *ccc.MODEL_FLAGS):
        del flags[flag]
    if file_format == "webdataset":
        raise ConfigError("--format webdataset is for --setting ccc")
    from robustgen.settings import config

    chosen = config.load(path, flags)
    given = {flag: value for flag, value in chain.items() if value is not None}
    choices = _choose(name, chosen, flags, own | {"chain": Chain(**given)}) if name else None
    default = f"out/stream-{name or setting}.{'txt' if file_format == 'imglist' else 'jsonl'}"
    _write(chosen, choices, Path(output or default), files if file_format == "imglist" else None)


def _refuse(flags: dict[str, Any], meant: str, fits: bool) -> None:
    """Refuse flags that the setting does not accept."""
    for flag, value in flags.items():
        if value is not None and not fits:
            raise ConfigError(f"--{flag.replace('_', '-')} is for {meant}")


def _choose(setting: Setting, config: "Config", flags: dict[str, Any], own: dict[str, Any]) -> StreamChoices:
    """Return the settings of the stream; defaults are the paper's order and severities."""
    given = {name: value for name, value in own.items() if value is not None}
    corruptions = config.corruptions
    if flags["corruptions"] is None and {*corruptions} == {*ORDERS[setting]}:
        corruptions = ORDERS[setting]
    usual = config.severities if is_gradual(setting) else (5,)
    severities = config.severities if flags["severities"] else usual
    return StreamChoices(setting, corruptions, severities, **given)


def _write(config: "Config", choices: StreamChoices | None, output: Path, files: "Files | None") -> None:
    """Write a stream, or csID images if `choices` is None; as imglist if `files` is given."""
    import numpy as np

    from robustgen.dataset.selection import check_classes, open_chosen_source, select_keys
    from robustgen.files.storage import save
    from robustgen.related.streams.csid import draw_csid, format_imglist_row
    from robustgen.related.streams.drawing import draw_stream
    from robustgen.related.streams.rows import StreamRow, format_row

    source = open_chosen_source(config)
    check_classes(source, config)
    keys = select_keys(source, config)
    labels = [source.label(key) for key in keys]
    rng, count = np.random.default_rng(config.seed), 0
    steps = (
        draw_stream(labels, choices, rng)
        if choices
        else draw_csid(len(keys), config.corruptions, config.severities, rng)
    )

    def lines() -> "Iterator[bytes]":
        nonlocal count
        for step in steps:
            count += 1
            named = config.edition if count == 1 and "edition" in config.model_fields_set else ""
            where = (step.visit, step.domain, step.reset, named)
            row = StreamRow(keys[step.image], step.corruption, step.severity, labels[step.image], *where)
            yield f"{format_imglist_row(row, files) if files else format_row(row)}\n".encode()

    save(output, lines(), f"--output {output}")
    echo(f"{format_count(count, 'image')} in {format_path(output.absolute())}")
