"""Functions for users in Python."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any, get_args

import numpy as np

from robustgen.errors import ArgumentError, ArgumentTypeError, RobustgenError
from robustgen.pixels.benchmarks.binding import Bound, BoundCorruption, bind
from robustgen.pixels.benchmarks.corruptions import find_family
from robustgen.pixels.benchmarks.editions import check_size, prepare
from robustgen.pixels.benchmarks.registry import CLIP_SETS, Temporal
from robustgen.pixels.imaging.arrays import Rgb
from robustgen.pixels.imaging.decode import as_grey, as_rgb
from robustgen.pixels.imaging.frames import Clip, as_clip
from robustgen.pixels.imaging.rng import Rng

__all__ = ["CorruptObservation", "augmix", "corrupt", "corrupt_clip", "perturb", "prepare"]


def as_rng(rng: Any) -> Rng:
    """Return a generator from an int seed, None (fresh entropy), or a generator, which is passed through."""
    if isinstance(rng, (np.random.Generator, np.random.RandomState)):
        return rng
    if rng is None or (isinstance(rng, (int, np.integer)) and not isinstance(rng, bool)):
        if rng is not None and rng < 0:
            raise ArgumentError(f"rng must not be negative, not {rng}")
        return np.random.default_rng(rng)
    kinds = "a non-negative int, a numpy.random.Generator, a numpy.random.RandomState or None"
    raise ArgumentTypeError(f"rng must be {kinds}, not {rng!r}")


def corrupt(
    image: Any,
    corruption: str,
    severity: float,
    *,
    edition: str | None = None,
    scale: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    depth: Any = None,
    rng: Any = None,
) -> Rgb:
    """Apply one corruption of ImageNet-C, of C-bar, of another family, or of a plug-in.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3) or (H, W), or a Pillow image
        Any size of at least 32 x 32 pixels; for mnist-c 28 x 28. It is neither resized (see `prepare`) nor
        modified.
    corruption : str
        A name in `CORRUPTIONS`, or a corruption of another family in `FAMILIES`, such as
        ``"laion-c:glitched"``.
    severity : int or float
        1 to 5; for ccc 0 to 5, for mnist-c 1. Between whole severities, constants are interpolated.
    edition : str, optional
        Edition whose constants are used. By default the size of the image decides, as in
        ``make-c --source``: the constants of 224, 299, 64 or 32 pixels, the nearest to the shorter side.
    scale : int, optional
        224, 299, 64 or 32: use these constants instead of the edition's; for corruptions also 256, 336,
        384 or 448, whose constants are robustgen's own.
    parameters : mapping of str to value, optional
        Replaces constants by name, as ``robustgen list CORRUPTION`` prints them: ``{"sigma": 0.1}``. Also
        ``{"library": "ijg"}`` for jpeg_compression,
        and ingredients: ``{"tiles": FOLDER}`` for laion-c:stickers and laion-c:mosaic, ``{"frost": FOLDER}``.
    depth : ndarray of shape (H, W), optional
        The depth map of `image`; only for 3dcc:fog_3d, 3dcc:near_focus and 3dcc:far_focus.
    rng : int, numpy.random.Generator, numpy.random.RandomState or None
        With a RandomState, draws have the order of the published scripts and give their pixels.

    Returns
    -------
    uint8 ndarray of shape (H, W, 3)
        For mnist-c, and for editions of grey images such as ``"chestmnist"``, (H, W).

    Raises
    ------
    ArgumentError, ArgumentTypeError
        A ValueError or TypeError; the message says what is wrong, and the nearest name.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> grey = np.full((64, 64, 3), 128, np.uint8)
    >>> foggy = robustgen.corrupt(grey, "fog", severity=3, rng=0)
    >>> foggy.shape, foggy.dtype
    ((64, 64, 3), dtype('uint8'))
    >>> [int(robustgen.corrupt(grey, "gaussian_noise", each, rng=0).std()) for each in (1, 3, 5)]
    [10, 30, 45]
    """
    bound, given = _bind_given(edition, corruption, severity, scale, parameters)
    operation = bound.operation
    if depth is not None and not (operation.needs and operation.needs.name == "depth"):
        raise ArgumentError(f"{operation.name} takes no depth map")
    pixels = check_size((as_grey if operation.grey else as_rgb)(image), operation.smallest_side)
    with _name_parameters(bound, pixels, parameters):
        corrupted = bound.apply(pixels, as_rng(rng), given=depth if given is None else given)
    return corrupted.copy() if np.shares_memory(corrupted, pixels) else corrupted


def corrupt_clip(
    frames: Any,
    corruption: str,
    severity: float,
    *,
    edition: str | None = None,
    scale: int | None = None,
    fps: Any = None,
    temporal: Temporal = "clip",
    parameters: Mapping[str, Any] | None = None,
    rng: Any = None,
) -> Rgb:
    """Apply one corruption to the frames of a clip.

    Noise, flakes of snow and the published rain are new in each frame. Everything else is drawn once for the
    clip: all frames show the same fog, frost and drops on the lens.

    Parameters
    ----------
    frames : uint8 ndarray of shape (T, H, W, 3)
        RGB. Frames are neither resized nor modified.
    corruption : str
        ``"video-c:rain"`` and the other corruptions of Mini Kinetics-C, or any other corruption that needs no
        depth map.
    severity : int or float
        As in `corrupt`.
    edition : str, optional
        ``"kinetics"`` (the default for video-c) or ``"ssv2"`` chooses the constants of video-c; for other
        corruptions as in `corrupt`.
    scale : int, optional
        As in `corrupt`.
    fps : int, float or Fraction, optional
        Frames per second, by default 25, for video-c:frame_rate and the video encoders.
    temporal : {"clip", "frame"}
        "frame" draws everything afresh in each frame; video-c, whose draws are as published, refuses it.
    parameters : mapping of str to value, optional
        As in `corrupt`.
    rng : int, numpy.random.Generator, numpy.random.RandomState or None
        As in `corrupt`; one generator serves the whole clip.

    Returns
    -------
    uint8 ndarray of shape (T', H', W', 3)
        T' differs from T for video-c:motion_blur, video-c:frame_rate, video-c:packet_loss and perhaps
        video-c:bit_error. Sides are even for the video encoders.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        A ValueError or TypeError; the message says what is wrong, and the nearest name.
    ImageError
        The clip is too short, or its frames are too small.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> clip = np.full((4, 64, 64, 3), 128, np.uint8)
    >>> foggy = robustgen.corrupt_clip(clip, "fog", severity=3, rng=0)
    >>> bool((foggy[0] == foggy[3]).all())  # one fog for the whole clip
    True
    >>> noisy = robustgen.corrupt_clip(clip, "gaussian_noise", severity=3, rng=0)
    >>> bool((noisy[0] == noisy[3]).all())
    False
    """
    edition = _choose_edition(edition, corruption, temporal)
    bound, given = _bind_given(edition, corruption, severity, scale, parameters)
    clip = as_clip(frames, fps)
    first = check_size(next(iter(clip)), bound.operation.smallest_side)
    with _name_parameters(bound, first, parameters):
        return bound.apply_to_clip(clip, as_rng(rng), given, temporal).stack()


class CorruptObservation:
    """Corrupt the observations of an environment, with draws that last for an episode.

    Has the interface of a wrapper of Gymnasium, which need not be installed: all else is the environment's.
    The frames of an episode are those that `corrupt_clip` makes of its observations: only noise, flakes of
    snow and the published rain are new in each. Wrap it around all other wrappers, which accept only an
    ``Env``; of several cameras, once around each key.

    Parameters
    ----------
    env : object
        Has ``reset(**options)`` and ``step(action)``, whose results begin with the observation.
    corruption : str
        Any that changes frame by frame; of video-c, only rain.
    severity, edition, scale, temporal, parameters, rng
        As in `corrupt_clip`. ``reset(seed=...)`` takes the place of `rng` from then on; other episodes
        have other draws.
    key : str, optional
        The entry of an observation that is a dict. The image is uint8, (H, W, 3).

    Raises
    ------
    ArgumentError, ArgumentTypeError
        A ValueError or TypeError; the message says what is wrong, and the nearest name.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> class Still:
    ...     def reset(self, seed=None):
    ...         return {"camera": np.full((64, 64, 3), 128, np.uint8)}, {}
    ...
    ...     def step(self, action):
    ...         return self.reset()[0], 0.0, False, False, {}
    >>> env = robustgen.CorruptObservation(Still(), "fog", severity=3, key="camera")
    >>> first, _ = env.reset(seed=0)
    >>> second, *_ = env.step(None)
    >>> bool((first["camera"] == second["camera"]).all())  # one fog for the whole episode
    True
    """

    def __init__(
        self,
        env: Any,
        corruption: str,
        severity: float,
        *,
        key: str | None = None,
        edition: str | None = None,
        scale: int | None = None,
        temporal: Temporal = "clip",
        parameters: Mapping[str, Any] | None = None,
        rng: Any = None,
    ) -> None:
        self.env: Any = env
        self._key, self._rng = key, as_rng(rng)
        edition = _choose_edition(edition, corruption, temporal)
        self._bound, self._given = _bind_given(edition, corruption, severity, scale, parameters)
        if self._bound.operation.over_time == "whole":
            raise ArgumentError(f"{corruption} needs all frames of an episode; use corrupt_clip")
        self._temporal, self._parameters = temporal, parameters
        self._begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self, **options: Any) -> tuple[Any, ...]:
        """Begin an episode; return what the environment returns, with the observation corrupted."""
        if options.get("seed") is not None:
            self._rng = as_rng(options["seed"])
        self._begin()
        return self._corrupt(self.env.reset(**options))

    def step(self, action: Any) -> tuple[Any, ...]:
        """Return what the environment returns, with the observation corrupted."""
        return self._corrupt(self.env.step(action))

    def _begin(self) -> None:
        self._waiting = deque[Rgb]()
        frames = Clip(self._waiting.popleft() for _ in count())
        self._frames = iter(self._bound.apply_to_clip(frames, self._rng, self._given, self._temporal))

    def _corrupt(self, result: tuple[Any, ...]) -> tuple[Any, ...]:
        observation, *rest = result
        seen = observation if self._key is None else observation[self._key]
        image = check_size(as_rgb(seen), self._bound.operation.smallest_side)
        self._waiting.append(image)
        with _name_parameters(self._bound, image, self._parameters):
            corrupted = next(self._frames)
        return (corrupted if self._key is None else {**observation, self._key: corrupted}, *rest)


def _choose_edition(edition: str | None, corruption: str, temporal: str) -> str | None:
    """Return `edition`, by default that of a corruption which was published for clips."""
    if temporal not in get_args(Temporal):
        raise ArgumentError(f'temporal must be "clip" or "frame", not {temporal!r}')
    family = find_family(corruption) if isinstance(corruption, str) else None
    if not family or family.edition not in CLIP_SETS:
        return edition
    if temporal == "frame":
        raise ArgumentError(f"temporal: {corruption} draws as published")
    return edition or family.edition


def _bind_given(
    edition: str | None, corruption: str, severity: float, scale: int | None, parameters: Any
) -> tuple[BoundCorruption, Any]:
    """Return the corruption with a user's `parameters`, and the ingredient among them; None without one."""
    bound = bind(edition, corruption, severity, scale=scale, overrides=parameters)
    needs = bound.operation.needs.name if bound.operation.needs else ""
    if not isinstance(parameters, Mapping) or needs not in parameters:
        return bound, None
    constants = {name: value for name, value in parameters.items() if name != needs}
    return replace(bound, overrides=constants), parameters[needs]


def perturb(
    source: Any,
    perturbation: str,
    *,
    edition: str | None = None,
    difficulty: int = 1,
    scale: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    rng: Any = None,
) -> Rgb:
    """Create one perturbation sequence of ImageNet-P.

    Parameters
    ----------
    source : uint8 ndarray of shape (H, W, 3) or (H, W), or a Pillow image
        The raw image: the edition's resizing and cropping is part of the perturbation.
    perturbation : str
        A name in `PERTURBATIONS`.
    edition : str, optional
        Edition whose preparation and constants are used, for instance ``"imagenet"``. By default the image
        keeps its size, which decides the constants, as in `corrupt` and in ``make-p --source``.
    difficulty : int
        1 to 3 for the noises; 1 for the others, whose higher difficulties change only the scoring.
    scale : int, optional
        224, 299, 64 or 32: use these constants instead of the edition's.
    parameters : mapping of str to value, optional
        As in `corrupt`.
    rng : int, numpy.random.Generator, numpy.random.RandomState or None
        As in `corrupt`.

    Returns
    -------
    uint8 ndarray of shape (T, H, W, 3)

    Raises
    ------
    ArgumentError, ArgumentTypeError
        A ValueError or TypeError; the message says what is wrong, and the nearest name.
    ImageError
        The image is too small or too elongated for the edition.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> grey = np.full((64, 64), 128, np.uint8)
    >>> frames = robustgen.perturb(grey, "brightness", rng=0)
    >>> frames.shape
    (31, 64, 64, 3)
    >>> [int(frame.mean()) for frame in frames[::10]]
    [51, 102, 153, 204]
    """
    bound = bind(edition, perturbation, difficulty, "p", scale=scale, overrides=parameters)
    raw = bound.edition.start(source, bound.scale)
    with _name_parameters(bound, raw, parameters):
        return bound.apply(raw, as_rng(rng))


@contextmanager
def _name_parameters(bound: Bound, image: Rgb, own: Any) -> Iterator[None]:
    """Check that `bound` has parameters for `image`; name the user's `own` in an error that they cause."""
    bound.parameters_for(image)
    try:
        yield
    except Exception as error:
        if not own or isinstance(error, RobustgenError):
            raise
        # Each value may be valid by itself, but not together with the others or with the image.
        raise ArgumentError(f"parameters: {bound.operation.name}: cannot be used: {error}") from error


def augmix(
    image: Any,
    *,
    severity: float = 3,
    width: int = 3,
    depth: int = -1,
    alpha: float = 1.0,
    operations: str = "augmix",
    rng: Any = None,
) -> Rgb:
    """Mix chains of random operations with each other and with the image (AugMix), for training.

    Source: Hendrycks et al., "AugMix" (ICLR 2020), section 3 and appendix C.

    Parameters
    ----------
    image : uint8 ndarray of shape (H, W, 3) or (H, W), or a Pillow image
        Any size. It is not modified.
    severity : float
        0.1 to 10: upper limit for the strength of operations.
    width : int
        Number of chains, 1 to 100.
    depth : int
        Operations in each chain, 1 to 100; -1 draws 1, 2 or 3 for each.
    alpha : float
        0.1 to 1000: parameter of the Dirichlet and Beta distributions of the weights; 1 is uniform.
    operations : {"augmix", "all"}
        ``"all"`` adds color, contrast, brightness and sharpness. Do not score a model trained with them on
        ImageNet-C.
    rng : int, numpy.random.Generator, numpy.random.RandomState or None
        With a RandomState, draws have the order of the published code.

    Returns
    -------
    uint8 ndarray of shape (H, W, 3)
        The mix, rounded to the nearest value.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        A ValueError or TypeError; the message says what is wrong, and the nearest name.

    Examples
    --------
    >>> import numpy as np
    >>> import robustgen
    >>> image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    >>> mix = robustgen.augmix(image, rng=0)
    >>> mix.shape
    (64, 64, 3)
    >>> bool((mix == image).all())
    False
    """
    from robustgen.pixels.imaging import augmix as mixing

    parameters = mixing.AugMix(severity, width, depth, alpha, operations)
    return mixing.augmix(as_rgb(image), parameters, as_rng(rng))
