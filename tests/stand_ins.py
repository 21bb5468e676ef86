"""Stand-ins for what a reader of the guides has: photographs, data sets as published, models, predictions."""

import gzip
import io
import json
import pickle
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pyarrow
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from pyarrow import parquet
from scipy.io import savemat

from robustgen.files.text_files import imagenet_classes
from robustgen.pixels.benchmarks.kinds import IMAGENET_C
from tests import source_writers
from tests.emoji import NAMES as ICONS
from tests.emoji import datasource, fluent
from tests.helpers import cifar_folder, photo, put_photo
from tests.sets.sources.test_clip_folder import names_of, put_frames, put_video

# Two of the classes of ImageNet, as the models have, and one image of each.
CLASSES = ("n01440764", "n01443537")
NAMES = ("ILSVRC2012_val_00000293.JPEG", "ILSVRC2012_val_00000236.JPEG")
MODULE = """
import torch


def build():
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 2))
    return network, {"input_size": 224}
"""
STREET = "frankfurt/frankfurt_000000_000294"


def put_everything(root):
    """Put all of them into `root`; the absolute paths of the guides, such as /data/imagenet, are below it."""
    put_photographs(root)
    put_clips(root)
    put_archives(root)
    put_arrays(root)
    put_tables(root)
    put_annotated(root)
    put_ingredients(root)
    put_models(root)
    put_predictions(root)
    put_lists(root)
    put_packages(root)


