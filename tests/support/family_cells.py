"""Cells of the family's table (`tools.docs.family`) that work, and what runs them: a random member, or a test."""

from functools import lru_cache
from typing import Any

from bdforge.operators.gemm import GemmPlan
from bdforge.operators.gemm.kernels import Kernel
from support.family import GROUPS, SEED, SIZE, group
from tools.docs.family import COLUMNS, LEAST_TILES, Column, content_of, works


@lru_cache(maxsize=1)
def tested() -> tuple[GemmPlan, ...]:
    """Plans of all random members."""
    return tuple(member.plan for index in range(GROUPS) for member in group(index, SIZE, SEED))


def in_a_member(kernel: Kernel, c: str, column: Column) -> bool:
    """Whether a random member has the kernel, the results and the column's choice."""
    return any(plan.kernel == kernel and plan.spec.c == c and column.has(plan) for plan in tested())


def row_key(kernel: Kernel, c: str) -> str:
    """A row as tests name it."""
    return f"{kernel.generation.name}-{kernel.multiply}-{c}"


def untested(kernel: Kernel, c: str) -> list[dict[str, Any]]:
    """Designs of the row's cells that work and that no random member has."""
    found = []
    for column in COLUMNS:
        plain, content = content_of(kernel, c), small(kernel, c)
        column.change(plain)
        column.change(content)
        if works(kernel, plain) and not in_a_member(kernel, c, column):
            found.append(content)
    return found


def small(kernel: Kernel, c: str) -> dict[str, Any]:
    """The plain design with little tiles on as few cores as any choice needs."""
    _, k, n = kernel.multiples
    rows = 1 if kernel.r % kernel.t == 0 else 2  # scales of rows come in whole vectors
    tile = {"m": LEAST_TILES * kernel.r, "k": 8 * k, "n": max(2 * n, 64)}
    return content_of(kernel, c) | {"array": {"rows": rows, "columns": 2 * rows}, "tile": tile}
