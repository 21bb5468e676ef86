"""SLURM job arrays: one batch script, each task of which processes one shard."""

import re
import shlex
import subprocess
from collections.abc import Sequence
from itertools import groupby
from pathlib import PurePath

from robustgen.errors import ConfigError
from robustgen.sets.executors.base import Launcher

# The launcher sets these options; all others are passed to sbatch unchanged.
_OURS = ("array", "wrap", "parsable", "chdir")


class SlurmArray(Launcher):
    """Array of SLURM jobs.

    Parameters
    ----------
    text : str
        ``shards=N``, perhaps ``wait``, and options of sbatch: ``"partition=cpu,time=2:00:00,shards=64"``.

    Attributes
    ----------
    options : dict of str to str
        Options of sbatch.

    Raises
    ------
    ConfigError
        An option has no name or is reserved for the launcher, or the number of shards is missing.
    """

    scheduler = "SLURM"

    def __init__(self, text: str) -> None:
        self.options = _parse_options(text)
        shards, wait = self.options.pop("shards", ""), self.options.pop("wait", None)
        if not shards.isdecimal() or int(shards) < 1:
            raise ConfigError("slurm needs the number of its jobs, such as slurm:partition=cpu,shards=64")
        if wait:
            raise ConfigError(f"slurm: wait has no value; write wait, not wait={wait}")
        self.shards, self.wait = int(shards), wait is not None

    def compose_script(self, command: Sequence[str], shards: Sequence[int], folder: str) -> str:
        """Return the script of a job array that runs `command` on each of the `shards`."""
        given = {"job-name": PurePath(folder).stem, "output": f"{folder}/%A-%a.log", "requeue": ""}
        given |= {**self.options, "array": _join(shards)}
        directives = [
            f"--{name}={shlex.quote(value)}" if value else f"--{name}" for name, value in given.items()
        ]
        lines = [
            "#!/bin/bash",
            *(f"#SBATCH {directive}" for directive in directives),
            # exec replaces the shell, so that the command receives the signal at the time limit.
            f"exec {shlex.join(command)} \\",
            f'    --shard "$SLURM_ARRAY_TASK_ID/{self.shards}" --jobs "${{SLURM_CPUS_PER_TASK:-1}}"',
        ]
        return "".join(f"{line}\n" for line in lines)

    def submit(self, script: str) -> str:
        """Submit the file `script`, wait until it ends if `wait`, and return the number of the job.

        Raises
        ------
        ConfigError
            SLURM is not installed, or rejects the script.
        """
        command = ["sbatch", "--parsable", *["--wait"] * self.wait, script]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise ConfigError(
                f"slurm: no sbatch here; run on a login node, or submit {script} there"
            ) from error
        # With --wait, the status is that of the jobs, whose log files contain their errors.
        job = done.stdout.partition(";")[0].strip()
        if not job:
            told = " ".join(done.stderr.split()) or f"sbatch ended with status {done.returncode}"
            raise ConfigError(f"slurm: {told}")
        return job


def _parse_options(text: str) -> dict[str, str]:
    """Return options by name: ``{"partition": "cpu", "exclusive": ""}`` for ``"partition=cpu,exclusive"``."""
    options = {}
    # Commas in brackets are part of node names: n[1,3-5].
    for part in re.split(r",(?![^\[\]]*\])", text) if text else ():
        name, _, value = (each.strip() for each in part.partition("="))
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name) or "\n" in value:
            raise ConfigError(f"slurm takes options of sbatch, such as partition=cpu, not {part!r}")
        if name in _OURS:
            raise ConfigError(f"slurm: {name} is set by robustgen; leave it out (shards=N sets the jobs)")
        if name in options:
            raise ConfigError(f"slurm: {name} is given twice")
        options[name] = value
    return options


def _join(numbers: Sequence[int]) -> str:
    """Return sorted numbers in the format of sbatch: ``"1-4,7"``."""
    groups = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in group] for _, group in groups]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
