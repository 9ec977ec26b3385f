"""Rare parts of texts: what they mean where they are left out, and each refusal that stands behind another."""

import pytest
from mlir_texts import bd, device, fault, only, sequence

from bdforge.array.mlir import MlirError, parse, print_module
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.bd_ops import DmaBdOp
from bdforge.array.mlir.control_ops import DmaStartBdChainForOp
from bdforge.array.mlir.device_ops import TileOp
from bdforge.array.mlir.errors import SourceText
from bdforge.array.mlir.memory_ops import ExternalBufferOp, UseLockOp
from bdforge.array.mlir.register_ops import NpuBlockWriteOp
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp

ITERATED = "aie.dma_bd(%b : memref<64xi32> offset = 0 len = 4) {iteration = #aie.bd_iteration<N>}"


def with_bd(line: str, tile: str = "m", buffer: str = "memref<64xi32>") -> str:
    return bd(", 0, 4)", tile, buffer).replace(f"aie.dma_bd(%b : {buffer}, 0, 4)", line)


def modern(clauses: str, tile: str = "m", buffer: str = "memref<4096xi32>") -> str:
    return with_bd(f"aie.dma_bd(%b : {buffer} {clauses})", tile, buffer)


def test_an_iteration_starts_at_0_in_any_order_of_its_fields():
    texts = ("size = 4, stride = 8", "stride = 8, size = 4", "current = 0, stride = 8, size = 4")
    assert {only(parse(with_bd(ITERATED.replace("N", text))), DmaBdOp).iteration for text in texts} == {(4, 8, 0)}
    assert only(parse(with_bd(ITERATED.replace("N", "size = 4, stride = 8, current = 2"))), DmaBdOp).iteration == (
        4,
        8,
        2,
    )


def test_dimensions_without_a_length_are_printed_where_upstream_reads_them():
    printed = print_module(
        parse(bd(") {dimensions = #aie<bd_dim_layout_array[<size = 8, stride = 1>]>, offset = 4 : i32}"))
    )
    assert "aie.dma_bd(%b : memref<64xi32>, 4) {" in printed


def test_callees_are_named_once_in_the_order_of_their_calls():
    names = [f"k{n}" for n in (5, 1, 4, 2, 3)]
    functions = "\n".join(f"func.func private @{name}()" for name in sorted(names))
    calls = "\n".join(f"func.call @{name}() : () -> ()" for name in [*names, "k4"])
    assert only(parse(device(f"{functions}\naie.core(%c) {{\n{calls}\naie.end\n}}")), CoreOp).callees == tuple(names)


@pytest.mark.parametrize("kind", ["CoreTile", "MemTile", "ShimNOCTile", "ShimPLTile"])
def test_logical_tiles_of_every_kind_are_read(kind: str):
    row = {"CoreTile": 2, "MemTile": 1}.get(kind, 0)
    tile = only(parse(f"aie.device(npu2) {{ %t = aie.logical_tile<{kind}>(3, {row}) }}"), TileOp)
    assert (tile.column, tile.row) == (3, row)


def test_numbers_that_are_left_out_have_defaults():
    module = parse(device("%l = aie.lock(%c)\n%b = aie.external_buffer : memref<4xi32>\n"
                          "aie.core(%c) { aie.use_lock(%l, Release) aie.end }"))  # fmt: skip
    use = only(module, UseLockOp)
    assert (use.value, use.enabled, only(module, ExternalBufferOp).address) == (1, True, 0)


def test_words_come_from_the_global_of_that_name():
    values = {"first": 1, "second": 2}
    made = "\n".join(f"memref.global constant @{n} : memref<1xi32> = dense<{v}>" for n, v in values.items())
    text = device(f"{made}\naie.runtime_sequence() {{\n%d = memref.get_global @second : memref<1xi32>\n"
                  "aiex.npu.blockwrite(%d) {address = 0 : ui32} : memref<1xi32>\n}")  # fmt: skip
    assert only(parse(text), NpuBlockWriteOp).data.tolist() == [2]


def test_attributes_of_a_sequence_are_kept_wherever_they_stand():
    text = "aie.device(npu2) {{ aie.runtime_sequence() {} {{ }} {} }}"
    for places in (("attributes {early = 1 : i32}", ""), ("", "{early = 1 : i32}")):
        assert list(only(parse(text.format(*places)), RuntimeSequenceOp).attributes) == ["early"]


