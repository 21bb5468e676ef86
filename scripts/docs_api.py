"""Writes docs/api/: a page for every public module, from its docstrings. The modules are read, not imported.

Usage: .venv/bin/python scripts/docs_api.py [--check]
"""

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "api"
# What users import, in the order of the index.
MODULES = {
    "robustgen": "corrupt, perturb and augment images",
    "robustgen.dataset": "read finished and published sets",
    "robustgen.predictions": "write and read predictions of any framework",
    "robustgen.metrics": "the scores of the papers",
    "robustgen.torch": "data sets, a transform and a loss for PyTorch",
    "robustgen.registry": "corruptions and perturbations of your own",
    "robustgen.benchmark": "the two benchmarks as tables, and their arms",
    "robustgen.compat.imagecorruptions": "the functions of the package imagecorruptions",
    "robustgen.errors": "every exception",
}
NOTE = "<!-- Written by scripts/docs_api.py from the docstrings; change those, and run it again. -->\n"
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True)
class Entry:
    """A public name: the node that defines it, and the docstring that belongs to it."""

    name: str
    node: Definition | None
    doc: str


def module_tree(name: str) -> ast.Module:
    path = ROOT.joinpath(*name.split("."))
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8"))


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def public_names(tree: ast.Module, module: str) -> dict[str, str]:
    """Each public name with the module it comes from."""
    imported = {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("robustgen")
        for alias in node.names
    }
    listed = _listed(tree)
    if listed is None:
        again = [
            alias.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.asname == alias.name
        ]
        listed = [*again, *(n for n in definitions(tree) if not n.startswith("_"))]
    return {name: imported.get(name, module) for name in listed if not name.startswith("__")}


def _listed(tree: ast.Module) -> list[str] | None:
    """What `__all__` lists; the keys of `_PUBLIC` where it unpacks them; None where there is no `__all__`."""
    assigned = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    listed = assigned.get("__all__")
    if not isinstance(listed, ast.List):
        return None
    lazy = list(ast.literal_eval(assigned["_PUBLIC"])) if "_PUBLIC" in assigned else []
    return lazy + [each.value for each in listed.elts if isinstance(each, ast.Constant)]


def definitions(tree: ast.Module) -> dict[str, Entry]:
    """What a module defines; constants with the text below them."""
    found: dict[str, Entry] = {}
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = Entry(node.name, node, ast.get_docstring(node) or "")
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            text = after.value.value if _is_text(after) else ""  # type: ignore[union-attr]
            found |= {t.id: Entry(t.id, node, text) for t in targets if isinstance(t, ast.Name)}
    return found


def _is_text(node: ast.stmt | None) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def find(name: str, module: str) -> Entry:
    """The definition of `name`, followed through the modules that only pass it on."""
    tree = module_tree(module)
    own = definitions(tree)
    if name in own:
        return own[name]
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("robustgen"):
            for alias in node.names:
                if (alias.asname or alias.name) == name and not is_module(f"{node.module}.{alias.name}"):
                    return find(alias.name, node.module)
    raise SystemExit(f"{module}: where does {name} come from?")


# --- Markdown --------------------------------------------------------------------------------------


