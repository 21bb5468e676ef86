"""Loading of a model from a config file, flags and ``--set``; errors name the place of the mistake."""

import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from robustgen.errors import ConfigError, RobustgenError, UnknownNameError, quote
from robustgen.settings.config import Config
from robustgen.settings.fields import Options, flag_of, keys_of, spell
from robustgen.settings.yaml_files import Document, KeyPath, dataset_file, parse_yaml, read_document

Loaded = TypeVar("Loaded", bound=Options)


def load(
    model: type[Loaded],
    path: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    *,
    settings: Iterable[str] = (),
    ignored: Iterable[str] = (),
) -> Loaded:
    """Read the config at `path` (None: defaults only), override it, and check it.

    Parameters
    ----------
    model : type
        Its fields are the keys.
    path : Path, optional
    flags : mapping, optional
        Key to value, or text from the command line; None for flags that were not given.
    settings : iterable of str
        Texts ``KEY=VALUE`` of ``--set``, which may name keys of sections: ``video.crf=20``.
    ignored : iterable of str
        Keys of other commands that the file may contain.

    Raises
    ------
    ConfigError
        The message names the file and line, or the flag, and the problem in one line.
    """
    document = read_document(path) if path else Document({}, {})
    content = {key: value for key, value in document.content.items() if key not in {*ignored}}
    origins = {key: f"{path}:{document.lines[(key,)]}" for key in content if (key,) in document.lines}
    for key, value in (flags or {}).items():
        if value is not None:
            section, dot, part = key.partition(".")
            if dot:
                _section(content, section)[part] = value
            else:
                content[key] = convert(model, key, value)
            origins[section] = origins[key] = spell(key, flag_of(model, key))
    # --corruptions may contain severities, which are a key of their own.
    if "corruptions" in origins:
        origins.setdefault("severities_of", origins["corruptions"])
    for setting in settings:
        key, sign, text = setting.partition("=")
        if not sign:
            raise ConfigError(f"--set: must be KEY=VALUE, not {quote(setting)}")
        if origins.get(key) == f"--set {key}":
            raise ConfigError(f"--set {key}: {key} is given twice")
        _put(model, content, key, text)
        origins[key] = f"--set {key}"
        origins.setdefault(key.partition(".")[0], origins[key])
    places = {key: f"{path}:{line}" for key, line in document.lines.items()}
    return check(model, content, str(path or ""), origins, places)


def load_config(
    model: type[Loaded],
    dataset: str | None,
    file: str | Path | None,
    flags: Mapping[str, Any],
    *,
    settings: Iterable[str] = (),
    ignored: Iterable[str] = (),
) -> Loaded:
    """Read the built-in config called `dataset`, or a config `file`, or neither; otherwise as `load`."""
    if dataset and file:
        raise ConfigError("give --dataset or --config, not both")
    path = dataset_file(dataset) if dataset else Path(file) if file else None
    others = {*keys_of(Config)} - {*keys_of(model)}
    return load(model, path, flags, settings=settings, ignored={*ignored} | others)


def check(
    model: type[Loaded],
    content: Mapping[str, Any],
    name: str,
    origins: Mapping[str, str] | None = None,
    places: Mapping[KeyPath, str] | None = None,
) -> Loaded:
    """Return the model with the keys in `content`, which come from the file `name` unless `origins` differ.

    `places` gives file and line of values.

    Raises
    ------
    ConfigError
        A key or a value is invalid; see `load`.
    """
    try:
        checked = model.model_validate(content)
    except ValidationError as error:
        raise ConfigError(_explain(error, model, name, origins or {}, places or {})) from error
    checked.origins.update(origins or {})
    return checked


def convert(model: type[BaseModel], key: str, value: Any) -> Any:
    """Return a text from the command line as the type that a field has; other values are unchanged."""
    if not isinstance(value, str) or key not in keys_of(model):
        return value
    types = set(_list_types(keys_of(model)[key].annotation))
    if types & {dict} or any(issubclass(each, BaseModel) for each in types):
        return _read_value(key, value)
    for each in (int, float):
        if each in types:
            try:
                return each(value) if value.isascii() and "_" not in value else value
            except ValueError:
                continue
    return {"true": True, "false": False}.get(value, value) if bool in types else value


def _list_types(annotation: Any) -> Iterable[type]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _list_types(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for each in get_args(annotation):
            yield from _list_types(each)
    elif origin is Literal:
        yield from map(type, get_args(annotation))
    elif isinstance(origin or annotation, type):
        yield origin or annotation


def _put(model: type[BaseModel], content: dict[str, Any], key: str, text: str) -> None:
    """Set a key, or a key of a section, to the value of `text`."""
    name, dot, rest = key.partition(".")
    if name not in keys_of(model):
        raise ConfigError(f"--set: {UnknownNameError('key', name, keys_of(model))}")
    if not dot:
        content[name] = convert(model, name, text)
        return
    section = _section(content, name)
    types = [each for each in _list_types(keys_of(model)[name].annotation) if each is not type(None)]
    if issubclass(types[0], BaseModel):
        _put(types[0], section, rest, text)
        return
    *above, last = rest.split(".")
    for each in above:
        section = _section(section, each)
    section[last] = _read_value(key, text)


def _section(content: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a copy of the mapping called `name` in `content`, in its place; any other value is replaced."""
    held = content.get(name)
    content[name] = section = dict(held) if isinstance(held, Mapping) else {}
    return section


def _read_value(key: str, text: str) -> Any:
    try:
        return parse_yaml(text)[0]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"--set {key}: {getattr(error, 'problem', None) or error}") from error


def _explain(
    error: ValidationError,
    model: type[Options],
    name: str,
    origins: Mapping[str, str],
    places: Mapping[KeyPath, str],
) -> str:
    first = error.errors()[0]
    # Pydantic marks an invalid key with an extra step, and repeats the alternatives of a union.
    place = tuple(part for part in first["loc"] if part != "[key]")
    key = str(place[0]) if place else ""
    origin = origins.get(_format_place(place), origins.get(key, ""))
    from_line = origin.startswith("--")
    file = next((places[place[:n]] for n in range(len(place), 0, -1) if place[:n] in places), name)
    where = origin if from_line else ": ".join(part for part in (file, _format_place(place)) if part)
    cause = first.get("ctx", {}).get("error")
    if first["type"] == "extra_forbidden":
        return f"{file}: {_format_unknown(model, place)}"
    if first["type"] == "missing":
        flag = flag_of(model, key) if key in keys_of(model) else None
        shown = (flag.name or key.upper()) if flag and flag.argument else spell(key, flag)
        return f"{shown if flag else where} is missing"
    if isinstance(cause, RobustgenError):
        hint = "; name the images with --source" if key == "source" and not from_line else ""
        return f"{where}: {cause}{hint}".removeprefix(": ")
    return f"{where}: {first['msg'].replace('Input should be', 'must be')}, not {quote(first['input'])}"


def _format_unknown(model: type[BaseModel], place: KeyPath) -> str:
    section: Any = model
    for part in place[:-1]:
        section = next(iter(_list_types(keys_of(section)[str(part)].annotation)))
    within = f"{_format_place(place[:-1])}: " if len(place) > 1 else ""
    return f"{within}{UnknownNameError('key', str(place[-1]), keys_of(section))}"


def _format_place(place: KeyPath) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return path.removeprefix(".")
