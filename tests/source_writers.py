"""Writers of sources: each writes images into a folder, and returns the source's location."""

import base64
import io
import json
import pickle
import struct
import tarfile
import zipfile
from functools import partial

import numpy as np

from robustgen.plugins.conformance import write_folder
from robustgen.sets.formats.encoders import encode_lossless


def name_files(images):
    """Name to content of PNG files in two class folders."""
    return {f"n0{i % 2}/{i}.png": encode_lossless(image, ".png") for i, image in enumerate(images)}


def write_tar(folder, images, mode="w", name="photos.tar", files=None):
    folder.mkdir(parents=True)
    with tarfile.open(folder / name, mode) as tar:
        for path, data in (files or name_files(images)).items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return folder / name


def write_zip(folder, images):
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "photos.zip", "w") as archive:
        for path, data in name_files(images).items():
            archive.writestr(path, data)
    return folder / "photos.zip"


def write_labelled(folder, images):
    (folder / "flat").mkdir(parents=True)
    for name, data in name_files(images).items():
        (folder / "flat" / name[4:]).write_bytes(data)
    labels = "".join(f"{name[4:]} {name[:3]}\n" for name in name_files(images))
    (folder / "labels.txt").write_text(labels)
    return folder / "flat"


def write_tiny_imagenet(folder, images):
    val = folder / "tiny-imagenet-200" / "val"
    (val / "images").mkdir(parents=True)
    for name, data in name_files(images).items():
        (val / "images" / name[4:]).write_bytes(data)
    annotations = "".join(f"{name[4:]}\t{name[:3]}\t0\t0\t9\t9\n" for name in name_files(images))
    (val / "val_annotations.txt").write_text(annotations)
    return val.parent


def write_webdataset(folder, images):
    files = {}
    for name, data in name_files(images).items():
        files |= {name: data, name.replace(".png", ".cls"): name[2].encode()}
    return write_tar(folder, images, name="000000.tar", files=files).parent


def write_parquet(folder, images, name="data/test-00000.parquet"):
    import pyarrow
    from pyarrow import parquet

    (folder / name).parent.mkdir(parents=True)
    files = name_files(images)
    cells = [{"bytes": data, "path": path[4:]} for path, data in files.items()]
    columns = {"image": cells, "label": [int(path[2]) for path in files]}
    parquet.write_table(pyarrow.table(columns), folder / name, row_group_size=2)
    return folder / name


def write_tsv(folder, images):
    folder.mkdir(parents=True)
    rows = [base64.b64encode(data).decode() for data in name_files(images).values()]
    lines = ["index\timage", *(f"{i}\t{row}" for i, row in enumerate(rows))]
    (folder / "questions.tsv").write_text("\n".join(lines) + "\n")
    return folder / "questions.tsv"


def write_jsonl(folder, images, *, as_files=False):
    folder.mkdir(parents=True)
    lines = []
    for number, (name, data) in enumerate(name_files(images).items()):
        cell = name if as_files else base64.b64encode(data).decode()
        if as_files:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
        lines.append(json.dumps({"question": number, "image": cell}) + "\n")
    (folder / "questions.jsonl").write_text("".join(lines))
    return folder / "questions.jsonl"


def write_mnist(folder, images):
    folder.mkdir(parents=True)
    pictures = np.stack(images)[..., 0]
    labels = np.arange(len(images), dtype=np.uint8)
    for array, name in ((pictures, "t10k-images-idx3-ubyte"), (labels, "t10k-labels-idx1-ubyte")):
        head = struct.pack(f">{array.ndim + 1}I", 0x800 | array.ndim, *array.shape)
        (folder / name).write_bytes(head + array.tobytes())
    return folder


def write_medmnist(folder, images):
    folder.mkdir(parents=True)
    labels = np.arange(len(images), dtype=np.uint8)[:, None] % 3
    np.savez_compressed(folder / "pathmnist.npz", test_images=np.stack(images), test_labels=labels)
    return folder / "pathmnist.npz"


def write_npy(folder, images):
    folder.mkdir(parents=True)
    np.save(folder / "x_test.npy", np.stack(images))
    np.save(folder / "y_test.npy", np.arange(len(images)) % 3)
    return folder / "x_test.npy"


def write_npz(folder, images):
    folder.mkdir(parents=True)
    np.savez_compressed(folder / "faces.npz", x_test=np.stack(images), y_test=np.arange(len(images)) % 3)
    return folder / "faces.npz"


def write_mat(folder, images):
    from scipy.io import savemat

    folder.mkdir(parents=True)
    labels = np.arange(len(images), dtype=np.uint8)[:, None] % 3 + 1
    savemat(folder / "test_32x32.mat", {"X": np.stack(images).transpose(1, 2, 3, 0), "y": labels})
    return folder


def write_cifar(folder, images):
    root = folder / "cifar-10-batches-py"
    root.mkdir(parents=True)
    planes = np.ascontiguousarray(np.stack(images).transpose(0, 3, 1, 2).reshape(len(images), 3072))
    batch = {b"data": planes, b"labels": [*range(len(images))]}
    (root / "test_batch").write_bytes(pickle.dumps(batch, protocol=2))
    names = {b"label_names": [b"class%d" % i for i in range(10)]}
    (root / "batches.meta").write_bytes(pickle.dumps(names, protocol=2))
    return root


# Each `source_kind` to its layouts.
WRITERS = {
    "labelled": {"labelled": write_labelled},
    "table": {
        "tsv": write_tsv,
        "jsonl": write_jsonl,
        "jsonl-files": partial(write_jsonl, as_files=True),
        "table-parquet": partial(write_parquet, name="questions.parquet"),
    },
    "parquet": {"parquet": write_parquet},
    "webdataset": {"webdataset": write_webdataset},
    "mnist": {"mnist": write_mnist},
    "medmnist": {"medmnist": write_medmnist},
    "cifar": {"cifar": write_cifar},
    "arrays": {"npy": write_npy, "npz": write_npz, "mat": write_mat},
    "tiny-imagenet": {"tiny-imagenet": write_tiny_imagenet},
    "folder": {
        "folder": write_folder,
        "tar": write_tar,
        "tar-gz": partial(write_tar, mode="w:gz", name="photos.tar.gz"),
        "zip": write_zip,
    },
}