def put_smooth(path, seed):
    """Put a photograph without texture, which x264 encodes in half of the time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(photo(12, 15, seed)).resize((150, 120)).save(path)


def put_photographs(root):
    for folder in (
        "photos",
        "val",
        "data/imagenet/val",
        "data/imagenet/train",
        "train",
        "kitti",
        "imagenet-r",
    ):
        for seed, key in enumerate(map("/".join, zip(CLASSES, NAMES, strict=True))):
            put_smooth(root / folder / key, seed)
    for number in range(6):
        put_photo(root / "candidates" / CLASSES[number % 2] / f"{number}.jpg", 80, 90, number)
    put_photo(root / "photo.jpg", 120, 150)
    put_photo(root / "slides" / "a" / "b.jpg", 224, 224)
    put_photo(root / "images384" / "a" / "b.jpg", 400, 400)
    put_photo(root / "data" / "validation" / "a" / "b.jpg", 64, 64)
    for name in ("n01530575", "n01812337"):
        put_photo(root / "data" / "imagenet22k" / name / f"{name}_10.JPEG", 240, 240)
    for number in range(2):
        put_photo(root / "drives" / "monday" / f"cam{number}_7.png", 40, 64, number)
        name = f"n015-2018-07-24-11-22-45+0800__CAM_FRONT__{number}.jpg"
        put_photo(root / "nuscenes" / "samples" / "CAM_FRONT" / name, 40, 64, number)
        put_photo(root / "digits" / str(number) / "a.png", 28, 28, number)
    (root / "scratch").mkdir()
    (root / "imagenet-100").mkdir()
    for name in CLASSES:
        (root / "imagenet-100" / name).symlink_to(Path("..", "data", "imagenet", "val", name))


def jpeg(seed=0, side=64):
    """The bytes of a JPEG file."""
    file = io.BytesIO()
    Image.fromarray(photo(side, side, seed)).save(file, "JPEG")
    return file.getvalue()


def put_tar(path, files, mode="w"):
    source_writers.write_tar(path.parent / "tar", (), mode, files=files).rename(path)
    (path.parent / "tar").rmdir()


def put_clips(root):
    # Rain has drops of 80 pixels, and motion blur joins 22 frames.
    frames = np.stack([photo(96, 96, seed) for seed in range(24)])
    for name in ("juggling", "surfing"):
        put_video(root / "videos" / name / "1.mp4", frames)
        put_frames(root / "frames" / name / "1", names_of(24), frames)
    put_video(root / "clip.mp4", frames)
    sequence = root / "MOT17" / "train" / "MOT17-02"
    put_frames(sequence / "img1", names_of(24, "{:06d}.jpg"), frames)
    (sequence / "gt").mkdir()
    (sequence / "gt" / "gt.txt").write_text("1,1,8,8,20,20,1,1,1\n")


def put_archives(root):
    flat = {name: jpeg(seed) for seed, name in enumerate(NAMES)}
    classes = dict(zip(("cat/a.jpg", "dog/b.jpg"), flat.values(), strict=True))
    put_tar(root / "photos.tar", classes)
    put_tar(root / "photos.tar.gz", classes, "w:gz")
    with zipfile.ZipFile(root / "photos.zip", "w") as archive:
        for name, data in classes.items():
            archive.writestr(name, data)
    put_tar(root / "ILSVRC2012_img_val.tar", flat)
    put_devkit(root)
    lines = ["ImageId,PredictionString"]
    for (name, data), each in zip(flat.items(), CLASSES, strict=True):
        (root / "ILSVRC2012_img_val").mkdir(exist_ok=True)
        (root / "ILSVRC2012_img_val" / name).write_bytes(data)
        lines.append(f"{Path(name).stem},{each} 1 1 9 9")
    (root / "LOC_val_solution.csv").write_text("\n".join(lines) + "\n")
    for number in range(64):
        sample = {f"{number}.jpg": jpeg(number), f"{number}.cls": str(number % 2).encode()}
        put_tar(root / f"val-{number:06d}.tar", sample)
        if number < 10:
            put_tar(root / f"laion-{number:03d}.tar", sample)
    (root / "shards").mkdir()
    (root / "shards" / "000000.tar").write_bytes((root / "val-000000.tar").read_bytes())
    images = [photo(64, 64, seed) for seed in range(2)]
    folder = source_writers.write_tiny_imagenet(root / "data", images)
    (folder / "wnids.txt").write_text("".join(f"{name}\n" for name in CLASSES))
    annotations = folder / "val" / "val_annotations.txt"
    text = annotations.read_text().replace("\tn00\t", f"\t{CLASSES[0]}\t")
    annotations.write_text(text.replace("\tn01\t", f"\t{CLASSES[1]}\t"))
    with zipfile.ZipFile(root / "tiny-imagenet-200.zip", "w") as archive:
        for path in folder.rglob("*.*"):
            archive.write(path, path.relative_to(folder.parent))


def put_devkit(root):
    """A devkit that knows as many classes and images as the published one."""
    kit, data = root / "ILSVRC2012_devkit_t12.tar.gz", root / "ILSVRC2012_devkit_t12" / "data"
    fields = [("ILSVRC2012_ID", object), ("WNID", object), ("words", object), ("num_children", object)]
    rows = [(i, name, name, 0) for i, name in enumerate(imagenet_classes(), 1)]
    data.mkdir(parents=True)
    savemat(data / "meta.mat", {"synsets": np.array(rows, fields)[:, None]})
    numbers = ["1"] * 50_000
    for name, each in zip(NAMES, CLASSES, strict=True):
        numbers[int(Path(name).stem[-8:]) - 1] = str(imagenet_classes().index(each) + 1)
    (data / "ILSVRC2012_validation_ground_truth.txt").write_text("\n".join(numbers) + "\n")
    with tarfile.open(kit, "w:gz") as tar:
        tar.add(data.parent, data.parent.name)


def put_arrays(root):
    cifar_folder(root, 4)
    for number in range(1, 6):
        batch = root / "cifar-10-batches-py" / f"data_batch_{number}"
        shutil.copy(batch.with_name("test_batch"), batch)
    (root / "cifar-100-python").mkdir()
    images = pickle.loads((root / "cifar-10-batches-py" / "test_batch").read_bytes())[b"data"]
    batch = {b"data": images, b"fine_labels": [0, 1, 2, 99], b"coarse_labels": [0] * 4}
    (root / "cifar-100-python" / "test").write_bytes(pickle.dumps(batch, protocol=2))
    names = {b"fine_label_names": [b"class%d" % i for i in range(100)]}
    (root / "cifar-100-python" / "meta").write_bytes(pickle.dumps(names, protocol=2))
    for name, folder in (("cifar-10", "cifar-10-batches-py"), ("cifar-100", "cifar-100-python")):
        with tarfile.open(root / f"{name}-python.tar.gz", "w:gz") as tar:
            tar.add(root / folder, folder)
    shutil.copytree(root / "cifar-10-batches-py", root / "data" / "cifar-10-batches-py")
    images = [photo(28, 28, seed) for seed in range(3)]
    source_writers.write_mnist(root / "MNIST" / "raw", images)
    for path in (root / "MNIST" / "raw").iterdir():
        (root / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    images = [photo(40, 40, seed) for seed in range(3)]
    source_writers.write_npy(root / "arrays", images)
    for name in ("x_test.npy", "y_test.npy"):
        (root / "arrays" / name).rename(root / name)
    np.save(root / "faces.npy", np.stack(images))
    (root / "faces.txt").write_text("ann\nbob\nann\n")
    np.savez_compressed(root / "mnist.npz", x_test=np.stack(images), y_test=np.arange(3))
    (root / "svhn").mkdir()
    savemat(
        root / "svhn" / "test_32x32.mat", {"X": np.stack(images, axis=-1), "y": np.array([[1], [10], [2]])}
    )
    (root / "mri").mkdir()
    Image.fromarray(16 * photo(40, 40)[..., 0].astype(np.uint16)).save(root / "mri" / "slice.png")
    pictures = [photo(224, 224, seed) for seed in range(3)]
    source_writers.write_medmnist(root / "medmnist", pictures).rename(root / "pathmnist_224.npz")


def put_tables(root):
    images = [photo(64, 64, seed) for seed in range(4)]
    source_writers.write_tsv(root / "tsv", images).rename(root / "MMBench_DEV_EN.tsv")
    cells = [{"bytes": jpeg(number), "path": None} for number in range(2)]
    columns = dict.fromkeys(("image", "decoded_image", "image_1", "image_2"), cells)
    table = pyarrow.table({**columns, "label": [0, 1]})
    (root / "bench").mkdir()
    for name in ("bench/test", "data/validation", "data/testmini"):
        parquet.write_table(table, root / f"{name}-00000.parquet")
    row = {"question": 1, "image": "cat.jpg"}
    put_photo(root / "coco/val2014/cat.jpg", 64, 64)
    (root / "llava").mkdir()
    (root / "llava" / "questions.jsonl").write_text(f"{json.dumps(row)}\n")


def put_annotated(root):
    put_photo(root / "coco/val2017/000000000139.jpg", 64, 80)
    image = {"id": 139, "file_name": "000000000139.jpg", "height": 64, "width": 80}
    box = {"id": 1, "image_id": 139, "category_id": 1, "bbox": [8, 8, 30, 30], "area": 900, "iscrowd": 0}
    annotations = {"images": [image], "annotations": [box], "categories": [{"id": 1, "name": "person"}]}
    (root / "coco/annotations").mkdir(parents=True)
    for path in (root / "coco/annotations/instances_val2017.json", root / "instances_val2017.json"):
        path.write_text(json.dumps(annotations))
    result = json.dumps([{"image_id": 139, "category_id": 1, "bbox": [8, 8, 30, 30], "score": 0.9}])
    put_photo(root / f"cityscapes/leftImg8bit/val/{STREET}_leftImg8bit.png", 64, 96)
    truth = root / f"cityscapes/gtFine/val/{STREET}_gtFine_labelTrainIds.png"
    labels = np.arange(64 * 96, dtype=np.uint8).reshape(64, 96) % 19
    truth.parent.mkdir(parents=True)
    Image.fromarray(labels).save(truth)
    for folder in ("clean", *(f"{name}/{level}" for name in IMAGENET_C.common for level in range(1, 6))):
        for model, wrong in (("segformer", 20), ("deeplab", 40)):
            path = root / model / folder / f"{STREET.rpartition('/')[2]}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            unknown = np.arange(96) < (0 if folder == "clean" else wrong)
            Image.fromarray(np.where(unknown, 0, labels).astype(np.uint8)).save(path)
        path = root / "maskrcnn" / f"{folder}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(result)


def put_ingredients(root):
    depth = (0.05 + 0.01 * np.arange(120)[:, None] / 120 + np.zeros(150)).astype(np.float32)
    for key in map("/".join, zip(CLASSES, NAMES, strict=True)):
        path = (root / "maps" / key).with_suffix(".npy")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, depth)
    for number in range(4):
        put_photo(root / "pictures" / f"{number}.jpg", 64, 64, number)


def put_network(path, classes, side):
    """Write a network with random weights that takes the mean colours of an image."""
    # It is sure of itself: `filter a` keeps what it takes for another class.
    weights = 20 * np.random.default_rng(0).normal(size=(3, classes)).astype(np.float32)
    nodes = [
        helper.make_node("ReduceMean", ["images", "axes"], ["means"], keepdims=0),
        helper.make_node("MatMul", ["means", "weights"], ["logits"]),
    ]
    images, logits = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("images", ["n", 3, side, side]), ("logits", ["n", classes]))
    )
    constants = [
        numpy_helper.from_array(weights, "weights"),
        numpy_helper.from_array(np.array([2, 3]), "axes"),
    ]
    graph = helper.make_graph(nodes, "colours", [images], [logits], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def put_models(root):
    for name, classes, side in (
        ("resnet50", 2, 224),
        ("model", 2, 224),
        ("vit", 1000, 224),
        ("finetuned", 2, 224),
        ("tuned", 2, 224),
        ("net", 3, 224),
        ("features", 8, 224),
        ("wrn", 10, 32),
    ):
        put_network(root / f"{name}.onnx", classes, side)
    (root / "mine.py").write_text(MODULE)


def put_predictions(root):
    logits = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)
    for name in ("inaturalist", "textures"):
        np.savez(
            root / f"{name}.npz", logits=logits, labels=np.zeros(4, int), keys=[f"{i}.jpg" for i in range(4)]
        )


def put_lists(root):
    for name in ("wnids", "wnids200", "wnids1000"):
        (root / f"{name}.txt").write_text("".join(f"{each}\n" for each in sorted(CLASSES)))
    keys = "".join(f"{'/'.join(key)}\n" for key in zip(CLASSES, NAMES, strict=True))
    for name, column in (("labels", "label"), ("train", "diagnosis")):
        rows = "".join(f"{each},{number}\n" for number, each in enumerate(NAMES))
        (root / f"{name}.csv").write_text(f"image,{column}\n{rows}")
    split = root / "VOC2012" / "ImageSets" / "Segmentation" / "val.txt"
    split.parent.mkdir(parents=True)
    split.write_text("2007_000033\n2007_000042\n")
    for seed, stem in enumerate(("2007_000033", "2007_000042", "2007_000061")):
        put_photo(root / "VOC2012" / "JPEGImages" / f"{stem}.jpg", 64, 64, seed)
    (root / "vit.txt").write_text("".join(f"{name}\n" for name in imagenet_classes()))
    (root / "fields.yaml").write_text(
        "creator: Ann Example\nlicense: https://creativecommons.org/licenses/by/4.0/\n"
    )
    (root / "ids.txt").write_text(keys)
    rows = "".join(f"monday/cam{number}_7.png,cam{number}\n" for number in range(2))
    (root / "cameras.csv").write_text(f"file,camera\n{rows}")
    (root / "imagenet_test_image_ids.txt").write_text(keys)


def put_packages(root):
    """The archives of emoji that `npm pack` leaves."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        packages = {
            "emoji-datasource-google-16.0.0": datasource(place / "google", "google", ICONS, 10),
            "emoji-datasource-twitter-16.0.0": datasource(place / "twitter", "twitter", ICONS, 20),
            "lobehub-fluent-emoji-3d-1.1.0": fluent(place / "fluent", ICONS, 30),
        }
        for name, folder in packages.items():
            with tarfile.open(root / f"{name}.tgz", "w:gz") as tar:
                tar.add(folder, "package")
