#!/usr/bin/env python3
"""Measures the processor time that commands need to start.

    python scripts/bench_start.py [--repeat N]

Prints the table of docs/background/performance.md: the median of N processes, and that of an empty one.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys


def measure(words: list[str], variables: dict[str, str], repeat: int) -> float:
    """Return the median processor time of a process in milliseconds."""
    times = []
    for _ in range(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *words], env={**os.environ, **variables}, stdout=subprocess.DEVNULL, check=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return 1000 * statistics.median(times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=15)
    repeat = parser.parse_args().repeat
    print("| command | processor time in ms |\n|---|---|")
    print(f"| an empty Python program | {measure(['-c', ''], {}, repeat):.0f} |")
    for line in ("--version", "--help", "make-c --help", "config --dataset demo", "list editions"):
        print(f"| `robustgen {line}` | {measure(['-m', 'robustgen', *line.split()], {}, repeat):.0f} |")
    for line in ("robustgen mak", "robustgen make-c --form", "robustgen make-c --corruptions fo"):
        variables = {
            "_ROBUSTGEN_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split()) - 1),
        }
        program = "from robustgen.cli import main; main(prog_name='robustgen')"
        print(f"| completion of `{line}` | {measure(['-c', program], variables, repeat):.0f} |")


if __name__ == "__main__":
    main()
