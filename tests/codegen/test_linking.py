"""Functions of assembly files and of objects in core programs; objects are put together here, byte by byte."""

import struct

import numpy as np
import pytest
from typer.testing import CliRunner

from bdforge.array.core_bodies.core_program import core_program
from bdforge.array.emulator import emulate
from bdforge.array.images.programs import read_programs
from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.cli.commands import app
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.objects import linkable
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.elf import CORE_MACHINE

TWICE = """
        .globl  twice
twice:  ret
        lda     r1, [p0, #0]            // lands after the return: what compilers do, and our checker would not let us
        nop
        nop
        nop
        add     r0, r0, r0
"""
DESIGN = """module { aie.device(npu2) {
    %tile = aie.tile(0, 2)
    %out = aie.buffer(%tile) {sym_name = "out", address = 4096 : i32} : memref<8xi32>
    func.func private @twice(memref<8xi32>, i32) -> i32
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c1 = arith.constant 1 : index
    %i7 = arith.constant 7 : i32
    %core = aie.core(%tile) {
      %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%n = %i7) -> (i32) {
        %m = func.call @twice(%out, %n) : (memref<8xi32>, i32) -> i32
        scf.yield %m : i32
      }
      memref.store %r, %out[%c1] : memref<8xi32>
      aie.end
    }
  } }
"""
HEADER, SECTION = struct.Struct("<16sHHIIIIIHHHHHH"), struct.Struct("<10I")


GLOBAL, LOCAL = 0x12, 0x02


def elf_object(
    code: bytes, relocated=False, machine=CORE_MACHINE, flags=3, kind=1, functions=(("twice", 0, GLOBAL),)
) -> bytes:
    """A relocatable object whose .text has these functions, `twice` alone by default, the first with a frame of 96."""
    names = b"\0.text\0.stack_sizes\0.symtab\0.strtab\0.rela.text\0.rela.stack_sizes\0"
    at = {name: names.index(b"\0" + name + b"\0") + 1 for name in names.split(b"\0") if name}
    strings, symbols = b"\0", bytes(16)
    for name, start, binding in functions:
        symbols += struct.pack("<IIIBBH", len(strings), start, len(code), binding, 0, 1)
        strings += name.encode() + b"\0"
    entry = struct.pack("<IIi", 0, 1 << 8 | 1, 0)
    sections = [
        (0, 0, 0, b"", 0, 0, 0), (at[b".text"], 1, 6, code, 0, 0, 0),
        (at[b".stack_sizes"], 1, 0, bytes(4) + b"\x60", 1, 0, 0), (at[b".symtab"], 2, 0, symbols, 4, 1, 16),
        (at[b".strtab"], 3, 0, strings, 0, 0, 0), (at[b".strtab"], 3, 0, names, 0, 0, 0),
        (at[b".rela.stack_sizes"], 4, 0, entry, 3, 2, 12),
        (at[b".rela.text"], 4, 0, entry if relocated else b"", 3, 1, 12),
    ]  # fmt: skip
    body, table = b"", b""
    for name, type_, bits, data, link, info, size in sections:
        table += SECTION.pack(name, type_, bits, 0, HEADER.size + len(body), len(data), link, info, 1, size)
        body += data
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    counts = (HEADER.size, 0, 0, SECTION.size, len(sections), 5)
    return HEADER.pack(ident, kind, machine, 1, 0, 0, HEADER.size + len(body), flags, *counts) + body + table


@pytest.fixture
def code() -> bytes:
    return assemble(TWICE, "aie2p").code[0][1]


def written(folder, name: str, data: bytes):
    (folder / name).write_bytes(data)
    return folder / name


def test_a_program_calls_a_function_of_an_object(tmp_path, code):
    kernels = linkable(written(tmp_path, "twice.o", elf_object(code)), "aie2p")
    (core,) = (op for op in parse(DESIGN).walk() if isinstance(op, CoreOp))
    program = core_program(core, kernels)
    assert program.stack_bytes == 64 + 96  # values across a compiler's function, and what that takes itself
    elf = written(tmp_path, "core.elf", program.elf)
    assert emulate(DESIGN, elfs={(0, 2): elf}).buffers["out"][1] == 7 * 2**3


