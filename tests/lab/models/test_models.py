"""Models of PyTorch: every way to name one, on the digits of `test_predict`; skipped without PyTorch."""

import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from robustgen.errors import ConfigError
from robustgen.lab.models.base import Classifier, is_finite
from robustgen.lab.models.opening import open_model
from robustgen.lab.models.preprocessing import PRESETS
from robustgen.lab.models.pytorch import TorchModel
from robustgen.settings.models import Runtime
from tests.digits import PLAIN, classifier, expected_logits, pictures, put_folder, put_model
from tests.helpers import cli, cli_error, pixels_of, slow_after

torch = pytest.importorskip("torch")

IMAGENET = PRESETS["imagenet"]

FACTORY = """
import torch
from tests.digits import classifier

class Digits(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 10)
        self.layer.weight.data = torch.tensor(classifier().coef_, dtype=torch.float32)
        self.layer.bias.data = torch.tensor(classifier().intercept_, dtype=torch.float32)

    def forward(self, images):
        small = torch.nn.functional.avg_pool2d(images.mean(1, keepdim=True), 4)
        return self.layer(small.flatten(1))

def plain():
    return Digits(), {"mean": 0, "std": (1, 1, 1)}

def bare():
    return Digits()

def broken():
    return Digits(), {"mean": 0, "standard": 1}

def number():
    return 3

def few():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 4))

def crowded():
    class Crowded(Digits):
        def forward(self, images):
            if len(images) > 4:
                raise torch.cuda.OutOfMemoryError if len(images) > 8 else RuntimeError("MPS out of memory")
            return super().forward(images)
    return Crowded(), {"mean": 0, "std": 1}

def undefined():
    class Undefined(Digits):
        def forward(self, images):
            return super().forward(images).log()
    return Undefined(), {"mean": 0, "std": 1}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A C set of twelve digits, and a module of models that can be imported."""
    root = tmp_path_factory.mktemp("models")
    (root / "own_models.py").write_text(FACTORY)
    sys.path.insert(0, str(root))
    source = put_folder(root / "digits", 12)
    flags = ("--set", "constants_for=32", "--set", "quality=95", "--corruptions", "fog")
    cli("make-c", "--source", source, "--output", root / "c", *flags, "--severities", "1", "--jobs", "1")
    (root / "names.txt").write_text("".join(f"digit {i}\n" for i in range(10)))
    yield root
    sys.path.remove(str(root))


def predicted(made, tmp_path, model, *flags):
    output = tmp_path / "p"
    cli("predict", made / "c", "--model", model, "--output", output, "--classes", made / "names.txt", *flags)
    (path,) = output.glob("*/fog/1.npz")
    with np.load(path) as archive:
        return dict(archive)


@pytest.fixture
def refusal(made, tmp_path):
    """A function that returns the error of `predict` with a model."""

    def refuse(model, *flags):
        return cli_error("predict", made / "c", "--model", model, "--output", tmp_path / "refused", *flags)

    return refuse


def check_logits(made, found, atol=1e-4):
    pixels = np.stack([pixels_of(made / "c" / "fog" / "1" / key) for key in found["keys"]])
    np.testing.assert_allclose(found["logits"], expected_logits(pixels), atol=atol)


def own_model(function):
    return TorchModel("m", getattr(__import__("own_models"), function)()[0].eval(), Runtime(device="cpu"))


def test_a_function_returns_a_model_with_its_preprocessing(made, tmp_path):
    check_logits(made, predicted(made, tmp_path, "own_models:plain"))


def test_flags_win_over_the_preprocessing_of_the_model(made, tmp_path):
    found = predicted(made, tmp_path, "own_models:bare", *PLAIN)
    check_logits(made, found)


@pytest.mark.parametrize("dynamic", [True, False])
def test_exported_programs(made, tmp_path, dynamic):
    path = export(tmp_path / "digits.pt2", dynamic=dynamic)
    model = open_model(str(path), Runtime(device="cpu", trust_model=True))
    assert model.shape == (None if dynamic else 5, 3, 32, 32)
    check_logits(made, predicted(made, tmp_path, path, "--trust-model", *PLAIN))


