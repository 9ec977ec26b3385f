"""The page of the GEMM family, docs/family.md, made from plans: `python tests/support/family_table.py`.

Every cell is a design that was planned: it names a group of random members that has it, or the refusal.
"""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bdforge.devices import DEVICES  # noqa: E402
from bdforge.operators.gemm import Plan, SpecError, plan_gemm, spec_from  # noqa: E402
from bdforge.operators.gemm.kernels import KERNELS, Kernel  # noqa: E402
from support.family import GROUPS, PRODUCTS, SEED, SIZE, group  # noqa: E402

PAGE = ROOT / "docs" / "family.md"
TEXT = ROOT / "tests" / "support" / "family_text.md"
TYPES_OF_A = ("int8", "bf16", "bfp16")
TYPES_OF_B = ("int8", "int4", "int2", "bf16", "bfp16")
TYPES_OF_C = ("int8", "int16", "int32", "bf16", "f32", "bfp16")
LEAST_TILES = 4  # micro-tiles in the rows of a plain design
CELLS = "c"
"""Where a test of its own runs the cell, because no random member has it."""

Change = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Column:
    """A choice of the spec: what it changes, and whether a plan has it."""

    title: str
    change: Change
    has: Callable[[Plan], bool]


def _set(section: str, **values: Any) -> Change:
    def change(content: dict[str, Any]) -> None:
        content[section] |= values

    return change


def _deep(content: dict[str, Any]) -> None:
    content["buffers"]["k_mt"] = 2 * content["tile"]["k"]


def _few_rows(content: dict[str, Any]) -> None:
    least = content["tile"]["m"] // LEAST_TILES
    content["tile"] |= {"m": least, "m_used": least - 1}


COLUMNS = (
    Column("plain", lambda content: None, lambda plan: True),
    Column("A column-major", _set("layouts", a="column"), lambda plan: plan.spec.layouts.a == "column"),
    Column("B row-major", _set("layouts", b="row"), lambda plan: plan.spec.layouts.b == "row"),
    Column("B column-major", _set("layouts", b="column"), lambda plan: plan.spec.layouts.b == "column"),
    Column("C column-major", _set("layouts", c="column"), lambda plan: plan.spec.layouts.c == "column"),
    Column("k_mt > k", _deep, lambda plan: plan.spec.buffers.k_mt > plan.spec.tile.k),
    Column("c_buffers 2", _set("buffers", c_buffers=2), lambda plan: plan.spec.buffers.c_buffers == 2),
    Column(
        "c_memtile_buffers 1",
        _set("buffers", c_memtile_buffers=1),
        lambda plan: plan.spec.buffers.c_memtile_buffers == 1,
    ),
    Column("rho 2", _set("buffers", rho=2), lambda plan: plan.spec.buffers.rho > 1),
    Column("a_shims 2", _set("buffers", a_shims=2), lambda plan: plan.spec.buffers.a_shims == 2),
    Column("m_used < m", _few_rows, lambda plan: 0 < plan.spec.tile.m_used < plan.spec.tile.m),
    Column("scale", _set("epilogue", scale=True), lambda plan: plan.spec.epilogue.scale),
    Column("bias", _set("epilogue", bias=True), lambda plan: plan.spec.epilogue.bias),
    Column("relu", _set("epilogue", relu=True), lambda plan: plan.spec.epilogue.relu),
    Column("shift", _set("epilogue", shift=3), lambda plan: plan.spec.epilogue.shift > 0),
)


@dataclass
class Refusals:
    """Reasons by number, in the order in which they come."""

    numbers: dict[str, int] = field(default_factory=dict)

    def mark(self, error: SpecError) -> str:
        """Reference to a refusal: its reasons without the design's name."""
        reasons = dict.fromkeys(line.partition(": ")[2] for line in str(error).splitlines())
        return str([self.numbers.setdefault(reason, len(self.numbers) + 1) for reason in reasons])

    def lines(self) -> Iterator[str]:
        yield from (f"{number}. {text}" for text, number in self.numbers.items())


def content_of(kernel: Kernel, c: str) -> dict[str, Any]:
    """A plain design of a kernel with results of type `c`: whole array, packed B, one tile of C, no epilogue."""
    device = DEVICES[PRODUCTS[kernel.generation.name]]
    types = {"a": kernel.a.name, "b": kernel.b.name, "c": c, "accumulator": kernel.accumulator.name}
    always_scaled = (kernel.accumulator.name, c) == ("int32", "bf16")
    return {
        "kind": "gemm",
        "types": types,
        "layouts": {"a": "row", "b": "packed", "c": "row"},
        "array": {"rows": 2, "columns": device.columns},
        "tile": {"m": LEAST_TILES * kernel.r, "k": 64, "n": 64},
        "buffers": {},
        "epilogue": {"scale": True} if always_scaled else {},
    }


def planned(kernel: Kernel, content: dict[str, Any]) -> Plan:
    """The plan; SpecError where it is refused."""
    return plan_gemm(spec_from(content, "design"), DEVICES[PRODUCTS[kernel.generation.name]])


