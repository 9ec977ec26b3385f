"""What a core does with one request, one lock, one loop: the values at which it goes on, waits or is stopped."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import CoreError, RegisterAccessError
from bdforge.array.emulator.cores.interpreted.control_flow import _returned
from bdforge.array.emulator.cores.load_machine_code import ProgramMemories
from bdforge.array.emulator.strictness import Strictness
from support.array_text import buffer, core, lock, module, tile
from support.core_bodies import run_core
from support.differences import same


def test_code_is_written_and_read_as_words_of_little_endian():
    tile = SimpleNamespace(code=None, name="core (0, 2)")
    core = SimpleNamespace(has_program=False)
    array: Any = SimpleNamespace(tile=lambda *_: tile, core=lambda *_: core, strictness=Strictness())
    programs = ProgramMemories(array)
    assert programs.code_word((0, 2), 8) == 0
    programs.store_code((0, 2), 8, bytes((1, 2, 3, 4)), "")
    assert cast("Any", tile.code)[6:14] == bytes([0, 0, 1, 2, 3, 4, 0, 0])
    assert [programs.code_word((0, 2), offset) for offset in (4, 8, 12)] == [0, 0x04030201, 0]
    core.has_program = True
    with pytest.raises(RegisterAccessError, match=r"code is written .* at 0x10, whose core runs: reset it first \(x\)"):
        programs.store_code((0, 2), 16, bytes(4), " (x)")


CONTROL = [  # whether there is code, whether the core has a program, the value; what becomes of the program, a warning
    (False, True, 1, "same", ""), (False, True, 0, "same", "runs whatever"), (False, True, 2, "same", "runs whatever"),
    (False, True, 3, "same", "runs whatever"), (False, False, 0, "none", ""), (False, False, 1, "none", ""),
    (True, False, 0, "none", ""), (True, False, 1, "new", ""), (True, False, 3, "none", ""),
    (True, True, 1, "same", ""), (True, True, 0, "same", "stops only when it is reset"), (True, True, 2, "none", ""),
    (True, True, 3, "none", ""),
]  # fmt: skip


@pytest.mark.parametrize(("code", "program", "value", "after", "warning"), CONTROL)
def test_a_core_s_control_register_resets_before_it_starts(code, program, value, after, warning, monkeypatch):
    nobody = lambda *_: None  # noqa: E731  who watches
    core = SimpleNamespace(
        program="same" if program else None, steps=None, has_program=program, place=(0, 2), notify=nobody
    )
    tile = SimpleNamespace(code=bytearray(4) if code else None, name="core (0, 2)", locks=[])
    rules = Strictness()
    array: Any = SimpleNamespace(tile=lambda *_: tile, core=lambda *_: core, strictness=rules, tiles={})
    array.scheduler = SimpleNamespace(notify=nobody)
    monkeypatch.setattr(ProgramMemories, "start", lambda self, place: setattr(core, "program", "new"))
    ProgramMemories(array).control_core((0, 2), value, " (here)")
    assert (core.program or "none") == after
    assert [warning in told for told in rules.warnings] == ([True] if warning else [])


INNER = """    memref.global "private" constant @fixed : memref<4xi32> = dense<1>
    func.func @inner(%x: i32) {
      %at = arith.constant 0 : index
      %f = memref.get_global @fixed : memref<4xi32>
      memref.store %x, %f[%at] : memref<4xi32>
      return
    }"""


def test_a_fault_in_a_function_is_told_with_the_place_inside():
    body = "%one = arith.constant 1 : i32\nfunc.call @inner(%one) : (i32) -> ()"
    with pytest.raises(CoreError, match=r"read-only \(<string>:8:7\)"):
        run_core(body, {}, INNER)


def gated(init: int, *lines: str, values: list[int] | None = None) -> tuple[str, ...]:
    """Warnings of a core beside a lock with such a value and a word of data."""
    parts = tile(0, 2), buffer("n", "02", 1, values), lock("gate", "02", 0, init)
    return bdforge.emulate(module("npu2_1col", *parts, core("02", *lines))).warnings


@pytest.mark.parametrize("action", ["AcquireGreaterEqual", "Acquire"])
def test_an_acquire_of_a_number_that_is_0_waits_for_exactly_0(action: str):
    lines = "%word = memref.load %n[%c0] : memref<1xi32>", f"aie.use_lock(%gate, {action}, %word)"
    assert gated(0, *lines, values=[0]) == ()
    (warning,) = gated(1, *lines, values=[0])
    assert "waits for lock gate (0 of core (0, 2)) = 0, which is 1" in warning


@pytest.mark.parametrize(("enabled", "left"), [("", 1), (" {acq_en = true}", 1), (" {acq_en = false}", 3)])
def test_an_acquire_that_is_switched_off_takes_nothing(enabled: str, left: int):
    """The core takes 2 of a lock that holds 3, unless that is off, and then all that is left."""
    assert (
        gated(3, f"aie.use_lock(%gate, AcquireGreaterEqual, 2){enabled}", f"aie.use_lock(%gate, Acquire, {left})") == ()
    )


ROW, VIEWED = "memref<2x3xi32, strided<[8, 1]>>", "memref<1x3xi32, strided<[8, 1], offset: ?>>"
PART = f"%u = memref.subview %g[0, 0] [2, 3] [1, 1] : memref<6x8xi32> to {ROW}\n"
SHIFTED = f"%u = memref.subview %g[0, %c1] [1, 3] [1, 1] : memref<6x8xi32> to {VIEWED}\n"
AGAIN = """    func.func @f(%m: {0}) {{
      %v = memref.reinterpret_cast %m to offset: [0], sizes: [2], strides: [1] : {0} to memref<2xi32, strided<[1]>>
      return
    }}"""
FOUR, BITS_OF_FOUR = (
    "%v = arith.constant dense<1> : vector<4xi32>\n",
    "%v = arith.constant dense<true> : vector<4xi1>\n",
)
GLOBAL = '    memref.global "private" @t : memref<{}xi32> = uninitialized'
OF_DATA = "%w = memref.load %g[%c0, %c{}] : memref<6x8xi32>\n%n = arith.index_cast %w : i32 to index\n"
MEANING = {  # what a core runs, what stands beside it, and the fault: none for the last that is taken
    "an operation of another kind": (
        '%one = arith.constant 1 : i32\n"memref.atomic_rmw"(%one, %g, %c0, %c0) <{kind = 0 : i64}> : '
        "(i32, memref<6x8xi32>, index, index) -> i32", "", "memref.atomic_rmw is not supported in a core program",
    ),
    "a division by zero": ("%z = arith.constant 0 : i32\n%r = arith.divsi %z, %z : i32", "", "division by zero"),
    "an affine division by zero": (
        "%m = affine.apply affine_map<(d0) -> (d0 floordiv 0)>(%c4)", "", "an affine division by 0; the divisor must be"
    ),
    "a failed assertion": (
        '%no = arith.constant false\ncf.assert %no, "full {house}"', "", "the program's assertion failed: full {house}"
    ),
    "a step of data": (f"{OF_DATA.format(1)}scf.for %i = %c0 to %c8 step %n {{\n}}", "", ""),
    "a step of 0": (
        f"{OF_DATA.format(0)}scf.for %i = %c0 to %c8 step %n {{\n}}", "", "the step of a loop is 0; it must be positive"
    ),
    "a step of -1": (
        "%n = arith.subi %c0, %c1 : index\nscf.for %i = %c0 to %c8 step %n {\n}", "", "the step of a loop is -1"
    ),
    "a part that leaves its memref": (
        "%v = memref.subview %g[%c5, 0] [%c2, 8] [1, 1] : memref<6x8xi32> to "
        "memref<?x8xi32, strided<[8, 1], offset: ?>>", "", "offset 5, size 2, stride 1 in dimension 0 leave a memref",
    ),
    "a memref seen beyond its memory": (
        "%v = memref.reinterpret_cast %g to offset: [0], sizes: [7, 8], strides: [8, 1] : memref<6x8xi32> to "
        "memref<7x8xi32, strided<[8, 1]>>", "", "reach elements 0 to 55 of a memref of 48",
    ),
    "a vector that leaves its memref": (
        "%v = vector.load %g[%c5, %c5] : memref<6x8xi32>, vector<4xi32>", "",
        "a vector of shape [4] at index [5, 5] leaves a memref",
    ),
    "memory of a heap": ("%a = memref.alloc() : memref<4xi32>", "", "memref.alloc: a core has no heap; use aie.buffer"),
    "memory given back": ("memref.dealloc %g : memref<6x8xi32>", "", "memref.dealloc: a core has no heap"),
    "a global that is not there": (
        "%t = memref.get_global @nothing : memref<2xi32>", "", "no memref.global is called @nothing"
    ),
    "a rounding mode": (
        "%f = arith.constant 1.5 : f32\n%h = arith.truncf %f {roundingmode = 1 : i32} : f32 to f16", "",
        "rounding modes other than to nearest, ties to even, are not supported",
    ),
    "a vector of more dimensions": (
        "%v = vector.load %g[%c0, %c0] : memref<6x8xi32>, vector<1x1x4xi32>", "",
        "vector<1x1x4xi32> has more dimensions than memref<6x8xi32>",
    ),
    "a vector of as many dimensions": ("%v = vector.load %g[%c0, %c0] : memref<6x8xi32>, vector<1x4xi32>", "", ""),
    "a transfer with a mask": (
        f"{BITS_OF_FOUR}%p = ub.poison : i32\n%t = vector.transfer_read %g[%c0, %c0], %p, %v {{in_bounds = [true]}} "
        ": memref<6x8xi32>, vector<4xi32>", "", "masks are not supported",
    ),
    "the most of bits": (
        f"{BITS_OF_FOUR}%r = vector.reduction <maxsi>, %v : vector<4xi1> into i1", "", "extremes of i1"
    ),
    "the least of bits": (
        f"{BITS_OF_FOUR}%r = vector.reduction <minsi>, %v : vector<4xi1> into i1", "", "extremes of i1"
    ),
    "the last lane": (f"{FOUR}%r = vector.extract %v[3] : i32 from vector<4xi32>", "", ""),
    "a lane behind the last": (
        f"{FOUR}%r = vector.extract %v[4] : i32 from vector<4xi32>", "", "position [4] is outside vector<4xi32>"
    ),
    "a lane put behind the last": (
        f"{FOUR}%x = arith.constant 1 : i32\n%r = vector.insert %x, %v[4] : i32 into vector<4xi32>", "",
        "position [4] is outside vector<4xi32>",
    ),
    "a dimension of 3 that a part drops": (
        "%v = memref.subview %g[0, 0] [2, 3] [1, 1] : memref<6x8xi32> to memref<3xi32, strided<[1]>>", "",
        "cannot come from sizes 2, 3",
    ),
    "a part with gaps seen otherwise": (
        f"{PART}func.call @f(%u) : ({ROW}) -> ()", AGAIN.format(ROW), "of a memref that is not contiguous (<string>:"
    ),
    "a part that starts anywhere": (
        f"{SHIFTED}func.call @f(%u) : ({VIEWED}) -> ()", AGAIN.format(VIEWED), "starts in its memory is not known"
    ),
    "rows with gaps as one": (
        f"{PART}%v = memref.collapse_shape %u [[0, 1]] : {ROW} into memref<6xi32>", "",
        "shape [2, 3] with byte strides [32, 4] cannot be seen as [6] (<string>:",
    ),
    "a global of another type": (
        "%t = memref.get_global @t : memref<3xi32>", GLOBAL.format(2), "@t is of type memref<2xi32>, not memref<3xi32>"
    ),
    "a global as large as a memory": ("%t = memref.get_global @t : memref<16384xi32>", GLOBAL.format(16384), ""),
    "a global that is larger": (
        "%t = memref.get_global @t : memref<16385xi32>", GLOBAL.format(16385), "than a core's memory of 65536 bytes"
    ),
    "a vector as large as a memory": ("%v = arith.constant dense<1> : vector<65536xi8>", "", ""),
    "a vector that is larger": (
        "%v = arith.constant dense<1> : vector<65537xi8>", "", "is empty or larger than a core's memory of 65536 bytes"
    ),
    "an empty vector": (
        "%v = vector.load %g[%c0, %c0] : memref<6x8xi32>, vector<0xi32>", "", "vector<0xi32> is empty or larger than"
    ),
    "lanes of 5 bits": ("%m = arith.constant dense<1> : vector<4xi5>", "", "vectors of i5 are not supported"),
    "a constant of a float that cores lack": ("%f = arith.constant 1.5 : tf32", "", "constants of type 1.5"),
    "an affine step of 0": ("affine.for %i = 0 to 4 step 0 {\n}", "", "the step is 0; it must be positive"),
    "poison of memory": ("%p = ub.poison : memref<4xi32>", "", "values of type memref<4xi32> are not supported"),
    "a conversion to other bits": (
        "%x = arith.constant 1 : i32\n%s = builtin.unrealized_conversion_cast %x : i32 to i64", "",
        "from i32 to i64 is not supported in a core program",
    ),
    "work outside of the core": (
        "memref.store %o, %g[%c0, %c0] : memref<6x8xi32>",
        "    %p = arith.constant 1 : i32\n    %o = arith.addi %p, %p : i32",
        "arith.addi outside of the core is not supported; move it inside",
    ),
    "a kernel of two results": (
        "%a, %b = func.call @k() : () -> (i32, i32)", "    func.func private @k() -> (i32, i32)",
        "a kernel returns nothing or one number",
    ),
    "a kernel of one result": ("%a = func.call @k() : () -> i32", "    func.func private @k() -> i32", ""),
    "sizes of the stack that only running tells": (
        "%a = memref.alloca(%c4) : memref<?xi8>", "", "sizes that only running tells are not supported",
    ),
    "doubles multiplied and added at once": (
        "%x = arith.constant 1.5 : f64\n%y = math.fma %x, %x, %x : f64", "", "of f64 it is not supported",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "outside", "message"), MEANING.values(), ids=MEANING)
def test_what_a_core_cannot_do_is_refused_with_its_place(body: str, outside: str, message: str):
    grid = np.arange(48, dtype=np.int32).reshape(6, 8)
    if not message:
        same(run_core(body, {"g": grid}, outside, kernels={"k": lambda: 1})["g"], grid)
        return
    with pytest.raises(CoreError) as fault:
        run_core(body, {"g": grid}, outside, kernels={"k": lambda: 1})
    assert message in str(fault.value)
    assert "<string>:" in str(fault.value)


KINDS = {  # what a kernel returns, by whether the design says that it is a float; None where it is refused
    "an int": (3, 3.0, 3), "numpy's int": (np.int8(-3), -3.0, -3), "a bool": (True, 1.0, 1),
    "a float": (2.5, 2.5, None), "numpy's float": (np.float32(2.5), 2.5, None), "a text": ("3", None, None),
    "nothing": (None, None, None), "a complex number": (1j, None, None),
}  # fmt: skip


@pytest.mark.parametrize(("value", "as_float", "as_integer"), KINDS.values(), ids=KINDS)
def test_a_number_that_a_kernel_returns_is_of_its_declared_kind(value: Any, as_float: Any, as_integer: Any):
    for is_float, wanted, what in ((True, as_float, "a number"), (False, as_integer, "an integer")):
        if wanted is not None:
            found = _returned(value, is_float, "k", str)
            assert (found, type(found)) == (wanted, float if is_float else int)
            continue
        with pytest.raises(CoreError, match=rf"k returned .*, not {what} \(here\)"):
            _returned(value, is_float, "k", lambda: " (here)")
