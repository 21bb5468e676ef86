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
