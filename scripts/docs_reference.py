"""Writes docs/reference/config.md from the schema of the configs and the flags of the command line.

Usage: .venv/bin/python scripts/docs_reference.py [--check]
"""

import dataclasses
import inspect
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from robustgen.benchmarks.corruptions import CORRUPTIONS
from robustgen.benchmarks.editions import EDITIONS
from robustgen.cli import main
from robustgen.formats import FORMATS
from robustgen.imaging import video
from robustgen.settings.config import GROUPS, Config, Video, dataset_file, dataset_names
from robustgen.sources.opening import KINDS

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "config.md"
# Limits that validators check, and that the schema lacks.
VALUES: Mapping[str, Iterable[str]] = {
    "edition": EDITIONS,
    "source_kind": KINDS,
    "corruptions": [*GROUPS, "or names"],
    "perturbations": [*GROUPS, "or names"],
    "severities": ["3", "1-5", "1,3,5", "all"],
    "difficulty": ["1", "1-3", "1,3", "all"],
    "preset": video.PRESETS,
    "pixel_format": video.CODECS,
    "format": FORMATS,
    "jobs": ["whole number", "all"],
    "depth_scale": ["positive number", "midas"],
    "parameters": ["see below"],
    "video": ["see below"],
}
DEFAULTS = {
    "jobs": "all",
    "difficulty": "1",
    "video": "as published",
    "parameters": "as published",
    "format": "as published",
    "scale": "the edition's",
    "frost_dir": "the installed one",
    "tiles": "the set itself",
    "image_root": "that of the table",
    "crf": "as published",
}
TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true, false"}

# The page names the file to change.
SOURCE = Path(inspect.getfile(Config)).relative_to(PAGE.parents[2]).as_posix()

INTRO = f"""\
# Configs

<!-- Written by scripts/docs_reference.py from {SOURCE}; change that, and run it again. -->

A config is a YAML file of settings for `make-c` and `make-p`. It is checked before anything is written.

```yaml
# street.yaml
dataset: street
edition: imagenet
source: ${{STREET_PHOTOS}}/day
corruptions: [fog, snow, frost]
severities: 1-3
seed: 7
```

```console
$ robustgen make-c --config street.yaml
$ robustgen make-c --config street.yaml --seed 8      # flags override the file
$ robustgen make-c --dataset imagenet                 # a bundled config
```

- In paths, `${{NAME}}` stands for an environment variable and a leading `~` for your home folder.
- Lists are YAML lists or texts with commas: `[fog, snow]` or `fog,snow`.
- If a key is unknown, occurs twice or has a wrong value, the command exits with status 2 and one line:
  `street.yaml: corruptions[2]: unknown corruption 'forst' (did you mean 'frost'?)`.
- YAML aliases are refused.

## Keys
"""
VIDEO = """\
## `video`

For instance `video: {preset: medium, playable: true}`. As published, noise sequences use x264's tune `grain`
and its default rate factor, all others rate factor 20.
"""
PARAMETERS = """\
## `parameters`

Your own constants for `make-c` replace the published ones for single severities:

```yaml
parameters:
  fog:
    3: {strength: 2.0}
```

Other constants keep their published values; `robustgen list fog` prints them. Such a set is no longer the
benchmark; `dataset.json` records all constants. The values are tested on a small image before the run begins.
"""
FILES = """\
## Bundled configs

They are in `configs/`, and inside the installed package; `--dataset NAME` reads them.
"""
FLAGS = """\
## Flags without a key
"""


class _Schema(GenerateJsonSchema):
    """Schema without types that only a function checks, which old releases of pydantic refuse to describe."""

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
        return {}


def page() -> str:
    """Return the whole reference."""
    flags = _flags()
    del flags["dataset"]  # the flag names a config, the key a set
    keys = [(key, *_described(key, field), flags.pop(key, "")) for key, field in _fields(Config)]
    parts = [
        INTRO,
        _table(("key", "values", "default", "meaning", "flag"), keys),
        VIDEO,
        _table(("key", "values", "default", "meaning"), [(k, *_described(k, f)) for k, f in _fields(Video)]),
        PARAMETERS,
        _table(("corruption", "parameters", "meaning"), map(_parameters, CORRUPTIONS)),
        FILES,
        _table(("name", "of"), [(f"`{name}`", _first_comment(name)) for name in dataset_names()]),
        FLAGS,
        _table(("flag", "meaning"), _other_flags()),
    ]
    return "\n".join(parts)


def _fields(model: type[BaseModel]) -> Iterable[tuple[str, dict[str, Any]]]:
    properties: dict[str, dict[str, Any]] = model.model_json_schema(schema_generator=_Schema)["properties"]
    return properties.items()


def _described(key: str, field: dict[str, Any]) -> tuple[str, str, str]:
    values = ", ".join(map(_code, VALUES[key])) if key in VALUES else _values(field)
    default = DEFAULTS.get(key, field.get("default"))
    return values, "" if default in (None, "") else _code(_plain(default)), field["description"]


def _values(field: dict[str, Any]) -> str:
    """Return what the schema allows: single values, or a type and its limits."""
    kinds = [kind for kind in field.get("anyOf", [field]) if kind.get("type") != "null"]
    kind = kinds[0]
    if "enum" in kind:
        return ", ".join(_code(value) for value in kind["enum"])
    low, high = kind.get("minimum"), kind.get("maximum")
    limits = "" if low is None else f" from {low:g}" + (f" to {high:g}" if high is not None else "")
    return TYPES.get(kind.get("type", ""), "") + limits


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _code(value: Any) -> str:
    text = str(value)
    return text if " " in text else f"`{text}`"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [" | ".join(heads), "|".join("---" for _ in heads)]
    keyed = heads[0] == "key"
    lines += [" | ".join((_code(row[0]) if keyed else row[0], *row[1:])) for row in rows]
    return "".join(f"| {line} |\n" if "---" not in line else f"|{line}|\n" for line in lines)


def _parameters(name: str) -> tuple[str, str, str]:
    kind = type(CORRUPTIONS[name].parameters(1, 224))
    names = [f.name for f in dataclasses.fields(kind) if f.name not in ("engine", "directory")]
    meaning = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    return f"`{name}`", ", ".join(map(_code, names)), meaning


def _first_comment(name: str) -> str:
    return dataset_file(name).read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def _options() -> dict[str, tuple[click.Option, set[str]]]:
    """Return the options of both commands by key, with the commands that have them."""
    found: dict[str, tuple[click.Option, set[str]]] = {}
    for name in ("make-c", "make-p"):
        for option in main.commands[name].params:
            if isinstance(option, click.Option) and option.name:
                found.setdefault(option.name, (option, set()))[1].add(name)
    return found


def _flags() -> dict[str, str]:
    return {key: f"`{'/'.join([*o.opts, *o.secondary_opts])}`" for key, (o, _) in _options().items()}


def _other_flags() -> Iterable[tuple[str, str]]:
    keys = {key for key, _ in _fields(Config)} - {"dataset"}
    for key, (option, _) in _options().items():
        if key not in keys:
            yield f"`{option.opts[0]}{_metavar(option)}`", option.help or ""


def _metavar(option: click.Option) -> str:
    if option.is_flag:
        return ""
    choices = getattr(option.type, "choices", None)
    return " " + ("\\|".join(choices) if choices else option.metavar or "FILE")


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} is not current")
    PAGE.write_text(page(), encoding="utf-8")
