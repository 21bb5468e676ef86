"""The commands of the page on vision-language models, from a table to the page of scores, with stand-ins.

VLMEvalKit's `run.py` and the module `lmms_eval` are stand-ins that write what those write, with the answers
of a model that is right if it can see: on pictures that are sharp enough.
"""

import os
import re
import subprocess
import sys
from base64 import b64decode
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from PIL import Image
from pyarrow import parquet

from robustgen.lab.scores.answer_files import read_rows
from tests.helpers import PATIENCE, photo
from tests.lab.inspection.test_pages import page_data
from tests.lab.scores.test_answers import put, put_mmbench

PAGE = Path(__file__).parent.parent / "docs/use/vision-language.md"


def encode(seed):
    file = BytesIO()
    Image.fromarray(photo(64, 64, seed)).save(file, "JPEG", quality=95)
    return file.getvalue()


def sees(picture, question):
    """Whether the model sees what a question is about."""
    pixels = np.asarray(Image.open(BytesIO(picture)).convert("L"), float)
    return np.abs(np.diff(pixels)).mean() > 2 + question % 7


def answer_as_vlmevalkit(names, folder, model, judge):
    """Write a file of results for each set in $LMUData, as `run.py` does: without its pictures."""
    for name in names:
        rows = [*read_rows(Path(os.environ["LMUData"]) / f"{name}.tsv")]  # noqa: SIM112
        pictures = {row["index"]: row["image"] for row in rows}
        judged = []
        for row in rows:
            if (index := int(row["index"])) < 1_000_000:
                picture = row["image"] if len(row["image"]) > 64 else pictures[row["image"]]
                hit = int(sees(b64decode(picture), index))
                own = {key: cell for key, cell in row.items() if key != "image"} | {"index": index}
                judged.append(
                    own | {"prediction": row["answer"] if hit else "?", "g_index": index, "hit": hit}
                )
        put(Path(folder) / model / f"{model}_{name}_{judge}_result.xlsx", judged)


def answer_as_lmms_eval(tasks, folder, model):
    """Write the samples of each task, whose tables `make-c` wrote."""
    for task in tasks:
        variant = Path("out/bench-c", task.removeprefix("bench_").replace("-", "/"))
        rows = [row for path in sorted(variant.glob("*.parquet")) for row in read_rows(path)]
        samples = [
            {"doc_id": number, "target": row["answer"], "filtered_resps": "x", "doc_hash": None}
            | {"exact_match": float(sees(row["image"]["bytes"], number))}
            for number, row in enumerate(rows)
        ]
        put(Path(folder) / model / f"20261129_101500_samples_{task}.jsonl", samples)


PROGRAMS = {
    "run.py": """
parser.add_argument("--data", nargs="+"), parser.add_argument("--judge"), parser.add_argument("--work-dir")
given, _ = parser.parse_known_args()
if "ChartQA_TEST_clean" not in given.data:
    answer_as_vlmevalkit(given.data, given.work_dir, given.model, given.judge)
""",
    "lmms_eval.py": """
parser.add_argument("--tasks"), parser.add_argument("--output_path"), parser.add_argument("--include_path")
parser.add_argument("--log_samples", action="store_true", required=True)
given = parser.parse_args()
answer_as_lmms_eval(given.tasks.split(","), given.output_path, given.model)
""",
}


@pytest.mark.slow("runs all commands of a page as processes")
def test_the_page_leads_from_tables_to_scores(tmp_path):
    pytest.importorskip("openpyxl")
    for name, text in PROGRAMS.items():
        head = f"import argparse, sys\nsys.path.insert(0, {str(PAGE.parents[2])!r})\n"
        head += "from tests.test_docs_answers import *\nparser = argparse.ArgumentParser()\n"
        (tmp_path / name).write_text(f'{head}parser.add_argument("--model"){text}')
    put_mmbench(tmp_path, encode)
    cells = [{"bytes": encode(seed // 2), "path": None} for seed in range(12)]
    columns = {"image": cells, "question": ["?"] * 12, "answer": [*map(str, range(12))]}
    (tmp_path / "bench").mkdir()
    for part in range(2):
        table = pyarrow.table({name: values[part::2] for name, values in columns.items()})
        parquet.write_table(table, tmp_path / f"bench/test-0000{part}.parquet")
    (tmp_path / "LMUData").mkdir()
    (tmp_path / "classes.json").write_text("{}")
    program = tmp_path / "bin/robustgen"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom robustgen.cli import main\nmain()\n")
    program.chmod(0o755)
    (tmp_path / "bin/python").symlink_to(sys.executable)
    blocks = re.findall(r"^```(?:console|sh)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    script = re.sub(r"^\$ (pip .*)?", "", "".join(blocks), flags=re.MULTILINE)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script.replace("python ", f"{sys.executable} ")],
        cwd=tmp_path,
        env={
            **os.environ,
            "LMUData": f"{tmp_path}/LMUData",
            "PATH": f"{program.parent}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    data = page_data(tmp_path / "mmbench.html")
    own = {each["of"]: each for each in data["scores"]}
    assert (data["questions"], data["pictures"], data["unmatched"]) == (20, 10, {"NAME": 0})
    assert own["clean"]["accuracy"] > own["fog"]["accuracy"] and own["fog"]["questions"] == 20
    assert "12 questions about 6 pictures; severity 3" in done.stdout
