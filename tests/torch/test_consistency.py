"""AugMixDataset and the losses; PyTorch is tried where it is installed, and not needed."""

import copy
import multiprocessing
import pickle
import sys

import numpy as np
import pytest
from PIL import Image
from scipy.special import log_softmax, rel_entr, softmax

import robustgen
from robustgen.errors import ArgumentError, ArgumentTypeError, MissingDependencyError
from robustgen.torch import AugMixDataset, jensen_shannon_loss
from tests.helpers import PATIENCE, photo

# --- the dataset ----------------------------------------------------------------------------------

ARRAYS = [(photo(32, 40, seed), seed * 10) for seed in range(4)]
PICTURES = [(Image.fromarray(image), label) for image, label in ARRAYS]


def flat(dataset):
    """All mixes of a dataset, to be compared."""
    return np.stack([np.stack(views) for views, _ in dataset])


def test_items_are_the_image_two_mixes_and_the_label():
    dataset = AugMixDataset(ARRAYS, seed=3)
    assert len(dataset) == 4
    for (image, label), (views, own) in zip(ARRAYS, dataset, strict=True):
        clean, first, second = views
        assert own == label and (first != second).any()
        np.testing.assert_array_equal(clean, image)
        assert clean is not image and clean.flags.writeable


def test_both_mixes_come_from_the_stream_of_the_item():
    dataset = AugMixDataset(ARRAYS, seed=3, severity=2, width=2, depth=2, alpha=0.5, operations="all")
    dataset.set_epoch(5)
    rng = np.random.default_rng((3, 5, 1))
    choices = {"severity": 2, "width": 2, "depth": 2, "alpha": 0.5, "operations": "all"}
    _, first, second = dataset[1][0]
    np.testing.assert_array_equal(first, robustgen.augmix(ARRAYS[1][0], rng=rng, **choices))
    np.testing.assert_array_equal(second, robustgen.augmix(ARRAYS[1][0], rng=rng, **choices))


def test_pictures_stay_pictures():
    for picture, array in zip(AugMixDataset(PICTURES), AugMixDataset(ARRAYS), strict=True):
        assert all(isinstance(view, Image.Image) and view.mode == "RGB" for view in picture[0])
        np.testing.assert_array_equal(np.stack(picture[0]), np.stack(array[0]))


def test_grey_images_get_three_equal_channels():
    grey = photo(32, 32)[:, :, 0]
    clean, first, _ = AugMixDataset([(grey, 0), (Image.fromarray(grey), 0)])[0][0]
    np.testing.assert_array_equal(clean, np.stack([grey] * 3, axis=2))
    assert first.shape == (32, 32, 3)
    assert AugMixDataset([(Image.fromarray(grey), 0)])[0][0][0].mode == "RGB"


def test_every_view_is_preprocessed():
    def preprocess(image):
        return np.asarray(image).transpose(2, 0, 1) / 255

    for dataset in (ARRAYS, PICTURES):
        views = AugMixDataset(dataset, preprocess=preprocess)[2][0]
        for view, plain in zip(views, AugMixDataset(dataset)[2][0], strict=True):
            np.testing.assert_array_equal(view, preprocess(plain))


def test_items_depend_on_seed_epoch_and_index_alone():
    dataset = AugMixDataset(ARRAYS, seed=1)
    expected = flat(dataset)
    backwards = np.stack([np.stack(dataset[i][0]) for i in (3, 2, 1, 0)])[::-1]
    np.testing.assert_array_equal(backwards, expected)
    np.testing.assert_array_equal(np.stack(dataset[-1][0]), expected[3])
    np.testing.assert_array_equal(np.stack(dataset[np.int64(2)][0]), expected[2])
    dataset.set_epoch(1)
    assert dataset.epoch == 1
    changed = (flat(dataset) != expected).any(axis=(2, 3, 4))
    np.testing.assert_array_equal(changed, [[False, True, True]] * 4)
    dataset.set_epoch(0)
    np.testing.assert_array_equal(flat(dataset), expected)


@pytest.mark.parametrize(
    ("index", "error"), [(4, IndexError), (slice(2), TypeError), (1.0, TypeError), (None, TypeError)]
)
def test_what_is_no_index_is_refused(index, error):
    with pytest.raises(error):
        AugMixDataset(ARRAYS)[index]


def test_copies_have_an_epoch_of_their_own():
    dataset = AugMixDataset(ARRAYS)
    dataset.set_epoch(7)
    expected = flat(dataset)
    for other in (copy.deepcopy(dataset), pickle.loads(pickle.dumps(dataset))):
        assert other.epoch == 7
        np.testing.assert_array_equal(flat(other), expected)
        other.set_epoch(8)
        assert dataset.epoch == 7


def answer(dataset, asked, answered):
    """A worker that lives on: sends its first mix whenever it is asked."""
    while asked.get():
        answered.put((dataset.epoch, dataset[0][0][1]))


