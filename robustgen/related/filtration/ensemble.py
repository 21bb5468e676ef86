"""The models to be fooled, mapped to one list of classes: from crops to predictions."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from robustgen.errors import ArgumentError, ConfigError, UnknownNameError
from robustgen.lab.evaluation.predictions import digest_of
from robustgen.lab.models import preprocessing as presets
from robustgen.lab.models.base import Classifier, Model, name_class_flag
from robustgen.lab.models.hugging_face import fit_class_names
from robustgen.lab.models.opening import open_model
from robustgen.lab.models.preprocessing import Preprocessing
from robustgen.metrics import softmax
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.cleaning import Cleaning
from robustgen.pixels.imaging.geometry import centre_crop, crop_ten, resize_shorter
from robustgen.related.filtration.funnel import Floats, Opinions, Whole, summarise_opinions
from robustgen.related.settings import Filtering
from robustgen.settings.class_lists import read_classes
from robustgen.settings.models import OutputForm, Runtime

SHARE: Final = 0.875
"""Side of the crop relative to the shorter side of the resized image: 224 / 256, as in ImageNet tests."""


@dataclass(frozen=True)
class CropSizes:
    """Resizing and cropping of an image.

    Attributes
    ----------
    height, width : int
        Size of a crop, in pixels.
    shorter : int
        Shorter side of the image that is cropped.
    """

    height: int
    width: int
    shorter: int

    def crop(self, image: Rgb, ten: bool = False) -> Rgb:
        """Return the centre of `image`, uint8 (H, W, 3), resized bilinearly: uint8 (1, height, width, 3).

        If `ten`, four corners and the centre, then those of the mirrored image; Krizhevsky et al., 2012,
        section 4.1.

        Raises
        ------
        ImageError
            The image is too elongated.
        """
        resized = resize_shorter(image, self.shorter)
        if ten:
            return np.stack([*crop_ten(resized, self.width, self.height)])
        return centre_crop(resized, self.width, self.height)[None]


def geometry(height: int, width: int, shorter: int | None = None) -> CropSizes:
    """Return the geometry of crops of that size; `shorter` defaults to the crop's size / 0.875."""
    return CropSizes(height, width, shorter or round(max(height, width) / SHARE))


# Settings that decide the input of a model: crops, and cleaning before them.
View = tuple[CropSizes, Cleaning | None]
Crops = dict[View, Rgb]

USUAL_SIDE: Final = 224


@dataclass(frozen=True)
class Member:
    """One model of the ensemble.

    Attributes
    ----------
    label : str
        File name, made unique among the models.
    classifier : Classifier
    geometry : CropSizes
    names : tuple of str
        Class folders in the order of the outputs.
    outputs : {"logits", "probabilities"}
    """

    label: str
    classifier: Classifier
    geometry: CropSizes
    names: tuple[str, ...]
    outputs: OutputForm

    @property
    def view(self) -> View:
        """Return all settings that decide the model's input."""
        return self.geometry, self.classifier.preprocessing.clean_input

    def crops(self, image: Rgb, ten: bool) -> Rgb:
        """Return the crops of `image` for the model: uint8 (10 or 1, height, width, 3)."""
        return self.geometry.crop(self.classifier.preprocessing.clean(image), ten)

    def probabilities(self, images: Rgb, classes: Sequence[str]) -> Floats:
        """Return probabilities (n, classes) among `classes` for crops, uint8 (n, H, W, 3).

        They are not finite if the model's outputs are not.
        """
        indices = {name: index for index, name in enumerate(self.names)}
        values = self.classifier(images).astype(np.float64)[:, [indices[name] for name in classes]]
        if self.outputs == "probabilities":
            # Normalised so that the rest sums to 1 again, as with logits.
            values = np.log(np.maximum(values, np.finfo(np.float64).tiny))
        broken = ~np.isfinite(values.max(axis=1))
        values[broken] = 0
        result = softmax(values)
        result[broken] = np.nan
        return result

    def settings(self) -> dict[str, Any]:
        """Return everything that decides its predictions."""
        own = self.classifier.preprocessing.settings()
        del own["classes"]
        return {
            **self.classifier.model.settings(),
            "preprocessing": own,
            "outputs": self.outputs,
            "classes_sha256": digest_of(self.names),
            "geometry": vars(self.geometry),
        }


@dataclass(frozen=True)
class Ensemble:
    """All models, and the classes to choose from.

    Attributes
    ----------
    members : tuple of Member
    classes : tuple of str
    ten : bool
        Whether they get ten crops of an image, or only its centre.
    """

    members: tuple[Member, ...]
    classes: tuple[str, ...]
    ten: bool

    @cached_property
    def known(self) -> frozenset[str]:
        """Return all classes that any model knows, relevant or not."""
        return frozenset(name for member in self.members for name in member.names)

    def crops(self, image: Rgb) -> Crops:
        """Return the crops of `image`, uint8 (H, W, 3), for the models.

        Raises
        ------
        ImageError
            The image is too elongated.
        """
        viewers = {member.view: member for member in self.members}
        return {view: member.crops(image, self.ten) for view, member in viewers.items()}

    def opinions(self, keys: Sequence[str], seen: Sequence[Crops], true: Whole | None) -> Opinions:
        """Return the predictions for the images called `keys`.

        Parameters
        ----------
        keys : sequence of str
        seen : sequence of Crops
        true : (images,), integer, optional
            Indices of the true classes in `classes`.

        Raises
        ------
        ConfigError
            A model returns NaN or infinity; the message names the image.
        """
        return summarise_opinions(np.stack([self._ask(each, keys, seen) for each in self.members]), true)

    def _ask(self, member: Member, keys: Sequence[str], seen: Sequence[Crops]) -> Floats:
        images = np.concatenate([crops[member.view] for crops in seen])
        values = member.probabilities(images, self.classes).reshape(len(keys), -1, len(self.classes))
        broken = np.isnan(values).any(axis=(1, 2))
        if broken.any():
            key = keys[int(broken.argmax())]
            raise ConfigError(f"{member.classifier.model.name}: returns NaN or infinity for {key!r}")
        return values


