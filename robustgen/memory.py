"""How a process that does nothing else than robustgen's work looks after its memory."""

import atexit
import gc
import sys
from functools import cache

# Nothing leaves much garbage in circles, while imports and compiling allocate millions of objects that stay.
_ALLOCATIONS_BETWEEN_COLLECTIONS = 50_000


@cache
def collect_garbage_rarely() -> None:
    """Look for circular garbage less often than Python does by itself, and not at all when the process ends.

    Going through all that numba and SciPy have imported takes longer than an image does, several times over.
    """
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
    atexit.register(_leave_garbage)


def _leave_garbage() -> None:
    # What PyTorch brings along complains of objects that are left.
    if "torch" not in sys.modules:
        gc.freeze()
