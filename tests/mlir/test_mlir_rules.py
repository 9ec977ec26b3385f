"""The verifier's rules, each with its message; what aie-opt takes although it is dangerous still loads."""

import pytest
from mlir_texts import bd, core, device, fault, sequence

from bdforge.array.mlir import MlirError, parse, print_module
from bdforge.array.mlir.register_ops import WRITEBD_FIELDS


def memcpy(entries: str, element: str = "i32", attributes: str = "", direction: str = "a") -> str:
    memref = f"memref<65536x{element}>"
    return sequence(
        f"aiex.npu.dma_memcpy_nd(%x{entries}) {{id = 0, metadata = @{direction}{attributes}}} : {memref}",
        f"%x: {memref}",
    )


def program(blocks: str, kind: str = "mem", tile: str = "c", start: str = "aie.dma_start(S2MM, 0, ^bd, ^end)") -> str:
    return device(
        f"""%b = aie.buffer(%{tile}) : memref<64xi32>
        %l = aie.lock(%{tile}, 0)
        %k = aie.lock(%{tile}, 1)
        aie.{kind}(%{tile}) {{
          {start}
        {blocks}
        ^end:
          aie.end
        }}"""
    )


def block(name: str, body: str = "aie.dma_bd(%b : memref<64xi32>)", following: str = "^end") -> str:
    return f"^{name}:\n{body}\naie.next_bd {following}\n"


def reconfigured(run: str, other: str = "npu2", body: str = "") -> str:
    return (
        f"aie.device({other}) @d {{\naie.runtime_sequence @q(%y: memref<4xi32>) {{}}\n}}\n"
        "aie.device(npu2) {\n%s = aie.tile(0, 0)\n"
        "aie.runtime_sequence(%x: memref<4xi32>, %z: memref<8xi32>) {\n"
        f"aiex.configure @d {{\n{run}\n}}\n{body}\n}}\n}}"
    )


def run(sequence: str, argument: str = "%x", kind: str = "memref<4xi32>") -> str:
    return f"aiex.run @{sequence}({argument}) : ({kind})"


def raw_bd(column: int, row: int, given: str) -> str:
    """A BD from raw fields, one of which is `given`."""
    fields = dict.fromkeys(WRITEBD_FIELDS, 0) | {"column": column, "row": row, "buffer_length": 4, "valid_bd": 1}
    name, _, value = given.partition(" = ")
    listed = ", ".join(f"{field} = {number} : i32" for field, number in {**fields, name: value}.items())
    return sequence(f"aiex.npu.writebd {{{listed}}}")


BD = "aie.dma_bd(%b : memref<64xi32>)"
TASK = "%t = aiex.dma_configure_task_for @a {{ aie.dma_bd(%x : memref<8192xi32>{}) aie.end }}"