@pytest.mark.slow("starts worker processes")
def test_workers_that_live_on_hear_of_the_epoch():
    context = multiprocessing.get_context("spawn")
    dataset, asked, answered = AugMixDataset(ARRAYS), context.Queue(), context.Queue()
    worker = context.Process(target=answer, args=(dataset, asked, answered), daemon=True)
    worker.start()
    for epoch in (0, 6):
        dataset.set_epoch(epoch)
        asked.put(True)
        told, mix = answered.get(timeout=PATIENCE)
        assert told == epoch
        np.testing.assert_array_equal(mix, dataset[0][0][1])
    asked.put(False)
    worker.join(60)
    assert worker.exitcode == 0


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        ({"severity": 11}, ArgumentError, "severity must be from 0.1 to 10, not 11"),
        ({"operations": "none"}, ArgumentError, "unknown set of operations 'none'"),
        ({"seed": -1}, ArgumentError, "seed must be from 0 to 2\\*\\*64 - 1, not -1"),
        ({"seed": True}, ArgumentTypeError, "seed must be an int, not bool"),
    ],
)
def test_wrong_choices_are_refused_at_once(choices, error, message):
    with pytest.raises(error, match=message):
        AugMixDataset(ARRAYS, **choices)


def test_wrong_epochs_are_refused():
    with pytest.raises(ArgumentError, match="epoch must be from 0"):
        AugMixDataset(ARRAYS).set_epoch(-1)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        *((item, "item 0 of the dataset must be a pair") for item in (ARRAYS[0][0], (1,), (1, 2, 3))),
        ({"image": 1, "label": 2}, "item 0 of the dataset must be a pair"),
        ((ARRAYS[0][0].astype(np.float32), 0), "image must have dtype uint8, not float32"),
    ],
)
def test_items_that_are_no_pairs_or_tensors_already_are_refused(item, message):
    with pytest.raises(ArgumentTypeError, match=message):
        AugMixDataset([item])[0]


# --- the loss -------------------------------------------------------------------------------------


def cross_entropy(logits, labels):
    return -log_softmax(np.asarray(logits, np.float64), axis=1)[np.arange(len(labels)), labels].mean()


def logits_of(seed, images=6, classes=9, spread=3.0):
    return np.random.default_rng(seed).normal(0, spread, (3, images, classes))


def plain_divergence(logits):
    """The published formula, image by image."""
    total = 0.0
    for image in range(logits.shape[1]):
        predictions = softmax(logits[:, image], axis=1)
        mean = np.clip(predictions.mean(axis=0), 1e-7, 1)
        total += sum(rel_entr(prediction, mean).sum() for prediction in predictions) / 3
    return total / logits.shape[1]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


# Among the farthest, mean predictions are kept from zero.
@pytest.mark.parametrize("spread", [0.1, 3.0, 60.0])
def test_the_loss_adds_the_weighted_divergence_to_the_cross_entropy(torch, spread):
    logits, labels = logits_of(2, spread=spread), np.array([0, 8, 3, 3, 1, 5])
    tensors = [torch.tensor(each) for each in logits]
    alone = plain_divergence(logits)
    for weight in (12.0, 0.5, 0.0):
        loss = jensen_shannon_loss(*tensors, weight=weight)
        np.testing.assert_allclose(float(loss), weight * alone, rtol=1e-9)
        loss = jensen_shannon_loss(*tensors, torch.tensor(labels), weight)
        np.testing.assert_allclose(float(loss), cross_entropy(logits[0], labels) + weight * alone, rtol=1e-9)
    assert float(jensen_shannon_loss(*tensors)) == float(jensen_shannon_loss(*tensors, weight=12.0))


def test_half_precision_is_computed_in_single(torch):
    logits = logits_of(3).astype(np.float16)
    loss = jensen_shannon_loss(*[torch.tensor(each) for each in logits])
    assert "float32" in str(loss.dtype)
    np.testing.assert_allclose(float(loss), 12 * plain_divergence(logits.astype(np.float64)), rtol=1e-5)


def test_wrong_logits_are_refused(torch):
    a, b = torch.tensor(np.zeros((4, 3))), torch.tensor(np.zeros((4, 2)))
    with pytest.raises(ArgumentError, match=r"logits must have one shape .* \(4, 3\), \(4, 3\), \(4, 2\)"):
        jensen_shannon_loss(a, a, b)
    with pytest.raises(ArgumentError, match="logits must have one shape"):
        jensen_shannon_loss(a[0], a[0], a[0])
    with pytest.raises(ArgumentTypeError, match=r"logits must be torch\.Tensor, not list"):
        jensen_shannon_loss(a, a, [[0.0]])


def test_without_pytorch_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'robustgen\[torch\]'"):
        jensen_shannon_loss(*logits_of(0))


def test_the_gradient_is_that_of_the_published_loss(torch):
    functional = torch.nn.functional
    logits, labels = torch.tensor(logits_of(4), requires_grad=True), torch.tensor([0, 8, 3, 3, 1, 5])
    jensen_shannon_loss(*logits, labels).backward()
    own, logits.grad = logits.grad, None
    predictions = functional.softmax(logits, dim=2)
    log_mean = torch.clamp(predictions.mean(dim=0), 1e-7, 1).log()
    terms = [functional.kl_div(log_mean, each, reduction="batchmean") for each in predictions]
    (functional.cross_entropy(logits[0], labels) + 12 * sum(terms) / 3).backward()
    torch.testing.assert_close(own, logits.grad)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_dataloader_gives_the_same_whatever_its_workers(torch, workers):
    def batches(count, **more):
        dataset = AugMixDataset(ARRAYS, preprocess=torch.from_numpy, seed=5)
        loader = torch.utils.data.DataLoader(dataset, batch_size=2, num_workers=count, **more)
        for epoch in range(2):
            dataset.set_epoch(epoch)
            yield from (torch.stack(views) for views, _ in loader)

    expected = list(batches(0))
    for more in ({}, {"persistent_workers": True}):
        for own, wanted in zip(batches(workers, **more), expected, strict=True):
            assert torch.equal(own, wanted)
