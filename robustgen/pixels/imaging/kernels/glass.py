"""Compiled loops that move neighbouring pixels."""

import numpy as np

from robustgen.pixels.imaging.kernels.compiler import compiled, inner


@inner
def pack(image, words):
    """Write the pixels of `image` (uint8, (N, 3)) as `words` (uint32, N), red lowest."""
    for i in range(words.size):
        words[i] = (
            image[i, 0] | np.uint32(image[i, 1]) << np.uint32(8) | np.uint32(image[i, 2]) << np.uint32(16)
        )


@inner
def unpack(words, image):
    """Write the pixels of `words` from `pack` to `image`."""
    for i in range(words.size):
        image[i, 0] = np.uint8(words[i])
        image[i, 1] = np.uint8(words[i] >> np.uint32(8))
        image[i, 2] = np.uint8(words[i] >> np.uint32(16))


@compiled
def glass_shuffle(image, moves, reach, iterations):
    """Move pixels of `image` (H, W, 3) in place.

    `moves` contains (dx + reach) * 2 * reach + (dy + reach) for each visit, with the source offsets dx, dy.
    """
    height, width, _ = image.shape
    # A pixel is moved as one word.
    pixels = np.empty(height * width, np.uint32)
    pack(image.reshape(-1, 3), pixels)
    offsets = np.empty(4 * reach * reach, np.int64)
    for move in range(offsets.size):
        dx, dy = move // (2 * reach) - reach, move % (2 * reach) - reach
        offsets[move] = dy * width + dx
    visit = 0
    for _ in range(iterations):
        for row in range(height - reach, reach, -1):
            for to in range((row + 1) * width - reach, row * width + reach, -1):
                # The scripts' swap is a one-way copy because of NumPy views; the published data has it.
                # For unsigned indices, numba omits the check for negative values.
                pixels[np.uint64(to)] = pixels[np.uint64(to + offsets[np.uint64(moves[visit])])]
                visit += 1
    unpack(pixels, image.reshape(-1, 3))
