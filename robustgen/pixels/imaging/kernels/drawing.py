"""Loops that draw shapes, strokes and reliefs, and distances to them."""

import math

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner

# --- compiled loops that draw chessboards and lines on an image ------------------------------------


@compiled
def cut_out(image, along, across, cell, grid, out):
    """Grey every second square of side `cell` that `grid` (K, K) marks.

    `along` and `across` are cosine and sine of the rotation; `image` and `out` are uint8 (H, W, 3).
    """
    size = grid.shape[0]
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            u = (along * y + across * x) / cell
            v = (-across * y + along * x) / cell
            same = np.int64(u - 2.0 * np.floor(u / 2.0)) == np.int64(v - 2.0 * np.floor(v / 2.0))
            # Truncated towards zero, and negative places counted from the end, as NumPy does.
            i, j = np.int64(u), np.int64(v)
            hit = same and grid[i if i >= 0 else i + size, j if j >= 0 else j + size]
            for c in range(3):
                out[y, x, c] = np.uint8(128) if hit else image[y, x, c]


@inner
def line_points(start_row, start_column, end_row, end_column, points, distances):
    """Write the points of an antialiased line and their distances from it; return their number.

    Bresenham's line in Zingl's version; `points` (N, 2) are rows and columns.
    """
    width, rise = abs(start_column - end_column), abs(start_row - end_row)
    error = width - rise
    step = 1 if start_column < end_column else -1
    climb = 1 if start_row < end_row else -1
    span = np.float32(np.sqrt(np.float64(width * width + rise * rise)))
    length = 1.0 if width + rise == 0 else np.float64(span)
    column, row, count = start_column, start_row, 0
    while True:
        points[count, 0], points[count, 1] = row, column
        distances[count] = abs(error - width + rise) / length
        count += 1
        before, at = error, column
        if 2 * before >= -width:
            if column == end_column:
                return count
            if before + rise < length:
                points[count, 0], points[count, 1] = row + climb, column
                distances[count] = abs(before + rise) / length
                count += 1
            error -= rise
            column += step
        if 2 * before <= rise:
            if row == end_row:
                return count
            if width - before < length:
                points[count, 0], points[count, 1] = row, at + step
                distances[count] = abs(width - before) / length
                count += 1
            error += width
            row += climb


@compiled
def draw_lines(ends, out):
    """Draw grey antialiased lines onto `out` (uint8, (H, W, 3)); a row of `ends` is two (row, column)."""
    height, width = out.shape[0], out.shape[1]
    for n in range(ends.shape[0]):
        reach = abs(ends[n, 0] - ends[n, 2]) + abs(ends[n, 1] - ends[n, 3]) + 1
        points, distances = np.empty((3 * reach, 2), np.int64), np.empty(3 * reach)
        count = line_points(ends[n, 0], ends[n, 1], ends[n, 2], ends[n, 3], points, distances)
        colours = np.empty((count, 3), np.uint8)
        # Read all before writing any; a repeated point keeps the last value.
        for i in range(count):
            y, x = points[i, 0], points[i, 1]
            if 0 <= y < height and 0 <= x < width:
                cover = 1.0 - distances[i]
                for c in range(3):
                    colours[i, c] = np.uint8(np.int32((1.0 - cover) * out[y, x, c] + 128.0 * cover))
        for i in range(count):
            y, x = points[i, 0], points[i, 1]
            if 0 <= y < height and 0 <= x < width:
                out[y, x] = colours[i]


# --- compiled loops for small grey images: soft lines, swaps, edges --------------------------------

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


# --- distances to the nearest edge -----------------------------------------------------------------

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


# --- reliefs: columns of an image as lines bent by its brightness ----------------------------------


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
