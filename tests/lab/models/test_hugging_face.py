"""Modules of transformers: preprocessing and names of classes from the folder of their weights."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import robustgen
from robustgen.errors import ConfigError
from robustgen.lab.models.base import FunctionModel
from robustgen.lab.models.hugging_face import fit_class_names, list_class_names, read_preprocessing
from robustgen.lab.models.preprocessing import PRESETS, Preprocessing
from tests.digits import PLAIN
from tests.helpers import cli

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not find_spec("transformers"), reason="could not find 'transformers'")

FEW = {"corruptions": "brightness", "severities": 1, "jobs": 1}
USUAL = {"do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True}
MEAN = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.1, 0.2, 0.3]}


@pytest.fixture(scope="module")
def levels():
    """The module of the network, which takes seconds to import."""
    from tests.lab.models import levels

    return levels


def put_levels(root, levels):
    for name, level in levels.items():
        (root / name).mkdir(parents=True)
        Image.fromarray(np.full((40, 40, 3), level, np.uint8)).save(root / name / "a.png")
    return root


LEVELS = {"zebra": 40, "ant": 80, "mule": 120, "Guide Dog": 160}
FOLDERS = {name.lower().replace(" ", "_"): level for name, level in LEVELS.items()}


@pytest.mark.parametrize(
    ("processor", "file"),
    [
        (USUAL | {"image_mean": [0.1] * 3, "image_std": [0.9] * 3}, "preprocessor_config.json"),
        (
            {"image_processor": USUAL | {"image_mean": [0.1] * 3, "image_std": [0.9] * 3}},
            "processor_config.json",
        ),
    ],
)
def test_names_and_normalisation_of_a_folder_are_honoured(levels, tmp_path, processor, file):
    source = put_levels(tmp_path / "s", FOLDERS)
    module = levels.put_module(tmp_path / "m", LEVELS, processor, file, scale=0.9, shift=0.1)
    scores = robustgen.evaluate(module, source=source, **FEW)
    assert scores.clean_error == 0
    (note,) = (each for each in scores.notes if each.startswith("input of"))
    assert "mean 0.1 (the model's), std 0.9 (the model's)" in note
    # What is given wins.
    order = sorted(FOLDERS)
    worse = robustgen.evaluate(module, source=source, classes=order, mean=0, std=1, **FEW)
    assert worse.clean_error > 0


def test_names_that_are_no_folders_are_named(levels, tmp_path, capfd):
    source = put_levels(tmp_path / "s", {"a": 40, "b": 80})
    module = levels.put_module(tmp_path / "m", {"cat": 40, "dog": 80})
    scores = robustgen.evaluate(module, source=source, mean=0, std=1, **FEW)
    said = capfd.readouterr().err
    assert scores.clean_error == 0
    assert "id2label" in said and "cat, dog" in said and "a, b" in said and "--classes" in said
    plain = levels.put_module(tmp_path / "plain", {"LABEL_0": 40, "LABEL_1": 80})
    robustgen.evaluate(plain, source=source, mean=0, std=1, **FEW)
    assert "id2label" not in capfd.readouterr().err


def test_predict_honours_the_names_too(levels, tmp_path, monkeypatch):
    levels.put_module(tmp_path / "m", LEVELS)
    code = f"def build():\n    return Level.from_pretrained({str(tmp_path / 'm')!r})\n"
    (tmp_path / "levels_of_a_folder.py").write_text(f"from {levels.__name__} import Level\n{code}")
    monkeypatch.syspath_prepend(tmp_path)
    few = ("--corruptions", "brightness", "--severities", "1", "--format", "png", "--jobs", "1")
    cli("make-c", "--source", put_levels(tmp_path / "s", FOLDERS), *few, "--output", tmp_path / "c")
    words = ("--model", "levels_of_a_folder:build", *PLAIN, "--output", tmp_path / "p")
    cli("predict", tmp_path / "c", *words)
    (path,) = tmp_path.glob("p/*/clean.npz")
    with np.load(path) as found:
        assert np.array_equal(found["logits"].argmax(1), found["labels"])
        assert sorted(found["labels"].tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("processor", "wanted"),
    [
        (USUAL | MEAN, Preprocessing((0.5, 0.4, 0.3), (0.1, 0.2, 0.3))),
        ({**MEAN, "do_normalize": False}, Preprocessing((0, 0, 0), (1, 1, 1))),
        ({**MEAN, "do_rescale": False}, Preprocessing((0.5, 0.4, 0.3), (0.1, 0.2, 0.3), 1)),
        (
            {**MEAN, "size": {"height": 20, "width": 30}, "resample": 3},
            Preprocessing((0.5, 0.4, 0.3), (0.1, 0.2, 0.3), input_size=(20, 30), interpolation="bicubic"),
        ),
        (
            {**MEAN, "size": {"shortest_edge": 40}, "do_center_crop": True, "crop_size": 32, "resample": 2},
            Preprocessing((0.5, 0.4, 0.3), (0.1, 0.2, 0.3), input_size=(32, 32)),
        ),
        (
            {**MEAN, "size": {"shortest_edge": 40}},
            Preprocessing((0.5, 0.4, 0.3), (0.1, 0.2, 0.3), input_size=(40, 40)),
        ),
        (
            {**MEAN, "size": 40, "do_resize": False, "do_flip_channel_order": True},
            Preprocessing((0.5, 0.4, 0.3), (0.1, 0.2, 0.3), channel_order="bgr"),
        ),
    ],
)
def test_keys_of_image_processors(levels, tmp_path, processor, wanted):
    found = read_preprocessing(levels.put_module(tmp_path / "m", LEVELS, processor))
    assert found.settings() == wanted.settings()


def test_files_that_say_nothing(levels, tmp_path):
    assert read_preprocessing(levels.put_module(tmp_path / "m", LEVELS)) is None
    assert read_preprocessing(torch.nn.Linear(3, 2)) is None
    assert list_class_names(torch.nn.Linear(3, 2)) == ()
    assert read_preprocessing(levels.Level(levels.LevelConfig(num_labels=2))) is None
    for content in ("{", "[]", '{"size": {}, "image_mean": "x"}'):
        (tmp_path / "m/preprocessor_config.json").write_text(content)
        with pytest.raises(ConfigError, match=r"preprocessor_config\.json"):
            read_preprocessing(levels.Level.from_pretrained(tmp_path / "m"))


def test_a_model_of_the_hub_brings_its_downloaded_file(levels, tmp_path, monkeypatch):
    module = levels.put_module(tmp_path / "m", LEVELS, USUAL | MEAN)
    file = tmp_path / "m/preprocessor_config.json"
    asked = []

    def find(place, name):
        asked.append((place, name))
        return str(file)

    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", find)
    module.config._name_or_path = module.name_or_path = "someone/levels"
    assert read_preprocessing(module).mean == (0.5, 0.4, 0.3)
    assert asked == [("someone/levels", "preprocessor_config.json")]


def test_names_of_imagenet_are_wordnet_ids():
    torchvision = pytest.importorskip("torchvision")
    model = FunctionModel(len, "m")
    model.class_names = tuple(torchvision.models.ResNet50_Weights.DEFAULT.meta["categories"])
    found = fit_class_names(PRESETS["imagenet"], model, ("n01440764", "n15075141")).classes
    assert len(found) == 1000 and (found[0], found[-1]) == ("n01440764", "n15075141")


def test_names_fit_folders_that_write_them_otherwise():
    own, model = PRESETS["imagenet"], FunctionModel(len, "m")
    model.class_names = ("b", "a")
    assert fit_class_names(own, model, ("a",)).classes == ("b", "a")
    assert fit_class_names(own, model, ("A", "B")).classes == ("B", "A")
    assert fit_class_names(own, model, ()).classes is None
    assert fit_class_names(own, model, ("c", "a")).classes is None


# --- models of images and texts ------------------------------------------------------------------

PAGE = Path(__file__).parents[3] / "docs" / "use" / "zero-shot.md"
CLASSES = ("n01440764", "n01443537")
WORDS = ("[PAD]", "[UNK]", "a", "photo", "of", "tench", "goldfish", ".")


def put_clip(folder):
    """Save a tiny CLIP of random weights with a tokenizer of eight words."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: n for n, word in enumerate(WORDS)}, "[UNK]")
    )
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_input_names=["input_ids", "attention_mask"],
    )
    tokenizer.save_pretrained(folder)
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = {**small, "vocab_size": len(WORDS), "eos_token_id": WORDS.index(".")}
    config = transformers.CLIPConfig(
        text_config=text | {"max_position_embeddings": 8},
        vision_config=small | {"image_size": 224, "patch_size": 32},
        projection_dim=8,
    )
    torch.manual_seed(0)
    clip = transformers.CLIPModel(config).eval()
    clip.save_pretrained(folder)
    return clip, tokenizer


