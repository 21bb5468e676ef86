"""How processes look after their memory."""

import os
import subprocess
import sys

import pytest


def words(code, **environment):
    """The words of the last line that a Python process prints."""
    command, environment = [sys.executable, "-c", code], {**os.environ, **environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


COMMAND = """
import atexit, gc
atexit.register(lambda: print(gc.get_threshold()[0] > 10_000, gc.get_freeze_count() > 1000))
from robustgen.cli import main
main(["list"], standalone_mode=False)
"""


def test_a_command_collects_garbage_rarely_and_when_it_ends_only_what_pytorch_leaves():
    assert words(COMMAND) == ["True", "True"]
    assert words("import sys; sys.modules['torch'] = sys\n" + COMMAND) == ["True", "False"]


COMPILED = """
import gc
import numpy as np
from robustgen.pixels.imaging.kernels import elementwise
from robustgen.files.storage.host import collect_garbage_rarely

if {ours}:
    collect_garbage_rarely()
elementwise.widen(np.zeros(3, np.uint8), np.zeros(256), np.zeros(3))
began = []
gc.callbacks.append(lambda phase, about: began.append(phase))
elementwise.quantise(np.zeros(3), np.zeros(3, np.uint8))
gc.callbacks.clear()
print(len(began), gc.isenabled(), gc.get_freeze_count() > 1000)
"""


@pytest.mark.parametrize("ours", [False, True])
def test_no_garbage_is_collected_while_a_loop_is_compiled(tmp_path, ours):
    collections, *rest = words(COMPILED.format(ours=ours), NUMBA_CACHE_DIR=str(tmp_path))
    # Two for each collection; what waits is collected when the loop is there.
    assert int(collections) <= 4 and rest == ["True", str(ours)]
    assert any(tmp_path.rglob("*.nbc"))


FREED = """
import re
import numpy as np
from robustgen.files.storage.host import keep_freed_memory, return_freed_memory

def count_kilobytes():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1])

def fill_and_free():
    arrays = [np.ones(10_000_000, np.uint8) for _ in range(10)]
    del arrays
    return count_kilobytes()

keep_freed_memory()
kept = fill_and_free()
return_freed_memory()
print(kept - count_kilobytes() > 80_000, kept - fill_and_free() > 80_000)
"""


def test_what_is_freed_is_handed_back_where_large_frames_need_it():
    assert words(FREED) == ["True", "True"]


REUSED = """
import resource
import numpy as np
from robustgen.files.storage.host import keep_freed_memory

def fill_and_count_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(48_000_000, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
print(fill_and_count_faults() > 0, fill_and_count_faults() < 20)
"""


def test_what_large_photographs_take_is_kept_too():
    assert words(REUSED) == ["True", "True"]
