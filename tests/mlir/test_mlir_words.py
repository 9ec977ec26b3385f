"""Words of the dialect by their codes; texts of other versions by what is told about each."""

import pytest
from mlir_texts import bd, device, every, only, sequence

from bdforge.array.mlir import MlirError, parse, print_generic, print_module
from bdforge.array.mlir import newer_ops as newer
from bdforge.array.mlir.bd_ops import DmaBdOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.legacy import LEGACY_DEVICES, LEGACY_OPERATIONS, REMOVED_OPERATIONS, unknown_operation
from bdforge.devices.coded_words import CodedWord

CODES = {  # AIEAttrs.td
    "Direction": {"S2MM": 0, "MM2S": 1},
    "PortBundle": {
        "Core": 0, "DMA": 1, "FIFO": 2, "South": 3, "West": 4, "North": 5, "East": 6, "PLIO": 7, "NOC": 8, "Trace": 9,
        "TileControl": 10,
    },
    "LockAction": {"Acquire": 0, "Release": 1, "AcquireGreaterEqual": 2},
    "Blocking": {"NonBlocking": 0, "Blocking": 1},
    "DeviceName": {"npu1": 4, "npu2": 8}
    | {f"npu1_{n}col": 4 + n for n in (1, 2, 3)}
    | {f"npu2_{n}col": 8 + n for n in range(1, 8)},
}  # fmt: skip


KINDS = {kind.__name__: kind for kind in CodedWord.__subclasses__()}


@pytest.mark.parametrize("name", CODES)
def test_words_have_the_codes_of_the_generic_form(name: str):
    kind = KINDS[name]
    assert {str(word): word.code for word in kind} == CODES[name]
    assert {str(kind.from_code(code)): code for code in CODES[name].values()} == CODES[name]
    with pytest.raises(ValueError, match=rf"99 is no code of {name}; known: "):
        kind.from_code(99)


def test_every_enumeration_has_its_codes_here():
    assert KINDS.keys() == CODES.keys()


OLD = {  # name: what stands in its place
    "aiex.runtime_sequence": "write 'aie.runtime_sequence'", "aie.shim_switchbox": "write aie.switchbox on the shim's",
    "aiex.npu.shimtile_push_queue": "was replaced by 'aiex.npu.push_queue'",
    "aie.objectfifo.register_process": "write the core's program in an aie.core",
    **{f"aiex.{name}": "write the array's tiles, flows" for name in ("herd", "place", "route", "iter", "select")},
    "aiex.getTile": "write the array's tiles, flows", "aiex.connection": "write the array's tiles, flows",
    "aiex.ipu.write32": "write 'aiex.npu.write32'", "AIE.tile": "write 'aie.tile'", "AIEX.herd": "write 'aiex.herd'",
    "aie.objectfifo.link": "lower it with aie-opt", "llvm.call": "lowered for the cores' compiler",
    "dlti.query": "lowered for the cores' compiler", "xllvm.x": "lowered for the cores' compiler",
    "aie.tyle": "if aie-opt takes this text", "aiex.tyle": "if aie-opt takes this text", "air.launch": "is unknown",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*OLD, *LEGACY_OPERATIONS, *REMOVED_OPERATIONS}))
def test_operations_that_are_gone_name_what_replaces_them(name: str):
    told = unknown_operation(name)
    assert f"'{name}'" in told
    assert OLD[name] in told


DEVICES = {
    "npu": "write 'npu1'", "ipu": "write 'npu1'", "npu1_4col": "is 'npu1'", "npu2_8col": "is 'npu2'",
    "xcvc1902": "is no NPU", "xcve2302": "is no NPU", "xcve2802": "is no NPU",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*DEVICES, *LEGACY_DEVICES}))
def test_devices_that_are_gone_name_what_replaces_them(name: str):
    with pytest.raises(MlirError) as caught:
        parse(f"aie.device({name}) {{}}")
    assert f"'{name}'" in caught.value.message
    assert DEVICES[name] in caught.value.message


