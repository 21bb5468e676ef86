"""Compiled loops for small grey images: soft lines, swaps, edges."""

import math

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner

# Distance from the middle of a line at which it has faded.
_HALF_WIDTH = 2.3


@inner
def logarithm(x):
    """Return the natural logarithm of `x`, positive and finite, from arithmetic alone."""
    m, power = math.frexp(x)
    if m < 0.7071067811865476:
        m, power = m * 2.0, power - 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 1.0 / 23.0
    for n in range(21, 0, -2):
        p = p * z + 1.0 / n
    return np.float64(power) * 0.6931471805599453 + 2.0 * s * p


@compiled
def add_line(start_column, start_row, end_column, end_row, values):
    """Add a line that fades on both sides to `values` (float64, (H, W), 0 to 1), and clip."""
    if start_column == end_column:
        return
    slope = (end_row - start_row) / (end_column - start_column)
    first, after = np.floor(start_column), np.ceil(end_column)
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            if first <= column < after:
                distance = abs(row - (slope * (column - start_column) + start_row))
                distance = min(distance, _HALF_WIDTH - 1e-10)
                light = logarithm(1.0 - distance / _HALF_WIDTH) + 1.0
                lit = values[row, column] + min(max(light, 0.0), 1.0)
                values[row, column] = min(max(lit, 0.0), 1.0)


@compiled
def swap_neighbours(image, moves):
    """Swap pixels of `image` (uint8, (H, W)) with a neighbour above or to the left, from the last pixel on.

    `moves` (N, 3) contains, for each visit, whether to swap, and the steps right and down, 0 or -1.
    """
    height, width = image.shape
    visit = 0
    while visit < moves.shape[0]:
        for row in range(height - 1, 1, -1):
            for column in range(width - 1, 1, -1):
                if moves[visit, 0]:
                    y, x = row + moves[visit, 2], column + moves[visit, 1]
                    image[row, column], image[y, x] = image[y, x], image[row, column]
                visit += 1


@compiled
def sample_affine(values, matrix, out):
    """Sample `values` (float64, (H, W)) linearly at `matrix` (2, 3) times (x, y, 1); outside is 0."""
    height, width = values.shape
    for y in range(height):
        for x in range(width):
            column = matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]
            row = matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]
            top, left = np.int64(np.floor(row)), np.int64(np.floor(column))
            down, right = row - top, column - left
            total = 0.0
            for i in range(2):
                line = 0.0
                for j in range(2):
                    if 0 <= top + i < height and 0 <= left + j < width:
                        line += (right if j else 1.0 - right) * values[top + i, left + j]
                total += (down if i else 1.0 - down) * line
            out[y, x] = total


@compiled
def thin_edges(size, down, right, low, out):
    """Write the `size` (float64, (H, W)) of gradients of at least `low` that are maximal along them.

    `down` and `right` are the gradients' components. `out` must be 0; its border is not written.
    """
    for y in range(1, size.shape[0] - 1):
        for x in range(1, size.shape[1] - 1):
            here, dy, dx = size[y, x], down[y, x], right[y, x]
            if here < low or (dy == 0.0 and dx == 0.0):
                continue
            steep = abs(dy) > abs(dx)
            # In the direction of the gradient: the nearest neighbour on the grid, and the diagonal one.
            step_x = 1 if dx >= 0.0 else -1
            step_y = 1 if dy >= 0.0 else -1
            part = abs(dx) / abs(dy) if steep else abs(dy) / abs(dx)
            straight_y, straight_x = (step_y, 0) if steep else (0, step_x)
            ahead = size[y + step_y, x + step_x] * part
            ahead += size[y + straight_y, x + straight_x] * (1.0 - part)
            behind = size[y - step_y, x - step_x] * part
            behind += size[y - straight_y, x - straight_x] * (1.0 - part)
            if ahead <= here and behind <= here:
                out[y, x] = here
