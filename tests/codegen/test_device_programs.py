"""Programs of all cores of a device: who has one, who shares one, and what names them."""

import pytest

from bdforge.array.core_bodies.core_program import core_symbols, device_programs, elf_name, naming_programs
from bdforge.array.mlir import location, parse
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.core.codegen.abi import AssemblyKernel, Callee, joined
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.isa.assembler import assemble

KERNEL = AssemblyKernel(Callee("work", quiet=True), "work: ret\n" + "nop\n" * 5, "work.s")


def device(cores: str) -> DeviceOp:
    text = f"module {{ aie.device(npu2) {{\nfunc.func private @work(i32)\nfunc.func private @absent()\n{cores}\n}} }}"
    (found,) = (op for op in parse(text).walk() if isinstance(op, DeviceOp))
    return found


def core(row: int, address: int, number: int = 7, name: str = "x", body: str = "", elf: str = "") -> str:
    body = (
        body
        or f"""%v{row} = arith.constant {number} : i32
        memref.store %v{row}, %b{row}[%z{row}] : memref<4xi32>
        func.call @work(%v{row}) : (i32) -> ()"""
    )
    return f"""
      %t{row} = aie.tile(0, {row})
      %b{row} = aie.buffer(%t{row}) {{sym_name = "core_0_{row}_{name}", address = {address} : i32}} : memref<4xi32>
      %z{row} = arith.constant 0 : index
      %c{row} = aie.core(%t{row}) {{
        {"" if elf else body}
        aie.end
      }} {f'{{elf_file = "{elf}"}}' if elf else ""}"""


def kernel(name: str) -> AssemblyKernel:
    if name != "work":
        raise CodegenError(f"{name} is nowhere")
    return KERNEL


@pytest.mark.parametrize(
    ("other", "shared"),
    [
        (core(3, 4096), True), (core(3, 8192), False), (core(3, 4096, number=8), False),
        (core(3, 4096) + core(4, 12288, name="unused"), True),
    ],
    ids=["same", "address", "text", "names of others"],
)  # fmt: skip
def test_cores_with_the_same_text_and_the_same_places_share_a_program(other, shared):
    """Places in the text, which differ for both, are comments; addresses of buffers count where the text names them."""
    found = device_programs(device(core(2, 4096) + other), kernel).programs
    assert (found[0, 2] is found[0, 3]) is shared
    assert (found[0, 2].elf == found[0, 3].elf) is shared


def test_a_core_without_its_kernels_is_told_and_one_with_a_file_is_left_alone():
    cores = core(2, 4096) + core(3, 4096, body="func.call @absent() : () -> ()") + core(4, 4096, elf="mine.elf")
    text = device(cores)
    made = device_programs(text, kernel)
    assert (list(made.programs), dict(made.without)) == ([(0, 2)], {(0, 3): "absent is nowhere"})
    named = naming_programs(text, made.programs)
    pairs = [(op.tile.row, op.elf_file) for op in named.walk() if isinstance(op, CoreOp)]
    assert pairs == [(2, elf_name((0, 2))), (3, None), (4, "mine.elf")]
    assert [op.elf_file for op in text.walk() if isinstance(op, CoreOp)] == [None, None, "mine.elf"]
    places = [[location(op) for op in one.walk() if isinstance(op, CoreOp)] for one in (text, named)]
    assert places[0] == places[1]


@pytest.mark.parametrize("generation", ["aie2", "aie2p"])
def test_functions_of_several_sources_begin_where_calls_may_go(generation):
    """Each source once, each at a multiple of 16 bytes, whatever stands before it."""
    texts = [f"f{i}: nop\n" + "nop\n" * i for i in range(3)]
    made = assemble(joined([*texts, texts[0]]), generation)
    assert [made.symbols[f"f{i}"] for i in range(3)] == [0, 16, 32]
    assert sum(len(code) for _, code in made.code) == 32 + 3 * 2


@pytest.mark.parametrize("row", [2, 3, 5])
def test_a_core_knows_the_memories_and_locks_of_four_tiles(row):
    """South, west, north and its own, 64 KB and 16 locks each; memtiles and what is farther away are out of reach."""
    places = [(column, y) for column in range(3) for y in range(1, 6)]
    text = "\n".join(
        f'%t{c}{y} = aie.tile({c}, {y})\n%l{c}{y} = aie.lock(%t{c}{y}, 3) {{sym_name = "lock_{c}_{y}"}}\n'
        f'%b{c}{y} = aie.buffer(%t{c}{y}) {{sym_name = "buffer_{c}_{y}", address = 256 : i32}} : memref<4xi32>'
        for c, y in places
    )
    found = core_symbols(device(text), 1, row)
    sides = [(1, row - 1), (0, row), (1, row + 1), (1, row)]
    known = {place: window for window, place in enumerate(sides) if place in places and place[1] > 1}
    wanted = {f"buffer_{c}_{y}": 0x40000 + 0x10000 * window + 256 for (c, y), window in known.items()}
    wanted |= {f"lock_{c}_{y}": 16 * window + 3 for (c, y), window in known.items()}
    assert found == wanted