# --- opening -------------------------------------------------------------------------------------


def open_ensemble(options: Filtering, runtime: Runtime, folders: Sequence[str], *, ten: bool) -> Ensemble:
    """Load the models.

    Parameters
    ----------
    options : Filtering
    runtime : Runtime
    folders : sequence of str
        Meaning of the outputs if no class list is given.
    ten : bool
        As in `Ensemble`.

    Raises
    ------
    ConfigError
        A model cannot be used, or does not know the relevant classes.
    """
    members = _members(options, runtime, tuple(folders))
    wanted = read_class_set(options.only) if options.only else members[0].names
    for member in members:
        unexpected = [name for name in wanted if name not in set(member.names)]
        if unexpected and options.only:
            problem = unknown_class(unexpected[0], member.names)
            raise ConfigError(f"{options.only}: {problem} of {member.classifier.model.name}")
        if unexpected or (not options.only and len(member.names) > len(wanted)):
            pair = f"{members[0].classifier.model.name} and {member.classifier.model.name}"
            raise ConfigError(f"{pair} know different classes: name the relevant ones with --only")
    return Ensemble(members, wanted, ten)


def unknown_class(name: str, known: Iterable[str]) -> UnknownNameError:
    """Return the message that `name` is not a class: it names the nearest, or a few of the thousand."""
    names = tuple(known)
    few = names if len(names) <= 10 else (*names[:10], "...")
    return UnknownNameError("class", name, get_close_matches(name, names, n=1) or few)


def read_class_set(path: Path) -> tuple[str, ...]:
    """Return the class folders in a file, each once.

    Raises
    ------
    ConfigError
        The file cannot be read, names fewer than two classes, or one twice.
    """
    try:
        names = read_classes(str(path))
    except ArgumentError as error:
        raise ConfigError(f"{path}: {error}") from error
    if len(names) < 2:
        raise ConfigError(f"{path}: names fewer than two classes")
    return tuple(names)


def _members(options: Filtering, runtime: Runtime, folders: tuple[str, ...]) -> tuple[Member, ...]:
    count = len(options.model)
    keys = [each for each in options.preprocessing if "=" in each]
    bases = [each for each in options.preprocessing if "=" not in each]
    named = _repeat_values("--preprocessing", bases, count)
    listed = _repeat_values("--classes", options.classes, count)
    models = [open_model(name, runtime) for name in options.model]
    members = []
    for model, label, name, classes in zip(models, _labels(models), named, listed, strict=True):
        flags, layers = options.overrides() | {"classes": classes}, [*([name] if name else []), *keys]
        own = presets.load_preprocessing(layers, flags, "imagenet", model.preprocessing)
        members.append(_member(options, model, label, own, folders))
    return tuple(members)


def _repeat_values(flag: str, values: Sequence[str], count: int) -> Sequence[str | None]:
    if len(values) not in (0, 1, count):
        raise ConfigError(f"{flag}: given {len(values)} times; give it once, or once for each --model")
    return values if len(values) == count else [*values, None][:1] * count


def _labels(models: Sequence[Model]) -> list[str]:
    """Return short names, numbered if they are the same."""
    times = Counter(model.label for model in models)
    return [
        model.label if times[model.label] == 1 else f"{model.label} ({number})"
        for number, model in enumerate(models, 1)
    ]


def _member(
    options: Filtering, model: Model, label: str, own: Preprocessing, folders: tuple[str, ...]
) -> Member:
    own = fit_class_names(own, model, folders)
    # A classifier takes the form of a single output alone, and knows after a first call that there is one.
    form, own = own.outputs, replace(own, outputs=None)
    classifier = Classifier(model, own)
    shape = _geometry(classifier, options.resize)
    black = np.zeros((1, shape.height, shape.width, 3), np.uint8)
    probe = np.concatenate([classifier(black), classifier(~black)]).astype(np.float64)
    names = own.classes or folders
    if len(names) != probe.shape[1]:
        held = f"the class list has {len(names)} names"
        if not own.classes:
            remedy = f"list the classes of its outputs with {name_class_flag(probe.shape[1])}"
            held = f"{f'there are {len(names)} folders' if names else 'no list of them'}: {remedy}"
        raise ConfigError(f"{model.name} has {probe.shape[1]} classes, {held}")
    if model.is_binary:
        classifier = Classifier(model, replace(own, outputs=form))
    elif form == "probabilities" and probe.min() < 0:
        raise ConfigError(f"outputs: {model.name} returns {probe.min():.3g}, which is not a probability")
    # Positive logits that sum to 1, twice, are very unlikely; the tolerance is wide enough for float16.
    is_sum = np.abs(probe.sum(axis=1) - 1).max() < 0.01 and probe.min() >= 0
    outputs = form or ("probabilities" if is_sum else "logits")
    return Member(label, classifier, shape, names, outputs)


def _geometry(classifier: Classifier, shorter: int | None) -> CropSizes:
    model, own = classifier.model, classifier.preprocessing
    layout = model.layout(own.layout)
    height, width = own.input_size or model.sides(layout)
    side = height or width or USUAL_SIDE
    shape = geometry(height or side, width or side, shorter)
    model.check_size(shape.height, shape.width, layout)
    longer = max(shape.height, shape.width)
    if shape.shorter < longer:
        raise ConfigError(f"--resize: {shape.shorter} pixels are fewer than the {longer} of a crop")
    return shape
