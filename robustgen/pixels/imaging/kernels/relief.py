"""Compiled loops of reliefs: columns of an image as lines bent by its brightness."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner


@inner
def mark(row, column, red, green, blue, out):
    """Paint one pixel of `out` (uint8, (H, W, 3)), if it is inside."""
    if 0 <= row < out.shape[0] and 0 <= column < out.shape[1]:
        out[row, column, 0] = red
        out[row, column, 1] = green
        out[row, column, 2] = blue


@inner
def draw_line(x, y, end_x, end_y, red, green, blue, out):
    """Draw a line one pixel wide between two pixels, both included, like Pillow."""
    across, down = abs(end_x - x), abs(end_y - y)
    step_x, step_y = 1 if end_x >= x else -1, 1 if end_y >= y else -1
    flat = across > down
    long, short = (across, down) if flat else (down, across)
    error = 2 * short - long
    for _ in range(long + 1):
        mark(y, x, red, green, blue, out)
        aside = error >= 0 and short > 0
        error += 2 * short - (2 * long if aside else 0)
        if flat or aside:
            x += step_x
        if not flat or aside:
            y += step_y


@compiled
def bend_columns(image, luma, columns, step, reach, out):
    """Draw `columns` lines, bent to the left by up to `reach` pixels where `luma` (uint8, (H, W)) is dark.

    Lines connect cells of `step` rows, in the mean colour of each. `out` must be black.
    """
    height, width = luma.shape
    for i in range(columns):
        x = (i / columns) * width
        first, last = np.int64(x), min(np.int64(x + width / columns), width)
        before_x, before_y = np.int64(x), 0
        for top in range(0, height, step):
            bottom = min(top + step, height)
            red = green = blue = light = np.int64(0)
            for row in range(top, bottom):
                for column in range(first, last):
                    red += np.int64(image[row, column, 0])
                    green += np.int64(image[row, column, 1])
                    blue += np.int64(image[row, column, 2])
                    light += np.int64(luma[row, column])
            pixels = max((bottom - top) * (last - first), 1)
            bend = -reach * (1 - (light // pixels) / 255)
            to_x = np.int64(x + bend)
            draw_line(
                before_x,
                before_y,
                to_x,
                top,
                np.uint8(red // pixels),
                np.uint8(green // pixels),
                np.uint8(blue // pixels),
                out,
            )
            before_x, before_y = to_x, top
