"""Measures what an image costs the process that runs the models, beside the workers that create the images.

    python scripts/bench_feed.py [--photographs 40] [--jobs 2] [--cores 64] [--device cuda] [--network NAME]

The models cost nothing, so what is left is receiving, normalising and storing. Prints the processor time of
the main process of `evaluate`, for each further image: that of a larger run minus that of a small one.
With `--cores`, images cost nothing either: so many workers hand over the same noise again and again, as fast
as the main process takes it. With `--network`, a network of torchvision with random weights, such as
resnet50: images a second of the network alone, and of `evaluate` with it.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import torchvision
from bench_waits import put_photographs  # type: ignore[import-not-found]
from free_rendering import FreeRendering  # type: ignore[import-not-found]
from onnx import TensorProto, helper, numpy_helper, save

from robustgen.display.progress import quiet
from robustgen.files.storage.host import collect_garbage_rarely
from robustgen.lab.evaluation.evaluating import evaluate
from robustgen.lab.models.base import FunctionModel
from robustgen.lab.models.opening import open_model
from robustgen.lab.models.preprocessing import PRESETS
from robustgen.lab.models.pytorch import TorchModel
from robustgen.settings.config import Config
from robustgen.settings.loading import load
from robustgen.settings.models import ModelInput, OnTheFly, Runtime

CLASSES = 10


class Free(torch.nn.Module):  # type: ignore[misc]
    """A module that reads one pixel of each image."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, CLASSES)

    def forward(self, images: Any) -> Any:
        return self.layer(images[:, :, 0, 0])


def answer(images: np.ndarray) -> np.ndarray:
    """Return the same scores for all images."""
    return np.zeros((len(images), CLASSES), np.float32)


def put_onnx(path: Path) -> str:
    """Write a model that reads one pixel of each image."""
    corner = [
        numpy_helper.from_array(np.array(value), name)
        for name, value in (("low", [0, 0]), ("high", [1, 1]), ("axes", [2, 3]))
    ]
    weights = numpy_helper.from_array(np.zeros((3, CLASSES), np.float32), "weights")
    nodes = [
        helper.make_node("Slice", ["images", "low", "high", "axes"], ["pixel"]),
        helper.make_node("Flatten", ["pixel"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["logits"]),
    ]
    given = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 224, 224])
    told = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", CLASSES])
    graph = helper.make_graph(nodes, "free", [given], [told], [*corner, weights])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


def measure(run: Callable[[], object]) -> float:
    """Return the processor seconds of this process, without those of its children; the least of three."""
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF)
        run()
        after = resource.getrusage(resource.RUSAGE_SELF)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def time_network(model: Any, batch: int = 64) -> float:
    """Return how many images a second a network takes that are on its device already."""
    batches = 3 if model._device == "cpu" else 100
    pixels = np.random.default_rng(0).integers(0, 256, (batch, 224, 224, 3), np.uint8)
    with (
        torch.inference_mode(),
        torch.autocast(model._device.partition(":")[0], torch.float16, enabled=model._mixed),
    ):
        images = model._prepare(pixels, PRESETS["imagenet"], torch)
        for count in (3, batches):
            started = time.perf_counter()
            for _ in range(count):
                outputs = model._module(images)
            outputs.float().cpu()
    return batch * batches / (time.perf_counter() - started)


def time_evaluation(model: Any, home: Path, counts: list[int], jobs: int) -> float:
    """Return how many images a second `evaluate` takes, without its start."""
    seconds = []
    for count in counts:
        choices = {"source": str(home / str(count)), "edition": "imagenet", "jobs": jobs}
        outputs = OnTheFly(overwrite=True, quiet=True)
        started = time.perf_counter()
        evaluate(load(Config, None, choices), "c", [model], str(home / "p"), outputs, ModelInput())
        seconds.append(time.perf_counter() - started)
    return 76 * (counts[1] - counts[0]) / (seconds[1] - seconds[0])


def main() -> None:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--photographs", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cores", type=int, help="workers that hand over noise")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--network")
    chosen = parser.parse_args()
    collect_garbage_rarely()
    runtime, outputs = Runtime(device=chosen.device), OnTheFly(overwrite=True, quiet=True)
    counts = [10, 10 + chosen.photographs]
    with tempfile.TemporaryDirectory() as name, quiet():
        home = Path(name)
        for count in counts:
            put_photographs(home / str(count), count)
        if chosen.network:
            print("| network | alone, images a second | `evaluate`, images a second |\n|---|---|---|")
            for mixed in (False, True):
                settings = Runtime(device=chosen.device, mixed_precision=mixed)
                network = getattr(torchvision.models, chosen.network)(
                    weights=None, num_classes=CLASSES
                ).eval()
                on_device = TorchModel(chosen.network, network, settings)
                alone = time_network(on_device)
                whole = time_evaluation(on_device, home, counts, chosen.jobs)
                name = f"{chosen.network}{', half precision' if mixed else ''}"
                print(f"| {name} | {alone:.0f} | {whole:.0f} |", flush=True)
            return
        if chosen.cores:
            mock.patch("robustgen.lab.evaluation.rendering.Rendering", FreeRendering).start()
        models = {
            "a function of pixels": FunctionModel(answer, "free"),
            "PyTorch": open_model("bench_feed:Free", runtime),
            "ONNX, on the CPU": open_model(put_onnx(home / "free.onnx"), Runtime(device="cpu")),
        }
        print("| model | main process |\n|---|---|")
        for name, model in models.items():
            spent = list[float]()
            for count in counts:
                jobs = chosen.cores or chosen.jobs
                choices = {"source": str(home / str(count)), "edition": "imagenet", "jobs": jobs}
                config, place = load(Config, None, choices), str(home / "p")
                spent.append(measure(partial(evaluate, config, "c", [model], place, outputs, ModelInput())))
            each = 1000 * (spent[1] - spent[0]) / (76 * chosen.photographs)
            print(f"| {name} | {each:.3f} ms |", flush=True)


if __name__ == "__main__":
    main()
