"""Exported programs of PyTorch (``.pt2``), inspected before PyTorch loads them.

`torch.export.load` unpickles objects, evaluates the expressions of shapes and calls the functions that the
graph names: a file can run any code. This module refuses everything that is not on a list of harmless things.
"""

import ast
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from robustgen.files.text_files import parse_json

# Graphs of large networks have megabytes, most of them stack traces.
_MOST_GRAPH: Final = 1 << 28

_HARMLESS: Final = re.compile(
    r"archive_format|archive_version|byteorder|version|\.format_version|\.storage_alignment|"
    r"\.data/(version|serialization_id)|extra/.*|data/weights/weight_\d+|data/constants/tensor_\d+"
)
_GRAPH: Final = re.compile(r"models/[\w.-]+\.json")
_TENSORS: Final = re.compile(r"data/(weights|constants)/[\w.-]+_config\.json")
_PICKLE: Final = re.compile(r"data/(weights|constants|sample_inputs)/[\w.-]+\.pt")

_OPERATORS: Final = re.compile(
    r"torch\.ops\.aten\.(?!(save|from_file)\.)(_?[A-Za-z]\w*|__(and|or|xor|lshift|rshift)__)\.[A-Za-z]\w*|"
    r"torch\.ops\.higher_order\.wrap_with_(set_grad_enabled|autocast)|"
    r"torch\._?sym_[a-z]+|math\.[a-z][a-z0-9]*|"
    r"_operator\.(getitem|add|sub|mul|truediv|floordiv|mod|pow|neg|pos|abs|eq|ne|lt|le|gt|ge|and_|or_|not_)"
)
# Names of nodes become names in a function that PyTorch writes and executes.
_NAME: Final = re.compile(r"[\w.:+<=-]*")
# Texts that PyTorch neither evaluates nor writes into code, except as quoted strings.
_TEXTS: Final = ("as_string", "as_strings", "stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn")
_CUSTOM: Final = ("custom_obj", "as_custom_obj", "custom_obj_values")
_CONTAINERS: Final = (None, "builtins.tuple", "builtins.list", "builtins.dict")

# Functions of SymPy, and those that PyTorch adds.
_FUNCTIONS: Final = (
    *("Symbol", "Integer", "Float", "Rational", "Add", "Mul", "Pow", "Max", "Min", "Abs", "Mod"),
    *("And", "Or", "Not", "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "Equality", "Unequality"),
    *("StrictLessThan", "LessThan", "StrictGreaterThan", "GreaterThan", "floor", "ceiling"),
    *("FloorDiv", "ModularIndexing", "Where", "PythonMod", "CleanDiv", "CeilToInt", "FloorToInt", "CeilDiv"),
    *("LShift", "RShift", "PowByNatural", "FloatPow", "FloatTrueDiv", "IntTrueDiv", "TruncToFloat"),
    *("TruncToInt", "RoundToInt", "RoundDecimal", "ToFloat", "Identity"),
)
_ARITHMETIC: Final = (
    *(ast.Expression, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.keyword, ast.Load),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)


def find_danger(path: Path, torch: Any) -> str | None:
    """Return why loading the archive at `path` could run code; None if it cannot.

    Parameters
    ----------
    path : Path
    torch : module
        PyTorch.
    """
    try:
        reader = torch._C.PyTorchFileReader(str(path))
        records = [str(name) for name in reader.get_all_records()]
        # If loading fails, PyTorch uses another reader, for the format of older releases.
        with zipfile.ZipFile(path) as archive:
            listed = [name.partition("/")[2] for name in archive.namelist()]
    except (RuntimeError, zipfile.BadZipFile):
        records = listed = []
    if "archive_format" not in records or sorted(listed) != sorted(records):
        return "is not in the format of PyTorch 2.8 and later"
    for name in records:
        if problem := _check_record(name, reader, torch):
            return problem
    return None


def _check_record(name: str, reader: Any, torch: Any) -> str | None:
    """Return the first danger in one file of the archive."""
    if _HARMLESS.fullmatch(name):
        return None
    if _PICKLE.fullmatch(name):
        try:
            # PyTorch tries this too, but continues without the restriction if it fails.
            torch.load(io.BytesIO(reader.get_record(name)), map_location="cpu", weights_only=True)
        except Exception:
            return f"contains a pickle with more than tensors, {name}"
        return None
    if not _GRAPH.fullmatch(name) and not _TENSORS.fullmatch(name):
        return f"contains {name}"
    try:
        content = parse_json(reader.get_record(name), _MOST_GRAPH)
        problems = _check_graph(content) if _GRAPH.fullmatch(name) else _check_tensors(content)
        return next((f"contains {problem} in {name}" for problem in problems), None)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return f"contains something unknown in {name}"


def _check_tensors(content: Any) -> Iterator[str]:
    """Yield weights or constants that are not plain tensors."""
    for entry in content["config"].values():
        if entry["use_pickle"] is not False or not re.fullmatch(r"(weight|tensor)_\d+", entry["path_name"]):
            yield f"the object {entry['path_name']!r}"
    yield from _check_graph(content)


def _check_graph(value: Any, key: str = "") -> Iterator[str]:
    """Yield what could run code in a part of the graph, found under `key`."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name in _CUSTOM and each:
                yield "a custom object"
            if not _NAME.fullmatch(name):
                yield f"the name {name!r}"
            yield from _check_graph(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from _check_graph(each, key)
    elif isinstance(value, str) and not _is_harmless(value, key):
        yield f"{value[:60]!r}"


def _is_harmless(text: str, key: str) -> bool:
    if key in ("target", "as_operator"):
        return bool(_OPERATORS.fullmatch(text))
    if key in ("expr_str", "guards_code"):
        return _is_arithmetic(text)
    if key in ("in_spec", "out_spec"):
        return _is_plain_container(parse_json(text)[1])
    return key in _TEXTS or bool(_NAME.fullmatch(text))


def _is_arithmetic(text: str) -> bool:
    """Return whether an expression only computes with sizes and calls known functions."""
    if re.search(r"[#\\\n\r]", text):
        return False
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, MemoryError):
        return False
    callees = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return all(_is_known(node, id(node) in callees) for node in ast.walk(tree))


def _is_known(node: ast.AST, called: bool) -> bool:
    if isinstance(node, ast.Name):
        known = r"[a-z]+\d+|L|torch|True|False"
        return node.id in _FUNCTIONS if called else bool(re.fullmatch(known, node.id))
    if isinstance(node, ast.Attribute):
        # L['x'].size(), torch.sym_max(...)
        of_torch = isinstance(node.value, ast.Name) and node.value.id == "torch"
        return called and bool(re.fullmatch(r"_?sym_[a-z]+" if of_torch else r"size|stride", node.attr))
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, (str, bytes)) or bool(re.fullmatch(r"\w*", str(node.value)))
    if isinstance(node, ast.Call):
        return isinstance(node.func, (ast.Name, ast.Attribute))
    return isinstance(node, (*_ARITHMETIC, ast.Subscript))


def _is_plain_container(tree: Any) -> bool:
    known = tree["type"] in _CONTAINERS
    return known and all(_is_plain_container(each) for each in tree["children_spec"])
