"""Compiled loops that sum zoomed images."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner
from robustgen.pixels.imaging.kernels.elementwise import average, copy
from robustgen.pixels.imaging.kernels.intrinsics import BLOCK, copy_block


@inner
def mix_columns(row, channels, blocks, parts, extended, near, out):
    """Write linear samples of `row` to `out`, from a value and the one a pixel further, weighted by `parts`.

    `blocks` (N, 2) are the starts of blocks of the first values in `row`, and their places in `out`; the next
    block overwrites excess values. The last pixel is repeated beyond the edge. `extended` (a pixel and a
    block longer than `row`) and `near` (2, a block longer than `out`) are buffers.
    """
    copy(row, extended[: row.size])
    copy(row[row.size - channels :], extended[row.size : row.size + channels])
    left, right = near[0], near[1]
    for i in range(blocks.shape[0]):
        copy_block(extended, blocks[i, 0], left, blocks[i, 1])
        copy_block(extended, blocks[i, 0] + channels, right, blocks[i, 1])
    for m in range(out.size):
        out[m] = left[m] * (1.0 - parts[m]) + right[m] * parts[m]


@compiled
def add_zoomed(
    image, channels, crops, inside, rows, row_parts, blocks, ends, parts, left, total, begun, count, out
):
    """Add bilinear samples of Z parts of `image` (H, W * C), each rounded to its precision, to `total`.

    Part z begins at row crops[z, 0] and flat column crops[z, 1]; its last row is crops[z, 2], its width
    crops[z, 3]. Its first inside[z] rows and flat columns are added. Row y is sampled at rows[z, y] +
    row_parts[z, y] within it; columns are sampled by `mix_columns`, with the blocks up to ends[z] and with
    parts[z] (W'), for the W' columns of `total` from `left` on.

    Unless `begun`, `total` starts at zero, or at `image` if there is an `out` (uint8), which receives the
    mean of `count`: the sum of `image` and `total`, divided. One pass, row by row.
    """
    zooms, width = parts.shape
    # The two rows of each zoom around the current one, even ones first.
    lines = np.empty((2 * zooms, width))
    extended = np.empty(image.shape[1] + channels + BLOCK, image.dtype)
    near = np.empty((2, width + BLOCK), image.dtype)
    for y in range(total.shape[0]):
        target = total[y, left : left + width]
        if not begun:
            if out is None:
                for m in range(target.size):
                    target[m] = 0.0
            else:
                copy(image[y, left:], target)
        for zoom in range(zooms):
            if y >= inside[zoom, 0]:
                continue
            first, start = rows[zoom, y], ends[zoom - 1] if zoom else 0
            reached = rows[zoom, y - 1] + 1 if y else -1
            for row in range(max(first, reached + 1), first + 2):
                source = image[crops[zoom, 0] + min(row, crops[zoom, 2]), crops[zoom, 1] :]
                mix_columns(
                    source[: crops[zoom, 3]],
                    channels,
                    blocks[start : ends[zoom]],
                    parts[zoom],
                    extended,
                    near,
                    lines[2 * zoom + row % 2],
                )
            above, below = lines[2 * zoom + first % 2], lines[2 * zoom + (first + 1) % 2]
            part = row_parts[zoom, y]
            reached = target[: inside[zoom, 1]]
            for m in range(reached.size):
                reached[m] += image.dtype.type(above[m] * (1.0 - part) + below[m] * part)
        if out is not None:
            average(image[y, left : left + width], target, count, out[y, left : left + width])


@compiled
def take_in(image, total, count):
    """Replace `image` (uint8, flat) by the mean of it and the `count` - 1 images with the sum `total`.

    `image` is also added to `total` (float32), in single precision in [0, 1]; clipped and truncated.
    """
    zero, one, top = np.float32(0), np.float32(1), np.float32(255)
    for i in range(image.size):
        value, before = np.float32(image[i]) / top, total[i]
        total[i] = before + value
        image[i] = np.uint8(np.int32(min(max((value + before) / count, zero), one) * top))