REFUSED = {
    "tile twice": (device("aie.tile(0, 2)"), "tile (0, 2) is declared already (line 5)"),
    "scheme of a shim": (
        'aie.device(npu2) { aie.tile(0, 0) {allocation_scheme = "basic-sequential"} }', "a shim has no memory in"),
    "device twice": (
        "aie.device(npu2) {}\naie.device(npu2) {}", "@main is the name of the aie.device in line 1 already"),
    "sequence twice": (
        device("aie.runtime_sequence() {}\naie.runtime_sequence() {}"), "@sequence is the name of the aie.runtime_seq"),
    "BD that nothing starts": (
        program(block("bd") + block("lost")), "no aie.dma_start leads to its block, so no channel ever runs it"),
    "BD that only a lost one leads to": (
        program(block("bd") + block("lost", following="^last") + block("last")), "no aie.dma_start leads to its block"),
    "BDs without a start": (program(block("bd"), start="aie.next_bd ^bd"), "no aie.dma_start leads to its block"),
    "BD in the first block": (
        device(f"%b = aie.buffer(%c) : memref<64xi32>\naie.mem(%c) {{ {BD} aie.end }}"), "no aie.dma_start leads to"),
    "start to which nothing leads": (
        program(block("bd") + "^lost:\naie.dma_start(MM2S, 0, ^bd, ^end)"), "no way leads here from the first block"),
    "dimensions without a length": (bd(", 0, [<size = 8, stride = 1>])"), "a part needs all before it"),
    "dimensions alone": (bd(", [<size = 8, stride = 1>])"), "a part needs all before it"),
    "pad value without padding": (bd(", 0, 64, [<size = 8, stride = 8>], pad_value = 0)"), "a part needs all before"),
    "data of another type": (
        "#a = dense<1> : tensor<2xi8>\n" + device('memref.global "private" @d : memref<2xi32> = #a'),
        "its initial value is of type tensor<2xi8>, but the memory of type memref<2xi32>"),
    "data behind the text": (device("aie.buffer(%c) : memref<2xi32> = dense_resource<x>"), "write dense<...> instead"),
    "bursts of a memtile's raw BD": (raw_bd(0, 1, "burst_length = 64"), "burst_length = 64 is for shims; a memtile's"),
    "size of a shim's raw dimension 2": (raw_bd(0, 0, "d2_size = 2"), "d2_size = 2: a shim's BD has no such field"),
    "function of another type": (core("%q = func.constant @k : () -> ()"), "but is taken as () -> ()"),
    "unknown function as a value": (core("%q = func.constant @gone : () -> ()"), "no func.func is called @gone here"),
    "tile outside of a device": ("%t = aie.tile(0, 0)", "must stand in an aie.device"),
    "dynamic buffer": (device("aie.buffer(%c) : memref<?xi32>"), "its size must be known"),
    "two names": (device('aie.lock(%c) {sym_name = "x"}\naie.lock(%m) {sym_name = "x"}'), "x"),
    "core on a memtile": (device("aie.core(%m) { aie.end }"), "is a memtile, which has no core"),
    "core without body": (device("aie.core(%c) { }"), "needs a body"),
    "core without end": (device("aie.core(%c) { aie.lock(%c) }"), "must end with aie.end, not aie.lock"),
    "program and elf": (device('aie.core(%c) { aie.event(0) aie.end } {elf_file = "a"}'), "the whole program"),
    "lock in the sequence": (
        device("%l = aie.lock(%c)\naie.runtime_sequence() { aie.use_lock(%l, Release) }"), "nothing there can wait"),
    "lock that is none": (core("aie.use_lock(%c, Release)"), "must come from aie.lock"),
    "unknown function": (core("func.call @gone() : () -> ()"), "no func.func is called @gone here; known: @k, @g"),
    "function's type": (core("func.call @k(%b, %f) : (memref<64xi32>, f32) -> ()"), "but is called as"),
    "allocation on a memtile": (device("aie.shim_dma_allocation @x(%m, MM2S, 0)"), "only a shim's channel"),
    "packet to nowhere": (
        device("aie.packet_flow(1) { aie.packet_source<%m, DMA : 0> }"), "at least one aie.packet_dest"),
    "packet from nowhere": (
        device("aie.packet_flow(1) { aie.packet_dest<%m, DMA : 0> }"), "exactly one aie.packet_source, has 0"),
    "packet end alone": (device("aie.packet_dest<%m, DMA : 0>"), "must stand in an aie.packet_flow"),
    "guest in a packet flow": (device("aie.packet_flow(1) { aie.lock(%c) }"), "only aie.packet_source and"),
    "cascade of a memtile": (device("aie.cascade_flow(%m, %c)"), "cascades join core tiles"),
    "cascade in from south": (device("aie.configure_cascade(%c, South, East)"), "from North or West, not South"),
    "cascade out to west": (device("aie.configure_cascade(%c, North, West)"), "to South or East, not West"),
    "kind of program": (program(block("bd"), "mem", "m"), "programs a core's DMA, but tile (0, 1) is a memtile"),
    "BD block without BD": (program(block("bd", "aie.use_lock(%l, Release)")), "exactly one aie.dma_bd, this one 0"),
    "two BDs in a block": (program(block("bd", f"{BD}\n{BD}")), "exactly one aie.dma_bd, this one 2"),
    "two releases": (
        program(block("bd", f"aie.use_lock(%l, Release)\n{BD}\naie.use_lock(%k, Release)")), "releases, this one 2"),
    "end of a block": (program(f"^bd:\n{BD}\ncf.br ^end"), "ends with aie.dma_start, aie.next_bd or aie.end"),
    "block without end": (program(f"^bd:\n{BD}"), "must end with aie.end, not aie.dma_bd"),
    "start outside": (
        device("func.func @f() {\naie.dma_start(S2MM, 0, ^a, ^a)\n^a:\naie.end\n}"),
        "must stand in aie.mem"),
    "region form with one lock": (
        device(f"%b = aie.buffer(%c) : memref<64xi32>\n%l = aie.lock(%c)\naie.mem(%c) {{\n"
               f"aie.dma(S2MM, 0) [{{ aie.use_lock(%l, Release) {BD} }}]\naie.end\n}}"),
        "exactly two aie.use_lock, this one has 1"),
    "both forms": (
        program(block("bd"), start="aie.dma(S2MM, 1) [{ aie.use_lock(%l, Acquire)\n"
                f"{BD}\naie.use_lock(%l, Release) }}]\naie.dma_start(S2MM, 0, ^bd, ^end)"),
        "cannot be mixed with aie.dma_start"),
    "BD of a scalar": (
        device("aie.mem(%c) {\naie.dma_start(S2MM, 0, ^a, ^a)\n^a:\naie.dma_bd(%c : index)\naie.end\n}"),
        "moves a memref"),
    "padding without length": (
        bd(") {dimensions = #aie<bd_dim_layout_array[<size = 8, stride = 1>]>, pad_dimensions = "
           "#aie<bd_pad_layout_array[<const_pad_before = 1, const_pad_after = 0>]>}"), "needs a length"),
    "memcpy of wide elements": (memcpy("[0,0,0,0][1,1,1,4][0,0,0,1]", "i64"), "elements of 64 bits are too wide"),
    "memcpy of variable size": (
        sequence("aiex.npu.dma_memcpy_nd(%x[0,0,0,0][1,1,1,%v][0,0,0,1]) {id = 0, metadata = @a} : memref<8xi32>",
                 "%x: memref<8xi32>, %v: i64"), "sizes of aiex.npu.dma_memcpy_nd must be constants"),
    "memcpy start": (memcpy("[0,0,0,2][1,1,1,4][0,0,0,1]", "i8"), "starts at byte 2"),
    "memcpy of 6 bytes": (memcpy("[0,0,0,0][1,1,1,6][0,0,0,1]", "i8"), "is 6 elements of 8 bits, 6 bytes"),
    "memcpy of half words": (memcpy("[0,0,0,0][1,1,1,8][0,0,0,2]", "i16"), "innermost stride is 2; it must be 1 for"),
    "sequence in the module": ("aie.runtime_sequence() {}", "must stand directly in an aie.device"),
    "task in a configure": (
        reconfigured("%t = aiex.dma_configure_task(%s, MM2S, 0) { aie.end }"), "not in aiex.configure"),
    "await of no task": (sequence("aiex.dma_await_task(%i)", "%i: index"), "must come from aiex.dma_configure_task"),
    "another array": (reconfigured("", "npu1"), "device @d is npu1, but the running one npu2"),
    "unknown device": (reconfigured("").replace("configure @d", "configure @e"), "no aie.device is called @e"),
    "unknown sequence": (reconfigured(run("p")), "no aie.runtime_sequence is called @p; device @d has @q"),
    "argument's type": (reconfigured(run("q", "%z", "memref<8xi32>")), "argument 0 of @q is of type memref<4xi32>"),
    "arguments": (reconfigured("aiex.run @q() : ()"), "@q takes 1 arguments, not 0"),
    "run alone": (reconfigured("", body=run("q")), "must stand in an aiex.configure"),
    "unknown template": (
        sequence("%t = aiex.dma_start_bd_chain_for @q(%x) : (memref<8192xi32>) for @a"),
        "no aie.bd_chain is called @q"),
    "use before definition": (device("aie.lock(%late)\n%late = aie.tile(3, 3)"), "not defined before it"),
    "value of a sibling": (core(
        "scf.if %p { aie.event(0) %q = arith.addi %i, %i : i32 }\n%r = arith.addi %q, %q : i32"),
                           "%q"),
    "value of a block that may be missed": (
        device("func.func @f(%p: i1) -> i32 {\ncf.cond_br %p, ^a, ^b\n^a:\n%v = arith.constant 1 : i32\ncf.br ^b\n"
               "^b:\nreturn %v : i32\n}"), "not defined on every way to it"),
}  # fmt: skip


