"""How a problem is padded to what the array processes."""

from dataclasses import dataclass

from bdforge.plan.gemm import Plan
from bdforge.plan.spec import Problem, SpecError


@dataclass(frozen=True, slots=True)
class Padding:
    """A problem and its padded sizes: multiples of rows * m, k_mt and columns * n."""

    problem: Problem
    M: int
    K: int
    N: int

    @property
    def macs(self) -> int:
        """Multiply-accumulates the array performs."""
        return self.M * self.K * self.N

    def __str__(self) -> str:
        pairs = zip("MKN", (self.problem.M, self.problem.K, self.problem.N), (self.M, self.K, self.N), strict=True)
        return ", ".join(f"{axis} {true}→{padded}" for axis, true, padded in pairs if true != padded) or "none"


def padding(plan: Plan, problem: Problem) -> Padding:
    """Padded sizes of `problem`; SpecError when the kernel's accumulators could overflow."""
    spec, kernel = plan.spec, plan.kernel
    padded = Padding(
        problem,
        _up(problem.M, spec.rows * spec.tile.m),
        _up(problem.K, spec.k_mt),
        _up(problem.N, spec.columns * spec.tile.n),
    )
    if kernel.depth_limit < padded.K:
        raise SpecError(f"K = {padded.K} could overflow {kernel.multiply}'s sums; at most {kernel.depth_limit}")
    return padded


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
