"""Ingredients: what corruptions need beside the image, such as photographs of frost or depth maps.

A corruption declares its ingredient with ``needs=``. A plan opens each ingredient once. What it opens is sent
to the workers, and gives the corruption's function its last argument for each image.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from robustgen.errors import ArgumentError

if TYPE_CHECKING:
    from robustgen.files.storage import Store
    from robustgen.pixels.imaging.geometry import PreparationStep
    from robustgen.pixels.imaging.jpeg import Libjpeg


class Images(Protocol):
    """The images of a set, as far as an ingredient reads them."""

    location: str

    def keys(self) -> tuple[str, ...]:
        """Return the keys of all images."""

    def open(self, key: str) -> Any:
        """Return one image: uint8 (H, W, 3), or a Pillow image of any mode."""

    def dimensions(self, key: str) -> tuple[int, int]:
        """Return width and height of one image in pixels."""


@dataclass(frozen=True)
class IngredientSpec:
    """Everything that an ingredient is opened with.

    Attributes
    ----------
    place : str or None
        Absolute path, URL or pattern that the user named; None if there is none.
    settings : mapping of str to value
        The user's settings, as the parsers of `Ingredient.settings` return them.
    parameters : sequence of dataclass object
        The parameters of every variant that needs the ingredient.
    source : Images
        The source of the set.
    keys : tuple of str
        Keys of all images of the source that may belong to the set.
    libjpeg : {"turbo", "ijg"}
        Decoder of JPEG files.
    store : Store, optional
        The output state, for caches that worker processes read; None if there are none.

    Examples
    --------
    >>> from robustgen.plugins import IngredientSpec, open_store
    >>> spec = IngredientSpec("maps", {"gain": 2.0}, [], None, ("a.png",), "turbo", open_store("out"))
    >>> spec.place, spec.settings["gain"]
    ('maps', 2.0)
    """

    place: str | None
    settings: Mapping[str, Any]
    parameters: Sequence[Any]
    source: Images
    keys: tuple[str, ...]
    libjpeg: "Libjpeg"
    store: "Store | None"


class OpenedIngredient(ABC):
    """An ingredient that was opened for a set. Picklable.

    Attributes
    ----------
    licence : str
        Sentence about the terms of what the images contain of it; empty if there is nothing to say.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> from robustgen.plugins import OpenedIngredient
    >>> class Light(OpenedIngredient):
    ...     def provide(self, key, preparation):
    ...         return preparation.follow(np.ones((300, 400), np.float32))
    >>> preparation = robustgen.published_preparation("laion-c:mosaic", severity=1)
    >>> Light().provide("a.png", preparation.step).shape
    (224, 224)
    """

    licence: str = ""

    def check(self, keys: Sequence[str]) -> None:  # noqa: B027
        """Raise a ConfigError if one of the images `keys` has nothing; called before the run."""

    def make_ready(self) -> None:  # noqa: B027
        """Store what `provide` needs where worker processes find it; called before the work begins."""

    def describe(self, parameters: Any) -> str:
        """Return what decides the pixels of a variant with these `parameters`, in one line.

        It is part of the settings of an output, so that a run with other content is refused. Empty if the
        content is always the same.
        """
        return ""

    @abstractmethod
    def provide(self, key: str, preparation: "PreparationStep") -> Any:
        """Return the last argument of the function for the image `key`, which got this `preparation`.

        Raises
        ------
        ImageError
            There is nothing usable for this image.
        """


class Ingredient(ABC):
    """Something that a corruption needs beside the image.

    Attributes
    ----------
    name : str
        Name in ``--with NAME=PLACE``, in configs and in the settings of an output.
    sentence : str
        What it is and where it may be, for messages and lists.
    settings : mapping of str to callable
        Setting to the function that turns a text or a number into its value, or raises a ValueError.
    default : {"refused", "installed", "own"}
        What is used if the user names no place: nothing, installed files, or the images of the set.
    fits_image : bool
        Whether what it gives fits one image pixel by pixel, and neither another nor a part of it.
    key : str
        Key of the config that contains its place, instead of ``--with``.

    Examples
    --------
    >>> from robustgen.plugins import Ingredient
    >>> class Lamps(Ingredient):
    ...     name = "lamps"
    ...     sentence = "maps of light, in a folder"
    >>> Lamps().default  # without --with lamps=PLACE
    'refused'
    """

    name: ClassVar[str]
    sentence: ClassVar[str]
    settings: ClassVar[Mapping[str, Callable[[Any], Any]]] = MappingProxyType({})
    default: ClassVar[Literal["refused", "installed", "own"]] = "refused"
    fits_image: ClassVar[bool] = False
    key: ClassVar[str] = ""

    def open(self, spec: IngredientSpec) -> OpenedIngredient:
        """Open the ingredient for a set; `robustgen.sets.ingredients.OPENERS` opens those that read sources.

        Raises
        ------
        ConfigError, MissingDependencyError
            It cannot be used.
        """
        raise NotImplementedError(f"no function opens {self.name}")

    def validate(self, value: Any, image: Any, corruption: str) -> Any:
        """Return the last argument of the function of `corruption`, from the `value` for an `image`.

        Parameters
        ----------
        value : object
            What `OpenedIngredient.provide` returned, or what a user passed in Python; None for nothing.
        image : uint8 ndarray
        corruption : str
            Name, for messages.

        Raises
        ------
        ArgumentError
            The value is missing, or does not fit the image.
        """
        if value is None and self.default != "installed":
            raise ArgumentError(f'{corruption} needs {self.sentence}: parameters={{"{self.name}": ...}}')
        return value


class InstalledFiles(Ingredient):
    """Published files in an installed package, or in another folder."""

    default = "installed"
    licence: ClassVar[str]

    @abstractmethod
    def check(self, folder: str | None, parameters: Any) -> None:
        """Raise a MissingDependencyError if the files for these `parameters` are missing or differ."""

    def open(self, spec: IngredientSpec) -> OpenedIngredient:
        """Check the files, and return their folder."""
        for parameters in spec.parameters:
            self.check(spec.place, parameters)
        return _Folder(spec.place, self.licence)


@dataclass(frozen=True)
class _Folder(OpenedIngredient):
    """The folder of published files; None for that of the installed package."""

    folder: str | None
    licence: str

    def provide(self, key: str, preparation: "PreparationStep") -> str | None:
        """Return the folder."""
        return self.folder