@pytest.mark.parametrize("rule", REFUSED)
def test_broken_rules_are_refused(rule: str):
    text, words = REFUSED[rule]
    assert words in fault(text)


DANGEROUS = {
    "offset and length beyond the buffer": bd(", 60, 64)"),
    "dimensions that do not make the length": bd(", 0, 8, [<size = 4, stride = 4>, <size = 4, stride = 1>])"),
    "core size beyond 8 bits": bd(", 0, 512, [<size = 512, stride = 1>])", "c", "memref<512xi32>"),
    "channel beyond the tile": bd(", 0, 64)", channel=9),
    "allocation of channel 2": device("aie.shim_dma_allocation @x(%s, MM2S, 2)"),
    "stride of half words": bd(", 0, 8, [<size = 2, stride = 3>, <size = 4, stride = 1>])", buffer="memref<64xi8>"),
    "padding while receiving": bd(
        ", 0, 9, [<size = 8, stride = 1>], [<const_pad_before = 1, const_pad_after = 0>])", direction="S2MM"),
    "pad value": bd(
        ", 0, 9, [<size = 8, stride = 1>], [<const_pad_before = 1, const_pad_after = 0>], pad_value = 7)"),
    "wide padding": bd(", 0, 108, [<size = 8, stride = 1>], [<const_pad_before = 100, const_pad_after = 0>])"),
    "lock values": device(
        "%l = aie.lock(%c, 0) {init = 99 : i32}\naie.core(%c) {\naie.use_lock(%l, Acquire, -7)\naie.end }"),
    "one id twice": device("aie.lock(%c, 3)\naie.lock(%c, 3)"),
    "two cores on a tile": device("aie.core(%c) { aie.end }\naie.core(%c) { aie.end }"),
    "two flows into a port": device("aie.flow(%s, DMA : 0, %m, DMA : 0)\naie.flow(%s, DMA : 1, %m, DMA : 0)"),
    "packet flow id 40": device("aie.packet_flow(40) { aie.packet_source<%m, DMA : 0> aie.packet_dest<%c, DMA : 0> }"),
    "metadata that names nothing": memcpy("[0,0,0,0][1,1,1,4][0,0,0,1]", direction="nothing"),
    "memcpy beyond the memref": memcpy("[0,0,0,65536][1,1,1,65536][0,0,0,1]"),
    "long linear memcpy": memcpy("[0,0,0,0][1,1,1,65536][0,0,0,1]"),
    "many rows on a shim": memcpy("[0,0,0,0][1,4096,2,4][0,8,4,1]"),
    "large buffer": device("aie.buffer(%c) : memref<100000xi32>"),
    "await without token": sequence(TASK.format("") + "\naiex.dma_await_task(%t)"),
    "four dimensions and odd sizes in a task": sequence(
        TASK.format(", 0, 8, [<size = 2, stride = 0>, <size = 3, stride = 1>, "
                    "<size = 9, stride = 9>, <size = 1, stride = 1>]")),
    "host buffer in a core's task": sequence(
        "%t = aiex.dma_configure_task(%c, MM2S, 0) { aie.dma_bd(%x : memref<8192xi32>) aie.end }"),
    "raw write anywhere": sequence("aiex.npu.write32 {address = 0x3FFFFFFF : ui32, value = 0xFFFFFFFF : ui32}"),
}  # fmt: skip


