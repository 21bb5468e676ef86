#!/usr/bin/env python3
"""Creates the canonical sets and writes their digests.

They go into robustgen/pixels/benchmarks/canonical.json and docs/background/canonical.md. They also replace
the old digests in the examples of other pages.

    python scripts/canonical.py [--check] [--folder DIR] [SOURCE ...]

SOURCE is demo, smoke, cifar-10 or cifar-100; by default demo and smoke. The two CIFAR sets are read from
CIFAR_10 and CIFAR_100; until they are created for the first time, their digests are `pending`. With --check,
nothing is written, and the exit status is 1 if a digest differs: use it with the lowest and the newest
releases of the libraries.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import robustgen
from robustgen.pixels.benchmarks.canonical import PENDING, TABLE

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "background" / "canonical.md"
TITLES = {"demo": "demo", "smoke": "smoke", "cifar-10": "CIFAR-10", "cifar-100": "CIFAR-100"}
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"
SEED = 0


def create(source, kind, operations, folder):
    """Return the digest of one set, or that of the frames if the set contains videos."""
    option = {"c": "--corruptions", "p": "--perturbations"}[kind]
    choice = [option, "all"] if operations == "all" else []
    output = folder / f"{source}-{kind}-{operations}"
    command = [sys.executable, "-m", "robustgen", f"make-{kind}", "--dataset", source, "--seed", str(SEED)]
    subprocess.run([*command, *choice, "--output", str(output), "--quiet"], check=True)
    manifest = json.loads((output / "dataset.json").read_text())
    return manifest.get("frames_digest") or manifest["digest"]


def make_row(source, kind, operations, digest):
    title = f"{TITLES[source]}-{kind.upper()}" + (" with all operations" if operations == "all" else "")
    return {
        "source": source,
        "kind": kind,
        "operations": operations,
        "seed": SEED,
        "title": title,
        "release": ".".join(robustgen.__version__.split(".")[:2]),
        "digest": digest,
    }


def write(rows):
    TABLE.write_text(json.dumps(rows, indent=1) + "\n")
    lines = ["| set | source | operations | digest |\n", "|---|---|---|---|\n"]
    lines += [f"| {r['title']} | `{r['source']}` | {r['operations']} | `{r['digest']}` |\n" for r in rows]
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(head + BEGIN + "\n" + "".join(lines) + "\n" + END + rest.partition(END)[2])


def update_examples(changed):
    """Replace the digests in the examples of other pages; `changed` maps old ones to new ones."""
    for page in DOCS.rglob("*.md"):
        text = page.read_text()
        for before, digest in changed.items():
            text = text.replace(before, digest)
        page.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--folder", type=Path, help="keep the sets in this folder")
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="default: demo smoke")
    given = parser.parse_args()
    sources = given.sources or ["demo", "smoke"]
    if unknown := set(sources) - set(TITLES):
        parser.error(f"unknown SOURCE: {', '.join(sorted(unknown))}")
    known = {
        (row["source"], row["kind"], row["operations"]): row["digest"]
        for row in (json.loads(TABLE.read_text()) if TABLE.exists() else [])
    }
    rows, changed, others = [], {}, 0
    with tempfile.TemporaryDirectory() as temporary:
        for source in TITLES:
            for kind in "cp":
                for operations in ("default", "all"):
                    before = digest = known.get((source, kind, operations), PENDING)
                    if source in sources:
                        digest = create(source, kind, operations, given.folder or Path(temporary))
                        print(
                            f"{source} {kind} {operations}: {digest}",
                            "" if digest == before else f"(was {before})",
                        )
                        others += digest != before
                        if before not in (digest, PENDING):
                            changed[before] = digest
                    rows.append(make_row(source, kind, operations, digest))
    if not given.check:
        write(rows)
        update_examples(changed)
    print(f"{others} differ")
    sys.exit(given.check and others > 0)


if __name__ == "__main__":
    main()
