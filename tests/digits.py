"""A small classifier for the tests: logistic regression on scikit-learn's digits, as ONNX.

The digits are enlarged from 8 x 8 to 32 x 32 pixels, and the network shrinks them again. So scikit-learn
itself says what its logits have to be.
"""

import pickle
from functools import cache

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from robustgen.lab.models.onnx import OnnxModel

SIDE = 32
# The network sees pixels from 0 to 1.
PLAIN = ("--preprocessing", "mean=0", "--preprocessing", "std=1")
TRAINED = 1400


@cache
def classifier():
    digits = load_digits()
    return LogisticRegression(C=0.1, max_iter=200).fit(digits.data[:TRAINED] / 16, digits.target[:TRAINED])


def pictures(count):
    """Digits that it was not trained on: uint8 (count, 32, 32, 3), and their classes."""
    digits = load_digits()
    images = digits.images[TRAINED : TRAINED + count]
    grey = np.kron(images * 255 / 16, np.ones((4, 4))).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=-1), digits.target[TRAINED : TRAINED + count]


def expected_logits(pixels):
    """What scikit-learn says of uint8 (..., 32, 32, 3)."""
    grey = pixels.astype(np.float64).mean(axis=-1) / 255
    small = grey.reshape(*grey.shape[:-2], 8, 4, 8, 4).mean(axis=(-1, -3))
    flat = small.reshape(-1, 64)
    return classifier().decision_function(flat).reshape(*pixels.shape[:-3], 10)


def put_model(path, *, layout="NCHW", batch="n", dtype=np.float32, sides=(SIDE, SIDE), scale=1.0, extra=()):
    """Write the classifier to `path`; `extra` nodes may follow that take "scores" to "logits"."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape = [batch, 3, *sides] if layout == "NCHW" else [batch, *sides, 3]
    nodes = [
        helper.make_node("Transpose", ["images"], ["planes"], perm=[0, 3, 1, 2]),
        helper.make_node("ReduceMean", ["planes", "axis"], ["grey"], keepdims=1),
        helper.make_node("AveragePool", ["grey"], ["small"], kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Flatten", ["small"], ["flat"]),
        helper.make_node("Gemm", ["flat", "weights", "bias"], ["scores" if extra else "logits"], transB=1),
        *extra,
    ]
    if layout == "NCHW":
        nodes[0] = helper.make_node("Identity", ["images"], ["planes"])
    values = {
        "axis": np.array([1]),
        "weights": (scale * classifier().coef_).astype(dtype),
        "bias": (scale * classifier().intercept_).astype(dtype),
    }
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("images", element, shape)],
        [helper.make_tensor_value_info("logits", element, [batch, 10])],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, path)
    return path


def logarithm():
    """A node that makes NaN of negative scores."""
    return helper.make_node("Log", ["scores"], ["logits"])


def put_other_input(path):
    """A model of rows of numbers, not of images."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Identity", ["rows"], ["logits"])],
        "rows",
        [info("rows", TensorProto.FLOAT, ["n", 64])],
        [info("logits", TensorProto.FLOAT, ["n", 64])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def put_folder(root, count):
    """The digits as PNG files in class folders; returns the folder."""
    for i, (picture, label) in enumerate(zip(*pictures(count), strict=True)):
        folder = root / f"digit {label}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f"{i:03d}.png")
    return root


def put_cifar(root, count):
    """The digits as a cifar-10-batches-py; returns the folder."""
    images, labels = pictures(count)
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2).reshape(count, 3072))
    batch = {b"data": planes, b"labels": labels.tolist()}
    (folder / "test_batch").write_bytes(pickle.dumps(batch, protocol=2))
    names = {b"label_names": [b"digit %d" % i for i in range(10)]}
    (folder / "batches.meta").write_bytes(pickle.dumps(names, protocol=2))
    return folder


def interrupt_model(monkeypatch, call):
    """From now on the model is interrupted at that call; returns the number of images of each call."""
    calls, run = [], OnnxModel.run

    def counted(self, images, preprocessing):
        calls.append(len(images))
        if len(calls) == call:
            raise KeyboardInterrupt
        return run(self, images, preprocessing)

    monkeypatch.setattr(OnnxModel, "run", counted)
    return calls
