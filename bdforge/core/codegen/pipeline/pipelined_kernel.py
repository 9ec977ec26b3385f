"""Pipelined kernels as functions of assembly, with the cycles that they take."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from bdforge.core.codegen.abi import AssemblyKernel
from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.pipeline.block_dataflow import (
    CONF,
    GIVEN,
    HALVES,
    LANES_CONF,
    ONES,
    ONES_PAIR,
    SAVED,
    TURN_DOWN,
    TURN_UP,
    field_registers,
    steppers,
    walks,
)
from bdforge.core.codegen.pipeline.pipelined_function import FunctionPart, function, set_control, set_register
from bdforge.core.codegen.pipeline.product import (
    BLOCK_CONF,
    FLOAT_CONF,
    PART,
    SQUARE_HALVES,
    BlockRegion,
    MatrixProduct,
)
from bdforge.core.codegen.pipeline.steady_block import Scheduled
from bdforge.core.codegen.pipeline.tile_cover import best, expected_by_shape

_SIGNED = 0x308  # products of 8 x 8 x 8 (AIE2: 4 x 8 x 8), both operands signed
_FLOATS, _NIBBLES = 0x1C, 0x300  # products of 4 x 8 x 4 bfloat16, of 4 x 16 int8 and 16 x 8 int4, both signed
_ONE = "r5"
_MOVED = "m7"  # for what pointers start behind; a step that it holds is set later
_MASKS, _ZEROS = 0xC0300C03, 0x55555555


@lru_cache(maxsize=64)
def pipelined(name: str, product: MatrixProduct) -> AssemblyKernel:
    """A kernel C += A B of some name; CodegenError where no schedule is found."""
    blocks, macs = best(product), product.m * product.k * product.n
    parts = [
        FunctionPart(_setup(block, number, len(blocks)), block.placed(), block.period, block.region.blocks)
        for number, block in enumerate(blocks)
    ]
    size = f"{product.m} x {product.k} x {product.n}"
    made = function(
        name, product.generation, parts,
        f"{name}: C += A B, {size} a call: {{cycles}} cycles (exact), {{rate}} MACs a cycle.",
        f"p0 = A, p1 = B, p2 = C{', r0 = part' if product.parts > 1 else ''}; layouts as in {name}.cc.",
        *_others(product, blocks[0].region), *(line for block in blocks for line in _told(block)),
        hardware=product.hardware_loops,
    )  # fmt: skip
    assert made.cycles
    return replace(made, text=made.text.replace("{rate}", f"{macs / made.cycles:.0f}"))


def _others(product: MatrixProduct, chosen: BlockRegion) -> Iterator[str]:
    """Why blocks have their shape, and how ternary weights are unpacked."""
    if product.weights == "i2":
        top = ", of the top field in two's complement a mask alone" if product.top_signed else ""
        yield f"Weights are unpacked where they are in their bytes, by a mask and a bias{top}."
    found = expected_by_shape(product.free).items()
    others = [f"{r} x {c} {cycles:.0f}" for (r, c), cycles in found if (r, c) != (chosen.rows, chosen.columns)]
    yield f"Other shapes of blocks would take, by slots alone: {', '.join(others[::-1][:3]) or 'none'}."


def _told(block: Scheduled) -> Iterator[str]:
    """The schedule as a table: a step of k in its cycles, with how many steps before each product's it issues."""
    region, steps = block.region, block.region.product.steps
    yield ""
    yield (
        f"{region.blocks} blocks of {region.rows} x {region.columns} micro-tiles, one every {block.period} cycles: "
        f"{steps} steps of k of {block.interval} cycles."
    )
    yield "No bank is used twice in a cycle if A, B and C have banks of their own" + (
        f", but for {block.conflicts} accesses to C in a block." if block.conflicts else "."
    )
    yield "What issues in each cycle of a step of k; [-1]: a step before the product of lane 0, [+1]: a step behind it."
    middle = [(op, at) for op, at in zip(block.ops, block.issues, strict=True) if op.step == 0]
    zero = next(at for op, at in middle if op.key == "mac 0")
    for cycle in range(block.interval):
        found = sorted((at - zero, op.key) for op, at in middle if (at - zero) % block.interval == cycle)
        yield f"  {cycle}  " + ", ".join(f"{key} [{away // block.interval:+d}]" for away, key in found)