def page(module: str) -> str:
    tree = module_tree(module)
    entries = [find(name, place) for name, place in public_names(tree, module).items()]
    lines = [f"# `{module}`", "", NOTE, render_text(ast.get_docstring(tree) or ""), ""]
    for entry in entries:
        if isinstance(entry.node, (ast.FunctionDef, ast.ClassDef)):
            lines += render_definition(entry)
    if constants := [each for each in entries if isinstance(each.node, (ast.Assign, ast.AnnAssign))]:
        lines += ["## Constants and types", ""]
        lines += [f"- `{each.name}`{_meaning(each)}" for each in constants] + [""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _meaning(entry: Entry) -> str:
    return f": {_inline(' '.join(entry.doc.split()))}" if entry.doc else ""


def render_definition(entry: Entry) -> list[str]:
    """The head, the docstring, and of a class what it can do."""
    node = entry.node
    assert isinstance(node, (ast.FunctionDef, ast.ClassDef))
    lines = [f"## {entry.name}", "", "```python", signature(node), "```", "", render_text(entry.doc), ""]
    methods = [
        _method(each) for each in node.body if isinstance(each, ast.FunctionDef) and each.name[0] != "_"
    ]
    if methods and isinstance(node, ast.ClassDef):
        lines += ["*Methods and properties*", "", *methods, ""]
    return lines


def _method(node: ast.FunctionDef) -> str:
    doc = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    kinds = {ast.unparse(each) for each in node.decorator_list}
    call = node.name if kinds & {"property", "cached_property"} else " ".join(_call(node).split())
    return f"- `{call}`: {_inline(doc)}"


def signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    """The head of a function, or how a class is called."""
    if isinstance(node, ast.FunctionDef):
        return f"{_call(node)}{f' -> {ast.unparse(node.returns)}' if node.returns else ''}"
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            return _call(each, node.name)
    bases = ", ".join(map(ast.unparse, node.bases))
    fields = [
        n for n in node.body if isinstance(n, ast.AnnAssign) and not ast.unparse(n.target).startswith("_")
    ]
    if any("dataclass" in ast.unparse(each) for each in node.decorator_list) or bases == "NamedTuple":
        return _broken(node.name, ", ".join(map(_field, fields)))
    return f"class {node.name}({bases})" if bases else f"class {node.name}"


def _field(node: ast.AnnAssign) -> str:
    plain = isinstance(node.value, (ast.Constant, ast.Tuple))
    default = f" = {ast.unparse(node.value)}" if node.value and plain else " = ..." if node.value else ""
    return f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}{default}"


def _call(node: ast.FunctionDef, name: str | None = None) -> str:
    """The call without what Python fills in, broken into lines where it is long."""
    arguments = re.sub(r"^(self|cls)(, )?", "", ast.unparse(node.args))
    return _broken(name or node.name, arguments)


def _broken(name: str, arguments: str) -> str:
    call = f"{name}({arguments})"
    if len(call) <= 100:
        return call
    # Commas within brackets part no arguments.
    parts = re.split(r", (?![^\[({]*[\])}])", arguments)
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def render_text(doc: str) -> str:
    """A numpydoc docstring: its sections as lists, the rest as it is, indented parts as code."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", doc, flags=re.MULTILINE)
    lines = [_prose(parts[0])]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        lines += ["", f"*{title}*", "", *_items(body)]
    return "\n".join(lines).strip()


def _prose(text: str) -> str:
    """Paragraphs; what is indented or aligned in columns, as code."""
    blocks = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.split("\n")
        code = lines[0].startswith("    ") or any(re.search(r"\S {3,}\S", line) for line in lines)
        plain = f"{block[:-1]}" if block.endswith("::") else block
        blocks.append(f"```text\n{block}\n```" if code else _inline(plain))
    return "\n\n".join(blocks)


def _inline(text: str) -> str:
    """Marks that Markdown would take for its own; those of code are left."""
    parts = text.replace("``", "`").split("`")
    return "`".join(part if i % 2 else re.sub(r"([<\[_*])", r"\\\1", part) for i, part in enumerate(parts))


def _items(body: str) -> list[str]:
    """`name : type` with what is indented below it, one item each."""
    items: list[tuple[str, list[str]]] = []
    for line in body.rstrip().split("\n"):
        if line.startswith("    ") and items:
            items[-1][1].append(line.strip())
        elif line.strip():
            name, colon, kind = line.partition(" : ")
            items.append((f"`{name}`, {_inline(kind)}" if colon else _inline(line), []))
    return [f"- {head}" + (f": {_inline(' '.join(text))}" if text else "") for head, text in items]


def index() -> str:
    lines = ["# Python reference", "", NOTE]
    lines += [f"- [`{module}`]({module}.md): {about}" for module, about in MODULES.items()]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """File names and what belongs into them."""
    return {"README.md": index()} | {f"{module}.md": page(module) for module in MODULES}


def stale() -> list[str]:
    """The pages that are not current, or should not be there."""
    wanted = pages()
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    return sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(f"not current: {', '.join(stale())}" if stale() else 0)
    FOLDER.mkdir(exist_ok=True)
    for name in stale():
        (FOLDER / name).unlink(missing_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