@pytest.mark.parametrize("design", DANGEROUS)
def test_what_only_the_emulator_refuses_still_loads(design: str):
    parse(DANGEROUS[design])


TAKEN = {
    "raw BDs of shims with bursts": raw_bd(0, 0, "burst_length = 64"),
    "raw BDs of memtiles with a size of dimension 2": raw_bd(0, 1, "d2_size = 2"),
    "fewer paddings than dimensions": bd(
        ", 0, 80, [<size = 8, stride = 8>, <size = 8, stride = 1>], [<const_pad_before = 1, const_pad_after = 1>])"),
    "two channels of one chain": program(
        block("bd") + "^two:\naie.dma_start(MM2S, 1, ^bd, ^end)", start="aie.dma_start(S2MM, 0, ^bd, ^two)"),
    "a start that ends with its own chain": program(block("bd"), start="aie.dma_start(S2MM, 0, ^bd, ^bd)"),
    "one tile of two devices": "aie.device(npu2) @a { aie.tile(0, 2) }\naie.device(npu2) @b { aie.tile(0, 2) }",
    "functions as values": core("%q = func.constant @k : (memref<64xi32>, i32) -> ()"),
}  # fmt: skip


@pytest.mark.parametrize("design", TAKEN)
def test_what_aie_opt_takes_next_to_them_loads(design: str):
    module = parse(TAKEN[design])
    assert print_module(parse(print_module(module))) == print_module(module)


def test_reach_is_judged_where_the_memory_stands():
    text = device("%l = aie.lock(%m)\naie.core(%c) {\naie.use_lock(%l, Release)\naie.end }")
    with pytest.raises(MlirError) as caught:
        parse(text)
    assert text.splitlines()[caught.value.line - 1] == "%l = aie.lock(%m)"
    assert caught.value.column == 6