def _setup(block: Scheduled, number: int, regions: int) -> list[AssemblyOp]:
    region, product = block.region, block.region.product
    again = (AssemblyOp(f"mov {GIVEN[name]}, {saved}") for name, saved in SAVED.items())
    ops = [*(again if number else _first(product, regions > 1)), *_pointers(region)]
    conf = BLOCK_CONF if product.blocks else _FLOATS if product.floats else _NIBBLES if product.nibbles else _SIGNED
    ops.append(set_register(CONF, conf, "kind of products"))
    if product.weights == "i2":
        ops += _fields(region)
    if product.blocks:
        ops += _block_floats()
    turned = [side for side, turns in (("a", product.turns_a), ("b", product.turns_b)) if turns and not product.blocks]
    ops += [set_register(*mode) for mode in dict.fromkeys(map(product.shuffle, turned))]
    if product.generation == "aie2" and not product.joint:
        # Products do not look at the upper halves of what A is loaded into, but they must hold something.
        loaded = {register for (name, _), register in block.registers.items() if name.startswith(("a", "raw a"))}
        ops += [AssemblyOp(f"vbcst.32 x{register}, {CONF}") for register in sorted(loaded)]
    return ops + [set_register(register, value) for register, value in steppers(region)[0].constants.items()]


def _block_floats() -> Iterator[AssemblyOp]:
    """What makes block floats of bfloat16."""
    yield from (set_register(LANES_CONF, FLOAT_CONF), set_register(_ONE, 0x3F80))
    yield from (AssemblyOp(f"vbcst.16 x{2 * ONES_PAIR + i}, {_ONE}", "ones") for i in (0, 1))
    yield from map(set_register, HALVES, SQUARE_HALVES)


def _first(product: MatrixProduct, again: bool) -> Iterator[AssemblyOp]:
    """Where a part of C begins, how narrow sums are converted, and arguments that later regions need too."""
    if product.parts > 1:
        yield set_register(SAVED["c in"], product.m * product.n * product.c_bytes)
        yield AssemblyOp(f"mul {PART}, {PART}, {SAVED['c in']}", "rows of this part")
        yield AssemblyOp(f"mov {_MOVED}, {PART}")
        yield AssemblyOp(f"padda [p2], {_MOVED}")
    if again:
        yield from (AssemblyOp(f"mov {saved}, {GIVEN[name]}") for name, saved in SAVED.items())
    if product.floats:
        yield from set_control("crRnd", product.rounding)
    elif product.c_bytes < 4:
        yield set_register("r14", product.shift, "SHIFT")
        yield AssemblyOp("mov s0, r14")
        controls = {"crRnd": product.rounding, "crSat": 1}
        if product.generation == "aie2p":
            controls |= {"crSRSMode": 0, "crUPSMode": 0}
        for register, value in controls.items():
            yield from set_control(register, value)
    if product.weights == "i4" and not product.nibbles:
        yield from set_control("crUnpackSize", 0, "4 bits")


def _pointers(region: BlockRegion) -> Iterator[AssemblyOp]:
    """Copies of the arguments first, then all go to where the region begins."""
    found = walks(region)
    for name, walk in found.items():
        if name not in GIVEN:
            yield AssemblyOp(f"mov {walk.pointer}, {GIVEN['c in' if name[0] == 'c' else f'{name[0]}0']}", name)
    for name, walk in found.items():
        if walk.start:
            yield set_register(_MOVED, walk.start)
            yield AssemblyOp(f"padda [{walk.pointer}], {_MOVED}", name)


def _fields(region: BlockRegion) -> Iterator[AssemblyOp]:
    turn = 8 * region.columns
    yield set_register(TURN_DOWN, -turn)
    yield set_register(TURN_UP, 32 - turn)
    yield set_register(ONES, _ZEROS)
    for j in range(region.columns):
        codes = (_MASKS >> 8 * j | _MASKS << 32 - 8 * j) & 0xFFFFFFFF
        yield set_register(field_registers(j)[0], codes, "masks of the fields")
        yield set_register(field_registers(j)[1], codes & _ZEROS, "their zeros")
