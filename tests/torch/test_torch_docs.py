"""The loops of docs/use/pytorch.md run as they stand, as the commands do."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import cli, put_photo

DOCS = Path(__file__).parents[2] / "docs" / "use"
CLASSES = ("cat", "dog")


def code(heading, page="pytorch.md"):
    """The block of Python below a heading of a page."""
    section = (DOCS / page).read_text(encoding="utf-8").split(f"\n## {heading}\n")[1]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0]


@pytest.fixture
def torch(tmp_path, monkeypatch):
    """PyTorch, in a folder with photographs in `train` and `val`, on one processor and without workers."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchvision")
    for place in ("train", "val"):
        for number, name in enumerate(CLASSES * 2):
            put_photo(tmp_path / place / name / f"{number}.JPEG", height=60, width=70, seed=number)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return torch


def network(torch):
    """A classifier so small that it costs nothing."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.AvgPool2d(32), torch.nn.Flatten(), torch.nn.Linear(147, 2))


FEWER = {
    "classes = 1000": "classes = 2",
    "IMAGENET_C.common, IMAGENET_C.levels": "('shot_noise', 'elastic_transform'), (2, 5)",
    "num_workers=4": "num_workers=0",
}


def run(text, changes, **names):
    """Run code of a page, with less to do; what is changed has to be there."""
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    exec(text, names)
    return names


def test_the_loop_of_evaluation_gives_what_predict_says_of_a_written_set(torch):
    torch.save(network(torch), "model.pt")
    run(code("Evaluating"), FEWER)
    flags = ("--edition", "imagenet", "--corruptions", "shot_noise,elastic_transform", "--severities", "2,5")
    cli("make-c", "--source", "val", *flags, "--output", "set", "--jobs", 1)
    from robustgen.sets.dataset.opening import open_set

    dataset, model = open_set("set", classes=CLASSES), torch.load("model.pt", weights_only=False)
    assert len(dataset.variants) == 5
    mean, std = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])[..., None, None]
    for variant in dataset.variants:
        (pixels,) = dataset.batches(variant, 4)
        images = torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255
        with torch.inference_mode():
            expected = model((images - mean) / std)
        held = np.load(Path("preds/mine", f"{variant.folder}.npz"))
        np.testing.assert_allclose(held["logits"], expected, atol=1e-5)
        np.testing.assert_array_equal(held["labels"], dataset.labels(variant))
        np.testing.assert_array_equal(held["keys"], dataset.keys_of(variant))
    assert "Top-1 error" in cli("score", "preds/mine", "--partial").output


def test_the_loop_of_training_runs(torch, capsys):
    torch.save(network(torch), "model.pt")
    names = run(code("Corrupting while training"), {"num_workers=4": "num_workers=0", "range(5)": "range(2)"})
    before, after = (torch.load(name, weights_only=False) for name in ("model.pt", "tuned.pt"))
    assert not torch.equal(before[2].weight, after[2].weight)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2 and all(re.fullmatch(r"epoch \d: \d+\.\d% right in fog", line) for line in shown)
    dataset = names["foggy"]
    flags = ("--edition", "imagenet", "--corruptions", "fog", "--severities", "3", "--output", "set")
    cli("make-c", "--source", "val", *flags, "--jobs", 1)
    from torchvision.datasets import ImageFolder

    written = ImageFolder("set/fog/3", names["normalise"])
    for own, expected in zip(dataset, written, strict=True):
        assert torch.equal(own[0], expected[0]) and own[1] == expected[1]
