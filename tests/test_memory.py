"""How processes look after their memory."""

import subprocess
import sys

COMMAND = """
import atexit, gc
atexit.register(lambda: print(gc.get_threshold()[0] > 10_000, gc.get_freeze_count() > 1000))
from robustgen.cli import main
main(["list"], standalone_mode=False)
"""


def test_what_pytorch_leaves_is_collected():
    command = "import sys; sys.modules['torch'] = sys\n" + COMMAND
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True False"


def test_a_command_collects_garbage_rarely_and_not_when_it_ends():
    done = subprocess.run([sys.executable, "-c", COMMAND], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True True"


FREED = """
import re
import numpy as np
from robustgen.storage.memory import keep_freed_memory, return_freed_memory

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
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


REUSED = """
import resource
import numpy as np
from robustgen.storage.memory import keep_freed_memory

def fill_and_count_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(48_000_000, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
print(fill_and_count_faults() > 0, fill_and_count_faults() < 20)
"""


def test_what_large_photographs_take_is_kept_too():
    done = subprocess.run([sys.executable, "-c", REUSED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
