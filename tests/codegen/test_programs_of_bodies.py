"""Core programs made of MLIR: equal to what the emulated array makes of the body, on both generations."""

import numpy as np
import pytest

from bdforge.array.core_bodies.core_program import LinkedProgram, core_program
from bdforge.array.emulator import emulate
from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.core.codegen.abi import AssemblyKernel, Callee
from bdforge.core.codegen.errors import CodegenError
from support.differences import same
from support.random_cores import KERNEL, bump, random_design

BUMP = {"bump": AssemblyKernel(Callee("bump"), KERNEL, "bump.s")}
BUFFERS = ("words", "more", "bytes", "limits")


def program(text: str, kernels=None):
    (core,) = (op for op in parse(text).walk() if isinstance(op, CoreOp))
    return core_program(core, BUMP if kernels is None else kernels)


def compare(text: str, folder) -> LinkedProgram:
    made = program(text)
    (folder / "core.elf").write_bytes(made.elf)
    body = emulate(text, kernels={"bump": bump})
    code = emulate(text, elfs={(0, 2): folder / "core.elf"})
    assert not code.warnings
    for name in BUFFERS:
        same(body.buffers[name], code.buffers[name], name)
    return made


TAKEN = {"npu2": (416, 768, 1088, 1072), "npu1": (400, 752, 1088, 1056)}
"""Bytes of the programs of random bodies; each bundle more than these is a cycle more."""


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("device", TAKEN)
@pytest.mark.parametrize("seed", range(4))
def test_random_bodies_do_the_same_as_machine_code(device, seed, tmp_path):
    made = compare(random_design(seed, device), tmp_path)
    assert made.code_bytes <= TAKEN[device][seed], "the code has become longer"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_random_bodies_do_the_same_as_machine_code(seed, tmp_path):
    compare(random_design(seed, ("npu2", "npu1")[seed % 2]), tmp_path)


HEAD = """module { aie.device(npu2) {
    %tile = aie.tile(0, 2)
    %words = aie.buffer(%tile) {sym_name = "words", address = 4096 : i32} : memref<4x8xi32>
    %other = aie.buffer(%tile) {sym_name = "other", address = 8192 : i32} : memref<4x8xi32>
    %floats = aie.buffer(%tile) {sym_name = "floats", address = 16384 : i32} : memref<8xf32>
    %bytes = aie.buffer(%tile) {sym_name = "bytes", address = 20480 : i32} : memref<256xi8>
    %lock = aie.lock(%tile, 5) {init = 3 : i32, sym_name = "lock"}
    func.func private @twice(i32) -> i32
    func.func private @bump(memref<4x8xi32>, i32)
    func.func private @many(i32, i32, i32, i32, i32, i32, i32, i32, i32)
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %i7 = arith.constant 7 : i32
    %core = aie.core(%tile) {
"""


def design(body: str, stack: int = 1024) -> str:
    return f"{HEAD}{body}\n      aie.end\n    }} {{stack_size = {stack} : i32}}\n  }} }}"


TWICE = AssemblyKernel(Callee("twice"), "twice: ret\n add r0, r0, r0\n" + "nop\n" * 4, "twice.s")


def ran(body: str, folder, name: str = "words"):
    text = design(body)
    (folder / "core.elf").write_bytes(program(text, BUMP | {"twice": TWICE}).elf)
    return emulate(text, elfs={(0, 2): folder / "core.elf"}, permissive=["blocked-cores"]).buffers[name]


def test_while_loops_calls_with_results_and_two_dimensions(tmp_path):
    body = """
      %r = scf.while (%n = %i7) : (i32) -> i32 {
        %limit = arith.constant 100 : i32
        %more = arith.cmpi slt, %n, %limit : i32
        scf.condition(%more) %n : i32
      } do {
      ^bb0(%m: i32):
        %d = func.call @twice(%m) : (i32) -> i32
        scf.yield %d : i32
      }
      memref.store %r, %words[%c3, %c1] : memref<4x8xi32>"""
    found = ran(body, tmp_path)
    assert found[3, 1] == 7 * 2**4
    assert np.count_nonzero(found) == 1


