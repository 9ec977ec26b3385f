"""What stands where it cannot: operations in other homes, operands from other operations, codes that are no words."""

import re

import pytest
from mlir_texts import bd, device, fault, read, sequence

from bdforge.array.mlir import MlirError, parse, print_generic

CODED = re.compile(
    r"\b(device|source_bundle|dest_bundle|bundle|channel_dir|direction|action|blocking) = (\d+) : i32", re.ASCII
)
EVERY = print_generic(parse(read("every_operation.mlir")))
CODES = {
    (operation[1], code[1]): code
    for operation in re.finditer(r'"(aiex?\.[a-z_.0-9]+)"[^\n]*', EVERY)
    for code in CODED.finditer(EVERY, *operation.span())
}


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("key", CODES, ids=" ".join)
def test_no_operation_takes_a_code_that_is_no_word(key: tuple[str, str]):
    match, (operation, name) = CODES[key], key
    told = fault(f"{EVERY[: match.start(2)]}77{EVERY[match.end(2) :]}")
    assert "77 is no code of " in told, f"{operation}: {name} = 77: {told}"


TILE, TASK = "tile operand must come from aie.tile", "{ aie.end }"
TILED = {  # operation: text whose %t is no tile, and what is said
    "buffer": ("aie.buffer(%t) : memref<4xi8>", TILE),
    "lock": ("aie.lock(%t)", TILE),
    "core": (f"aie.core(%t) {TASK}", TILE),
    "mem": (f"aie.mem(%t) {TASK}", TILE),
    "memtile_dma": (f"aie.memtile_dma(%t) {TASK}", TILE),
    "shim_dma": (f"aie.shim_dma(%t) {TASK}", TILE),
    "flow from": ("aie.flow(%t, DMA : 0, %c, DMA : 0)", TILE),
    "flow to": ("aie.flow(%c, DMA : 0, %t, DMA : 0)", TILE),
    "allocation": ("aie.shim_dma_allocation @x(%t, MM2S, 0)", TILE),
    "packet source": ("aie.packet_flow(1) { aie.packet_source<%t, DMA : 0> aie.packet_dest<%c, DMA : 0> }", TILE),
    "packet dest": ("aie.packet_flow(1) { aie.packet_source<%c, DMA : 0> aie.packet_dest<%t, DMA : 0> }", TILE),
    "cascade from": ("aie.cascade_flow(%t, %c)", TILE),
    "cascade to": ("aie.cascade_flow(%c, %t)", TILE),
    "configure_cascade": ("aie.configure_cascade(%t, North, South)", TILE),
    "task": (f"aie.runtime_sequence() {{ aiex.dma_configure_task(%t, MM2S, 0) {TASK} }}", TILE),
    "chain": ("aie.bd_chain @q() { aie.end }\naie.runtime_sequence() {\n"
              "aiex.dma_start_bd_chain @q() : () on (%t, MM2S, 0)\n}", TILE),
    "switchbox": ("aie.switchbox(%t) {}", TILE),
    "shim_mux": ("aie.shim_mux(%t) {}", TILE),
    "wire from": ("aie.wire(%t : North, %c : South)", "joins an aie.tile, aie.switchbox or aie.shim_mux with another"),
    "wire to": ("aie.wire(%c : North, %t : South)", "joins an aie.tile, aie.switchbox or aie.shim_mux with another"),
    "set_lock": ("aie.runtime_sequence() { aiex.set_lock(%t, 1) }", "its operand must come from aie.lock"),
}  # fmt: skip


@pytest.mark.parametrize("name", TILED)
def test_tiles_and_locks_must_come_from_their_operations(name: str):
    text, words = TILED[name]
    told = fault(device(f"%t = arith.constant 0 : index\n{text}"))
    assert told.endswith(words), f"{name} on a number: {told}"


BD = "aie.dma_bd(%x : memref<8192xi32>)"
LOOP = "%n = arith.constant 0 : i64\nscf.for %i = %n to %n step %n : i64 {{ {} }}"
CONFIGURE = f"%t = aiex.dma_configure_task(%s, MM2S, 0) {{ {BD} aie.end }}"
IN_LOOPS = {
    "aiex.dma_configure_task": ("", CONFIGURE),
    "aiex.dma_configure_task_for": ("", f"aiex.dma_configure_task_for @a {{ {BD} aie.end }}"),
    "aiex.dma_start_bd_chain": ("", "aiex.dma_start_bd_chain @q(%x) : (memref<8192xi32>) on (%s, MM2S, 0)"),
    "aiex.dma_start_bd_chain_for": ("", "aiex.dma_start_bd_chain_for @q(%x) : (memref<8192xi32>) for @a"),
    "aiex.dma_start_task": (CONFIGURE, "aiex.dma_start_task(%t)"),
    "aiex.dma_await_task": (CONFIGURE, "aiex.dma_await_task(%t)"),
    "aiex.dma_free_task": (CONFIGURE, "aiex.dma_free_task(%t)"),
}


