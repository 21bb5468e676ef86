"""Measures what an image costs the process that runs the models, beside the workers that create the images.

    python scripts/bench_feed.py [--photographs 40] [--jobs 2] [--cores 64] [--device cuda] [--network NAME]
    python scripts/bench_feed.py --memory

The models cost nothing, so what is left is receiving, normalising and storing. Prints the processor time of
the main process of `evaluate`, for each further image: that of a larger run minus that of a small one.
With `--cores`, images cost nothing either: so many workers hand over the same noise again and again, as fast
as the main process takes it; measured beside it, what an image costs a worker, and so how many workers the
main process keeps busy. With `--network`, a network of torchvision with random weights, such as
resnet50: images a second of the network alone, and of `evaluate` with it. With `--memory`, what the input of
a model on the CPU costs if workers hand over bytes, which are looked up, or floats, which are copied.
"""

import argparse
import resource
import socket
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
from robustgen.files.storage.host import collect_garbage_rarely, receive_memory, send_memory
from robustgen.lab.evaluation.evaluating import evaluate
from robustgen.lab.models.base import FunctionModel, Model
from robustgen.lab.models.opening import open_model
from robustgen.lab.models.preprocessing import PRESETS
from robustgen.lab.models.pytorch import TorchModel
from robustgen.pixels.imaging.colour import look_up_channels
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


def time_memory() -> None:
    """Print what an image costs that another process has put into shared memory, as bytes and as floats."""
    pixels = np.random.default_rng(0).integers(0, 256, (640, 224, 224, 3), np.uint8)
    tables, batch = (
        PRESETS["imagenet"].tabulate(np.dtype(np.float32)),
        np.empty((64, 3, 224, 224), np.float32),
    )
    floats = np.empty((len(pixels), *batch.shape[1:]), np.float32)
    for image, place in zip(pixels, floats, strict=True):
        look_up_channels(image, tables, place, planar=True)
    ways: dict[str, tuple[np.ndarray, Callable[[np.ndarray, np.ndarray], object]]] = {
        "bytes, looked up": (
            pixels,
            lambda image, place: look_up_channels(image, tables, place, planar=True),
        ),
        "floats, copied": (floats, lambda image, place: np.copyto(place, image)),
    }
    here, there = socket.socketpair()
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(6):
        for way, (images, take) in ways.items():
            send_memory(there, [images.data.cast("B")])
            before = time.thread_time()
            (part,) = receive_memory(here, [images.nbytes])
            received = np.frombuffer(part, images.dtype).reshape(images.shape)
            for number, image in enumerate(received):
                take(image, batch[number % len(batch)])
            del image, received
            part.release()
            spent[way].append((time.thread_time() - before) / len(images))
    print("| handed over | main process |\n|---|---|")
    for way, each in spent.items():
        print(f"| {way} | {1000 * min(each):.3f} ms |")


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
    parser.add_argument("--memory", action="store_true")
    chosen = parser.parse_args()
    if chosen.memory:
        time_memory()
        return
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

        def time_image(model: Model, jobs: int) -> float:
            """Return the milliseconds of processor time of this process for each further image."""
            spent = list[float]()
            for count in counts:
                choices = {"source": str(home / str(count)), "edition": "imagenet", "jobs": jobs}
                config, place = load(Config, None, choices), str(home / "p")
                spent.append(measure(partial(evaluate, config, "c", [model], place, outputs, ModelInput())))
            return 1000 * (spent[1] - spent[0]) / float(76 * chosen.photographs)

        models = {
            "a function of pixels": FunctionModel(answer, "free"),
            "PyTorch": open_model("bench_feed:Free", runtime),
            "ONNX, on the CPU": open_model(put_onnx(home / "free.onnx"), Runtime(device="cpu")),
        }
        if not chosen.cores:
            print("| model | main process |\n|---|---|")
            for name, model in models.items():
                print(f"| {name} | {time_image(model, chosen.jobs):.3f} ms |", flush=True)
            return
        # With one job, this process creates the images itself.
        alone = time_image(models["a function of pixels"], 1)
        mock.patch("robustgen.lab.evaluation.rendering.Rendering", FreeRendering).start()
        own = {name: time_image(model, chosen.cores) for name, model in models.items()}
        worker = alone - own["a function of pixels"]
        print(f"An image costs a worker {worker:.3f} ms.")
        print("| model | main process | workers |\n|---|---|---|")
        for name, each in own.items():
            print(f"| {name} | {each:.3f} ms | {worker / each:.1f} |")


if __name__ == "__main__":
    main()