COMPILED, PARAMETER = "give the file from before those passes", "give the number itself"
NEWER = {
    "via": "aie.switchbox",
    "aie.route": "write aie.flow", "aie.route_endpoint": "write aie.flow",
    **dict.fromkeys(("aiex.dma_channel_reset", "aiex.dma_channel_reset_for", "aiex.core_reset"), "load the device"),
    "aiex.npu.create_scratchpad": PARAMETER, "aiex.npu.update_from_scratchpad": PARAMETER,
    "aiex.scratchpad_parameter": PARAMETER,
    "aiex.read_scratchpad_parameter": PARAMETER, "aiex.sync_scratchpad_parameter": PARAMETER,
    "aiex.npu.maskpoll": "wait for a token", "aiex.npu.read_reg": "read it on the host",
    "aiex.npu.require": "give constants", "aiex.npu.blockwrite_values": "or write aiex.npu.blockwrite",
    **{f"aiex.{n}assert_bd_{m}": COMPILED for n in ("", "npu.") for m in ("field", "divisible")},
    "aiex.dma_bd_pool_pop": COMPILED, "aiex.dma_bd_pool_push": COMPILED,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*NEWER, *newer.OPERATIONS}))
def test_operations_that_are_not_run_say_what_to_do(name: str):
    told = newer.refused_operation(name) or ""
    assert told.startswith(f"'{name}' of newer mlir-aie cannot be run: ")
    assert NEWER[name] in told


MEMCPY = "aiex.npu.dma_memcpy_nd(%x[0,0,0,0][1,1,1,4][0,0,0,1]) {id = 0, metadata = @a, ADDED} : memref<8192xi32>"
TASKS = {
    "aiex.dma_configure_task": "%t = aiex.dma_configure_task(%s, MM2S, 0)",
    "aiex.dma_configure_task_for": "%t = aiex.dma_configure_task_for @a",
}
HOMES = {
    "aie.dma_bd": bd(", 0, 64) {ADDED}"),
    "aie.dma_start": bd(", 0, 64)").replace("^bd, ^end)", "^bd, ^end) {ADDED}"),
    "aie.core": device("aie.core(%c) { aie.end } {ADDED}"),
    "aiex.npu.dma_memcpy_nd": sequence(MEMCPY),
    **{name: sequence(head + " { aie.dma_bd(%x : memref<8192xi32>) aie.end } {ADDED}") for name, head in TASKS.items()},
}
ADDED = [
    *(("aie.dma_bd", name) for name in ("out_of_order_id", "offset_parameter", "length_parameter", "length_unit")),
    *(("aiex.npu.dma_memcpy_nd", name) for name in ("offset_parameter", "length_parameter", "length_unit")),
    *((name, "out_of_order") for name in ("aie.dma_start", *TASKS)),
    *(("aie.core", name) for name in ("stack_address", "stack_bank", "data_size")),
]


@pytest.mark.parametrize(("operation", "name"), ADDED)
def test_attributes_that_would_be_lost_are_refused_unless_0(operation: str, name: str):
    parse(HOMES[operation].replace("ADDED", f"{name} = 0 : i32"))
    with pytest.raises(MlirError, match=f"{operation}: {name}: "):
        parse(HOMES[operation].replace("ADDED", f"{name} = 1 : i32"))


def test_rare_parts_of_a_bd_read_back_from_both_forms():
    text = bd(
        ", 0, 64, [<size = 8, stride = 8>, <size = 4, stride = 1>], [<const_pad_before = 0, const_pad_after = 0>, "
        "<const_pad_before = 1, const_pad_after = 3>], pad_value = -5) {bd_id = 47 : i32, next_bd_id = 0 : i32, "
        "packet = #aie.packet_info<pkt_type = 7, pkt_id = 31>}"
    )
    module = parse(text)
    for read in (module, parse(print_module(module)), parse(print_generic(module))):
        (op,) = every(read, DmaBdOp)
        found = (op.dims, op.padding, op.pad_value, op.bd_id, op.next_bd_id, op.packet)
        assert found == ([(8, 8), (4, 1)], [(0, 0), (1, 3)], -5, 47, 0, (7, 31))
    assert only(parse(print_module(module)), DeviceOp).symbol == "main"
