"""Descriptions of a finished set for hubs and conferences: `README.md` and `croissant.json`.

The header of `README.md`, the data set card, names the files of each variant to hubs and to the library
`datasets`. `croissant.json` (MLCommons Croissant 1.1, 2026) follows from `dataset.json` and the `SHA256SUMS`
files, except for fields that only the user knows, such as the publisher of the set; see `add_fields`.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from robustgen.errors import ConfigError
from robustgen.files.set_files import SUMS, TABLES, has_mirror
from robustgen.files.storage import Store
from robustgen.files.text_files import read_sums
from robustgen.pixels.benchmarks.kinds import CLIPS_C, IMAGENET_P, find_medium
from robustgen.pixels.imaging.cleaning import CLEANINGS
from robustgen.pixels.imaging.decode import EXTENSIONS
from robustgen.sets.sources.places import PARQUET, TEXT_TABLES

CARD: Final = "README.md"
CROISSANT: Final = "croissant.json"

_TERMS: Final = json.loads(Path(__file__).with_name("croissant_terms.json").read_text(encoding="utf-8"))
RAI_FIELDS: Final = frozenset(f"rai:{name}" for name in _TERMS["rai"])
"""Fields of the Responsible AI vocabulary, version 1.0."""
USER_FIELDS: Final = RAI_FIELDS.union(_TERMS["schema.org"])
"""Fields that a user may set."""

_TEXT, _INTEGER, _IMAGE, _VIDEO = "sc:Text", "sc:Integer", "sc:ImageObject", "sc:VideoObject"
_Node = dict[str, Any]
# Name to type and source.
_Fields = dict[str, tuple[str, _Node]]
# Path prefix to the content of the checksum file in that folder.
_Sums = dict[str, bytes]
_RECORDS: Final = "cr:RecordSet"
_PARQUET: Final = "application/x-parquet"
# mlcroissant decodes no other images and no videos: sets of those list files but no records.
_READABLE: Final = ("image/jpeg", "image/png")


# --- data set card -------------------------------------------------------------------------------

_PATTERNS: Final = {
    "parquet": (f"{TABLES}/{{}}*.parquet",),
    "webdataset": ("{}*.tar",),
    "table of files": tuple(f"{{}}**/*{suffix}" for suffix in (PARQUET, *TEXT_TABLES)),
}
"""Format to the patterns of the samples' files in the folder ``{}``; by default, all of its files."""
_IMAGES: Final = tuple(f"**/*{each}" for suffix in EXTENSIONS for each in (suffix, suffix.upper()))
_EXAMPLE: Final = """```python
from datasets import load_dataset

images = load_dataset("path/to/this/folder", "{}", split="test")
```"""
_NO_EXAMPLE: Final = "NumPy reads these arrays; the library `datasets` does not."


def write_card(manifest: Mapping[str, Any], licence: str = "") -> bytes:
    """Return the `README.md` of a set, with one config for each variant.

    Parameters
    ----------
    manifest : mapping
        The content of ``dataset.json``.
    licence : str
        Identifier of SPDX, address or name.
    """
    head = ["---", *_describe_licence(licence)]
    # Tables have no classes, and mirrored sets have annotations of their own.
    if "table" not in _format(manifest) and not has_mirror(manifest):
        subject = {"image": "image", "clip": "video"}[find_medium(manifest["title"]).name]
        head += ["task_categories:", f"- {subject}-classification"]
    head.append("configs:")
    for variant in manifest["variants"]:
        # JSON strings are YAML strings.
        paths = ", ".join(map(json.dumps, _list_patterns(manifest, variant)))
        head += [f"- config_name: {config_name(variant)}", "  data_files:", "  - split: test"]
        head += [f"    path: [{paths}]", *_describe_labels(manifest)]
    return "\n".join([*head, "---", "", _body(manifest)]).encode("utf-8", "replace")


def _describe_licence(licence: str) -> Iterator[str]:
    """Yield the lines about a licence: hubs know Creative Commons' and those with an identifier of SPDX."""
    terms = re.fullmatch(r"https?://creativecommons\.org/licenses/([a-z-]+)/([\d.]+)/?(deed\.\w+)?", licence)
    known = f"cc-{terms[1]}-{terms[2]}" if terms else licence.lower()
    if re.fullmatch(r"[a-z\d.+-]+", known):
        yield f"license: {known}"
        return
    yield "license: other"
    if licence:
        yield f"license_{'link' if '://' in licence else 'name'}: {json.dumps(licence)}"


