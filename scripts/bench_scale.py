"""What the process that leads a run costs, measured with workers that do nothing.

It hands out tasks, appends receipts to the journal and compiles checksums. All other work is the workers', so
its share decides how many of them one run can use.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from robustgen.benchmark import IMAGENET_C, Arm
from robustgen.generation import runner
from robustgen.generation.plan import Plan
from robustgen.generation.recipes import Recipe
from robustgen.output.manifest import write_manifest
from robustgen.output.records import Written, WrittenFile
from robustgen.output.writers.base import Writer
from robustgen.sources.base import Items

DIGEST = "0123456789abcdef" * 4
FEW, MANY = 200, 1000


class NoImages(Items):
    """The names of `count` images, fifty of a class, as ImageNet has them."""

    def __init__(self, location: Path, count: int) -> None:
        super().__init__(location)
        self.count = count

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(f"n{number:08d}" for number in range(-(-self.count // 50)))

    def keys(self) -> tuple[str, ...]:
        return tuple(f"n{i // 50:08d}/ILSVRC2012_val_{i:08d}.JPEG" for i in range(self.count))

    def load(self, key: str) -> tuple[()]:
        return ()

    def size(self, key: str) -> int:
        return 100_000

    def label(self, key: str) -> int:
        return self.classes.index(key.partition("/")[0])


class NoWork(Recipe):
    """Makes nothing."""

    title = "nothing"

    def make(self, arm, key, prepared, shared=None):
        return None

    def settings(self, arms):
        return {"parameters": {arm.folder: {} for arm in arms}}


@dataclass(frozen=True)
class NoFiles(Writer):
    """Records a file of each image, and writes none."""

    images_per_task: int

    def settings(self):
        return {"format": "none"}

    def output_name(self, key: str) -> str:
        return key

    def write(self, root: Path, arm: Arm, index: int, key: str, pixels: object) -> list[Written]:
        return [WrittenFile(arm.path(key), 10_000, DIGEST)]

    def holds(self, root: Path, written: Written) -> bool:
        return True

    def differences(self, root, arm, index, key, pixels):
        return iter(())


class _Cost(NamedTuple):
    """Seconds of the leading process while the workers work, and at the end."""

    leading: float
    finishing: float


def _run(folder: Path, images: int, per_task: int) -> _Cost:
    source = NoImages(folder, images)
    arms = IMAGENET_C.arms(IMAGENET_C.common, range(1, 6), clean=False)
    output = folder / f"nothing-{per_task}-{images}"
    plan = Plan(NoWork(), source, source.keys(), {}, arms, NoFiles(per_task), output, 2, "nothing", {})
    finishing = 0.0

    def finish(*arguments: object) -> object:
        nonlocal finishing
        began = time.process_time()
        manifest = write_manifest(*arguments)
        finishing += time.process_time() - began
        return manifest

    with mock.patch.object(runner, "write_manifest", finish):
        started = time.process_time()
        runner.run(plan)
        whole = time.process_time() - started
    return _Cost(whole - finishing, finishing)


def measure_leading(folder: Path) -> dict[str, float]:
    """Milliseconds of the leading process for each image of 75, for each task, and for checksums."""
    _run(folder, 8, 1)  # starts the workers
    few, many, singly = _run(folder, FEW, 8), _run(folder, MANY, 8), _run(folder, MANY, 1)
    images = MANY - FEW
    leading, finishing = (1000 * (late - early) / images for early, late in zip(few, many, strict=True))
    # The same images, in tasks of one instead of eight.
    task = max(0.0, 1000 * (singly.leading - many.leading) / (MANY - MANY / 8))
    return {
        "leader_ms_per_receipt": max(0.0, leading - task / 8),
        "leader_ms_per_task": task,
        "leader_ms_per_image_at_the_end": finishing,
    }
