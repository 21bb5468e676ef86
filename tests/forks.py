"""Commands of robustgen as forks of one process, which has imported and loaded what most of them need.

A fork has the arguments, folder, environment and streams of its client, and the client ends as the fork does.
"""

import json
import os
import signal
import site
import socket
import subprocess
import sys
from contextlib import contextmanager

# Starts in 20 ms, because it imports nothing that the command needs.
CLIENT = """#!{folder}/bin/python -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
    client.connect({server!r})
    message = json.dumps([sys.argv, os.getcwd(), dict(os.environ), {folder!r}])
    socket.send_fds(client, [message.encode()], [0, 1, 2])
    status = int(client.recv(16))
os.kill(os.getpid(), -status) if status < 0 else sys.exit(status)
"""


@contextmanager
def serve(python, place):
    """Serve clients at the socket `place` from a process of the interpreter `python`."""
    # A fork has only the thread that forks.
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen([python, __file__, place], env=alone, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout.readline() == b"ready\n"
            yield
        finally:
            server.kill()


def load():
    """Import the modules of all commands, and load the loops of ImageNet-C and ImageNet-P."""
    from importlib import import_module

    from robustgen.cli.app import list_commands
    from robustgen.cli.warm import WarmingJob
    from robustgen.pixels.benchmarks.corruptions import CORRUPTIONS
    from robustgen.pixels.benchmarks.perturbations import PERTURBATIONS
    from robustgen.sets.executors.progress import NOBODY

    for row, _ in list_commands():
        import_module(row.module)
    for noun, names in (("corruption", CORRUPTIONS), ("perturbation", PERTURBATIONS)):
        for name in names:
            WarmingJob(noun, name).run(NOBODY)


def wait_for_client(place):
    """Fork for each client; return the client in the forks."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(place)
        listener.listen()
        print("ready", flush=True)
        # Nobody waits for the processes that wait for a fork.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            client, _ = listener.accept()
            if not os.fork():
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return client
            client.close()


def become(message, streams):
    """Take the client's streams, arguments, folder, environment, and its virtual environment `prefix`."""
    sys.argv[:], folder, environment, prefix = json.loads(message)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = [f"{prefix}/bin", *(each.replace(sys.prefix, prefix) for each in sys.path)]
    sys.prefix = sys.exec_prefix = prefix
    sys.executable = f"{prefix}/bin/python"
    site.USER_BASE = site.USER_SITE = None


if __name__ == "__main__":
    del sys.path[0]
    load()
    with wait_for_client(sys.argv[1]) as client:
        message, streams, *_ = socket.recv_fds(client, 1 << 20, 3)
        if command := os.fork():
            _, status = os.waitpid(command, 0)
            client.send(b"%d" % os.waitstatus_to_exitcode(status))
            os._exit(0)
    become(message, streams)
    from robustgen.cli import main

    main()
