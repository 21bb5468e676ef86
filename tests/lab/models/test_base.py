"""Inputs and outputs of models: channels, their order, one output for two classes."""

import struct

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import robustgen
from robustgen.errors import ConfigError, RobustgenError
from robustgen.lab.models.base import Classifier
from robustgen.lab.models.onnx import OnnxModel
from robustgen.lab.models.preprocessing import Preprocessing, load_preprocessing
from robustgen.settings.models import Runtime
from tests import digits
from tests.helpers import cli, cli_error

PLAIN = Preprocessing((0, 0, 0), (1, 1, 1))
FEW = {"corruptions": "brightness", "severities": 1, "jobs": 1}
COLOURS = {"blue": (40, 60, 200), "green": (50, 190, 60), "red": (200, 60, 40)}
CAFFE = (103.939, 116.779, 123.68)


def put_linear(path, weight, bias, *, layout="NCHW", ends=(), side=40, name="y", element=TensorProto.FLOAT):
    """Write an ONNX model: `weight` (outputs, channels) times the mean of each channel, plus `bias`."""
    outputs, channels = np.shape(weight)
    axes = ["n", channels, side, side] if layout == "NCHW" else ["n", side, side, channels]
    nodes = [
        helper.make_node("Cast", ["x"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node(
            "ReduceMean", ["floats"], ["p"], axes=[2, 3] if layout == "NCHW" else [1, 2], keepdims=0
        ),
        helper.make_node("Gemm", ["p", "w", "b"], ["step0"], transB=1),
    ]
    for number, end in enumerate(ends):
        more = ["axes"] if end == "Squeeze" else []
        nodes.append(helper.make_node(end, [f"step{number}", *more], [f"step{number + 1}"]))
    nodes[-1].output[0] = name
    is_flat = "Squeeze" in ends
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", element, axes)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"] if is_flat else ["n", outputs])],
        [
            numpy_helper.from_array(np.array(weight, np.float32), "w"),
            numpy_helper.from_array(np.array(bias, np.float32), "b"),
            numpy_helper.from_array(np.array([1]), "axes"),
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def put_nearest(path, centres, **options):
    """Write a model whose highest output is that of the row of `centres` nearest to the mean of its input."""
    centres = np.array(centres, float)
    return put_linear(path, 2 * centres, -(centres**2).sum(1), **options)


def put_flat(root, colours, side=40):
    for name, colour in colours.items():
        (root / name).mkdir(parents=True)
        pixels = np.full((side, side, *np.shape(colour)), colour, np.uint8)
        Image.fromarray(pixels).save(root / name / "a.png")
    return root


def classify(model, pixels, **keys):
    return Classifier(OnnxModel(model, Runtime(device="cpu")), PLAIN, **keys)(pixels)


# --- the order of the channels -------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_models_of_blue_green_and_red(tmp_path, layout):
    source = put_flat(tmp_path / "s", COLOURS)
    centres = [np.array(COLOURS[name][::-1]) - CAFFE for name in sorted(COLOURS)]
    model = put_nearest(tmp_path / "caffe.onnx", centres, layout=layout)
    keys = {"mean": CAFFE, "std": 1, "pixel_scale": 1}
    scores = robustgen.evaluate(model, source=source, channel_order="BGR", **keys, **FEW)
    assert scores.clean_error == 0
    (note,) = (each for each in scores.notes if each.startswith("input of"))
    assert "channels BGR (given)" in note
    wrong = robustgen.evaluate(model, source=source, **keys, **FEW)
    assert wrong.clean_error == pytest.approx(2 / 3)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("order", ["rgb", "bgr", "grey"])
def test_models_of_bytes_get_pixels_as_they_are(tmp_path, layout, order):
    known, keys = COLOURS if order != "grey" else {"a": 9, "b": 100, "c": 250}, {}
    centres = [np.atleast_1d(known[name])[:: -1 if order == "bgr" else 1] for name in sorted(known)]
    model = put_nearest(tmp_path / "m.onnx", centres, layout=layout, element=TensorProto.UINT8)
    source, keys = put_flat(tmp_path / "s", known), {"channel_order": "bgr"} if order == "bgr" else {}
    for normalisation in ({}, {"mean": 0, "std": 1, "pixel_scale": 1}):
        assert robustgen.evaluate(model, source=source, **normalisation, **keys, **FEW).clean_error == 0
    for wrong in (
        {"mean": 0, "std": 1, "pixel_scale": 0.5},
        {"mean": 1, "std": 1},
        {"preprocessing": "imagenet"},
    ):
        with pytest.raises(ConfigError, match=r"m\.onnx: gets pixels from 0 to 255"):
            robustgen.evaluate(model, source=source, **wrong, **keys, **FEW)


def test_few_classes_of_a_model_of_many_name_the_flag(tmp_path):
    model = put_linear(tmp_path / "m.onnx", np.zeros((1000, 3)), np.zeros(1000))
    with pytest.raises(ConfigError, match="only_classes"):
        robustgen.evaluate(model, source=put_flat(tmp_path / "s", COLOURS), **FEW)


def test_the_order_is_recorded_only_if_it_is_unusual(tmp_path):
    usual = load_preprocessing((), {}, "imagenet")
    assert not {"channel_order", "outputs"} & {*usual.settings(), *usual.origins}
    (tmp_path / "p.yaml").write_text("channel_order: bgr\nmean: 0\nstd: 1\n")
    given = load_preprocessing([str(tmp_path / "p.yaml")], {}, "imagenet")
    assert given.settings()["channel_order"] == "bgr" and given.origins["channel_order"] == "p.yaml"


@pytest.mark.parametrize(
    ("mean", "scale", "order", "hint"),
    [
        (CAFFE, 1, "rgb", "channel_order: bgr"),
        ((104, 117, 123), 1, "rgb", "channel_order: bgr"),
        ((0.4076, 0.4579, 0.485), 1 / 255, "rgb", "channel_order: bgr"),
        (CAFFE, 1, "bgr", ""),
        (CAFFE[::-1], 1, "bgr", "channel_order: rgb"),
        ((0.485, 0.456, 0.406), 1 / 255, "rgb", ""),
        ((0, 0, 0), 1, "rgb", ""),
    ],
)
def test_means_of_caffe_are_noticed(mean, scale, order, hint):
    told = Preprocessing(mean, (1, 1, 1), scale, channel_order=order).hint_at_order()
    assert hint in told and bool(hint) == bool(told)


def test_a_line_hints_at_the_order(tmp_path):
    source = put_flat(tmp_path / "s", COLOURS)
    model = put_nearest(tmp_path / "m.onnx", np.eye(3))
    words = ("--corruptions", "brightness", "--severities", "1", "--jobs", "1", "--output", tmp_path / "p")
    keys = (f"mean={','.join(map(str, CAFFE))}", "std=1", "pixel_scale=1")
    means = [word for key in keys for word in ("--preprocessing", key)]
    said = cli("evaluate", "--source", source, "--model", model, *words, *means).stderr
    assert "--preprocessing channel_order=bgr" in said


def test_functions_of_arrays_order_channels_themselves(tmp_path):
    def model(pixels):
        return np.zeros((len(pixels), 3))

    with pytest.raises(ConfigError, match="gets pixels from 0 to 255"):
        robustgen.evaluate(model, source=put_flat(tmp_path / "s", COLOURS), channel_order="bgr", **FEW)


# --- models of one channel -----------------------------------------------------------------------

GREYS = {str(number): 20 + 22 * number for number in range(10)}
CENTRES = np.array([*GREYS.values()], float)[:, None] / 255


def put_idx(root, side=28):
    """Put the IDX files of ten digits, which are flat."""
    root.mkdir()
    pixels = np.repeat(np.array([*GREYS.values()], np.uint8), side * side)
    head = struct.pack(">4I", 2051, 10, side, side)
    (root / "t10k-images-idx3-ubyte").write_bytes(head + pixels.tobytes())
    (root / "t10k-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 2049, 10) + bytes(range(10)))
    return root


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("form", ["folder", "array", "idx"])
def test_models_of_one_channel(tmp_path, layout, form):
    side = 28 if form == "idx" else 40
    model = put_nearest(tmp_path / "grey.onnx", CENTRES, layout=layout, side=side)
    if form == "folder":
        keys = {"source": put_flat(tmp_path / "s", GREYS), **FEW}
    elif form == "array":
        images = np.broadcast_to(np.array([*GREYS.values()], np.uint8)[:, None, None], (10, side, side))
        np.save(tmp_path / "x_test.npy", images)
        np.save(tmp_path / "y_test.npy", np.arange(10))
        keys = {"source": tmp_path / "x_test.npy", **FEW}
    else:
        keys = {"dataset": "mnist", "source": put_idx(tmp_path / "s"), **FEW}
        keys["corruptions"] = "mnist-c:brightness"
    assert robustgen.evaluate(model, mean=0, std=1, **keys).clean_error == 0


def test_predict_takes_models_of_one_channel(tmp_path):
    model = put_nearest(tmp_path / "grey.onnx", CENTRES, side=28)
    chosen = ("--corruptions", "mnist-c:brightness", "--jobs", "1", "--output", tmp_path / "c")
    cli("make-c", "--dataset", "mnist", "--source", put_idx(tmp_path / "s"), *chosen)
    words = ("--model", model, "--output", tmp_path / "p", *digits.PLAIN)
    cli("predict", tmp_path / "c", *words)
    with np.load(tmp_path / "p/grey/clean.npz") as found:
        assert np.array_equal(found["logits"].argmax(1), found["labels"])


def test_the_mean_error_of_mnist_c(tmp_path):
    model = put_nearest(tmp_path / "grey.onnx", CENTRES, side=28)
    names = ["mnist-c:brightness", "mnist-c:stripe"]
    chosen = {"source": put_idx(tmp_path / "s"), "corruptions": names, "jobs": 1}
    scores = robustgen.evaluate(model, "mnist", mean=0, std=1, **chosen)
    values = [scores.value("error", name) for name in names]
    assert scores.mean("error") == pytest.approx(np.mean(values))


def test_colours_become_luma(tmp_path):
    colours = np.random.default_rng(0).integers(0, 256, (2, 40, 40, 3), np.uint8)
    model = OnnxModel(put_nearest(tmp_path / "grey.onnx", CENTRES), Runtime(device="cpu"))
    found = model.normalise(colours, Preprocessing((0.5,) * 3, (0.25,) * 3))
    luma = np.stack([np.asarray(Image.fromarray(each).convert("L")) for each in colours])
    np.testing.assert_allclose(found[:, 0], (luma / 255 - 0.5) / 0.25, rtol=1e-5)


def test_a_mean_of_colours_is_refused_for_one_channel(tmp_path):
    model = put_nearest(tmp_path / "grey.onnx", CENTRES)
    message = cli_error(
        *("evaluate", "--source", put_flat(tmp_path / "s", GREYS), "--model", model),
        *("--corruptions", "brightness", "--jobs", "1", "--output", tmp_path / "p"),
    )
    assert "one channel" in message and "--preprocessing mean" in message


def test_other_numbers_of_channels_are_refused(tmp_path):
    put_linear(tmp_path / "two.onnx", np.eye(2), [0, 0])
    with pytest.raises(ConfigError, match="RGB or grey"):
        OnnxModel(tmp_path / "two.onnx", Runtime(device="cpu"))


# --- one output for two classes ------------------------------------------------------------------

TWO = {"no": 40, "yes": 200}
# Ten times the mean of three channels from 0 to 1, less 0.47.
SECOND = ([[10 / 3] * 3], [-4.7])


@pytest.mark.parametrize("ends", [(), ("Squeeze",)])
def test_one_output_is_the_second_of_two_classes(tmp_path, ends):
    model = put_linear(tmp_path / "one.onnx", *SECOND, ends=ends)
    scores = robustgen.evaluate(model, source=put_flat(tmp_path / "s", TWO), mean=0, std=1, **FEW)
    assert scores.clean_error == 0
    found = classify(model, np.full((3, 40, 40, 3), 100, np.uint8))
    assert found.shape == (3, 2) and (found[:, 0] == 0).all()


@pytest.mark.parametrize(
    ("layer", "ends"),
    # The second is a hard sigmoid: its output lies in 0 to 1 and is 0.5 at the border.
    [(SECOND, ("Sigmoid",)), (SECOND, ("Squeeze", "Sigmoid")), (([[1 / 3] * 3], [0.03]), ("Relu",))],
)
def test_one_output_that_may_be_a_probability_needs_its_form(tmp_path, layer, ends):
    model = put_linear(tmp_path / "one.onnx", *layer, ends=ends)
    keys = {"source": put_flat(tmp_path / "s", TWO), "mean": 0, "std": 1, **FEW}
    with pytest.raises(ConfigError, match="outputs=logits or outputs=probabilities"):
        robustgen.evaluate(model, **keys)
    assert robustgen.evaluate(model, outputs="probability", **keys).clean_error == 0
    assert robustgen.evaluate(model, outputs="logits", **keys).clean_error == 0.5


def test_forms_that_outputs_do_not_have_are_refused(tmp_path):
    keys = {"source": put_flat(tmp_path / "s", TWO), "mean": 0, "std": 1, "outputs": "probability", **FEW}
    with pytest.raises(ConfigError, match="no probability"):
        robustgen.evaluate(put_linear(tmp_path / "z.onnx", *SECOND), **keys)
    with pytest.raises(ConfigError, match="for one output, it has 2"):
        robustgen.evaluate(put_nearest(tmp_path / "two.onnx", np.eye(3)[:2]), **keys)


def test_one_output_for_more_classes_is_refused(tmp_path):
    model = put_linear(tmp_path / "one.onnx", *SECOND)
    with pytest.raises(RobustgenError, match=r"3 classes, .* one output"):
        robustgen.evaluate(model, source=put_flat(tmp_path / "s", COLOURS), mean=0, std=1, **FEW)
    np.save(tmp_path / "x_test.npy", np.zeros((4, 40, 40, 3), np.uint8))
    np.save(tmp_path / "y_test.npy", np.arange(4))
    with pytest.raises(RobustgenError, match=r"labels 0 to 3, .* one output"):
        robustgen.evaluate(model, source=tmp_path / "x_test.npy", mean=0, std=1, **FEW)


# --- modules of PyTorch --------------------------------------------------------------------------


def test_modules_whose_first_layer_takes_one_channel(tmp_path):
    torch = pytest.importorskip("torch")
    nn = torch.nn
    source = put_flat(tmp_path / "s", GREYS)
    conv = nn.Conv2d(1, 10, 1)
    conv.weight.data = torch.tensor(2 * CENTRES, dtype=torch.float32).reshape(10, 1, 1, 1)
    conv.bias.data = torch.tensor(-(CENTRES[:, 0] ** 2), dtype=torch.float32)
    linear = nn.Linear(1600, 10)
    linear.weight.data = torch.tensor(2 * CENTRES / 1600, dtype=torch.float32).repeat(1, 1600)
    linear.bias.data = conv.bias.data
    for module in (
        nn.Sequential(conv, nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Sequential(nn.Flatten(), linear),
    ):
        assert robustgen.evaluate(module, source=source, mean=0, std=1, **FEW).clean_error == 0
    program = torch.export.export(nn.Sequential(nn.Flatten(), linear), (torch.zeros(1, 1, 40, 40),))
    torch.export.save(program, tmp_path / "grey.pt2")
    scores = robustgen.evaluate(tmp_path / "grey.pt2", source=source, mean=0, std=1, trust_model=True, **FEW)
    assert scores.clean_error == 0


def test_modules_with_one_output(tmp_path):
    torch = pytest.importorskip("torch")

    class Second(torch.nn.Module):
        def __init__(self, end):
            super().__init__()
            self.end = end

        def forward(self, images):
            images -= 0.47
            return self.end(100 * images.mean((1, 2, 3)))

    ends = {
        "flat": torch.sigmoid,
        "column": lambda z: torch.sigmoid(z)[:, None],
        "module": torch.nn.Sequential(torch.nn.Unflatten(0, (-1, 1)), torch.nn.Sigmoid()),
        "logit": lambda z: z,
    }
    source = put_flat(tmp_path / "s", TWO)
    for name, end in ends.items():
        form = "logits" if name == "logit" else "probabilities"
        keys = {"name": name, "source": source, "mean": 0, "std": 1, "outputs": form}
        assert robustgen.evaluate(Second(end), **keys, **FEW).clean_error == 0, name
    assert robustgen.evaluate(Second(ends["logit"]), **keys | {"outputs": None}, **FEW).clean_error == 0


def test_modules_that_take_text_are_no_classifiers(tmp_path):
    torch = pytest.importorskip("torch")

    class Both(torch.nn.Module):
        def forward(self, image, text):
            return image @ text

    class Several(torch.nn.Module):
        def forward(self, image=None, text=None):
            return image, None, 1.0

    class Tokens(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(9, 4)

        def forward(self, input_ids=None, pixel_values=None):
            return self.embedding(input_ids)

    source = put_flat(tmp_path / "s", TWO)
    for module in (Both(), Several(), Tokens()):
        with pytest.raises(ConfigError, match=r"classifier .* docs/use/zero-shot\.md"):
            robustgen.evaluate(module, source=source, **FEW)

    class Classifies(torch.nn.Module):
        def forward(self, images, text=None):
            return images.mean((2, 3))[:, :2]

    assert robustgen.evaluate(Classifies(), source=source, **FEW).clean_error == 0.5


def test_graphs_that_take_text_are_no_classifiers(tmp_path):
    path = put_nearest(tmp_path / "clip.onnx", np.eye(3))
    model = onnx.load(path)
    model.graph.input.append(helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["n", 7]))
    onnx.save(model, path)
    with pytest.raises(ConfigError, match=r"input_ids.* classifier .* docs/use/zero-shot\.md"):
        OnnxModel(path, Runtime(device="cpu"))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("channels", "order"), [(1, "rgb"), (3, "rgb"), (3, "bgr")])
def test_other_devices_get_the_same_input(tmp_path, layout, channels, order):
    torch = pytest.importorskip("torch")
    from robustgen.lab.models.pytorch import look_up_there

    path = put_nearest(tmp_path / "m.onnx", np.eye(3)[:, :channels], layout=layout)
    model = OnnxModel(path, Runtime(device="cpu"))
    mean = (0.1, 0.2, 0.3) if channels == 3 else (0.1, 0.1, 0.1)
    own = Preprocessing(mean, (0.5, 0.5, 0.5), channel_order=order)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 40, 40, 3), np.uint8)
    tables = torch.from_numpy(own.tabulate(model.dtype))
    found = look_up_there(torch.from_numpy(model.choose_arrangement(own)(pixels)), tables, layout)
    assert np.array_equal(found.numpy(), model.normalise(pixels, own))
