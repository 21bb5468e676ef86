"""`predict` and `evaluate`, started three times at once: they divide the work between them."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.digits import put_folder
from tests.helpers import PATIENCE, cli, litter, tree

pytestmark = pytest.mark.slow("three processes share each set")

RUNS = 3
PLAIN = ("--preprocessing", "mean=0", "--preprocessing", "std=1")
SET = ("--set", "constants_for=32", "--corruptions", "gaussian_noise,fog", "--severities", "1,3")

# Nobody begins before all have loaded their models, which then take long enough for each to get its part.
CODE = """
import os, sys, time
import numpy as np
from pathlib import Path
from robustgen.cli import main
from robustgen.files.ledger import Ledger
from robustgen.lab.evaluation.detection.detecting import _Results
from robustgen.lab.models.onnx import OnnxModel

place, runs, last = Path(sys.argv.pop(1)), int(sys.argv.pop(1)), int(sys.argv.pop(1))
claim, run, detect, shown = Ledger.claim, OnnxModel.run, _Results.detect, [-1]

def wait(self, name, **choices):
    if shown[0] < 0:
        (place / str(os.getpid())).touch()
        while len([*place.iterdir()]) < runs:
            time.sleep(0.02)
        shown[0] = 0
    return claim(self, name, **choices)

def look(images):
    if shown[0] >= 0:
        shown[0] += images
        time.sleep(0.1)
    if shown[0] >= last:
        os.kill(os.getpid(), 9)

def count(self, images, preprocessing):
    look(len(images))
    # Other images in a batch would give other bytes.
    return run(self, images, preprocessing) * (1 + np.mean(images))

def count_one(self, *given):
    look(1)
    return detect(self, *given)

Ledger.claim, OnnxModel.run, _Results.detect = wait, count, count_one
try:
    main()
finally:
    print("shown", shown[0], flush=True)
"""


def start(place, runs, *args, last=1000000):
    place.mkdir(exist_ok=True)
    command = [sys.executable, "-c", CODE, place, runs, last, *args]
    return subprocess.Popen(
        [str(each) for each in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(place.parent)},
    )


def count_shown(processes, status):
    """The number of images that each run shows to its model."""
    answers = [process.communicate(timeout=PATIENCE) for process in processes]
    assert [process.returncode for process in processes] == [status] * len(processes), answers
    return [int(re.findall(r"^shown (-?\d+)$", said, re.MULTILINE)[0]) for said, _ in answers]


def files(root):
    """All files but for the state of runs."""
    return {name: data for name, data in tree(root).items() if ".robustgen/" not in name}


def check_sharing(tmp_path, command, status=0, file=""):
    """Hold three runs of `command` to the bytes and the work of one."""
    (alone,) = count_shown(
        [start(tmp_path / "first", 1, *command, "--output", tmp_path / "one" / file)], status
    )
    together = count_shown(
        [start(tmp_path / "all", RUNS, *command, "--output", tmp_path / "out" / file) for _ in range(RUNS)],
        status,
    )
    assert min(together) > 0, "one of them had nothing to do"
    assert alone <= sum(together) <= 1.15 * alone
    assert files(tmp_path / "out") == files(tmp_path / "one")
    assert not litter(tmp_path / "out")
    assert not [*tmp_path.glob("out/**/claims/**/*")] and not [*tmp_path.glob("out/**/parts/**/*.npy")]


def check_resuming(tmp_path, command, file=""):
    """Kill one of two runs of `command` in the middle of its work; the other one does the rest."""
    output = ("--output", tmp_path / "resumed" / file)
    (alone,) = count_shown([start(tmp_path / "only", 1, *command, "--output", tmp_path / "whole" / file)], 0)
    killed = start(tmp_path / "both", 2, *command, *output, last=alone // 4)
    left = count_shown([start(tmp_path / "both", 2, *command, *output)], 0)[0]
    assert killed.wait(PATIENCE) == -9
    assert left < alone
    assert files(tmp_path / "resumed") == files(tmp_path / "whole")
    assert not litter(tmp_path / "resumed") and not [*tmp_path.glob("resumed/**/claims/**/*")]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return put_folder(tmp_path_factory.mktemp("digits") / "digits", 24)


def test_predict(digits, model, tmp_path):
    cli("make-c", "--source", digits, "--output", tmp_path / "set", "--jobs", "1", *SET)
    check_sharing(tmp_path, ("predict", tmp_path / "set", "--model", model, *PLAIN, "--batch-size", "2"))


def test_evaluate(digits, model, tmp_path):
    flags = (*SET, *PLAIN, "--batch-size", "2", "--jobs", "1")
    check_sharing(tmp_path, ("evaluate", "--source", digits, "--model", model, *flags))


def test_evaluate_although_images_fail(digits, model, tmp_path):
    source = shutil.copytree(digits, tmp_path / "source")
    for place in (0, 9, 23):
        victim = sorted(source.rglob("*.png"))[place]
        victim.write_bytes(victim.read_bytes()[:80])
    flags = (*SET, *PLAIN, "--batch-size", "2", "--jobs", "1")
    command = ("evaluate", "--source", source, "--model", model, *flags)
    check_sharing(tmp_path, command, status=1)
    with np.load(tmp_path / "out" / "digits" / "fog" / "1.npz") as found:
        assert len(found["keys"]) == 21


def test_detect(digits, tmp_path):
    """The detector sees one object in each digit, whose class it takes from the image."""
    (tmp_path / "mydetector.py").write_text(
        "def mean(image):\n"
        "    return [{'category_id': 1 + int(image.mean()) % 2, 'bbox': [1, 2, 3, 4], 'score': 0.5}]\n"
    )
    names = [path.relative_to(digits).as_posix() for path in sorted(digits.rglob("*.png"))]
    content = {
        "images": [
            {"id": i, "file_name": name, "height": 32, "width": 32} for i, name in enumerate(names, 1)
        ],
        "annotations": [],
        "categories": [{"id": 1}, {"id": 2}],
    }
    (tmp_path / "instances.json").write_text(json.dumps(content))
    own = ("--annotations", tmp_path / "instances.json", "--model", "mydetector:mean", "--quiet")
    command = ("evaluate", "--source", digits, *own, *SET, "--set", "format=original", "--jobs", "1")
    check_sharing(tmp_path, command)
    check_resuming(tmp_path, command)
