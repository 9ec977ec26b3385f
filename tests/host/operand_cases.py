"""Members of the GEMM family, and arrays of any operand of theirs as a user holds them."""

from functools import lru_cache
from typing import Any

import numpy as np
from host_programs import probed

from bdforge.design.sequences.sequence_program import Operand
from bdforge.devices.types import TYPES
from bdforge.operators.gemm import SpecError, sequence
from support.family import SEED, group


def probe(orders: list[str]) -> list[str]:
    """What C++ answers to each."""
    return probed("operands", lines=orders)


@lru_cache(maxsize=64)
def member_of(index: int) -> tuple[Any, dict[str, int]]:
    """A member's plan and a ragged problem that it takes, some with gaps behind lines."""
    rng, plan = np.random.default_rng(index), group(index, 1, SEED)[0].plan  # relatives take ten times as long to find
    while True:
        M, K, N = (int(rng.integers(1, most)) for most in (200, 300, 200))
        try:
            planned = sequence(plan, M, K, N)
        except SpecError:
            continue
        gaps = {name: 0 for name in planned.program.parameters if name.startswith("ld")}
        return plan, {"M": M, "K": K, "N": N} | gaps


def random_array(rng: np.random.Generator, operand: Operand, shape: tuple[int, ...]) -> np.ndarray:
    """Any values of the operand's type, as Python takes them."""
    type_ = TYPES[operand.type]
    if operand.blocked and rng.integers(2):  # steps are 1 where a block has 64 or more: half of all are ties
        return (rng.integers(-255, 256, shape) / 2).astype(np.float32)
    if operand.blocked:
        return (rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 9, shape)).astype(np.float32)
    if type_.integer:
        low, high = type_.values or (-9, 9)
        return rng.integers(low, high + 1, shape).astype(type_.dtype)
    return rng.standard_normal(shape).astype(type_.dtype)


def in_memory(operand: Operand, array: np.ndarray, stride: int) -> bytes:
    """The user's array with a stride: lines of it, with bytes between them that nobody may look at."""
    lines = (array.T if operand.order == "column" else array).reshape(
        -1, array.shape[0 if operand.order == "column" else -1]
    )
    spread = np.full((len(lines), max(stride, lines.shape[1])), 77).astype(array.dtype)
    spread[:, : lines.shape[1]] = lines
    return spread.tobytes()[: ((len(lines) - 1) * spread.shape[1] + lines.shape[1]) * array.itemsize]


def shape_of(operand: Operand, values: list[int]) -> tuple[int, ...]:
    return tuple(values[axis.size] for axis in operand.axes)


def words_of(sizes: dict[str, int]) -> str:
    return " ".join(f"{name}={size}" for name, size in sizes.items())
