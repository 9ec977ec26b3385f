"""Whether a spec can be built, with every reason why not."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bdforge.design.model import Design
from bdforge.devices import DEVICES, Device
from bdforge.devices.limits import HOST_BUFFERS
from bdforge.devices.types import TYPES
from bdforge.operators.gemm.finish import epilogue_bytes, finish_problems
from bdforge.operators.gemm.kernels import KERNELS, Kernel, accumulators, kernel_for
from bdforge.operators.gemm.spec import GemmSpec
from bdforge.operators.specs import LARGEST_SIZE, array_reasons, design_reasons, stack_reasons

_SUM_BITS = 32  # of the accumulator registers of an integer product
_TAKEN = (*"ABCabcMKN", "gate", "up")  # names of other operands and of sizes


def fits(spec: GemmSpec, device: Device) -> bool:
    """Whether the spec names the array, or it has a kernel there and its columns are enough."""
    if spec.array is not None:
        return spec.array == device.mlir
    known = any(kernel_for(other.generation, spec) for other in DEVICES.values())
    return not known or (kernel_for(device.generation, spec) is not None and spec.columns <= device.columns)


def spec_problems(spec: GemmSpec, device: Device) -> list[str]:
    """Reasons that follow from the spec alone: types, multiples, array shape."""
    return [*_array_shape(spec, device), *_tile_sizes(spec, device), *_outputs(spec)]


def tile_units(kernel: Kernel, rho: Any, a_shims: Any) -> tuple[Any, Any, Any]:
    """What m, k and n are multiples of: whole vectors in each part of A's; numbers or arrays."""
    r, k, n = kernel.multiples
    return r * np.lcm(rho, a_shims), k, n


def shims_found(a_shims: Any, rows: int, columns: int) -> Any:
    """Whether there are as many shims as bring A; numbers or arrays."""
    return (a_shims == 1) | (a_shims * rows <= columns)


def _array_shape(spec: GemmSpec, device: Device) -> Iterator[str]:
    yield from array_reasons(spec.array, spec.rows, spec.columns, device)
    shims = spec.buffers.a_shims
    if not shims_found(shims, spec.rows, spec.columns):
        yield f"buffers.a_shims = {shims} needs {shims * spec.rows} columns for {spec.rows} rows; use 1"
    if spec.rows > spec.columns and spec.layouts.a == "column":
        yield (
            f"layouts.a = column needs a column of the array for each of {spec.rows} rows, there are {spec.columns}: "
            "the tiles of several rows would interleave in one shim's lines; use more columns or row-major A"
        )


def _tile_sizes(spec: GemmSpec, device: Device) -> Iterator[str]:
    kernel = kernel_for(device.generation, spec)
    if kernel is None:
        yield _no_kernel(spec, device)
        return
    units = tile_units(kernel, spec.buffers.rho, spec.buffers.a_shims)
    for axis, multiple, whole in zip("mkn", kernel.multiples, units, strict=True):
        yield from _multiple(f"tile.{axis}", getattr(spec.tile, axis), multiple, int(whole), kernel.multiply)
    if spec.buffers.k_mt % spec.tile.k:
        yield f"buffers.k_mt = {spec.buffers.k_mt} is not a multiple of tile.k = {spec.tile.k}; use one"
    yield from stack_reasons("buffers.stack_bytes", spec.buffers.stack_bytes, device)
    yield from _layouts(spec, kernel)
    yield from _used_rows(spec, kernel)
    yield from _step_sums(spec, kernel)
    yield from finish_problems(kernel, spec)


def _no_kernel(spec: GemmSpec, device: Device) -> str:
    generation = device.generation
    if found := accumulators(generation, spec.a, spec.b):
        return (
            f"no kernel for {spec.a} x {spec.b} with accumulators of {spec.accumulator} on {generation.name}; "
            f"types.accumulator may be {', '.join(found)}"
        )
    pairs = dict.fromkeys(f"{a} x {b}" for name, a, b, _ in KERNELS if name == generation.name)
    return f"no kernel for {spec.a} x {spec.b} on {generation.name} ({device.name}); there is {', '.join(pairs)}"


def _multiple(name: str, size: int, multiple: int, whole: int, kernel: str) -> Iterator[str]:
    if size % whole == 0:
        return
    lower, upper = size // whole * whole, -(-size // whole) * whole
    near = f"{lower} or {upper}" if lower else f"{upper}"
    each = f" ({multiple} in each of {whole // multiple} parts)" if whole > multiple else ""
    yield f"{name} = {size} is not a multiple of {whole}, which {kernel} needs{each}; use {near}"


def _step_sums(spec: GemmSpec, kernel: Kernel) -> Iterator[str]:
    """Narrow integers are widened by every step of K; kernels/include/accumulator.h has the sum and its limit."""
    accumulator, shift, k = kernel.accumulator, spec.epilogue.shift, spec.tile.k
    if not accumulator.integer or accumulator.bits == _SUM_BITS:
        return
    limit = (1 << (_SUM_BITS - 1)) - 1
    products = (1 << (kernel.a.bits - 1)) * (1 << (kernel.b.bits - 1)) * k
    if (largest := (1 << (accumulator.bits - 1 + shift)) + products) > limit:
        yield (
            f"epilogue.shift = {shift} with tile.k = {k}: a step's sums, C << shift plus A B, can reach {largest}, "
            f"above {limit}; use a smaller shift, a smaller tile.k or types.accumulator = int32"
        )


