"""Limits of choices that code without pydantic checks too."""

from typing import Final

MOST_STEPS: Final = 100
"""Chains of AugMix, and operations in a chain."""

LEVELS: Final = 0.1, 10
"""Lowest and highest strength of AugMix's operations."""

# With smaller values, a RandomState would sometimes draw weights that are 0 / 0.
ALPHAS: Final = 0.1, 1000.0
"""Parameters of AugMix's distributions of weights."""
