"""Members of the GEMM family, drawn at random: types, layouts, arrays, tiles, buffering, epilogues and ragged problems.

Members come in groups that share their kernels, so that 200 of them need few compilations.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from bdforge.devices import DEVICES, Device
from bdforge.operators.gemm import GemmPlan, GemmProblem, SpecError, plan_gemm, spec_from
from bdforge.operators.gemm.kernels import KERNELS, Kernel

TURNS = 4
GROUPS = TURNS * len(KERNELS)
SIZE = 3
SEED = 7
"""The members that tests run: 3 in each of the groups, more than 200."""
PRODUCTS = {"AIE2": "phoenix", "AIE2P": "strix_halo"}
"""A product for each generation."""
ARRAYS = [(rows, columns) for rows in range(1, 5) for columns in range(1, 9) if rows * columns <= 8] + [(4, 8)]
"""Arrays by rows and columns. Small ones are drawn more often, since an array's text grows with its cores."""
RESULTS = {
    "int32": ("int32", "int16", "int8", "bf16"),
    "int16": ("int16",),
    "int8": ("int8",),
    "f32": ("f32", "bf16", "bfp16"),
    "bf16": ("bf16", "bfp16"),
    "bfp16": ("bfp16",),
}
"""What can be made of accumulators."""
ORDERS = (("row", "row", "row"), ("column", "packed", "row"), ("row", "column", "column"), ("column", "column", "row"))
"""Layouts of A, B and C, so that a few turns meet every one of them in pairs."""
PARTS = ((1,), (2, 3), (1,), (1, 2))
ROUNDINGS = ("conv_even", "floor", "symmetric_inf", "positive_inf", "conv_odd", "ceil")

REFUSED = {
    9: 9393, 10: 10172, 12: 460, 13: 1195, 30: 1085, 32: 1587, 52: 3821, 53: 401, 54: 4102, 57: 2854,
    74: 1005, 75: 3077, 76: 2084, 78: 301,
}  # fmt: skip
"""With SEED, draws of groups whose first legal design comes late: they are drawn and not planned, to save seconds."""


@dataclass(frozen=True)
class Member:
    """A design and a problem for it."""

    content: dict[str, Any]
    device: Device
    problem: GemmProblem

    @property
    def plan(self) -> GemmPlan:
        """The member's plan; SpecError where it is not legal."""
        return _planned(json.dumps(self.content), self.device)

    def __str__(self) -> str:
        types, array, tile = (self.content[name] for name in ("types", "array", "tile"))
        facts = [self.device.mlir, *types.values(), *self.content["layouts"].values()]
        facts += [f"{array['rows']}x{array['columns']}", "x".join(map(str, tile.values())), str(self.problem)]
        return " ".join([*facts, str(self.content["buffers"]), str(self.content["epilogue"])])


@lru_cache(maxsize=512)
def _planned(content: str, device: Device) -> GemmPlan:
    """Members are planned again and again: to be drawn, to be run and to be counted."""
    return plan_gemm(spec_from(json.loads(content), "member"), device)


def kernel_of(index: int) -> Kernel:
    """The kernel of group number `index`: all kernels in turn."""
    return list(KERNELS.values())[index % len(KERNELS)]


@cache
def group(index: int, size: int, seed: int) -> list[Member]:
    """Group number `index`, `size` members that share their kernels; the same for the same numbers.

    The groups of one kernel go through pairs of layouts, results and numbers of parts; all else is drawn.
    """
    rng = random.Random(f"{seed} {index}")
    kernel, turn = kernel_of(index), index // len(KERNELS)
    device = DEVICES[PRODUCTS[kernel.generation.name]]
    for _ in range(REFUSED.get(index, 0) if seed == SEED else 0):
        _drawn(rng, kernel, turn)
    first = next(_legal(rng, device, lambda: _drawn(rng, kernel, turn)))
    others = _legal(rng, device, lambda: _relative(rng, first.content))
    wanted = first.plan
    members = [first]
    while len(members) < size:
        member = next(others)
        plan = member.plan
        if (plan.kernels.sources, plan.kernels.defines) == (wanted.kernels.sources, wanted.kernels.defines):
            members.append(member)
    return members


def refused(index: int) -> bool:
    """Whether none of the group's REFUSED draws is legal."""
    rng, kernel, turn = random.Random(f"{SEED} {index}"), kernel_of(index), index // len(KERNELS)
    device = DEVICES[PRODUCTS[kernel.generation.name]]
    drawn = (_drawn(rng, kernel, turn) for _ in range(REFUSED[index]))
    return not any(_is_legal(Member(content, device, GemmProblem(1, 1, 1))) for content in drawn)