def config_name(folder: str) -> str:
    """Return the config name of the variant in `folder`, without slashes: ``fog-3``."""
    return folder.replace("/", "-") or "default"


def _format(manifest: Mapping[str, Any]) -> str:
    return str(manifest["settings"]["output"].get("format"))


def _list_patterns(manifest: Mapping[str, Any], variant: str) -> Iterator[str]:
    """Yield the patterns of the files of a variant; arrays match none, so `datasets` refuses them."""
    if variant and not has_mirror(manifest):
        yield from (name.format(f"{variant}/") for name in _PATTERNS.get(_format(manifest), ("{}**",)))
        return
    pattern, folder = manifest["config"].get("subset") or "@", f"{variant}/" if variant else ""
    # `datasets` reads tables of this name together with the images.
    for name in (*(_IMAGES if pattern.startswith("@") else _expand(pattern)), "**/metadata.*"):
        yield f"{folder}{name}"


def _expand(pattern: str) -> list[str]:
    """Return patterns in which ``*`` matches no slash for a `pattern` in which it does."""
    found = [""]
    for character in pattern:
        ends = ("*", "*/**/*") if character == "*" else (character,)
        found = [start + end for start in found for end in ends]
    return found


def _describe_labels(manifest: Mapping[str, Any]) -> list[str]:
    """Return the line that says whether folders are classes, for formats with a file for each image."""
    if "sample" in manifest["settings"]["output"] or has_mirror(manifest):
        return []
    # Frames lie in the folder of their sequence or clip.
    of_frames = manifest["title"] in (IMAGENET_P.title, CLIPS_C.title)
    has_frames = of_frames and _format(manifest) != "mp4"
    return [f"  drop_labels: {json.dumps(has_frames or not manifest['class_folders'])}"]


def _body(manifest: Mapping[str, Any]) -> str:
    settings, versions = manifest["settings"], manifest["settings"]["versions"]
    choices = [f"{name} {settings[name]}" for name in ("edition", "seed", *CLEANINGS) if name in settings]
    text = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    names = ("dataset", "title", "images", "digest", "licence", "citation")
    return text.format(
        **{name: manifest[name] for name in names},
        nouns=f"{find_medium(manifest['title']).name}s",
        variants=len(manifest["variants"]),
        choices=", ".join(choices),
        example=_NO_EXAMPLE if manifest["arrays"] else _EXAMPLE.format(config_name(manifest["variants"][-1])),
        libraries=", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
    )


# --- Croissant -----------------------------------------------------------------------------------


def _read_sums(store: Store, prefix: str) -> bytes | None:
    try:
        return store.read(f"{prefix}{SUMS}")
    except FileNotFoundError:
        return None


