"""docs/family.md: which types, layouts and buffers of GEMM designs work together. Every entry is planned.

`COLUMNS` are the choices; tests run those that work (`tests/runtime/test_gemm_family_table.py`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bdforge.devices import DEVICES, Device
from bdforge.operators.gemm import GemmPlan, SpecError, plan_gemm, spec_from
from bdforge.operators.gemm.kernels import KERNELS, Kernel
from tools.docs.markdown import table

TEXT = Path(__file__).with_name("family_text.md")
TYPES_OF_C = ("int8", "int16", "int32", "bf16", "f32", "bfp16")
LEAST_TILES = 4  # micro-tiles in the rows of a plain design

Change = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Column:
    """A choice of the spec: what it changes, and whether a plan has it."""

    title: str
    change: Change
    has: Callable[[GemmPlan], bool]


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


def device_of(kernel: Kernel) -> Device:
    """A whole array of the kernel's generation."""
    return next(device for device in DEVICES.values() if device.generation == kernel.generation)


def content_of(kernel: Kernel, c: str) -> dict[str, Any]:
    """A plain design of a kernel with results of type `c`: whole array, packed B, one tile of C, no epilogue."""
    types = {"a": kernel.a.name, "b": kernel.b.name, "c": c, "accumulator": kernel.accumulator.name}
    always_scaled = (kernel.accumulator.name, c) == ("int32", "bf16")
    return {
        "kind": "gemm",
        "types": types,
        "layouts": {"a": "row", "b": "packed", "c": "row"},
        "array": {"rows": 2, "columns": device_of(kernel).columns},
        "tile": {"m": LEAST_TILES * kernel.r, "k": 64, "n": 64},
        "buffers": {},
        "epilogue": {"scale": True} if always_scaled else {},
    }


def planned(kernel: Kernel, content: dict[str, Any]) -> GemmPlan:
    """The plan; SpecError where it is refused."""
    return plan_gemm(spec_from(content, "design"), device_of(kernel))


def works(kernel: Kernel, content: dict[str, Any]) -> bool:
    """Whether a design can be planned."""
    try:
        planned(kernel, content)
    except SpecError:
        return False
    return True


def results(kernel: Kernel) -> list[str]:
    """Types of C that can be made of a kernel's accumulators, by one core, which is planned soonest."""
    one_core = {"array": {"rows": 1, "columns": 1}}
    return [c for c in TYPES_OF_C if works(kernel, content_of(kernel, c) | one_core)]


def rows_of_all() -> list[tuple[Kernel, str]]:
    """Every kernel with each type that its accumulators can become."""
    return [(kernel, c) for kernel in KERNELS.values() for c in results(kernel)]


def refused(kernel: Kernel, c: str) -> list[str]:
    """Titles of the choices that a plain design cannot change to."""
    found = []
    for column in COLUMNS:
        content = content_of(kernel, c)
        column.change(content)
        if not works(kernel, content):
            found.append(column.title)
    return found


def lines() -> Iterator[tuple[str, ...]]:
    """A line for each pair of operands and what their results refuse alike."""
    alike: dict[tuple[str, ...], dict[str, None]] = {}
    for kernel, c in rows_of_all():
        array = device_of(kernel).mlir
        summed = "" if kernel.accumulator.name == c else f" of {kernel.accumulator.name}"
        key = (f"{kernel.a.name} × {kernel.b.name}", f"{c}{summed}", ", ".join(refused(kernel, c)) or "–")
        alike.setdefault(key, {})[array] = None
    merged: dict[tuple[str, str, str], list[str]] = {}
    for (operands, result, never), arrays in alike.items():
        merged.setdefault((operands, ", ".join(arrays), never), []).append(result)
    yield from ((operands, arrays, ", ".join(made), never) for (operands, arrays, never), made in merged.items())


def page() -> str:
    """The whole page."""
    head, _, tail = TEXT.read_text(encoding="utf-8").partition("<!-- table -->\n")
    return head + table(("A × B", "arrays", "C", "refused"), lines()) + tail
