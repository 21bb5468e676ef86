"""Simulates runs of ImageNet on a thousand cores: python scripts/simulate_cluster.py

Each core takes the next work unit when it is free. Units of one length vary by a tenth. Assumed besides:
a worker needs 3 s to start, its node 10 s to read the plan and list the source, a record and a claim take
20 ms on a shared file system, a client hands out a task every 2 ms, and jobs of an array start within 30 s
of each other.
"""

import heapq
import random

CORES, PER_NODE, UNITS = 1000, 16, 3125
# Core seconds on the machine of docs/start/quickstart.md: 50 minutes and 5 days on two cores.
WORK = {"make-c": 6_000, "make-p": 864_000}
START, LIST, RECORD, TASK, SPREAD = 3.0, 10.0, 0.02, 0.002, 30.0


def spread(units: list[float], starts: list[float], handed_out: float = 0.0) -> float:
    """Return when the last unit ends if each free core takes the next one."""
    free = list(starts)
    heapq.heapify(free)
    end = 0.0
    for number, seconds in enumerate(units):
        begin = max(heapq.heappop(free), number * handed_out)
        heapq.heappush(free, begin + seconds + RECORD)
        end = max(end, begin + seconds + RECORD)
    return end


def simulate(work: float, rng: random.Random) -> dict[str, float]:
    """Return the seconds of a run by the way it is divided."""
    units = [work / UNITS * rng.uniform(0.9, 1.1) for _ in range(UNITS)]
    nodes = CORES // PER_NODE + 1
    together = [START + LIST] * CORES
    staggered = [START + LIST + rng.uniform(0, SPREAD) for _ in range(nodes) for _ in range(PER_NODE)][:CORES]
    starts = [rng.uniform(0, SPREAD) + START + LIST for _ in range(nodes)]
    shards = [spread(units[place::nodes], [start] * PER_NODE) for place, start in enumerate(starts)]
    return {
        "ideal": work / CORES,
        "the same command everywhere": spread(units, staggered),
        f"SLURM, {nodes} shards of {PER_NODE} cores": max(shards),
        "Ray or Dask, one client": spread(units, together, TASK),
    }


if __name__ == "__main__":
    for name, work in WORK.items():
        runs = [simulate(work, random.Random(seed)) for seed in range(20)]
        for way in runs[0]:
            print(f"{name}  {way:34} {sum(run[way] for run in runs) / len(runs):7.0f} s")
