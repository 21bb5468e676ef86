"""Distances to the nearest edge."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner

# Largest distance to follow along a line; distances are cut off at 20.
_SHIFTS = (1, 2, 4, 8, 16)


@inner
def _reach(near, far, straight, diagonal, knight, out):
    """Write the distances of a line, given those of the next line (`near`) and the one after (`far`).

    Both lines have two more places on either side.
    """
    for x in range(out.size):
        best = min(near[x + 2] + straight, min(near[x + 1], near[x + 3]) + diagonal)
        jump = min(min(near[x], near[x + 4]), min(far[x + 1], far[x + 3])) + knight
        out[x] = min(best, jump)


@inner
def _spread(line, other, straight, towards_end):
    """Propagate distances along `line` (N + 64, 32 more on either side); `other` (as long) is a buffer."""
    size = line.size - 64
    for shift in _SHIFTS:
        cost, at = straight * line.dtype.type(shift), 32 - shift if towards_end else 32 + shift
        before = line[at:]
        for x in range(size):
            other[x + 32] = min(line[x + 32], before[x] + cost)
        line, other = other, line
    return line[32 : 32 + size]


@compiled
def blur_distances(edges, costs, out):
    """Write the distance of each pixel to the nearest of `edges` (uint8, (H, W)) into `out` (uint8).

    Like OpenCV's distanceTransform (L2, mask of 5), cut off at 20, blurred by a box of 3 x 3 with mirrored
    borders in double precision, rounded to single and truncated. `costs` (int32 or float32, 3) are those of
    a step along an axis (one pixel), along a diagonal, and of a knight's move.
    """
    straight, diagonal, knight = costs[0], costs[1], costs[2]
    nothing, most, far = (
        costs.dtype.type(0),
        straight * costs.dtype.type(20),
        straight * costs.dtype.type(4000),
    )
    height, width = edges.shape
    field = np.empty((height + 4, width + 4), costs.dtype)
    for y in range(height + 4):
        line = field[y]
        line[0], line[1], line[width + 2], line[width + 3] = far, far, far, far
        if y < 2 or y >= height + 2:
            for x in range(width + 4):
                line[x] = far
    lines = np.empty((2, width + 64), costs.dtype)
    for x in range(width + 64):
        lines[0, x], lines[1, x] = far, far
    reached = lines[0, 32 : 32 + width]
    for y in range(height):
        line, source = field[y + 2, 2 : 2 + width], edges[y]
        _reach(field[y + 1], field[y], straight, diagonal, knight, reached)
        for x in range(width):
            reached[x] = nothing if source[x] else min(reached[x], far)
        spread = _spread(lines[0], lines[1], straight, True)
        for x in range(width):
            line[x] = spread[x]
    for y in range(height - 1, -1, -1):
        line = field[y + 2, 2 : 2 + width]
        _reach(field[y + 3], field[y + 4], straight, diagonal, knight, reached)
        for x in range(width):
            reached[x] = min(reached[x], line[x])
        spread = _spread(lines[0], lines[1], straight, False)
        for x in range(width):
            line[x] = spread[x]
    # Rows of at most 20 as doubles, converted once; sums of integers below 2**24 are exact.
    cut, sums, share = np.empty((3, width)), np.empty(width + 2), 1.0 / np.float64(straight)
    for y in range(-1, height):
        if y + 1 < height:
            line, target = field[y + 3, 2 : 2 + width], cut[(y + 1) % 3]
            for x in range(width):
                target[x] = np.float64(min(line[x], most))
        if y < 0:
            continue
        above, here = cut[(y - 1 if y else min(1, height - 1)) % 3], cut[y % 3]
        below = cut[(y + 1 if y < height - 1 else max(height - 2, 0)) % 3]
        middle = sums[1 : width + 1]
        for x in range(width):
            middle[x] = above[x] + here[x] + below[x]
        sums[0], sums[width + 1] = middle[min(1, width - 1)], middle[max(width - 2, 0)]
        result = out[y]
        for x in range(width):
            total = (sums[x] + sums[x + 1] + sums[x + 2]) * share
            result[x] = np.uint8(np.int32(np.float32(total * (1.0 / 9.0))))