def _used_rows(spec: GemmSpec, kernel: Kernel) -> Iterator[str]:
    used = spec.tile.m_used
    if not used or used == spec.tile.m:
        return
    if used > spec.tile.m or spec.tile.m != kernel.r:
        yield f"tile.m_used = {used} wants tile.m = {kernel.r}, the rows of one micro-tile, not {spec.tile.m}"
    if kernel.a.blocked or TYPES[spec.c].blocked or "column" in (spec.layouts.a, spec.layouts.c):
        yield f"tile.m_used = {used} pads rows, so A and C must be row-major and of plain elements; use m_used = 0"


def _layouts(spec: GemmSpec, kernel: Kernel) -> Iterator[str]:
    for name, type_ in (("a", kernel.a), ("b", kernel.b), ("c", TYPES[spec.c])):
        order = getattr(spec.layouts, name)
        if name == "b" and order != "packed" and type_.packed_only:
            yield f"layouts.b = {order}: DMAs move 32 bit at a time and cannot reorder {type_.name}; use packed"
        elif name != "b" and order != "row" and type_.blocked:
            yield f"layouts.{name} = {order}: blocks of {type_.name} lie along rows; use row"
    if spec.epilogue.fed:
        yield from _fed(spec)
    if spec.buffers.residency == "b" and spec.layouts.b != "packed":
        yield f"layouts.b = {spec.layouts.b}: only packed B stays in memtiles; use packed, or buffers.residency = none"
    yield from _pieces(spec, kernel)
    yield from _parts(spec)
    if spec.layouts.c == "column" and spec.epilogue.fed:
        yield "layouts.c = column: scales and biases come in the order of row-major C; use row"


def _pieces(spec: GemmSpec, kernel: Kernel) -> Iterator[str]:
    pieces = spec.buffers.c_pieces
    if pieces == 1:
        return
    if spec.tile.m % (pieces * kernel.r) or spec.layouts.c == "column" or spec.tile.rows < spec.tile.m:
        yield (
            f"buffers.c_pieces = {pieces}: a tile of C leaves in blocks of whole micro-tiles' rows, {kernel.r} each of "
            f"{spec.tile.m}, row-major and all of them used; use another number"
        )


def _parts(spec: GemmSpec) -> Iterator[str]:
    buffers = spec.buffers
    if not buffers.c_in_parts:
        return
    if buffers.rho == 1 or TYPES[spec.c].blocked or TYPES[spec.accumulator].blocked:
        yield "buffers.c_in_parts takes parts, rho above 1, of plain elements; leave it out"
    if buffers.k_mt % (2 * spec.tile.k):
        yield (
            f"buffers.c_in_parts needs a first and a last step of K, so buffers.k_mt = {buffers.k_mt} must be a "
            f"multiple of 2 * tile.k = {2 * spec.tile.k}; use one"
        )


def _outputs(spec: GemmSpec) -> Iterator[str]:
    """Why C's columns cannot go to several arrays."""
    names = [one.name for one in spec.outputs]
    if not names:
        return
    most = HOST_BUFFERS - 2 - 2 * spec.epilogue.fed
    if not 2 <= len(names) <= most:
        fed = ", and scales and biases in two more" if spec.epilogue.fed else ""
        several = f"use 2 to {most}, or leave them out" if most > 1 else "leave them out"
        yield f"outputs: {len(names)} of {HOST_BUFFERS} arguments, A and B are in others{fed}: {several}"
    leading = {f"ld{name}" for name in ("a", "b", "c", *names)}
    taken = [name for i, name in enumerate(names) if name in names[:i] or name in leading.union(_TAKEN)]
    if taken:
        yield f"outputs: {taken[0]} is the name of another array, size or leading dimension; use another one"
    if (total := sum(one.columns for one in spec.outputs)) > LARGEST_SIZE:
        yield f"outputs: they have {total} columns together; N is at most {LARGEST_SIZE}"
    for one in spec.outputs:
        if one.columns % spec.c_columns:
            yield (
                f"outputs: {one.name} has {one.columns} columns, no multiple of the {spec.c_columns} of a core's tile "
                "of C, which goes to one array; use one"
            )


def _fed(spec: GemmSpec) -> Iterator[str]:
    rows, rest = epilogue_bytes(spec)
    columns = 2 * 4 * spec.tile.n
    if spec.layouts.b != "packed":
        yield f"layouts.b = {spec.layouts.b}: scales and biases come behind packed B; use packed"
    if rest < columns:
        yield (
            f"epilogue: scales of {spec.rows} x {spec.tile.m} rows and scales and biases of {spec.tile.n} columns take "
            f"{rows + columns} bytes, a tile of B has {rows + rest}; use a larger tile.k"
        )


_SETTINGS = {
    "memory": "a smaller tile or k_mt, less buffering, buffers.stack_bytes",
    "lock": "a smaller buffers.k_mt",
    "bds": "a smaller buffers.k_mt",
}
"""What of a spec helps against one kind of reason."""


def design_problems(design: Design) -> list[str]:
    """Reasons that follow from the mapped design."""
    return design_reasons(design, _SETTINGS)