def make_croissant(manifest: Mapping[str, Any], store: Store) -> dict[str, Any]:
    """Return the description of a finished set.

    Parameters
    ----------
    manifest : mapping
        The content of ``dataset.json``.
    store : Store
        Output, for its checksums.
    """
    settings = manifest["settings"]
    versions = settings.get("versions", {})
    prefixes = ["", *(f"{variant}/" for variant in manifest["variants"] if variant)]
    contents = store.map(partial(_read_sums, store), prefixes)
    sums: _Sums = {
        prefix: content for prefix, content in zip(prefixes, contents, strict=True) if content is not None
    }
    name, nouns = settings.get("output", {}).get("format"), f"{find_medium(manifest['title']).name}s"
    describe = _DESCRIPTIONS.get(name, _describe_tree if name in _FILES else _describe_folders)
    how = "once, by a drawn operation and level" if "mixed" in settings else "by each operation at each level"
    nodes = [
        _file_object(prefix + SUMS, "text/plain", hashlib.sha256(content).hexdigest())
        for prefix, content in sums.items()
    ]
    nodes += describe(manifest, sums)
    return {
        "@context": _TERMS["@context"],
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": re.sub(r"[^\w.-]+", "-", f"{manifest['dataset']}-{manifest['title']}"),
        "description": f"{manifest['title']} of {manifest['dataset']}: {manifest['images']} {nouns}, each in"
        f" {len(manifest['variants'])} variants, created by robustgen.",
        "license": manifest["licence"],
        "citeAs": manifest["citation"],
        "keywords": ["robustness", "benchmark", manifest["title"]],
        "version": versions.get("robustgen", "0"),
        "isLiveDataset": False,
        "prov:wasDerivedFrom": {
            "@type": "prov:Entity",
            "prov:label": f"{manifest['source']['images']} {nouns} of {manifest['dataset']}",
            "identifier": f"sha256:{manifest['source'].get('digest')}",
        },
        "prov:wasGeneratedBy": {
            "@type": "prov:Activity",
            "prov:label": f"robustgen: {manifest['title']}, seed {settings.get('seed', 0)}",
            "identifier": f"sha256:{manifest['digest']}",
            "prov:wasAssociatedWith": {
                "@type": "prov:SoftwareAgent",
                "prov:label": ", ".join(
                    f"{library} {release}" for library, release in sorted(versions.items())
                ),
            },
        },
        "rai:dataCollectionRawData": f"The {nouns} of {manifest['dataset']}.",
        "rai:dataPreprocessingProtocol": f"Resized and cropped as in edition {manifest['edition']}.",
        "rai:dataManipulationProtocol": f"Every {nouns[:-1]} is corrupted {how}, with the"
        " constants in dataset.json.",
        "rai:dataUseCases": "Evaluation of robustness. Not for training.",
        "rai:dataLimitations": "The corruptions are synthetic.",
        "rai:hasSyntheticData": "true",
        "distribution": [node for node in nodes if node["@type"] != _RECORDS],
        "recordSet": [node for node in nodes if node["@type"] == _RECORDS],
    }