def test_all_global_functions_of_an_object_are_taken_where_they_begin(tmp_path):
    """Those of one section share its bytes; a local one has no name for others."""
    parts = [assemble(f"mova r0, #{i}\nret\n" + "nop\n" * 5 + ".p2align 4\n").code[0][1] for i in range(4)]
    starts = [sum(map(len, parts[:i])) for i in range(4)]
    named = [("b", starts[2], GLOBAL), ("hidden", starts[1], LOCAL), ("a", starts[0], GLOBAL), ("c", starts[3], GLOBAL)]
    data = elf_object(b"".join(parts), functions=tuple(named))
    found = linkable(written(tmp_path, "three.o", data), "aie2p")
    assert set(found) == {"a", "b", "c"}
    assert len({kernel.text for kernel in found.values()}) == 1
    made = assemble(found["a"].text)
    assert made.code == ((0, b"".join(parts)),)
    assert dict(made.symbols) == {"a": starts[0], "b": starts[2], "c": starts[3]}
    assert {name: kernel.callee.stack_bytes for name, kernel in found.items()} == {"a": 0, "b": 96, "c": 0}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            lambda code: elf_object(code, relocated=True),
            "twice cannot be linked here: what relocations",
        ),
        (lambda code: elf_object(code, functions=()), "twice.o: it holds no functions"),
        (lambda code: elf_object(code, functions=(("twice", 0, LOCAL),)), "it holds no functions"),
        (
            lambda code: elf_object(code, relocated=True, functions=tuple((name, 0, GLOBAL) for name in "abcde")),
            "twice.o: a, b, c, d cannot be linked here",
        ),
        (lambda code: elf_object(code, machine=62), "is no object of an AIE compiler"),
        (lambda code: elf_object(code, kind=2), "a linked program is a core's elf_file"),
        (lambda code: elf_object(code, flags=2), "is for aie2, not for aie2p"),
        (lambda code: elf_object(code)[:90], "no readable object file"),
        (lambda code: b"\xff\xfe", "neither an ELF nor text"),
        (lambda code: b"twice: ret\n", "exports no function; say .globl NAME"),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path, code, data, reason):
    with pytest.raises(CodegenError, match=reason):
        linkable(written(tmp_path, "twice.o", data(code)), "aie2p")


@pytest.mark.parametrize("flags", [3, 7, 0, 1])
def test_an_object_is_for_the_generation_of_its_flags_or_for_any(tmp_path, code, flags):
    """2 and 3 in the two low bits are AIE2 and AIE2P; others tell nothing."""
    assert set(linkable(written(tmp_path, "twice.o", elf_object(code, flags=flags)), "aie2p")) == {"twice"}


def test_lower_links_assembly_into_an_image(tmp_path):
    design, kernel = written(tmp_path, "d.mlir", DESIGN.encode()), written(tmp_path, "twice.s", TWICE.encode())
    kernel.write_text(TWICE.replace("lda     r1, [p0, #0]", "nop"))
    out = tmp_path / "d.xclbin"
    done = CliRunner().invoke(app, ["lower", str(design), "-o", str(out), "--link", str(kernel)])
    assert done.exit_code == 0, done.output
    (program,) = read_programs(out.read_bytes())
    assert emulate(DESIGN, elfs={(0, 2): program}).buffers["out"][1] == 56
    assert np.count_nonzero(emulate(DESIGN, elfs={(0, 2): program}).buffers["out"]) == 1


def test_lower_names_the_kernels_that_are_missing(tmp_path):
    design = written(tmp_path, "d.mlir", DESIGN.encode())
    done = CliRunner().invoke(app, ["lower", str(design), "-o", str(tmp_path / "d.pdi"), "--define", "DIM_M=8"])
    assert "core (0, 2) has no machine code: twice is not assembled" in done.output
    assert done.exit_code != 0
    assert not (tmp_path / "d.pdi").exists()
