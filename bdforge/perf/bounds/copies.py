"""What a host copies for GEMMs whose operands a program holds as floats: rounded on their way in, transposed where a
design has another order.

The same choice as `bdforge::FloatProducts` makes: a product is computed as itself or as its transpose (C^T = B^T A^T),
whichever has the fewest elements turned. Rates are in `data/host_copies.csv`: measured, by `benchmarks/host_copies.py`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bdforge.common.files import read_csv
from bdforge.devices.hosts import Host
from bdforge.devices.types import TYPES
from bdforge.operators.gemm import GemmProblem
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.estimate import Estimate
from bdforge.perf.bounds.models import Linear

_FILE = Path(__file__).parents[1] / "data" / "host_copies.csv"
_OTHER = {"row": "column", "column": "row"}
_FLOAT_BYTES = 4
_TURNED = ", transposed"

Modelled = Callable[[GemmProblem], Estimate]
"""How a problem is modelled on a design."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of an operand: `what` is "copy in", "copy out" or "add out", with ", transposed" where it is; bytes read
    and written."""

    operand: str
    what: str
    size_bytes: float

    def ms(self, host: Host) -> float:
        """Milliseconds on all cores of a processor, at the rate of as many measured ones or at its memory's."""
        return self.size_bytes / min(host.cores * _rates()[self.what], host.dram_gb_s) / 1e6


def run_as(linear: Linear, problem: GemmProblem, modelled: Modelled) -> tuple[Estimate, tuple[Copy, ...]]:
    """What a design computes for `linear`, whose sizes are those of `problem`, and the copies of one run; none where
    the program holds what the array takes."""
    found = modelled(problem)
    if not linear.held:
        return found, ()
    elements = {"A": problem.M * problem.K, "B": problem.K * problem.N, "C": problem.M * problem.N}
    ways: list[dict[str, bool]] = [dict(zip("ABC", way, strict=True)) for way in _turned(linear.held, found.case)]
    itself, transposed = (sum(elements[name] for name in elements if way[name]) for way in ways)
    if transposed < itself:
        found = modelled(GemmProblem(problem.N, problem.K, problem.M, problem.name))
    return found, tuple(_copies(linear, found.case, elements, ways[transposed < itself]))


def _turned(held: tuple[str, ...], case: GemmCase) -> Iterator[tuple[bool, bool, bool]]:
    """Which of A, B and C are transposed when the design computes the product itself, and when its transpose."""
    a, b, c = held
    design = (case.a_layout, "row" if case.b_layout == "packed" else case.b_layout, case.c_layout)
    yield (a != design[0], b != design[1], c != design[2])
    yield (_OTHER[a] != design[1], _OTHER[b] != design[0], _OTHER[c] != design[2])


def _copies(linear: Linear, case: GemmCase, elements: dict[str, int], turned: dict[str, bool]) -> Iterator[Copy]:
    for name, type_name in (("A", case.a), ("B", case.b), ("C", case.c)):
        what = "copy in" if name != "C" else "add out" if linear.added else "copy out"
        floats = 2 if what == "add out" else 1
        moved = elements[name] * (TYPES[type_name].bytes + floats * _FLOAT_BYTES)
        yield Copy(name, what + (_TURNED if turned[name] else ""), moved)


@cache
def _rates() -> dict[str, float]:
    """GB/s of one core by kind of copy."""
    return {row["copy"]: float(row["gb_s"]) for row in read_csv(_FILE)}