@pytest.mark.parametrize("operation", IN_LOOPS)
def test_tasks_stand_in_the_sequence_itself(operation: str):
    before, line = IN_LOOPS[operation]
    chain = f"aie.bd_chain @q(%x: memref<8192xi32>) {{ {BD} aie.end }}\naie.runtime_sequence"
    words = f"{operation}: must stand directly in an aie.runtime_sequence, not in scf.for"
    for text, wanted in ((line, "accepted"), (LOOP.format(line), words)):
        told = fault(sequence(f"{before}\n{text}").replace("aie.runtime_sequence", chain, 1))
        assert told == wanted, f"{text}: {told}"


DMA, BOX = "must stand in aie.mem, aie.memtile_dma or aie.shim_dma", "must stand in an aie.switchbox"
BUFFERS = "%b = aie.buffer(%c) : memref<64xi32>\n%l = aie.lock(%c)\n"
OUTSIDE = {
    "dma": ("func.func @f(%b: memref<64xi32>, %l: index) {\naie.dma(S2MM, 0) [{ aie.use_lock(%l, Acquire, 1)\n"
            "aie.dma_bd(%b : memref<64xi32>) aie.use_lock(%l, Release, 1) }]\nreturn\n}", DMA),
    "next_bd": ("func.func @f() {\naie.next_bd ^a\n^a:\nreturn\n}", "a DMA program, a task or an aie.bd_chain"),
    "amsel": ("aie.amsel<0> (0)", BOX),
    "masterset": ("%x = aie.switchbox(%c) {\n%a = aie.amsel<0> (0)\naie.masterset(South : 0, %a)\n}\n"
                  "aie.masterset(South : 0, %c)", BOX),
    "packet_rules": ("aie.packet_rules(DMA : 0) { }", BOX),
    "rule": ("aie.rule(31, 1, %c)", "its last operand must come from aie.amsel"),
    "guest of packet_rules": (
        "%x = aie.switchbox(%c) {\naie.packet_rules(DMA : 0) { aie.lock(%c) }\n}", "cannot stand in aie.packet_rules"),
    "amsel in a mux": ("%x = aie.shim_mux(%s) { %a = aie.amsel<0> (0) }", "cannot stand in aie.shim_mux"),
    "mem without a body": ("aie.mem(%c) { }", "needs a body, at least { aie.end }"),
    "cascade on a memtile": ("aie.configure_cascade(%m, North, South)", "is a memtile, which has no cascade"),
    "lock of a chain": (
        BUFFERS + "aie.bd_chain @q() {\n%n = arith.constant 0 : index\naie.use_lock(%n, Release, 1)\n"
        "aie.dma_bd(%b : memref<64xi32>)\naie.end\n}", "its operand must come from aie.lock"),
    "function without end": ("func.func @f() { aie.event(0) }", "must end with a terminator, not aie.event"),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_operations_outside_of_their_home_are_refused(name: str):
    text, words = OUTSIDE[name]
    told = fault(device(text))
    assert words in told, f"{name}: {told}"


CHAIN = "aie.bd_chain @q(%v: memref<64xi32>, %k: index) {{ {} aie.dma_bd(%v : memref<64xi32>) aie.end }}\n"
START = "aiex.dma_start_bd_chain @q({}) : ({}) on (%s, MM2S, 0)"
CHAINS = {
    "a lock": ("%x, %l", "memref<64xi32>, index", "accepted"),
    "a tile": ("%x, %s", "memref<64xi32>, index", "argument 1 of @q stands for a lock; give an aie.lock"),
    "too few": ("%x", "memref<64xi32>", "@q takes (memref<64xi32>, index), not (memref<64xi32>)"),
    "another type": ("%y, %l", "memref<8xi32>, index", "@q takes (memref<64xi32>, index), not (memref<8xi32>, index)"),
}


@pytest.mark.parametrize("name", CHAINS)
def test_templates_take_arguments_of_their_types(name: str):
    values, types, words = CHAINS[name]
    home = f"%l = aie.lock(%s)\n{CHAIN.format('aie.use_lock(%k, Acquire, 1)')}aie.runtime_sequence"
    text = sequence(START.format(values, types), "%x: memref<64xi32>, %y: memref<8xi32>")
    told = fault(text.replace("aie.runtime_sequence", home, 1))
    assert told.endswith(words), f"{name}: {told}"


NEIGHBOURS = {(1, 2), (1, 4), (0, 3), (2, 3)}


def test_cascades_join_the_four_neighbours_alone():
    places = [(column, row) for column in range(4) for row in range(2, 6)]
    for place in places:
        for ends in ("%a, %b", "%b, %a"):
            text = f"%a = aie.tile(1, 3)\n%b = aie.tile{place}\naie.cascade_flow({ends})"
            if place == (1, 3):
                text = "%a = aie.tile(1, 3)\naie.cascade_flow(%a, %a)"
            told = fault(f"aie.device(npu2) {{ {text} }}")
            words = "accepted" if place in NEIGHBOURS else "a cascade joins adjacent core tiles"
            assert told.endswith(words), f"(1, 3) with {place} as {ends}: {told}"


def test_the_mux_of_a_shim_joins_four_pairs_of_ports():
    joined = {"DMA : 0, North : 3", "DMA : 1, North : 7", "North : 2, DMA : 0", "North : 3, DMA : 1"}
    ports = [f"{bundle} : {channel}" for bundle, count in (("DMA", 2), ("North", 8)) for channel in range(count)]
    for source in ports:
        for target in ports:
            if source.split()[0] == target.split()[0]:
                continue
            told = fault(device(f"aie.shim_mux(%s) {{ aie.connect<{source}, {target}> }}"))
            assert (told == "accepted") == (f"{source}, {target}" in joined), f"{source} to {target}: {told}"


@pytest.mark.parametrize("given", ["column", "row"])
@pytest.mark.parametrize("operation", ["write32", "maskwrite32", "blockwrite"])
def test_a_column_comes_with_its_row(operation: str, given: str):
    fields = f"{{address = 0 : ui32, {given} = 0 : i32, value = 0 : ui32, mask = 0 : ui32}}"
    data = "memref.global constant @g : memref<1xi32> = dense<1>\naie.runtime_sequence"
    text = sequence(f"aiex.npu.{operation} {fields}")
    if operation == "blockwrite":
        line = f"%d = memref.get_global @g : memref<1xi32>\naiex.npu.blockwrite(%d) {fields} : memref<1xi32>"
        text = sequence(line).replace("aie.runtime_sequence", data, 1)
    other = "row" if given == "column" else "column"
    assert fault(text) == f"aiex.npu.{operation}: needs both column and row, or neither"
    assert fault(text.replace(f"{given} = 0", f"{given} = 0 : i32, {other} = 0")) == "accepted"


def test_calls_are_checked_against_the_functions_of_their_own_device():
    one = device(
        "func.func private @k(i32)\naie.core(%c) {\n%i = arith.constant 1 : i32\n"
        "func.call @k(%i) : (i32) -> ()\naie.end\n}"
    ).replace("aie.device(npu2)", "aie.device(npu2) @one")
    two = one.replace("@one", "@two").replace("@k", "@q")
    assert fault(one + two) == "accepted"
    assert "no func.func is called @k here; known: @q" in fault(one + two.replace("call @q", "call @k"))
    looped = "%z = arith.constant 0 : index\nscf.for %j = %z to %z step %z {\nfunc.call"
    assert fault(one.replace("func.call", looped).replace("-> ()", "-> ()\n}")) == "accepted"
    wrong = one.replace("-> ()", "-> i32").replace("func.call", "%r = func.call")
    assert "@k is of type (i32) -> (), but is called as (i32) -> i32" in fault(wrong)


def test_values_of_a_block_come_before_their_use():
    text = ("func.func @f(%p: i32) {{\ncf.br ^a\n^a:\n{}\ncf.br ^b\n^b:\nreturn\n}}").format
    lines = ["%v = arith.constant 1 : i32", "%w = arith.addi %v, %p : i32"]
    assert fault(device(text("\n".join(lines)))) == "accepted"
    assert "arith.addi uses %v, which is not defined on every way to it" in fault(device(text("\n".join(lines[::-1]))))


def test_bds_take_buffers_of_the_text():
    text = bd(", 0, 4)").replace("^bd:\n", "^bd:\n%a = memref.alloc() : memref<64xi32>\n").replace("_bd(%b", "_bd(%a")
    assert "its buffer must come from aie.buffer or aie.external_buffer" in fault(text)


def test_a_missing_end_is_told_at_the_last_operation():
    text = device("aie.core(%c) {\n  aie.lock(%c)\n}")
    with pytest.raises(MlirError) as caught:
        parse(text)
    line = text.splitlines()[caught.value.line - 1]
    assert line[caught.value.column - 1 :] == "aie.lock(%c)", f"told at {caught.value.line}:{caught.value.column}"
