"""Measures the small letters of OpenCV 5, for `robustgen/pixels/imaging/letters.npz`.

    python scripts/measure_letters.py

OpenCV 5 draws text in the font Rubik (SIL Open Font License 1.1), OpenCV 4 in strokes by Hershey. The file
contains the coverage of each pixel by a letter, 0 to 255, at the two sizes of the scales .14 to .18, and the
distance to the next letter in pixels.
"""

import string
from pathlib import Path

import cv2
import numpy as np

# Rows and columns of the largest letters, and the pixel where the baseline begins.
ROWS, COLUMNS, BASE, LEFT = 6, 6, 4, 1
SCALES = (0.14, 0.18)


def draw(word: str, scale: float) -> np.ndarray:
    """Draw `word` in white on black, and return one channel."""
    canvas = np.zeros((40, 80, 3), np.uint8)
    cv2.putText(canvas, word, (20, 20), cv2.FONT_HERSHEY_DUPLEX, scale, (255, 255, 255), 1, cv2.LINE_AA)
    return canvas[:, :, 0]


def main() -> None:
    """Write the file."""
    if int(cv2.__version__.partition(".")[0]) < 5:
        raise SystemExit(f"OpenCV 5 is needed, this is {cv2.__version__}")
    coverage = np.zeros((len(SCALES), 26, ROWS, COLUMNS), np.uint8)
    advances = np.zeros((len(SCALES), 26), np.uint8)
    for size, scale in enumerate(SCALES):
        mark = np.argwhere(draw("l", scale))[:, 1].min()
        for number, letter in enumerate(string.ascii_lowercase):
            picture = draw(letter, scale)
            part = picture[20 - BASE : 20 - BASE + ROWS, 20 - LEFT : 20 - LEFT + COLUMNS]
            assert part.sum() == picture.sum(), f"{letter} is larger than {ROWS} x {COLUMNS} pixels"
            coverage[size, number] = part
            # A bar after the letter shows where the next one begins.
            difference = draw(f"{letter}l", scale) != picture
            advances[size, number] = np.argwhere(difference)[:, 1].min() - mark
    target = Path(__file__).parents[1] / "robustgen" / "pixels" / "imaging" / "letters.npz"
    np.savez(target, coverage=coverage, advances=advances)


if __name__ == "__main__":
    main()
