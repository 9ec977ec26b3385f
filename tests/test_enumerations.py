"""Every member of an enumeration does what its name says, in one small case; a new one fails until it has a case."""

from collections.abc import Callable

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator.control_packet import OPERATIONS
from bdforge.array.emulator.scheduler import SCHEDULES
from bdforge.array.mlir.dialect_forms import Era
from bdforge.design.sequences import Builder, SequenceOptions, planned
from bdforge.design.sequences.interpret import values_of
from bdforge.design.sequences.operands import OperandError, fetch, place
from bdforge.design.sequences.sequence_options import WAITS
from bdforge.devices.txn_format.operations import DIRECTIONS, Sync
from bdforge.devices.types import ORDERS, TYPES, ElementType
from bdforge.operators import OPERATORS
from bdforge.operators.elementwise import FUNCTIONS
from bdforge.runtime.toolchain.aiecc import AieccForm, CoreCompiler
from support.array_text import Task, bd, buffer, flow, module, program, tile
from support.built_designs import ROOT
from support.differences import same
from support.scaled_rows import DEVICE, PROGRAM

DATA = np.arange(1, 9, dtype=np.int32)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_schedule_moves_every_word_in_order(schedule: str):
    text = module(
        "npu2_1col", tile(0, 2), tile(0, 3), buffer("a", "02", 8, DATA), buffer("x", "03", 8),
        flow("02 DMA : 0", "03 DMA : 1"), program("02", Task("MM2S", 0, [bd("a", 8)])),
        program("03", Task("S2MM", 1, [bd("x", 8)])),
    )  # fmt: skip
    for seed in range(4):
        same(bdforge.emulate(text, schedule=schedule, seed=seed).buffers["x"], DATA)


@pytest.mark.parametrize("wait", WAITS)
def test_a_form_of_waiting_waits_for_every_token_once(wait: str):
    operations = planned(PROGRAM, {"m": 6, "n": 8}, DEVICE, SequenceOptions(wait)).operations()
    columns = [op.column + i for op in operations if isinstance(op, Sync) for i in range(op.columns)]
    assert columns == [0, 1]


def packed(array: np.ndarray, type_: ElementType) -> np.ndarray:
    """Values of a type in a buffer of 64 bytes, line after line."""
    bits = type_.bits
    build = Builder([], 1)
    x = build.argument("X", "i8", 8, 64)
    axes = [(size, size, None, False) for size in array.shape]
    loops = [(axis, size, 1, int(np.prod(array.shape[axis + 1 :]))) for axis, size in enumerate(array.shape)]
    values = None if type_.values is None else list(type_.values)
    build.operand("A", x, "in", type_.name, bits, axes, loops, values=values, bias=int(type_.name == "int2"))
    made = np.zeros(64, np.uint8)
    place(build.program.operands[0], values_of(build.program, {}), array, made)
    again = fetch(build.program.operands[0], values_of(build.program, {}), made, array.dtype)
    same(again, array)
    return made


@pytest.mark.parametrize("name", [name for name, type_ in TYPES.items() if not type_.blocked])
def test_a_type_is_placed_in_its_bits_lowest_first(name: str):
    """Whole numbers that every type holds; int2 is stored plus 1."""
    type_ = TYPES[name]
    values = np.array([[1, 0, -1, 1], [0, 1, 1, -1]])
    found = packed(values.astype(type_.dtype), type_)
    if type_.bits >= 8:
        assert found[: 8 * type_.bits // 8].tobytes() == values.astype(type_.dtype).tobytes()
        return
    codes = [int(value) + (name == "int2") & (1 << type_.bits) - 1 for value in values.reshape(-1)]
    whole = sum(code << type_.bits * i for i, code in enumerate(codes))
    assert int.from_bytes(found.tobytes(), "little") == whole


@pytest.mark.parametrize("name", [name for name, type_ in TYPES.items() if type_.values and type_.bits < 8])
def test_a_packed_integer_takes_its_ends_and_nothing_beyond(name: str):
    low, high = TYPES[name].values or (0, 0)
    packed(np.array([[low, high]], np.int8), TYPES[name])
    for value in (low - 1, high + 1):
        with pytest.raises(OperandError, match=rf"the value at \[0, 1\] is {value}; {name} holds {low} to {high}"):
            packed(np.array([[low, value]], np.int8), TYPES[name])


@pytest.mark.parametrize("backend", CoreCompiler)
@pytest.mark.parametrize("era", Era)
def test_a_compiler_of_cores_is_switched_off_where_it_is_the_vendors(backend: CoreCompiler, era: Era):
    words = AieccForm(era, True, backend, False, "a test").command("aiecc", "peano", "d.mlir", "d.xclbin", None)
    assert ("--no-xchesscc" in words) == (backend == "vendor")


OF_OPERATORS = {path.name for path in (ROOT / "tests" / "operators").iterdir() if path.is_dir()}
CASES: dict[str, tuple[Callable[[], set[str]], set[str]]] = {
    "operators": (lambda: set(OPERATORS), OF_OPERATORS),
    "element-wise functions": (
        lambda: set(FUNCTIONS), {"add", "mul", "relu2_gate", "silu", "gelu", "silu_gate", "gelu_gate"},
    ),
    "orders of operands": (lambda: set(ORDERS), {"row", "column", "packed"}),
    "operations of control packets": (
        lambda: set(OPERATIONS), {"write", "read", "write with increment", "block write"},
    ),
    "directions": (lambda: set(DIRECTIONS), {"S2MM", "MM2S"}),
    "schedules": (lambda: set(SCHEDULES), {"in-order", "random"}),
    "forms of waiting": (lambda: set(WAITS), {"column", "wide"}),
    "forms of the dialect": (lambda: {era.value for era in Era}, {"march", "1.4"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_new_member_needs_a_case(name: str):
    """Where it is tried: tests/operators, tests/kernels, tests/emulator/test_control_packets.py, the cases above."""
    registered, tried = CASES[name]
    assert registered() <= tried, f"{name}: {', '.join(sorted(registered() - tried))} in no behavioural test"