def test_templates_and_tasks_are_found_by_their_names():
    chains = "\n".join(
        f"aie.bd_chain @{name}(%v: memref<64xi32>) {{ aie.dma_bd(%v : memref<64xi32>, 0, {n}) aie.end }}"
        for name, n in (("one", 4), ("two", 8))
    )
    start = "%t = aiex.dma_start_bd_chain_for @two(%x) : (memref<64xi32>) for @c"
    module = parse(sequence(start, "%x: memref<64xi32>").replace("aie.runtime", f"{chains}\naie.runtime", 1))
    task = only(module, DmaStartBdChainForOp)
    assert (task.template.symbol, task.direction) == ("two", "S2MM")


def test_functions_may_release_what_only_they_know():
    body = "func.func @f(%k: index, %n: i32) {\naie.use_lock(%k, Release, %n)\nfunc.return\n}"
    assert only(parse(device(body)), UseLockOp).amount is not None
    chain = "aie.bd_chain @f(%v: memref<4xi32>, %k: index, %n: i32) {\naie.use_lock(%k, Release, %n)\naie.end\n}"
    with pytest.raises(MlirError, match="'value' is %n, which is no constant"):
        parse(device(chain))


BD = "aie.dma_bd(%b : memref<64xi32>)"
REGION = "{{ aie.use_lock(%l, Acquire)\n{0}\naie.use_lock(%l, Release) {1} }}"
GENERIC = (
    '"aie.dma_bd"(%b) <{operandSegmentSizes = array<i32: N>, static_len = 4 : i32, static_offset = 0 : i32}> '
    ": (memref<64xi32>) -> ()"
)


def regions(count: int, more: str = "", behind: str = "") -> str:
    one = REGION.format(BD, more)
    return device(f"%b = aie.buffer(%c) : memref<64xi32>\n%l = aie.lock(%c)\naie.mem(%c) {{\n"
                  f"aie.dma(S2MM, 0) [{', '.join([one] * count)}]\n{behind}aie.end\n}}")  # fmt: skip


MEMCPY = "aiex.npu.dma_memcpy_nd(%x[0,0,0,0][{}][{}]) {{id = 0, metadata = @a}} : memref<65536x{}>"


def memcpy(sizes: str, strides: str, element: str = "i32") -> str:
    return sequence(MEMCPY.format(sizes, strides, element), f"%x: memref<65536x{element}>")


AMSEL = "%a = aie.amsel<0> (0)\naie.masterset(South : 0, %a)\n"


def box(body: str) -> str:
    return device(f"%x = aie.switchbox(%c) {{\n{body}\n}}")