def encode_croissant(content: Mapping[str, Any]) -> bytes:
    """Return the bytes of `croissant.json`."""
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def add_fields(content: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description with the user's own fields.

    Raises
    ------
    ConfigError
        A field is not in `USER_FIELDS`.
    """
    if unknown := sorted(str(name) for name in fields if name not in USER_FIELDS):
        raise ConfigError(f"{unknown[0]}: cannot be set; choose from {', '.join(sorted(USER_FIELDS))}")
    return {**content, **fields}


# --- files and records of Croissant --------------------------------------------------------------


def _node(node_type: str, name: str, **properties: Any) -> _Node:
    """Return a node with those of the `properties` that are not empty."""
    return {"@type": node_type, "@id": name, "name": name} | {
        key: each for key, each in properties.items() if each
    }


def _file_object(path: str, encoding: str, sha256: str) -> _Node:
    return _node("cr:FileObject", path, contentUrl=path, encodingFormat=encoding, sha256=sha256)


def _file_set(name: str, encoding: str, includes: list[str], archives: Iterable[str] = ()) -> _Node:
    containers = [{"@id": path} for path in archives]
    return _node("cr:FileSet", name, encodingFormat=encoding, includes=includes, containedIn=containers)


def _record_set(name: str, key: str | None, fields: _Fields) -> _Node:
    nodes = [
        {"@type": "cr:Field", "@id": f"{name}/{field}", "name": field, "dataType": content, "source": source}
        for field, (content, source) in fields.items()
    ]
    return _node(_RECORDS, name, key={"@id": f"{name}/{key}"} if key else None, field=nodes)


def _from_file(files: str, part: str, regex: str | None = None) -> _Node:
    source: _Node = {"fileSet": {"@id": files}, "extract": {"fileProperty": part}}
    return source | ({"transform": {"regex": regex}} if regex else {})


def _read_fields(files: str) -> _Fields:
    return {"image": (_IMAGE, _from_file(files, "content")), "path": (_TEXT, _from_file(files, "fullpath"))}


def _type_of(name: str) -> tuple[str, str]:
    """Return the media type and the suffix of files in the format called `name`."""
    return _FILES.get(name, (f"image/{name}", name))


def _describe_tree(manifest: Mapping[str, Any], _sums: _Sums) -> Iterator[_Node]:
    """Yield the files and records of a tree: `fog/3/<class>/<name>.JPEG`, `tilt/<class>/<name>.mp4`."""
    encoding, suffix = _type_of(manifest["settings"]["output"]["format"])
    leveled = sorted({variant.partition("/")[0] for variant in manifest["variants"] if "/" in variant})
    others = sorted(variant for variant in manifest["variants"] if "/" not in variant)
    for name, variants, depth in (("levels", leveled, 2), ("variants", others, 1)):
        if not variants:
            continue
        files, head = f"{name}-files", "[^/]+/" * depth
        # The names of the checksum files next to the images have no dot.
        yield _file_set(
            files, encoding, [f"{variant}/*.{suffix}" if variant else f"*.{suffix}" for variant in variants]
        )
        if encoding not in _READABLE:
            continue
        fields = _read_fields(files)
        if any(variants):
            fields["corruption"] = (_TEXT, _from_file(files, "fullpath", "^([^/]+)/"))
        if depth == 2:
            fields["severity"] = (_TEXT, _from_file(files, "fullpath", "^[^/]+/([^/]+)/"))
        if manifest["class_folders"]:
            fields["label"] = (_TEXT, _from_file(files, "fullpath", f"^{head * any(variants)}([^/]+)/"))
        yield _record_set(name, "path", fields)


def _describe_shards(manifest: Mapping[str, Any], sums: _Sums) -> Iterator[_Node]:
    """Yield the shards, and a record set for each variant, which names in a shard do not contain."""
    encoding, suffix = _type_of(manifest["settings"]["output"]["sample"]["format"])
    ending = "jpg" if suffix == "*" else suffix
    for prefix, content in sums.items():
        listed = read_sums(content)
        shards = {f"{prefix}{path}": listed[path] for path in sorted(listed) if path.endswith(".tar")}
        for path, digest in shards.items():
            yield _file_object(path, "application/x-tar", digest)
        if shards:
            name = config_name(prefix.removesuffix("/"))
            yield _file_set(f"{name}-files", encoding, [f"*.{ending}"], shards)
            if encoding in _READABLE:
                fields = _read_fields(f"{name}-files")
                if manifest["class_folders"]:
                    fields["label"] = (_TEXT, _from_file(f"{name}-files", "fullpath", "^([^/]+)/"))
                yield _record_set(name, "path", fields)


def _describe_parquet(manifest: Mapping[str, Any], _sums: _Sums) -> Iterator[_Node]:
    """Yield the tables, and a record set with their columns."""
    encoding, _ = _type_of(manifest["settings"]["output"]["sample"]["format"])
    yield _file_set("shards", _PARQUET, [f"{TABLES}/*.parquet"])

    def column(name: str, **transform: str) -> _Node:
        steps = {"transform": transform} if transform else {}
        return {"fileSet": {"@id": "shards"}, "extract": {"column": name}, **steps}

    data_type, name = (_VIDEO, "video") if encoding == "video/mp4" else (_IMAGE, "image")
    fields = {name: (data_type, column(name, jsonPath="bytes")), "label": (_INTEGER, column("label"))}
    fields |= {each: (_TEXT, column(each)) for each in ("corruption", "severity", "key")}
    yield _record_set("rows", None, fields)


def _describe_files(_manifest: Mapping[str, Any], sums: _Sums) -> Iterator[_Node]:
    """Yield the files of sets whose records Croissant cannot describe: arrays and tables of other layouts."""
    for prefix, content in sums.items():
        for path, digest in sorted(read_sums(content).items()):
            yield _file_object(f"{prefix}{path}", "application/octet-stream", digest)


def _describe_folders(manifest: Mapping[str, Any], _sums: _Sums) -> Iterator[_Node]:
    """Yield a pattern for the files of each variant, which are too many to list and of any type."""
    for variant in manifest["variants"]:
        yield _file_set(config_name(variant), "application/octet-stream", [f"{variant}/*"])


_DESCRIPTIONS: Final = {
    **dict.fromkeys(("npy", "npz", "table"), _describe_files),
    "parquet": _describe_parquet,
    "webdataset": _describe_shards,
}
_FILES: Final = {
    "jpeg": ("image/jpeg", "*"),
    "png": ("image/png", "png"),
    "webp": ("image/webp", "webp"),
    "as in the source": ("image/jpeg", "*"),
    "mp4": ("video/mp4", "mp4"),
}
"""Format to media type and suffix of its files."""
