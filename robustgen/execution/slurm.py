"""Arrays of SLURM: one batch script, each of whose tasks makes one shard."""

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence

from robustgen.errors import ConfigError

# These belong to the launcher itself; others go to sbatch as they are.
_OURS = ("array", "wait", "wrap", "parsable", "chdir")


def parse_options(text: str) -> dict[str, str]:
    """Return options of sbatch: ``"partition=cpu,exclusive"`` as ``{"partition": "cpu", "exclusive": ""}``.

    Raises
    ------
    ConfigError
        An option has no name, or is one that the launcher sets itself.
    """
    options = {}
    # Commas in brackets belong to names of nodes: n[1,3-5].
    for part in re.split(r",(?![^\[\]]*\])", text):
        name, _, value = (each.strip() for each in part.partition("="))
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name) or "\n" in value:
            raise ConfigError(f"--slurm: must be options of sbatch, such as partition=cpu, not {part!r}")
        if name in _OURS:
            raise ConfigError(f"--slurm: {name} is set by robustgen; --shards says how many tasks there are")
        options[name] = value
    return options


def compose_script(
    command: Sequence[str], shards: Sequence[int], count: int, folder: str, options: Mapping[str, str]
) -> str:
    """Return the script of an array of `shards`, of `count` in all, that runs `command` on each."""
    given = {"output": f"{folder}/%A-%a.log", "requeue": "", **options, "array": _join(shards)}
    directives = [f"--{name}={shlex.quote(value)}" if value else f"--{name}" for name, value in given.items()]
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {directive}" for directive in directives),
        # In place of the shell, so that the signal at the end of the time arrives.
        f"exec {shlex.join(command)} \\",
        f'    --shard "$SLURM_ARRAY_TASK_ID/{count}" --jobs "${{SLURM_CPUS_PER_TASK:-1}}"',
    ]
    return "".join(f"{line}\n" for line in lines)


def submit(script: str, *, wait: bool = False) -> str:
    """Submit the file `script`, and wait for its end if asked to; return the number of the job.

    Raises
    ------
    ConfigError
        There is no SLURM here, or it refuses the script.
    """
    command = ["sbatch", "--parsable", *["--wait"] * wait, script]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise ConfigError(
            "--slurm: there is no sbatch on this machine; give the command on a login node of the cluster"
        ) from error
    # With --wait the status is that of the tasks, which have had their say in the log files.
    job = done.stdout.partition(";")[0].strip()
    if not job:
        told = " ".join(done.stderr.split()) or f"sbatch ended with status {done.returncode}"
        raise ConfigError(f"--slurm: {told}")
    return job


def _join(numbers: Sequence[int]) -> str:
    """Return sorted numbers as sbatch takes them: ``"1-4,7"``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)
