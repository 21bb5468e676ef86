"""Reading of YAML files, with the line of each key."""

import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from robustgen.errors import ConfigError, UnknownNameError, quote, raise_as
from robustgen.files.storage.host import read_regular

KeyPath = tuple[int | str, ...]
"""Keys and positions that lead to a value."""

# A config has a few lines; a larger file was named by mistake.
_MOST_BYTES = 1 << 20
_MOST_DIGITS = 100


class Document(NamedTuple):
    """Content of a YAML file.

    Attributes
    ----------
    content : dict
    lines : dict
        Path of a value to its line, from 1.
    """

    content: dict[str, Any]
    lines: dict[KeyPath, int]


class _Loader(yaml.SafeLoader):
    """Safe YAML loader that rejects repeated keys, tags, and aliases, which can expand without limit.

    Numbers and booleans are those of YAML 1.2; in YAML 1.1 ``1:30`` is 90, ``010`` is 8, ``no`` is false.
    """

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        problem, mark = "", event.start_mark
        if isinstance(event, yaml.AliasEvent):
            problem = "aliases are not allowed"
        elif event.tag:
            # The constructors of YAML 1.1 raise any exception.
            problem = f"tags such as {quote(event.tag)} are not allowed"
        elif re.search("[\ud800-\udfff]", getattr(event, "value", "")):
            problem = "half a surrogate pair is no text"
        if problem:
            raise yaml.MarkedYAMLError(None, None, problem, mark)
        return super().compose_node(parent, index)

    def construct_int(self, node: yaml.ScalarNode) -> int:
        if len(node.value) > _MOST_DIGITS:
            raise yaml.MarkedYAMLError(None, None, "the number has too many digits", node.start_mark)
        return int(node.value)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen:
                raise yaml.MarkedYAMLError(None, None, f"{quote(key)} occurs twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_int)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, regex) for tag, regex in rows if tag.endswith(":null")]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?([0-9]*\.[0-9]+|[0-9]+\.)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+",
        "-+.0123456789",
    ),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+."),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), list(_first))


def config_folder() -> Path:
    """Return the folder of the configs: in the installed package, or next to it in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


def dataset_names() -> list[str]:
    """Return the names that `--dataset` accepts."""
    return sorted(path.stem for path in config_folder().glob("*.yaml"))


def dataset_file(name: str) -> Path:
    """Return the config of the data set `name`.

    Raises
    ------
    UnknownNameError
    """
    if name not in dataset_names():
        raise UnknownNameError("dataset", name, dataset_names())
    return config_folder() / f"{name}.yaml"


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file; see `read_document`."""
    return read_document(path).content


def read_document(path: Path) -> Document:
    """Return the mapping in a YAML file, and the lines of its values.

    Raises
    ------
    ConfigError
        The file cannot be read, is not YAML, or contains no mapping.
    """
    with raise_as(ConfigError, f"{path}: cannot be read", OSError):
        data = read_regular(path, _MOST_BYTES)
    try:
        content, lines = parse_yaml(data.decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        reason = f"{where}{getattr(error, 'problem', None) or error}".replace("\n", " ")
        raise ConfigError(f"{path}: {reason}") from error
    if content is None:
        return Document({}, {})
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: must contain keys and values, not a {type(content).__name__}")
    return Document(content, lines)


def format_yaml(content: object) -> str:
    """Return `content` as YAML, with keys in their order."""
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000).rstrip("\n")


def parse_yaml(text: str) -> tuple[Any, dict[KeyPath, int]]:
    """Return the value of a YAML text, and the lines of the values in it.

    Raises
    ------
    yaml.YAMLError, ValueError, RecursionError
        The text is not YAML.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {}
        return loader.construct_document(node), dict(_list_lines(node, ()))
    finally:
        loader.dispose()


def _list_lines(node: yaml.Node, place: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*place, str(key.value)), key.start_mark.line + 1
            yield from _list_lines(value, (*place, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*place, index), value.start_mark.line + 1
            yield from _list_lines(value, (*place, index))
