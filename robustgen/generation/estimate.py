"""What a run would take: outputs, bytes and seconds."""

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from robustgen.errors import (
    ImageError,
)
from robustgen.generation.plan import Plan
from robustgen.generation.tasks import Item, Task, run_task
from robustgen.generation.workers import count_cores
from robustgen.output.files import temporary_folder


@dataclass(frozen=True)
class Estimate:
    """What a run would take: outputs, bytes and seconds, judged by making one image."""

    outputs: int
    size: int
    seconds: float


def estimate(plan: Plan) -> Estimate:
    """Judge the cost of `plan` by the first image that can be made, in a temporary folder.

    Raises
    ------
    ImageError
        No image can be made.
    """
    with TemporaryDirectory() as folder:
        root = Path(folder)
        temporary_folder(root).mkdir(parents=True)
        plan.writer.start(root)
        for key in plan.keys:
            task = Task(plan.recipe, plan.source, plan.writer, root, (Item(0, key, 0, plan.arms),))
            # The first time compiles the loops and builds the tables.
            run_task(task)
            started = time.perf_counter()
            (receipt,) = run_task(task)
            seconds = time.perf_counter() - started
            if not receipt.failures:
                break
        else:
            reason = receipt.failures[0]["reason"] if plan.keys else "there are none"
            raise ImageError(f"{plan.source.location}: none of the images can be made: {reason}")
        size = sum(written.size for files in receipt.files.values() for written in files)
    images = len(plan.keys)
    return Estimate(images * len(plan.arms), size * images, seconds * images / (plan.jobs or count_cores()))
