"""Writes the pages of docs/reference, the types of keywords and the table of completion.

Usage: .venv/bin/python scripts/docs_reference.py [--check]
"""

import ast
import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import click
from pydantic_core import PydanticUndefined

from robustgen import files
from robustgen.cli import main
from robustgen.cli.completion import make_table
from robustgen.cli.flags import FieldOption
from robustgen.cli.rows import COMMANDS
from robustgen.files.wings import OWN, WINGS, CommandRow
from robustgen.pixels.benchmarks.corruptions import CORRUPTIONS, FAMILIES, LATER
from robustgen.pixels.benchmarks.ingredients import Ingredient
from robustgen.settings.config import Config
from robustgen.settings.fields import Flag, Group, Options, expand_variables, flag_of, list_flags
from robustgen.settings.models import ModelInput, OnTheFly, Runtime
from robustgen.settings.recipes import list_recipes
from robustgen.settings.running import Running
from robustgen.settings.schema import make_schema
from robustgen.settings.yaml_files import dataset_file, dataset_names

ROOT = Path(__file__).parent.parent
SCHEMAS = Path(inspect.getfile(files)).parent / "schemas"
# How pages install extras: from the checkout, until robustgen is on an index; then "robustgen[{}]".
INSTALL = "robustgen[{}]"
TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true, false"}
WRITTEN = "<!-- Written by scripts/docs_reference.py from robustgen/settings; run `make docs`. -->"

RECIPES = f"""\
# Recipes for well-known sets

{WRITTEN.replace("robustgen/settings", "robustgen/settings/recipes.json")}

Each command writes corrupted copies of a well-known set: one clean copy, and one copy for each corruption at
each severity. A copy keeps the folders, file names and annotations of the set, so the usual loader opens it.

```console
$ robustgen make-c --dataset coco-c --source coco --subset 'val2017/*' --output out/coco-c --dry-run
$ robustgen make-c --dataset coco-c --source coco --subset 'val2017/*' --output out/coco-c
```

The first line only estimates size and time. The second one writes `out/coco-c/clean`, `out/coco-c/fog/3` and
74 more copies. Give the folder of one copy to your loader. Pages on scores:
[classification](../use/scoring.md), [detection](../use/detection.md), [segmentation](../use/segmentation.md),
[clips](../benchmarks/video-c.md), [vision-language models](../use/vision-language.md).

In the commands:

- `--source`: replace the name by the path of the set on your disk, also after `--subset @`.
  Its patterns apply to file names only: in the Hub's cache, give the folder below `snapshots` in full.
- `--dataset coco-c`: for all images that keep names and sizes, not for COCO alone. The 15 corruptions of
  ImageNet-C are computed by the functions of [imagecorruptions](../use/detection.md); all other values of
  `--dataset` use those of ImageNet-C's authors. Clips get the 12 corruptions of
  [Mini Kinetics-C](../benchmarks/video-c.md), and nuScenes the 8 of [RoboBEV](../benchmarks/robobev.md).
- `--format original --set mirror=link`: clips keep their file names, and each copy gets all other files of
  the set; `coco-c` does so by default. These are hard links: a change in a copy also changes the original.
- `--subset` chooses images by a pattern or a list (`@FILE`). Copies contain no other images.
- `--severities 1,3,5` writes fewer severities, and `--corruptions` other corruptions.

In the table:

- **kept**: what the copies repeat unchanged. Boxes and masks stay in place, although `elastic_transform`
  moves pixels. JPEG files are written with quality 85 (`--quality`); with `coco-c`, PNG files remain PNG
  files. The sound of videos is dropped.
- **opened with**: a test runs each command on a small stand-in with the layout of the set, and opens a copy
  with this loader. "files in place": the test compares the names and contents of all files instead;
  of tables, it only counts the files. "by hand": the loader was tried once, because it needs NumPy 1.
- **compare with**: published results with the same functions; none are known if it is empty.
- **differs**: what is not as in the original or in the published set.

Your set is missing? Use `--dataset coco-c` for images with boxes or masks, `folder` for class folders,
`clips` for videos, and `table` for tables with pictures; see [sources](../use/sources.md). `--dry-run`
names the layout if robustgen knows its [label maps](../use/detection.md#label-maps).
`robustgen list recipes` prints the commands of this page, and `robustgen list COCO` one row.
"""