@pytest.mark.parametrize(("word", "expected"), [(-1, 15), (0, 22), (2, 9), (3, 13), (2**31 - 1, 11)])
def test_a_switch_takes_its_case(word, expected, tmp_path):
    """One with a result inside one without."""
    body = f"""
      %w = arith.constant {word} : i32
      memref.store %w, %words[%c0, %c0] : memref<4x8xi32>
      %word = memref.load %words[%c0, %c0] : memref<4x8xi32>
      %n = arith.index_cast %word : i32 to index
      memref.store %i7, %words[%c1, %c0] : memref<4x8xi32>
      %two = arith.constant 2 : i32
      %four = arith.constant 4 : i32
      scf.index_switch %n
      case 2 {{
        scf.yield
      }}
      default {{
        %r = scf.index_switch %n -> i32
        case -1 {{
          %six = arith.addi %four, %two : i32
          scf.yield %six : i32
        }}
        case 3 {{
          scf.yield %four : i32
        }}
        case 0 {{
          %more = arith.addi %i7, %two : i32
          %sum = arith.addi %more, %four : i32
          scf.yield %sum : i32
        }}
        default {{
          scf.yield %two : i32
        }}
        %all = arith.addi %i7, %r : i32
        memref.store %all, %words[%c1, %c0] : memref<4x8xi32>
        scf.yield
      }}
      %got = memref.load %words[%c1, %c0] : memref<4x8xi32>
      %last = arith.addi %got, %two : i32
      memref.store %last, %words[%c1, %c0] : memref<4x8xi32>"""
    assert ran(body, tmp_path)[1, 0] == expected


def test_a_memref_can_be_chosen(tmp_path):
    body = """
      %turn = memref.load %words[%c0, %c0] : memref<4x8xi32>
      %zero = arith.constant 0 : i32
      %none = arith.cmpi eq, %turn, %zero : i32
      %which = arith.select %none, %other, %words : memref<4x8xi32>
      memref.store %i7, %which[%c1, %c3] : memref<4x8xi32>"""
    assert ran(body, tmp_path, "other")[1, 3] == 7


def test_bytes_are_seen_as_words(tmp_path):
    """From a place that the text tells, in turns of one that a register holds, and of a view."""
    body = """
      %c16 = arith.constant 16 : index
      %c64 = arith.constant 64 : index
      %fixed = memref.view %bytes[%c64][] : memref<256xi8> to memref<2x4xi32>
      memref.store %i7, %fixed[%c1, %c1] : memref<2x4xi32>
      %half = memref.view %bytes[%c64][] : memref<256xi8> to memref<192xi8>
      scf.for %i = %c1 to %c3 step %c1 {
        %shift = arith.muli %i, %c16 : index
        %own = memref.view %bytes[%shift][] : memref<256xi8> to memref<16xi16>
        %of = memref.view %half[%shift][] : memref<192xi8> to memref<4xi32>
        %n = arith.index_cast %i : index to i32
        %short = arith.trunci %n : i32 to i16
        memref.store %short, %own[%i] : memref<16xi16>
        memref.store %n, %of[%i] : memref<4xi32>
      }
      %all = memref.view %half[%c16][] : memref<192xi8> to memref<4x8xi32>
      %least = memref.load %all[%c0, %c1] : memref<4x8xi32>
      func.call @bump(%all, %least) : (memref<4x8xi32>, i32) -> ()"""
    wanted = np.zeros(256, np.int8)
    words, shorts = wanted.view(np.int32), wanted.view(np.int16)
    words[16 + 4 + 1] = 7
    for i in (1, 2):
        shorts[8 * i + i], words[16 + 4 * i + i] = i, i
    bump(words[20:52], 1)
    same(ran(body, tmp_path, "bytes"), wanted)


def test_a_loop_leaves_what_it_begins_with_to_others_who_read_it(tmp_path):
    body = """
      memref.store %i7, %words[%c0, %c0] : memref<4x8xi32>
      %w = memref.load %words[%c0, %c0] : memref<4x8xi32>
      %n = arith.index_cast %w : i32 to index
      %one = arith.constant 1 : i32
      %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %n, %c = %w) -> (index, i32) {
        %s = scf.for %j = %c0 to %c3 step %c1 iter_args(%y = %c) -> (i32) {
          %z = arith.addi %y, %one : i32
          scf.yield %z : i32
        }
        %next = arith.addi %w, %one : i32
        memref.store %s, %words[%c1, %i] : memref<4x8xi32>
        %more = arith.addi %x, %c3 : index
        scf.yield %more, %next : index, i32
      }
      %last = arith.index_cast %r#0 : index to i32
      memref.store %last, %words[%c0, %c1] : memref<4x8xi32>
      memref.store %w, %words[%c0, %c3] : memref<4x8xi32>"""
    found = ran(body, tmp_path)
    assert found[0].tolist()[:4] == [7, 7 + 3 * 3, 0, 7]
    assert found[1].tolist()[:3] == [7 + 3, 8 + 3, 8 + 3]


@pytest.mark.parametrize("between", range(3), ids=lambda count: f"{count} between")
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_value_keeps_its_register_until_its_last_reader(late, between, tmp_path):
    """The next pass's value takes the register of this pass's only where nobody reads that any more."""
    store = "memref.store %x, %words[%c1, %i] : memref<4x8xi32>"
    filled = "\n".join(f"memref.store %i7, %words[%c3, %c{k}] : memref<4x8xi32>" for k in (0, 1)[:between])
    made = "%y = arith.addi %x, %i7 : i32"
    body = f"""
      %n = memref.load %words[%c0, %c0] : memref<4x8xi32>
      %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %n) -> (i32) {{
        {made if late else store}
        {filled}
        {store if late else made}
        scf.yield %y : i32
      }}
      memref.store %r, %words[%c0, %c1] : memref<4x8xi32>"""
    found = ran(body, tmp_path)
    assert (found[1, :3].tolist(), found[0, 1]) == ([0, 7, 14], 21)


