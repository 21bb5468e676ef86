"""Animated perturbations: the frames of an animation, and its file."""

import math
from io import BytesIO

import numpy as np
from PIL import Image

from robustgen.display import sheets
from robustgen.display.sheets import CELL, fit_picture
from robustgen.display.text import format_name
from robustgen.lab.inspection.preview.previewed import Previewed
from robustgen.pixels.imaging import video
from robustgen.pixels.imaging.arrays import Rgb

FRAMES_PER_SECOND = 8


# A single sequence is animated at its own size, within limits.
_SMALLEST_ALONE = 224
_LARGEST_ALONE = 512


def draw_animation(previewed: Previewed, cell: int | None = None) -> Rgb:
    """Return the frames, uint8 (T, H, W, 3), of one perturbation, or of several side by side with names.

    Shorter sequences wait at their end.
    """
    if len(previewed.variants) == 1:
        alone = previewed.make(previewed.variants[0])
        side = round(math.sqrt(alone.shape[1] * alone.shape[2]))
        return np.stack(_shrink_frames(alone, cell or min(max(side, _SMALLEST_ALONE), _LARGEST_ALONE)))
    size = cell or CELL
    sequences = [_shrink_frames(previewed.make(variant), size) for variant in previewed.variants]
    names = [format_name(variant.folder) for variant in previewed.variants]
    longest = max(map(len, sequences))
    moments = zip(*(each + each[-1:] * (longest - len(each)) for each in sequences), strict=True)
    grids = [zip(names, pictures, strict=True) for pictures in moments]
    return np.stack([sheets.draw_grid(pictures, cell=size, note=previewed.note) for pictures in grids])


def _shrink_frames(sequence: Rgb, cell: int) -> list[Rgb]:
    return [fit_picture(frame, cell) for frame in sequence]


def encode_animation(frames: Rgb, suffix: str) -> bytes:
    """Return the file of `frames`, uint8 (T, H, W, 3): a looping GIF, or an MP4 for browsers."""
    if suffix == ".mp4":
        encoding = video.Encoding(preset="medium", fps=FRAMES_PER_SECOND).playable()
        # yuv420p needs even sides.
        _, height, width, _ = frames.shape
        frames = np.pad(frames, ((0, 0), (0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        return video.encode(frames, encoding)
    first, *others = map(Image.fromarray, frames)
    buffer = BytesIO()
    pause = 1000 // FRAMES_PER_SECOND
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=pause, loop=0)
    return buffer.getvalue()