CONFIG = f"""\
# Configs

{WRITTEN}

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
$ robustgen make-p --config street.yaml --set video.crf=22 --set follow_links=/data/photos
$ robustgen make-c --dataset imagenet                 # a bundled config
```

- `--set KEY=VALUE` sets any key, also one without a flag. A dot leads to the key of a section: `video.crf`.
- In paths, `${{NAME}}` stands for an environment variable and a leading `~` for your home folder.
- Lists are YAML lists or texts with commas: `[fog, snow]` or `fog,snow`.
- Numbers and booleans are those of YAML 1.2, so `1:30`, `010`, `yes` and `no` are texts. Aliases and tags
  such as `!!int` are refused. A list of names or severities has at most 500 entries.
- If a key is unknown, occurs twice or has a wrong value, the command exits with status 2 and one line:
  `street.yaml:5: corruptions[2]: unknown corruption 'forst' (did you mean 'frost'?)`.

## See what a run would use

`robustgen config` takes the flags of `make-c` and `make-p`. It prints every key, its value, and where the
value comes from: a flag, a line of a file, or the default. The output is a config itself.

```console
$ robustgen config --config street.yaml --seed 8 --set shard_size=500 | grep -E '^(seed|edition|qual|shard)'
seed: 8  # --seed
edition: "imagenet"  # street.yaml:3
quality: 85  # default
shard_size: 500  # --set shard_size
```

## Check a config in an editor

`robustgen config --schema` prints the JSON Schema of a config. Editors use it to complete keys and values, to
show descriptions, and to underline mistakes:

```console
$ robustgen config --schema > robustgen.schema.json
```

In VS Code, install the extension *YAML* (`redhat.vscode-yaml`), and name the schema in the first line of the
config, with a path relative to the config:

```yaml
# yaml-language-server: $schema=robustgen.schema.json
```

For several configs, name it in `.vscode/settings.json` instead:

```json
{{"yaml.schemas": {{"./robustgen.schema.json": ["configs/*.yaml"]}}}}
```

Other editors that use `yaml-language-server`, such as Neovim and Emacs, read the same first line. The schema
lists names such as those of perturbations and presets. It does not know which corruptions have constants for
an edition; the command checks that.

## Keys

Keys without a flag are set in a file or with `--set`.
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
WITH = """\
## `with`

What corruptions need beside the images, by name, and where it is; as a flag `--with depth=/maps,scale=midas`:

```yaml
with:
  frost: /photographs
  depth: {place: /maps, scale: midas}
```

If no corruption needs what you name, the command ends with an error. Plug-ins can bring others;
`robustgen list NAME` shows what a corruption needs.
"""
FILES = """\
## Bundled configs

They are in `configs/`, and inside the installed package; `--dataset NAME` reads them.
"""
CORE_INTRO = f"""\
# Commands

{WRITTEN}

These are the flags of all commands but those of the [related benchmarks](related.md).
`robustgen COMMAND --help` shows the usual ones and `--help-all` shows all; both end with examples.
`--set KEY=VALUE` sets keys without a flag; [Configs](config.md) lists all keys.
"""
WING_INTRO = f"""\
# Commands of the related benchmarks

{WRITTEN}

[Commands](commands.md) explains how to read this page.
"""


JSON_TYPES = TYPES | {
    "array": "list",
    "object": "object",
    "null": "null",
    "int": "whole number",
    "str": "text",
}

FILES_INTRO = """\
# Files

<!-- Written by scripts/docs_reference.py from robustgen/files/schemas; change those, and run it again. -->