@pytest.mark.parametrize(("passes", "endless"), [(2**31 - 1, False), (2**31, True)])
def test_a_loop_of_more_passes_than_a_register_counts_has_no_end(passes, endless):
    body = f"""
      %end = arith.constant {passes} : index
      scf.for %i = %c0 to %end step %c1 {{
        memref.store %i7, %words[%c0, %c0] : memref<4x8xi32>
      }}"""
    text = program(design(body)).source
    assert ("jnz" in text, "done" in text) == (not endless, not endless), f"{passes} passes"


def test_a_lock_waits_for_one_right_before_the_loop(tmp_path):
    body = """
      aie.use_lock(%lock, Release, 3)
      scf.for %i = %c0 to %c3 step %c1 {
        aie.use_lock(%lock, AcquireGreaterEqual, 1)
        aie.use_lock(%lock, AcquireGreaterEqual, 1)
      }
      memref.store %i7, %words[%c1, %c0] : memref<4x8xi32>"""
    assert ran(body, tmp_path)[1, 0] == 7  # the checker refuses two uses of the lock's port within four cycles


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("func.call @bump(%words, %i7) : (memref<4x8xi32>, i32) -> ()", r"there is no machine code of bump"),
        ("%f = arith.constant 1.0 : f32", r"no machine code is made of arith.constant"),
        ("%x = memref.load %floats[%c1] : memref<8xf32>", r"elements of f32 are neither loaded nor stored"),
        ("%v = memref.view %bytes[%c0][%c3] : memref<256xi8> to memref<?xi32>", r"a view whose size only the running"),
        ("scf.index_switch %c1\ncase 2147483648 { scf.yield }\ndefault { scf.yield }", r"case 2147483648 is no number"),
        ("%q = arith.divsi %i7, %i7 : i32", r"no machine code is made of arith.divsi here; give the core an elf_file"),
        (
            "%x = memref.load %words[%c0, %c0] : memref<4x8xi32>\n%q = arith.trunci %x : i32 to i24",
            r"values of i24 have",
        ),
        ("%b = arith.cmpi eq, %i7, %i7 : i32\n%m = arith.maxui %b, %b : i1", r"arith.maxui of i1 has no machine code"),
        ("%b = arith.cmpi eq, %i7, %i7 : i32\n%m = arith.shli %b, %b : i1", r"arith.shli of i1 has no machine code"),
        ("scf.for %i = %c0 to %c3 step %c0 {\n}", r"the step of a loop is 0; it must be positive"),
        ("%m = arith.constant -1 : index\nscf.for %i = %c0 to %c3 step %m {\n}", r"the step of a loop is -1;"),
        ("%w = arith.extsi %i7 : i32 to i64\n%z = arith.addi %w, %w : i64", r"values of i64 have no machine code here"),
    ],
)
def test_what_has_no_machine_code_is_named_with_its_line(body, reason):
    with pytest.raises(CodegenError, match=rf"<string>:\d+:\d+: .*{reason}"):
        program(design(body), {})


ARGUMENTS = {"memref": (6, "%words", "memref<4x8xi32>"), "number": (8, "%i7", "i32")}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_arguments_take_six_pointers_and_eight_numbers(kind):
    """In their order from p0 and r0 on; one more is refused."""
    most, value, type_ = ARGUMENTS[kind]
    for count in (most, most + 1):
        text = design(f"func.call @any({', '.join([value] * count)}) : ({', '.join([type_] * count)}) -> ()")
        text = text.replace("@many(i32, i32, i32, i32, i32, i32, i32, i32, i32)", f"@any({', '.join([type_] * count)})")
        kernels = {"any": AssemblyKernel(Callee("any"), "any: ret\n" + "nop\n" * 5, "any.s")}
        if count > most:
            with pytest.raises(CodegenError, match="any takes more than 6 memrefs or 8 numbers"):
                program(text, kernels)
            continue
        source = program(text, kernels).source
        letter = "p" if kind == "memref" else "r"
        assert [f" {letter}{i}, #" in source for i in range(count)] == [True] * count


def test_values_stay_in_registers_across_calls_of_quiet_kernels_only():
    body = """
      scf.for %i = %c0 to %c3 step %c1 {
        func.call @bump(%words, %i7) : (memref<4x8xi32>, i32) -> ()
      }"""
    loud, quiet = (
        program(design(body), {"bump": AssemblyKernel(Callee("bump", quiet=quiet), KERNEL, "bump.s")})
        for quiet in (False, True)
    )
    assert (loud.stack_bytes, quiet.stack_bytes) == (64, 0)
