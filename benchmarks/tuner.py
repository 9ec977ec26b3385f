"""How fast the tuner is: `python benchmarks/tuner.py [TYPES ...]`, by default int8,int2,int32.

Candidates whose buffers fit a core, designs of them that can be built, seconds and designs per second of a whole search
on one process, then on two. Measured on this host, kernel schedules included.
"""

import sys
import time

from bdforge.common.task_runners import in_processes
from bdforge.common.tasks import Workers
from bdforge.devices import device_named
from bdforge.perf.tune.candidate_search import Search
from bdforge.perf.tune.shapes import shapes
from bdforge.perf.tune.space import search_space
from bdforge.perf.tune.tuner import search

DEVICE = "strix_halo"
ROW = "{:>16} {:>10} {:>14} {:>14} {:>9} {:>14}"


def main(types: list[str]) -> None:
    """Search for BitNet's layers with each of the types."""
    print(ROW.format("types", "processes", "fit a core", "can be built", "seconds", "designs/second"))
    problems = shapes("bitnet-2b", 1024)
    for names in types:
        wanted = Search(search_space(device_named(DEVICE), names, max(p.K for p, _ in problems)), "compiled", problems)
        for jobs in (1, 2):
            start = time.perf_counter()
            parts = search(wanted, Workers(in_processes(jobs)))
            seconds = time.perf_counter() - start
            legal = sum(part.legal for part in parts)
            examined = sum(part.examined for part in parts)
            print(ROW.format(names, jobs, f"{examined:,}", f"{legal:,}", f"{seconds:.1f}", f"{legal / seconds:,.0f}"))


if __name__ == "__main__":
    main(sys.argv[1:] or ["int8,int2,int32"])