The files that describe sets, the output state and predictions. The package contains their
[JSON Schemas](https://json-schema.org/draft/2020-12) (draft 2020-12):

```python
import json
from importlib.resources import files

schema = json.loads((files("robustgen") / "files" / "schemas" / "dataset.json").read_text())
```

`dataset.json`, `settings.json` and `predictions.json` begin with the number of their schema. A file with
another number, or without one, was written by another version: every command refuses it and says which file
it is.
`--overwrite` replaces such an output.
"""
DESCRIBED = ("dataset", "errors", "notes", "predictions", "arrays", "settings", "plan", "record")

KEYWORDS = '''\
"""Types of the keywords of `make_c`, `make_p` and `evaluate` in Python, for editors and type checkers.

Written by scripts/docs_reference.py from the fields of the models; run `make docs`.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

_Path = str | os.PathLike[str]
'''
# Classes of keywords: the models of each, and the fields that only commands have.
TYPED: dict[str, tuple[tuple[type[Options], ...], set[str]]] = {
    "ConfigKeys(TypedDict, total=False)": ((Config,), {"dataset", "output"}),
    "MakeKeys(ConfigKeys, total=False)": ((Running,), {"allow_failures", "dry_run", "write_plan"}),
    "EvaluateKeys(ConfigKeys, total=False)": ((ModelInput, Runtime, OnTheFly), set()),
}


class Row(NamedTuple):
    """A flag or an argument of a command."""

    group: Group
    key: str
    spelled: str
    value: str
    meaning: str
    default: str


def make_files_page() -> str:
    """Return the reference of the files that describe outputs."""
    parts = [FILES_INTRO]
    for name in DESCRIBED:
        schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
        parts.append(f"## `{schema['title']}`\n\n`files/schemas/{name}.json`: {schema['description']}\n")
        parts.append(_table("key type meaning", _rows(schema)))
    return "\n".join(parts)


def _rows(schema: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, str, str]]:
    """Yield key, type and meaning of every described part of a JSON Schema."""
    for key, part in schema["properties"].items():
        types = part.get("type") or type(part.get("const", part.get("enum", [""])[0])).__name__
        named = " or ".join(JSON_TYPES[each] for each in ([types] if isinstance(types, str) else types))
        if description := part.get("description"):
            yield f"{prefix}{key}", named + ", optional" * (key not in schema["required"]), description
        for inner, separator in ((part, "."), (part.get("items") or {}, "[].")):
            if "properties" in inner:
                yield from _rows(inner, f"{prefix}{key}{separator}")


def make_pages() -> dict[str, str]:
    """Return the text of each page."""
    schema = make_schema(Config)
    keys, video = schema["properties"], schema["$defs"]["Video"]["properties"]
    core = dict(_list_commands(COMMANDS))
    flags = {row.key: f"`{row.spelled}`" for row in _list_flags(core["config"])}
    config = (
        CONFIG,
        _table(
            "key values default meaning flag",
            ((*_describe_key(*e), flags.get(e[0], "")) for e in keys.items()),
        ),
        VIDEO,
        _table(
            "key values default meaning flag",
            ((*_describe_key(*e), flags.get(f"video.{e[0]}", "")) for e in video.items()),
        ),
        PARAMETERS,
        _table("corruption parameters meaning", map(_describe_constants, CORRUPTIONS)),
        WITH,
        _table("name of without_it settings", map(_ingredient, _list_ingredients())),
        FILES,
        _table("name content", ((f"`{name}`", _first_comment(name)) for name in dataset_names())),
    )
    return {
        "docs/reference/config.md": "\n".join(config),
        "docs/reference/commands.md": make_commands_page(CORE_INTRO, core),
        "docs/reference/files.md": make_files_page(),
        "docs/reference/recipes.md": make_recipes_page(),
        "robustgen/settings/keywords.py": make_keywords(),
        "robustgen/cli/completion.json": make_completion(core),
        **dict(_write_installations()),
    }


def make_pages_of_wings() -> dict[str, str]:
    """Return the text of each page about a wing that the rest of the package knows by its rows."""
    pages = {}
    for name in OWN:
        commands = dict(_list_commands(WINGS[name].commands))
        pages[f"docs/reference/{name}.md"] = make_commands_page(WING_INTRO, commands)
        pages[f"robustgen/{name}/cli/completion.json"] = make_completion(commands)
    return pages


def make_commands_page(intro: str, commands: dict[str, click.Command]) -> str:
    """Return the reference of commands."""
    return "\n".join((intro, *(_describe_command(*each) for each in commands.items())))


def make_recipes_page() -> str:
    """Return the table of the corrupted copies of well-known sets."""
    rows = (
        (
            row.name,
            f"`robustgen {row.command}`".replace("|", "\\|"),
            row.split,
            row.severities,
            row.kept,
            row.loader,
            row.compared,
            row.differs,
        )
        for row in list_recipes()
    )
    table = _table("set command images severities kept opened_with compared_with differs", rows)
    return (
        f"{RECIPES}\n{table.replace('opened_with', 'opened with').replace('compared_with', 'compare with')}"
    )


def make_completion(commands: dict[str, click.Command]) -> str:
    """Return the table of completion."""
    return json.dumps(make_table(commands.items()), indent=1) + "\n"


def _write_installations() -> Iterator[tuple[str, str]]:
    """Yield the pages that install extras, with each `pip install` in the form of `INSTALL`."""
    pattern = re.compile(r"(?<=pip install ')(?:\.|robustgen)\[([\w,]+)\](?=')")
    guides = (page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "reference")
    for page in (ROOT / "README.md", *sorted(guides)):
        text = page.read_text(encoding="utf-8")
        if pattern.search(text):
            yield page.relative_to(ROOT).as_posix(), pattern.sub(lambda found: INSTALL.format(found[1]), text)


# --- wings ---------------------------------------------------------------------------------------

ARCHITECTURE = ROOT / "docs" / "background" / "architecture.md"
WINGS_HEAD = "wing may_import lines tests,_s"
# Written by TEST_SECONDS=build/test_seconds.txt make test
TEST_SECONDS = ROOT / "build" / "test_seconds.txt"


def write_wings(page: str) -> str:
    """Return the text of `page` with its table of wings written anew.

    Without a measurement of the tests, their seconds stay as they are. Sizes change with every commit, so
    `--check` does not look at them.
    """
    before, found, after = page.partition(_table(WINGS_HEAD, ()).replace("_", " "))
    assert found
    old, _, after = after.partition("\n\n")
    cells = [row.strip("| ").split(" | ") for row in old.splitlines()]
    seconds = {name.strip("`"): each[-1] for name, *each in cells if len(each) == 3} | _sum_seconds()
    tests = ast.parse((ROOT / "tests" / "test_structure.py").read_text(encoding="utf-8"))
    assigned = {
        ast.unparse(each.targets[0]): each.value for each in tests.body if isinstance(each, ast.Assign)
    }
    rows = [
        (f"`{name}`", _list_wings(below), f"{_count_lines(name):,}", seconds.get(name, ""))
        for name, below in ast.literal_eval(assigned["WINGS"]).items()
    ]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"{before}{found}{table}\n{after}"


def _list_wings(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split()) or "nothing"


def _count_lines(wing: str) -> int:
    """Return the lines of a wing, in thousands, below two thousand in hundreds."""
    place = ROOT / "robustgen" / wing
    files = [*place.rglob("*.py"), *place.parent.glob(f"{wing}.py")]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    return round(lines, -3) if lines > 2000 else round(lines, -2) or lines


def _sum_seconds() -> dict[str, str]:
    """Return the processor seconds of the tests of each wing, if they were measured."""
    found = dict[str, float]()
    for line in TEST_SECONDS.read_text(encoding="utf-8").splitlines() if TEST_SECONDS.exists() else ():
        taken, _, test = line.partition("\t")
        wing = test.split("/")[1].partition(".py")[0].removeprefix("test_")
        found[wing] = found.get(wing, 0) + float(taken)
    return {wing: f"{taken:.0f}" for wing, taken in found.items()}


# --- configs -------------------------------------------------------------------------------------


def _describe_key(key: str, field: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return the cells of a key: name, values, default, meaning."""
    stated = field.get("default")
    stated = str(stated).lower() if isinstance(stated, bool) else stated
    meaning, default = _split(field["description"], stated)
    parts = [part for part in field.get("anyOf", [field]) if part.get("type") != "null"]
    if any(part.get("type") == "array" for part in parts):
        # The schema also allows a text with commas.
        return f"`{key}`", "list", default, meaning
    return f"`{key}`", ", ".join(word for part in parts for word in _list_values(key, part)), default, meaning


def _list_values(key: str, part: dict[str, Any]) -> list[str]:
    """Return what a type of the schema allows: single values, or a type and its limits."""
    flag = flag_of(Config, key) if key in Config.model_fields else None
    if words := part.get("enum") or ([*flag.complete()] if flag and flag.complete else None):
        return [f"`{word}`" for word in words]
    if "const" in part:
        return [f"`{part['const']}`"]
    if "$ref" in part or "additionalProperties" in part:
        return ["see below"]
    low, high = part.get("minimum"), part.get("maximum")
    limits = "" if low is None else f" from {low:g}" + (f" to {high:g}" if high is not None else "")
    return [TYPES[part["type"]] + limits] if "type" in part else []


def _describe_constants(name: str) -> tuple[str, str, str]:
    parameters = type(CORRUPTIONS[name].parameters(1, 224))
    names = [f"`{f.name}`" for f in dataclasses.fields(parameters)]
    return f"`{name}`", ", ".join(names), " ".join((parameters.__doc__ or "").split("\n\n")[0].split())


def _list_ingredients() -> list[Ingredient]:
    families = [FAMILIES[name] for name in ("imagenet-c", *LATER)]
    needs = [corruption.needs for family in families for corruption in family.corruptions.values()]
    return [*dict.fromkeys(each for each in needs if each)]


def _ingredient(ingredient: Ingredient) -> tuple[str, str, str, str]:
    defaults = {"refused": "an error", "installed": "the installed ones", "own": "the images of the set"}
    settings = ", ".join(f"`{each}`" for each in ingredient.settings)
    return f"`{ingredient.name}`", ingredient.sentence, defaults[ingredient.default], settings


def _first_comment(name: str) -> str:
    return dataset_file(name).read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


# --- keywords ------------------------------------------------------------------------------------


def make_keywords() -> str:
    """Return the module with the types of keywords."""
    parts = [KEYWORDS]
    for head, (models, only_commands) in TYPED.items():
        parts.append(
            f'\n\nclass {head}:\n    """Keys of {", ".join(each.__name__ for each in models)}."""\n\n'
        )
        parts += ["    output: _Path\n"] * (models == (Running,))
        for model in models:
            schema = make_schema(model)["properties"]
            for name, field in model.model_fields.items():
                if name not in only_commands:
                    allowed = schema[field.alias or name].get("anyOf", ())
                    words = [f"Literal[{each['const']!r}]" for each in allowed if "const" in each]
                    types = " | ".join([*words, *_list_types(field.annotation, field.metadata)])
                    parts.append(f"    {name}: {types}\n".replace("'", '"'))
    return "".join(parts)


def _list_types(annotation: Any, metadata: Sequence[Any] = ()) -> list[str]:
    """Return the types that a field of type `annotation` takes before its validators, None last."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if metadata:
        flag = next((each for each in metadata if isinstance(each, Flag)), Flag(Group.SOURCE))
        is_path = flag.metavar == "FILE" or any(
            getattr(e, "func", None) is expand_variables for e in metadata
        )
        types = ["_Path" if each == "str" and is_path else each for each in _list_types(annotation)]
        # The name of a mapping with default values, which the flag takes too.
        named = ["str"] * bool(flag.complete and "Mapping[str, Any]" in types)
        return ["bool"] * flag.switch + named + types
    if origin is Annotated:
        return _list_types(parts[0], parts[1:])
    if origin is Literal:
        return [f"Literal[{', '.join(map(repr, parts))}]"]
    types = list(dict.fromkeys(each for part in parts if part is not ... for each in _list_types(part)))
    if origin is tuple:
        # A text with commas or a single value stands for a list, in which paths are texts.
        inner = [each.replace("_Path", "str") for each in types]
        return [*dict.fromkeys(["str", *inner]), f"Sequence[{' | '.join(inner)}]"]
    if origin in (Union, UnionType):
        return sorted(types, key="None".__eq__)
    if annotation is Any:
        return ["str", "float"]
    names = {type(None): "None"} | {each: each.__name__ for each in (bool, int, float, str)}
    return [names.get(annotation, "Mapping[str, Any]")]


# --- commands ------------------------------------------------------------------------------------


def _list_commands(rows: Iterable[CommandRow]) -> Iterator[tuple[str, click.Command]]:
    for name in (row.name for row in rows):
        command = main.get_command(click.Context(main), name)
        assert command
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {each}", command.commands[each]) for each in command.commands)


def _describe_command(name: str, command: click.Command) -> str:
    """Return the section of a command; the name of a group stands in its first row."""
    rows: list[tuple[str, ...]] = []
    group = None
    for row in _list_flags(command):
        flag = f"{row.spelled} {row.value}".strip().replace("|", "\\|")
        rows.append(("" if row.group == group else row.group.value, f"`{flag}`", row.meaning, row.default))
        group = row.group
    text = f"## `{name}`\n\n{inspect.cleandoc(command.help or '')}\n"
    return f"{text}\n{_table('group flag meaning default', rows)}" if rows else text


def _list_flags(command: click.Command) -> list[Row]:
    """Return the arguments and flags of a command, in the order of the help."""
    models = inspect.get_annotations(inspect.unwrap(command.callback or main))
    rows = []
    for each in command.params:
        name, _, key = (each.name or "").partition("__")
        if name in models:
            rows.append(_describe_flag(each, models[name], key.replace("__", ".")))
    return sorted(rows, key=lambda row: ([*Group].index(row.group), row.spelled != ""))


def _describe_flag(flag: click.Parameter, model: type[Options], key: str) -> Row:
    spelled = "/".join((*flag.opts, *flag.secondary_opts)) if isinstance(flag, click.Option) else ""
    value = flag.metavar or ""
    known = {name: (field, own) for name, field, own in list_flags(model)}
    if key in known:
        field, own = known[key]
        sentence = flag.sentence if isinstance(flag, FieldOption) else field.description or ""
        meaning, default = _split(sentence, field.get_default())
        return Row(own.group, key, spelled, value, meaning, "required" if field.is_required() else default)
    assert isinstance(flag, FieldOption)
    text = (flag.help or "").removesuffix(".")
    return Row(
        flag.group, key, spelled, value, text if text[:2].isupper() else text[0].lower() + text[1:], ""
    )


# --- texts ---------------------------------------------------------------------------------------


def _split(description: str, default: Any) -> tuple[str, str]:
    """Return a description without its statement about the default, and the default."""
    meaning, _, stated = description.rpartition("; default ")
    return (meaning, stated) if meaning else (description, _format_default(default))


def _format_default(default: Any) -> str:
    """Return a default as code; nothing for one that changes nothing."""
    if default in (None, (), [], {}, PydanticUndefined) or default is False:
        return ""
    return f"`{'on' if default is True else default}`"


def _table(heads: str, rows: Iterable[tuple[str, ...]]) -> str:
    cells = [tuple(heads.split()), *rows]
    lines = [f"| {' | '.join(row)} |\n" for row in cells]
    return "".join((lines[0], f"|{'---|' * len(cells[0])}\n", *lines[1:]))


if __name__ == "__main__":
    for name, text in (make_pages() | make_pages_of_wings()).items():
        page = ROOT / name
        if "--check" not in sys.argv:
            page.write_text(text, encoding="utf-8")
        elif page.read_text(encoding="utf-8") != text:
            sys.exit(f"{page} is not current")
    if "--check" not in sys.argv:
        ARCHITECTURE.write_text(write_wings(ARCHITECTURE.read_text(encoding="utf-8")), encoding="utf-8")
