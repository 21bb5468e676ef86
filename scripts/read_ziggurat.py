#!/usr/bin/env python3
"""Reads the tables of NumPy's ziggurats, by passing chosen words to it, and writes them into the package.

    python scripts/read_ziggurat.py [--check]

Row 0: the widths of the 256 strips by 2**52 (of exponential deviates 2**53), the bits of float64; row 1: the
size from which a deviate lies outside the core of its strip. With --check nothing is written, and the exit
status is 1 if they differ.
"""

import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "robustgen" / "pixels" / "imaging"
STRIPS = 256
# A word contains the strip, the sign (of normal deviates) and the size of the deviate. File to NumPy's
# method, and within a word the position of the strip, and position and number of the bits of the size.
ZIGGURATS = {
    "ziggurat.npy": ("standard_normal", 0, 9, 52),
    "exponential_ziggurat.npy": ("standard_exponential", 3, 11, 53),
}
# Inverse of the multiplier of PCG64.
INVERSE = pow(0x2360ED051FC65DA44385DF649FCCF645, -1, 2**128)


class ShownGenerator:
    """NumPy's generator with a chosen next word."""

    def __init__(self, method, strip_shift, size_shift, size_bits):
        self._generator = np.random.Generator(np.random.PCG64(0))
        self._state = dict(self._generator.bit_generator.state)
        self._draw = getattr(self._generator, method)
        self._shifts, self._bits = (strip_shift, size_shift), size_bits

    def draw(self, strip, size):
        """Return the deviate that NumPy draws from a word of these parts."""
        # Bits below the strip of exponential deviates have no meaning; they keep the word above 0.
        self._word = size << self._shifts[1] | strip << self._shifts[0] | (1 if self._shifts[0] else 0)
        # A state below 2**64 is the word that it returns.
        self._state["state"] = {"state": (self._word - 1) * INVERSE % 2**128, "inc": 1}
        self._generator.bit_generator.state = self._state
        return self._draw()

    def find_limit(self, strip, core):
        """Return the size from which NumPy needs more than one word: about the share `core` of all."""
        about = int(core * 2**self._bits)
        for size in range(max(about - 2, 0), about + 2):
            self.draw(strip, size)
            if self._generator.bit_generator.state["state"]["state"] != self._word:
                return size
        return about


def read(*layout):
    shown = ShownGenerator(*layout)
    # Every strip accepts such a small deviate.
    widths = np.array([shown.draw(strip, 2**40) / 2**40 for strip in range(STRIPS)])
    cores = np.roll(widths, 1) / widths
    # The outermost strip ends in the tail, the innermost has no core.
    cores[0], cores[1] = widths[-1] / widths[0], 0
    limits = np.array([shown.find_limit(strip, core) for strip, core in enumerate(cores)])
    return np.array([widths.view(np.int64), limits])


if __name__ == "__main__":
    tables = {FOLDER / name: read(*layout) for name, layout in ZIGGURATS.items()}
    if "--check" in sys.argv:
        sys.exit(not all(np.array_equal(table, np.load(file)) for file, table in tables.items()))
    for file, table in tables.items():
        np.save(file, table)