class Bomb:
    """An object whose pickle touches a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return exec, (f"__import__('pathlib').Path({str(self.path)!r}).touch()",)


def export(path, *, dynamic=True):
    module = __import__("own_models").bare().eval()
    shapes = {"images": {0: torch.export.Dim("n")}} if dynamic else None
    torch.export.save(torch.export.export(module, (torch.zeros(5, 3, 32, 32),), dynamic_shapes=shapes), path)
    return path


def test_programs_of_unknown_origin_are_refused(refusal, tmp_path):
    line = refusal(export(tmp_path / "digits.pt2"))
    assert line.startswith(f"{tmp_path}/digits.pt2: ") and "--trust-model" in line


@pytest.mark.parametrize("suffix", [".pth", ".pt"])
def test_weights_that_could_run_code_are_refused(refusal, tmp_path, suffix):
    path = tmp_path / f"w{suffix}"
    torch.save({"state_dict": Bomb(tmp_path / "touched")}, path)
    assert refusal(f"torchvision:resnet18@{path}").startswith(f"{path}: not a file of weights: ")
    assert not (tmp_path / "touched").exists()


def test_networks_of_torchvision_take_weights_of_any_number_of_classes(refusal, made, tmp_path):
    models = pytest.importorskip("torchvision").models
    torch.manual_seed(0)
    module = models.resnet18(num_classes=10).eval()
    torch.save({"state_dict": module.state_dict()}, tmp_path / "w.pth")
    name = f"torchvision:resnet18@{tmp_path / 'w.pth'}"
    found = predicted(made, tmp_path, name, "--input-size", "32")
    pixels = np.stack([pixels_of(made / "c" / "fog" / "1" / key) for key in found["keys"]])
    mean, std = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])
    images = torch.tensor(((pixels / 255 - mean) / std).transpose(0, 3, 1, 2), dtype=torch.float32)
    with torch.inference_mode():
        np.testing.assert_allclose(found["logits"], module(images).numpy(), atol=1e-3)
    own = open_model(name, Runtime(device="cpu")).preprocessing
    assert own.input_size == (224, 224) and own.mean == (0.485, 0.456, 0.406)
    line = refusal(name.replace("resnet18", "resnet34", 1))
    assert "w.pth: the weights are not those of torchvision:resnet34: it lacks layer1.2." in line


def test_networks_of_timm_bring_their_preprocessing(refusal, tmp_path):
    timm = pytest.importorskip("timm")
    module = timm.create_model("resnet10t", num_classes=10)
    torch.save(module.state_dict(), tmp_path / "w.pth")
    opened = open_model(f"timm:resnet10t@{tmp_path / 'w.pth'}", Runtime(device="cpu"))
    own = timm.data.resolve_model_data_config(module)
    assert opened.preprocessing.input_size == own["input_size"][1:]
    assert opened.preprocessing.interpolation == own["interpolation"]
    assert opened(np.zeros((2, 32, 32, 3), np.uint8), IMAGENET).shape == (2, 10)
    assert "has no such model (did you mean resnet" in refusal("timm:resnet5")


@pytest.mark.parametrize(
    "model",
    slow_after(
        1,
        "networks of up to six million weights",
        ["timm:resnet10t", "timm:vit_tiny_patch16_224", "torchvision:mobilenet_v3_small"],
    ),
)
def test_weights_are_those_of_their_network_in_any_order_and_wrapping(tmp_path, model):
    library, _, name = model.partition(":")
    place = pytest.importorskip(library)
    from safetensors.torch import save_file

    build = place.create_model if library == "timm" else place.models.get_model
    torch.manual_seed(0)
    module = build(name, num_classes=7).eval()
    own = module.state_dict()
    # In this format, names are sorted.
    save_file({key: each.contiguous() for key, each in own.items()}, tmp_path / "w.safetensors")
    lightning = {
        "state_dict": {f"net.{key}": each for key, each in own.items()} | {"loss.weight": torch.ones(3)}
    }
    torch.save({**lightning, "epoch": 3, "optimizer_states": [{"state": {}}]}, tmp_path / "last.ckpt")
    torch.save(
        {"net": {f"module.{key}": each for key, each in own.items()}, "acc": 93.1}, tmp_path / "net.pth"
    )
    zeros = {key: torch.zeros_like(each) for key, each in own.items()}
    torch.save({"ema": zeros, "model": own}, tmp_path / "ema.pth")
    pixels = np.random.default_rng(0).integers(0, 256, (1, 224, 224, 3), np.uint8)
    images = (pixels / 255 - IMAGENET.mean) / IMAGENET.std
    with torch.inference_mode():
        expected = module(torch.from_numpy(images.transpose(0, 3, 1, 2)).float()).numpy()
    for file in ("w.safetensors", "last.ckpt", "net.pth", "ema.pth"):
        opened = open_model(f"{model}@{tmp_path / file}", Runtime(device="cpu"))
        np.testing.assert_allclose(opened(pixels, IMAGENET), expected, atol=1e-3)


def quantised():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10))
        return torch.ao.quantization.quantize_dynamic(module, {torch.nn.Linear})


class Answer(torch.nn.Module):
    """Returns what a function makes of the logits of the digits."""

    def __init__(self, change):
        super().__init__()
        self.layer, self.change = torch.nn.Linear(3072, 10), change

    def forward(self, images):
        return self.change(self.layer(images.flatten(1)))


@pytest.mark.parametrize(
    "build",
    [
        quantised,
        lambda: Answer(lambda logits: logits).half(),
        lambda: Answer(lambda logits: logits).bfloat16(),
        lambda: Answer(lambda logits: logits).double(),
        lambda: Answer(lambda logits: (logits,)),
        lambda: Answer(lambda logits: {"out": logits}),
        lambda: Answer(lambda logits: {"features": logits[:, :3], "logits": logits}),
        lambda: Answer(lambda logits: SimpleNamespace(logits=logits)),
    ],
)
def test_modules_that_people_have(build):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TorchModel("m", build(), Runtime(device="cpu"))
        logits = model(np.zeros((2, 32, 32, 3), np.uint8), IMAGENET)
    assert logits.shape == (2, 10) and logits.dtype == np.float32 and len(model.settings()["sha256"]) == 64


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda logits: (logits, logits),
            "returns 2 outputs, not a tensor of logits: wrap it in a module that",
        ),
        (
            lambda logits: {"a": logits, "b": logits},
            "returns a dict of 'a', 'b', not a tensor of logits: wrap",
        ),
        (lambda logits: logits.numpy(), "returns ndarray, not a tensor of logits: wrap it"),
        (lambda logits: logits[:, :0], r"returns \(2, 0\) for 2 images, not \(images, classes\)"),
    ],
)
def test_modules_that_return_something_else(change, says):
    with pytest.raises(ConfigError, match=f"m: {says}"):
        TorchModel("m", Answer(change), Runtime(device="cpu"))(np.zeros((2, 32, 32, 3), np.uint8), IMAGENET)


def test_weights_that_cannot_be_read():
    with pytest.raises(ConfigError, match="m: its weights cannot be read: "):
        TorchModel("m", torch.nn.LazyLinear(3), Runtime(device="cpu"))


def test_programs_of_half_precision(tmp_path):
    program = torch.export.export(Answer(lambda logits: logits).half(), (torch.zeros(1, 3, 32, 32).half(),))
    torch.export.save(program, tmp_path / "half.pt2")
    model = open_model(str(tmp_path / "half.pt2"), Runtime(device="cpu", trust_model=True))
    assert model.dtype == np.float16 and model(np.zeros((1, 32, 32, 3), np.uint8), IMAGENET).shape == (1, 10)


def test_programs_of_bytes(tmp_path):
    class Bytes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, images):
            return self.layer(images.float().mean((2, 3)) / 255).sigmoid()

    torch.manual_seed(0)
    module, path = Bytes().eval(), str(tmp_path / "m.pt2")
    torch.export.save(torch.export.export(module, (torch.zeros(1, 3, 8, 8, dtype=torch.uint8),)), path)
    model = open_model(path, Runtime(device="cpu", trust_model=True))
    pixels = np.random.default_rng(0).integers(0, 256, (1, 8, 8, 3), np.uint8)
    with torch.inference_mode():
        chance = module(torch.tensor(pixels).permute(0, 3, 1, 2)).item()
    own = replace(model.preprocessing, outputs="probabilities")
    np.testing.assert_allclose(Classifier(model, own)(pixels), [[1 - chance, chance]], rtol=1e-6)
    with pytest.raises(ConfigError, match="gets pixels from 0 to 255"):
        Classifier(model, IMAGENET)


def put_hugging_face(root):
    root.mkdir()
    (root / "config.json").write_text('{"architectures": ["ResNetForImageClassification"]}')


# Only the names count: nothing in these files is read.
OF_OTHER_LIBRARIES = {
    "net.keras": "a model of Keras or TensorFlow: export it as ONNX, or give robustgen.evaluate in Python ",
    "net.h5": "a model of Keras or TensorFlow: ",
    "saved": "a model of Keras or TensorFlow: ",
    "hf_resnet": "a folder of Hugging Face: write package.module:function, a function that returns Auto",
    "folder": "not a model; use one of model.onnx, ",
    "last.ckpt": "a file of weights needs a network: give timm:NAME@",
    "whole.pt": "a file of weights needs a network: give timm:NAME@",
    "net.safetensors": "a file of weights needs a network: give timm:NAME@",
}


def test_models_of_other_libraries_are_refused_with_the_way_out(refusal, tmp_path):
    for name in ("net.keras", "net.h5", "last.ckpt", "net.safetensors"):
        (tmp_path / name).write_bytes(b"PK")
    torch.save(torch.nn.Linear(2, 2), tmp_path / "whole.pt")
    for name in ("saved", "folder"):
        (tmp_path / name).mkdir()
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"")
    put_hugging_face(tmp_path / "hf_resnet")
    for name, says in OF_OTHER_LIBRARIES.items():
        assert refusal(tmp_path / name).startswith(f"--model {tmp_path / name}: {says}")
    assert "download it first" in refusal("https://example.org/net.onnx")


def test_a_sequence_with_one_frame_of_no_number_is_named():
    logits = np.array([[[0, 1], [np.nan, 1]], [[-np.inf, 1], [0, 1]]])
    assert is_finite(logits).tolist() == [False, True]


def test_batches_are_halved_when_memory_is_short(made, tmp_path, capsys):
    check_logits(made, predicted(made, tmp_path, "own_models:crowded"))
    model = own_model("crowded")
    pixels = np.zeros((12, 32, 32, 3), np.uint8)
    assert model(pixels, IMAGENET).shape == (12, 10)
    assert capsys.readouterr().err.splitlines() == [
        "m: out of device memory; 6 images at once from now on",
        "m: out of device memory; 3 images at once from now on",
    ]
    model(pixels, IMAGENET)
    assert not capsys.readouterr().err


def test_mixed_precision_is_near_and_recorded(made, tmp_path):
    found = predicted(made, tmp_path, "own_models:plain", "--mixed-precision", "--device", "cpu")
    check_logits(made, found, atol=0.3)
    assert found["logits"].dtype == np.float32
    flags = ("--classes", made / "names.txt")
    common = ("predict", made / "c", "--model", "own_models:plain", "--output", tmp_path / "p", *flags)
    assert "created with different settings: model." in cli_error(*common)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("own_models:missing", "AttributeError: module 'own_models' has no attribute 'missing'"),
        ("no_such_models:plain", "ModuleNotFoundError: No module named 'no_such_models'"),
        ("own_models:number", "returns int, neither"),
        ("own_models:broken", "its preprocessing: unknown key 'standard'"),
        ("own_models:few", "the class list has 10 names, own_models:few has 4 classes"),
        ("own_models:undefined", "own_models:undefined: returns NaN or infinity for"),
        ("own_models.plain", "not a model; use one of model.onnx, "),
        ("own_models.py", "not a model; use one of model.onnx, "),
        ("own_models.py:plain", "not a model; use one of model.onnx, "),
        ("./nets/own.py", "not a model; use one of model.onnx, "),
        ("nets/own.py", "not a model; use one of model.onnx, "),
        ("own_models", "not a model; use one of model.onnx, "),
        ("torchvision:resnet18", "name its weights: torchvision:resnet18@FILE"),
        ("torchvision:resnet", "torchvision has no such classifier (did you mean resnet"),
        ("torchvision:resnet18@missing.pth", "there is no file missing.pth"),
        ("weights.pth", "a file of weights needs a network"),
        ("missing.pt2", "there is no file missing.pt2"),
    ],
)
def test_models_that_cannot_be_used(refusal, made, model, says):
    assert says in refusal(model, "--classes", made / "names.txt")


def test_files_that_are_no_weights(refusal, tmp_path):
    weights = f"torchvision:resnet18@{tmp_path / 'w.pth'}"
    torch.save(torch.nn.Linear(2, 2), tmp_path / "w.pth")
    told = "not a file of weights: holds Python objects, such as a whole module, which could run any code: "
    told += "save the weights alone, with torch.save(module.state_dict(), FILE)"
    assert refusal(weights) == f"{tmp_path / 'w.pth'}: {told}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Linear(2, 2)).save(tmp_path / "w.pth")
    assert "w.pth: not a file of weights: is a program of TorchScript: export the module" in refusal(weights)
    torch.save({"a": {"w": torch.ones(1)}, "b": {"w": torch.ones(1)}}, tmp_path / "w.pth")
    assert "contains several sets of weights, 'a', 'b': save one of them in its own file" in refusal(weights)
    (tmp_path / "w.pth").write_bytes(b"weights")
    assert "w.pth: not a file of weights" in refusal(weights)
    torch.save([1, 2], tmp_path / "w.pth")
    assert "contains no weights by name" in refusal(weights)
    (tmp_path / "m.pt2").write_bytes(b"program")
    assert "not an exported program" in refusal(tmp_path / "m.pt2", "--trust-model")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_devices_that_are_not_there(refusal, tmp_path):
    line = refusal("own_models:plain", "--device", "cuda")
    assert line.startswith("--device cuda: not available to PyTorch; it has ") and line.endswith("cpu")
    line = refusal(put_model(tmp_path / "m.onnx"), "--device", "cuda")
    assert line.startswith("--device cuda: ONNX Runtime has no CUDAExecutionProvider")


def test_threads_of_onnx_runtime_end_their_wait_with_a_batch(tmp_path):
    """Otherwise they keep the cores of the workers busy between batches."""
    model = open_model(str(put_model(tmp_path / "m.onnx")), Runtime(device="cpu"))
    settings = model._session.get_session_options()
    assert settings.get_session_config_entry("session.force_spinning_stop") == "1"


def test_other_weights_are_another_model():
    images, _ = pictures(1)
    assert expected_logits(images).shape == (1, 10) and classifier().coef_.shape == (10, 64)
    one, two = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    models = [TorchModel("m", module, Runtime(device="cpu")) for module in (one, two, one)]
    digests = [model.settings()["sha256"] for model in models]
    assert digests[0] == digests[2] != digests[1]


def test_evaluate_gives_the_predictions_of_predict(made, tmp_path):
    predicted(made, tmp_path, "own_models:plain")
    flags = ("--set", "constants_for=32", "--set", "quality=95", "--corruptions", "fog")
    common = ("--source", made / "digits", "--model", "own_models:plain", "--output", tmp_path / "e")
    names = ("--classes", made / "names.txt")
    cli("evaluate", *common, *flags, "--severities", "1", "--jobs", "1", *names)
    written, found = (tmp_path / name / "own_models-plain" / "fog" / "1.npz" for name in "pe")
    assert written.read_bytes() == found.read_bytes()