def test_zero_shot_clip_in_ten_lines(tmp_path, monkeypatch):
    clip, tokenizer = put_clip(tmp_path / "clip")
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "zero_shot.py").write_text(block)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "zero_shot", raising=False)
    source = put_levels(tmp_path / "val", dict(zip(CLASSES, (40, 200), strict=True)))
    few = {"corruptions": "brightness", "severities": 1, "jobs": 1, "format": "png", "save": "logits"}
    scores = robustgen.evaluate("zero_shot:build", source=source, output="preds", **few)
    assert scores.clean_error in (0, 0.5, 1)
    with np.load("preds/zero_shot-build/clean.npz") as found:
        logits = found["logits"]
    pixels = np.stack([np.full((3, 224, 224), level / 255) for level in (40, 200)])
    mean, std = (np.array(each)[:, None, None] for each in (CLIP_MEAN, CLIP_STD))
    tokens = tokenizer(["a photo of a tench.", "a photo of a goldfish."], padding=True, return_tensors="pt")
    with torch.no_grad():
        wanted = clip(**tokens, pixel_values=torch.tensor((pixels - mean) / std, dtype=torch.float32))
    np.testing.assert_allclose(logits, wanted.logits_per_image.numpy(), atol=1e-4)


CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def test_a_raw_clip_is_no_classifier(tmp_path):
    clip, _ = put_clip(tmp_path / "clip")
    source = put_levels(tmp_path / "val", dict(zip(CLASSES, (40, 200), strict=True)))
    with pytest.raises(ConfigError, match=r"input_ids.* classifier .* docs/use/zero-shot\.md"):
        robustgen.evaluate(clip, source=source, input_size=224, **FEW)