@lru_cache(maxsize=1)
def tested() -> tuple[tuple[int, Plan], ...]:
    """Groups of random members and the plans in them."""
    return tuple((index, member.plan) for index in range(GROUPS) for member in group(index, SIZE, SEED))


def group_with(kernel: Kernel, c: str, column: Column) -> str:
    """The first group with a member that has the kernel, the results and the column's choice."""
    for index, plan in tested():
        if plan.kernel == kernel and plan.spec.c == c and column.has(plan):
            return str(index)
    return CELLS


def row_key(kernel: Kernel, c: str) -> str:
    """A row as tests name it."""
    return f"{kernel.generation.name}-{kernel.multiply}-{c}"


def rows_of_all() -> list[tuple[Kernel, str]]:
    """Every row: a kernel and what its accumulators become."""
    return [(kernel, c) for kernel in KERNELS.values() for c in results(kernel)]


def untested(kernel: Kernel, c: str) -> list[dict[str, Any]]:
    """Designs of the row's cells that no random member has."""
    found = []
    for column in COLUMNS:
        content = small(kernel, c)
        column.change(content)
        if cell(kernel, c, column, Refusals()) == CELLS:
            found.append(content)
    return found


def small(kernel: Kernel, c: str) -> dict[str, Any]:
    """The plain design with little tiles on as few cores as any choice needs."""
    _, k, n = kernel.multiples
    rows = 1 if kernel.r % kernel.t == 0 else 2  # scales of rows come in whole vectors
    tile = {"m": LEAST_TILES * kernel.r, "k": 8 * k, "n": max(2 * n, 64)}
    return content_of(kernel, c) | {"array": {"rows": rows, "columns": 2 * rows}, "tile": tile}


def results(kernel: Kernel) -> list[str]:
    """Types of C that can be made of a kernel's accumulators."""
    found = []
    for c in TYPES_OF_C:
        try:
            planned(kernel, content_of(kernel, c))
        except SpecError:
            continue
        found.append(c)
    return found


def cell(kernel: Kernel, c: str, column: Column, refusals: Refusals) -> str:
    content = content_of(kernel, c)
    column.change(content)
    try:
        planned(kernel, content)
    except SpecError as error:
        return refusals.mark(error)
    return group_with(kernel, c, column)


def rows(generation: str, refusals: Refusals) -> Iterator[str]:
    """A row for each kernel and each type of C that it can end in."""
    for key, kernel in KERNELS.items():
        if key[0] != generation:
            continue
        for c in results(kernel):
            cells = [cell(kernel, c, column, refusals) for column in COLUMNS]
            yield f"| {kernel.a.name} × {kernel.b.name} | {kernel.accumulator.name} | {c} | {' | '.join(cells)} |"


def other_types(generation: str) -> Iterator[str]:
    """What is refused for its types, by reason."""
    device = DEVICES[PRODUCTS[generation]]
    made: dict[str, list[str]] = {}
    for a in TYPES_OF_A:
        for b in TYPES_OF_B:
            kernels = [k for key, k in KERNELS.items() if key[:3] == (generation, a, b)]
            if not kernels:
                content = {"kind": "gemm", "types": {"a": a, "b": b, "c": "f32"}, "tile": {"m": 32, "k": 64, "n": 64}}
                reason = refusal(content, device.name).replace(f"{a} x {b} on", "A x B on")
                made.setdefault(reason, []).append(f"{a} × {b}")
    for reason, pairs in made.items():
        yield f"| {', '.join(pairs)} | {reason} |"
    for accumulator in TYPES_OF_C:
        found = [k for k in KERNELS.values() if k.generation.name == generation and k.accumulator.name == accumulator]
        if found:
            refused = [c for c in TYPES_OF_C if c not in results(found[0])]
            content = content_of(found[0], refused[0])
            yield f"| C of {', '.join(refused)} from {accumulator} | {refusal(content, device.name)} |"


def refusal(content: dict[str, Any], product: str) -> str:
    """The reasons that a user gets, those of types only."""
    try:
        plan_gemm(spec_from(content, "design"), DEVICES[product])
    except SpecError as error:
        reasons = [line.partition(": ")[2] for line in str(error).splitlines()]
        return next((reason for reason in reasons if re.match(r"no kernel|types\.", reason)), reasons[0])
    raise AssertionError("planned")


def section(generation: str) -> Iterator[str]:
    device = DEVICES[PRODUCTS[generation]]
    refusals = Refusals()
    yield f"## {device.mlir}: {device.core_rows} × {device.columns} cores of {generation}\n"
    yield "| A × B | accumulator | C | " + " | ".join(column.title for column in COLUMNS) + " |"
    yield "|---" * (len(COLUMNS) + 3) + "|"
    yield from rows(generation, refusals)
    yield "\nRefused, with these words:\n"
    yield from refusals.lines()
    yield "\n| types that are refused | with these words |"
    yield "|---|---|"
    yield from other_types(generation)
    yield ""


def page() -> str:
    """The whole page."""
    head, _, tail = TEXT.read_text(encoding="utf-8").partition("<!-- tables -->\n")
    lines = [line for generation in ("AIE2P", "AIE2") for line in section(generation)]
    return head + "\n".join(lines) + "\n" + tail


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
