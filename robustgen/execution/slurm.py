"""SLURM job arrays: one batch script, each task of which processes one shard."""

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from itertools import groupby

from robustgen.errors import ConfigError

# The launcher sets these options; all others are passed to sbatch unchanged.
_OURS = ("array", "wait", "wrap", "parsable", "chdir")


def parse_options(text: str) -> dict[str, str]:
    """Return sbatch options: ``"partition=cpu,exclusive"`` becomes ``{"partition": "cpu", "exclusive": ""}``.

    Raises
    ------
    ConfigError
        An option has no name, or is reserved for the launcher.
    """
    options = {}
    # Commas in brackets are part of node names: n[1,3-5].
    for part in re.split(r",(?![^\[\]]*\])", text):
        name, _, value = (each.strip() for each in part.partition("="))
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name) or "\n" in value:
            raise ConfigError(f"--slurm: must be options of sbatch, such as partition=cpu, not {part!r}")
        if name in _OURS:
            raise ConfigError(f"--slurm: {name} is set by robustgen; leave it out (--shards sets the tasks)")
        options[name] = value
    return options


def compose_script(
    command: Sequence[str], shards: Sequence[int], count: int, folder: str, options: Mapping[str, str]
) -> str:
    """Return the script of a job array that runs `command` on each of the `shards`, `count` in all."""
    given = {"output": f"{folder}/%A-%a.log", "requeue": "", **options, "array": _join(shards)}
    directives = [f"--{name}={shlex.quote(value)}" if value else f"--{name}" for name, value in given.items()]
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {directive}" for directive in directives),
        # exec replaces the shell, so that the command receives the signal at the time limit.
        f"exec {shlex.join(command)} \\",
        f'    --shard "$SLURM_ARRAY_TASK_ID/{count}" --jobs "${{SLURM_CPUS_PER_TASK:-1}}"',
    ]
    return "".join(f"{line}\n" for line in lines)


def submit(script: str, *, wait: bool = False) -> str:
    """Submit the file `script`, if `wait` until it ends, and return the number of the job.

    Raises
    ------
    ConfigError
        SLURM is not installed, or rejects the script.
    """
    command = ["sbatch", "--parsable", *["--wait"] * wait, script]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise ConfigError(
            "--slurm: sbatch is not installed on this machine; run the command on a login node of the cluster"
        ) from error
    # With --wait, the status is that of the tasks, whose log files contain their errors.
    job = done.stdout.partition(";")[0].strip()
    if not job:
        told = " ".join(done.stderr.split()) or f"sbatch ended with status {done.returncode}"
        raise ConfigError(f"--slurm: {told}")
    return job


def _join(numbers: Sequence[int]) -> str:
    """Return sorted numbers in the format of sbatch: ``"1-4,7"``."""
    groups = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in group] for _, group in groups]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