def _is_legal(member: Member) -> bool:
    try:
        return bool(member.plan)
    except SpecError:
        return False


def _legal(rng: random.Random, device: Device, draw: Callable[[], dict[str, Any]]) -> Iterator[Member]:
    """Designs that can be built, each with a problem; the others are refused with reasons."""
    while True:
        member = Member(draw(), device, GemmProblem(1, 1, 1))
        if _is_legal(member):
            yield replace(member, problem=_problem(rng, member.plan))


def _drawn(rng: random.Random, kernel: Kernel, turn: int) -> dict[str, Any]:
    """Any design for a kernel; the odds favour what is legal."""
    m, k, n = kernel.multiples
    rho = rng.choice(PARTS[turn % len(PARTS)])
    results = RESULTS[kernel.accumulator.name]
    if not kernel.block_products:
        results = tuple(name for name in results if name != "bfp16")
    c = results[turn % len(results)]
    tile = {"m": m * rho * rng.choice((1, 1, 2, 3)), "k": k * rng.randint(1, 4), "n": n * rng.randint(1, 4)}
    if rho == 1 and rng.random() < 0.2:
        tile |= {"m": m, "m_used": rng.randint(1, m)}
    narrow = c in ("int8", "int16")
    fed = c == "bf16" and kernel.accumulator.name in ("int32", "f32")
    epilogue: dict[str, Any] = {"shift": rng.randint(0, 9) if narrow else 0, "relu": rng.random() < 0.3}
    if narrow:
        epilogue["rounding"] = rng.choice(ROUNDINGS)
    if fed:
        epilogue |= {"scale": rng.random() < 0.7, "bias": rng.random() < 0.5}
        tile["k"] *= rng.choice((1, 2, 4))  # the numbers take a tile of B
    types = {"a": kernel.a.name, "b": kernel.b.name, "c": c, "accumulator": kernel.accumulator.name}
    content = {"kind": "gemm", "types": types, "tile": tile, "epilogue": epilogue}
    return content | _surroundings(rng, tile["k"], rho, _orders(rng, turn))


def _orders(rng: random.Random, turn: int) -> dict[str, str]:
    """Those of the turn; now and then any, since not every kernel can have those."""
    wanted: dict[str, str] = dict(zip("abc", ORDERS[turn % len(ORDERS)], strict=True))
    drawn = {"a": rng.choice(("row", "column")), "b": rng.choice(("packed", "row", "column"))}
    return wanted if rng.random() < 0.8 else drawn | {"c": rng.choice(("row", "column"))}


def _relative(rng: random.Random, content: dict[str, Any]) -> dict[str, Any]:
    """The same kernels amid another array and other buffers."""
    layouts = dict(content["layouts"])
    if layouts["b"] != "column":
        layouts["b"] = rng.choice(("packed", "row"))
    drawn = _surroundings(rng, content["tile"]["k"], content["buffers"]["rho"], layouts)
    fed = any(content["epilogue"].get(name) for name in ("scale", "bias"))
    if fed:
        drawn["array"]["rows"] = content["array"]["rows"]
    return content | drawn


def _surroundings(rng: random.Random, k: int, rho: int, layouts: dict[str, str]) -> dict[str, Any]:
    rows, columns = rng.choices(ARRAYS, [1 / (rows * columns) for rows, columns in ARRAYS])[0]
    buffers = {"k_mt": k * rng.choice((1, 1, 2, 3)), "c_buffers": rng.choice((1, 2)), "rho": rho}
    buffers |= {"c_memtile_buffers": rng.choice((1, 2)), "a_shims": rng.choice((1, 1, 2))}
    return {"layouts": layouts, "array": {"rows": rows, "columns": columns}, "buffers": buffers}


def _problem(rng: random.Random, plan: GemmPlan) -> GemmProblem:
    """Ragged edges: a little more than one tile, or more than the whole array, or less than a tile."""

    def size(tile: int, whole: int) -> int:
        return rng.choice((rng.randint(1, tile), tile + rng.randint(1, tile), whole + rng.randint(1, tile)))

    tiles = plan.tiling
    k_mt = tiles.k_mt
    depth = rng.choice((rng.randint(1, k_mt), k_mt + rng.randint(1, k_mt), 2 * k_mt + rng.randint(0, tiles.k)))
    return GemmProblem(size(tiles.m, tiles.panel_rows), depth, size(tiles.n, tiles.step_columns))