READ = {
    "16 BDs in regions": regions(16),
    "switchbox and mux of a shim": device("%x = aie.switchbox(%s) {}\n%y = aie.shim_mux(%s) {}"),
    "stride of a size of 1": memcpy("1,1,1,4", "0,0,9999999,1"),
    "half words that are not stepped": modern(
        "offset = 0 len = 4 sizes = [1, 4] strides = [3, 1]", buffer="memref<64xi8>"),
    "length of a core in bytes": modern("offset = 0 len = 65532", "c", "memref<65536xi8>"),
    "stride 0 of a size of 1": modern("offset = 0 len = 4 sizes = [1, 4] strides = [0, 1]"),
}  # fmt: skip
REFUSED = {
    "field twice": (with_bd(ITERATED.replace("N", "size = 4, stride = 8, size = 4")), "'size' is given twice"),
    "17 BDs in regions": (regions(17), "has 17 BDs, but core (0, 2) has 16"),
    "three locks in a region": (regions(1, "aie.use_lock(%l, Release)"), "exactly two aie.use_lock, this one has 3"),
    "blocks beside a region": (regions(1, behind="cf.br ^e\n^e:\n"), "aie.dma_start, aie.next_bd or aie.end"),
    "another block beside a region": (regions(1, behind="aie.next_bd ^e\n^e:\n"), "cannot be mixed with aie.dma_start"),
    "start of other elements": (
        device("%b = aie.buffer(%c) : memref<2xi32> = dense<1> : tensor<3xi32>"), "type must be tensor<2xi32>"),
    "value of another shape": (
        device("%b = aie.buffer(%c) {initial_value = dense<1> : tensor<3xi32>} : memref<2xi32>"), "value is of type"),
    "three sizes": (memcpy("1,1,4", "0,0,0,1"), "expected 4 sizes, outermost first, got 3"),
    "five sizes": (memcpy("1,1,1,1,4", "0,0,0,1"), "expected 4 sizes, outermost first, got 5"),
    "too few numbers": (
        sequence("%v = arith.constant 1 : i32\naiex.npu.sync(%v, %v) : i32, i32"), "takes 6 numbers (column, row"),
    "number twice": (
        sequence("%v = arith.constant 1 : i32\naiex.npu.write32(%v, %v) {value = 1 : ui32} : i32, i32"),
        "'value' is given twice: as an operand and as an attribute"),
    "packet without a BD": (
        bd(", 0, 4)").replace("^end:\n", "^end:\naie.dma_bd_packet(0, 1)\n"),
        "must stand in a block with an aie.dma_bd"),
    "configure outside": (device("aiex.configure @main { }"), "must stand in an aie.runtime_sequence"),
    "device in a device": (device("aie.device(npu2) @d {}"), "devices stand side by side"),
    "cascade from the east": (device("aie.configure_cascade(%c, East, South)"), "from North or West, not East"),
    "cascade to the north": (device("aie.configure_cascade(%c, West, North)"), "to South or East, not North"),
    "lock of a neighbour": (
        device("%b = aie.buffer(%m) : memref<64xi32>\n%l = aie.lock(%m1)\naie.memtile_dma(%m) {\n"
               f"aie.dma_start(MM2S, 4, ^bd, ^end)\n^bd:\naie.use_lock(%l, Acquire)\n{BD}\naie.next_bd ^end\n"
               "^end:\naie.end\n}"), "channel 4, which reaches only its own memtile (0, 1), not (1, 1)"),
    "length of a core": (
        modern("offset = 0 len = 65536", "c", "memref<65536xi8>"),
        "its length is 16384 words; a core's BD holds at most 16383"),
    "stride 0 that is stepped": (
        modern("offset = 0 len = 8 sizes = [2, 4] strides = [0, 1]"), "a stride must be positive"),
    "parts that do not fit": (with_bd(GENERIC.replace("N", "1, 1, 0, 0, 0")), "does not fit its 1 operands"),
    "length twice": (
        with_bd("%n = arith.constant 4 : i32\n" + GENERIC.replace("N", "1, 0, 1, 0, 0").replace("(%b)", "(%b, %n)")
                .replace("(memref<64xi32>)", "(memref<64xi32>, i32)")), "'len' is given twice"),
    "more sizes than are open": (
        with_bd("%n = arith.constant 4 : i64\n" + GENERIC.replace("N", "1, 0, 0, 1, 0").replace("(%b)", "(%b, %n)")
                .replace("(memref<64xi32>)", "(memref<64xi32>, i64)")
                .replace("static_len", "static_sizes = array<i64: 4>, static_strides = array<i64: 1>, static_len")),
        "'sizes' has 0 open entries, but 1 operands"),
    "parts below 0": (with_bd(GENERIC.replace("N", "1, -1, 1, 0, 0")), "does not fit its 1 operands"),
    "sizes without strides": (modern("offset = 0 len = 8 sizes = [2, 4] strides = [8]"), "has 2 sizes but 1 strides"),
    "strides without sizes": (modern("offset = 0 len = 8 sizes = [2] strides = [8, 1]"), "has 1 sizes but 2 strides"),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_rare_texts_are_read(name: str):
    parse(READ[name])


@pytest.mark.parametrize("name", REFUSED)
def test_rare_texts_are_refused_by_name(name: str):
    text, words = REFUSED[name]
    assert words in fault(text)


@pytest.mark.parametrize(("offset", "place"), [
    (-1, (1, 1)), (0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (6, (2, 4)), (7, (3, 1)), (8, (3, 2)), (9, (3, 2)),
])  # fmt: skip
def test_lines_and_columns_count_from_one_and_a_line_holds_its_end(offset: int, place: tuple[int, int]):
    source = SourceText("ab\ncd\r\ne", "d.mlir")
    assert source.location(offset) == ("d.mlir", *place)
    assert [source.line(number) for number in (1, 2, 3)] == ["ab", "cd", "e"]


def test_a_caret_stands_below_its_column_behind_tabs():
    error = MlirError.at(SourceText("first\n\tx = y", "d.mlir"), 9, "wrong")
    assert (str(error), error.location) == ("d.mlir:2:4: wrong\n\tx = y\n\t  ^", ("d.mlir", 2, 4))
    assert str(MlirError("wrong", error.location)) == "d.mlir:2:4: wrong"
