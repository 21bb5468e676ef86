"""Compiled loops of gradient noise."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled


@compiled
def add_turbulence(total, gradients, order, rows, row_parts, columns, column_parts, share):
    """Add one octave of gradient noise, its size times `share`, to `total` (H, W).

    `order` (514) indexes `gradients` (514, 2); `rows` and `columns` are the lattice cells of the lines and
    columns, and the parts are the positions within them.
    """
    first, last = columns.min(), columns.max()
    offsets, slopes = np.empty(last - first + 2), np.empty(last - first + 2)
    nodes, eased = np.empty(columns.size, np.uint64), np.empty(columns.size)
    for x in range(columns.size):
        part = column_parts[x]
        nodes[x], eased[x] = columns[x] - first, part * part * (3.0 - 2.0 * part)
    for y in range(total.shape[0]):
        near = row_parts[y]
        far = near - 1.0
        ease = near * near * (3.0 - 2.0 * near)
        above, below = order[rows[y] & 255], order[(rows[y] + 1) & 255]
        for node in range(offsets.size):
            a = np.uint64(order[np.uint64(above + ((first + node) & 255))])
            b = np.uint64(order[np.uint64(below + ((first + node) & 255))])
            start = near * gradients[a, 0]
            offsets[node] = start + ease * (far * gradients[b, 0] - start)
            slopes[node] = gradients[a, 1] + ease * (gradients[b, 1] - gradients[a, 1])
        line = total[y]
        for x in range(line.size):
            node, part = nodes[x], column_parts[x]
            after = node + np.uint64(1)
            left = offsets[node] + slopes[node] * part
            right = offsets[after] + slopes[after] * (part - 1.0)
            line[x] += abs(1.5 * (left + eased[x] * (right - left))) * share
