"""What newer mlir-aie has and this reader does not run: each refused by name, with what to write instead.

Unknown attributes in braces are kept without a word in every version, so those that change what a design does are
listed here. Source: mlir-aie's pull requests that the entries name, snapshots of AIEOps.td and AIEX.td of autumn 2026.
"""

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation

_SCRATCHPAD = "parameters that the firmware fills in (#3056, #3061) cannot be known here; give the number itself"
_COMPILER_OUTPUT = "mlir-aie's passes write it for loops of the sequence; give the file from before those passes"
_RESET = "which registers it writes is the tool's choice (#3370, #3375, #3393); load the device again instead"
_UNORDERED = "out-of-order BDs (#3577) are not run here; receive in order"
_VIA = "which switches a flow passes is the router's choice here; leave it out, or write aie.switchbox"
_LENGTH_UNIT = "belongs to length_parameter; " + _SCRATCHPAD

OPERATIONS = {
    "via": f"a clause of aie.flow: {_VIA}",
    "aie.route": "routes to named endpoints are not read here; write aie.flow between the tiles",
    "aie.route_endpoint": "routes to named endpoints are not read here; write aie.flow between the tiles",
    "aiex.dma_channel_reset": _RESET,
    "aiex.dma_channel_reset_for": _RESET,
    "aiex.core_reset": _RESET,
    "aiex.npu.create_scratchpad": _SCRATCHPAD,
    "aiex.npu.update_from_scratchpad": _SCRATCHPAD,
    "aiex.scratchpad_parameter": _SCRATCHPAD,
    "aiex.read_scratchpad_parameter": _SCRATCHPAD,
    "aiex.sync_scratchpad_parameter": _SCRATCHPAD,
    "aiex.npu.maskpoll": "no register is waited for here; wait for a token",
    "aiex.npu.read_reg": "nothing in a stream can use what a register holds; read it on the host",
    "aiex.npu.require": "it checks a value when the sequence runs; give constants, which are checked here",
    "aiex.npu.blockwrite_values": f"{_COMPILER_OUTPUT}, or write aiex.npu.blockwrite",
    "aiex.npu.assert_bd_field": _COMPILER_OUTPUT,
    "aiex.npu.assert_bd_divisible": _COMPILER_OUTPUT,
    "aiex.assert_bd_field": _COMPILER_OUTPUT,
    "aiex.assert_bd_divisible": _COMPILER_OUTPUT,
    "aiex.dma_bd_pool_pop": _COMPILER_OUTPUT,
    "aiex.dma_bd_pool_push": _COMPILER_OUTPUT,
}  # fmt: skip

_ATTRIBUTES = {
    ("aie.dma_bd", "out_of_order_id"): _UNORDERED,
    ("aie.dma_bd", "offset_parameter"): _SCRATCHPAD,
    ("aie.dma_bd", "length_parameter"): _SCRATCHPAD,
    ("aie.dma_bd", "length_unit"): _LENGTH_UNIT,
    ("aie.dma_start", "out_of_order"): _UNORDERED,
    ("aie.dma", "out_of_order"): _UNORDERED,
    ("aiex.dma_configure_task", "out_of_order"): _UNORDERED,
    ("aiex.dma_configure_task_for", "out_of_order"): _UNORDERED,
    ("aiex.npu.dma_memcpy_nd", "offset_parameter"): _SCRATCHPAD,
    ("aiex.npu.dma_memcpy_nd", "length_parameter"): _SCRATCHPAD,
    ("aiex.npu.dma_memcpy_nd", "length_unit"): _LENGTH_UNIT,
    ("aie.flow", "via"): _VIA,
    ("aie.core", "stack_address"): "stacks start at address 0 here; leave it out",
    ("aie.core", "stack_bank"): "stacks start at address 0 here; leave it out",
    ("aie.core", "data_size"): "a core's static data has no place in memory here; give it an aie.buffer",
}
_LOADS = "aiex.npu.load_pdi", "aiex.configure"
_EXPAND_MODES = "none", "write32", "ctrlpkt"  # in the order of their numbers (#3332)


def refused_operation(name: str) -> str | None:
    """Why an operation of newer mlir-aie is not read, or None."""
    why = OPERATIONS.get(name)
    return None if why is None else f"'{name}' of newer mlir-aie cannot be run: {why}"


def attribute_problem(op: Operation) -> str | None:
    """Which attribute of an operation would be left out without a word, or None."""
    for name, value in op.attributes.items():
        if (why := _ATTRIBUTES.get((op.name, name))) is not None and not _is_zero(value):
            return f"{name}: {why}"
        if name == "expand_mode" and op.name in _LOADS and expand_mode(op) is None:
            return f"{name} = {value}: is none of {', '.join(_EXPAND_MODES)}, or their numbers"
    return None


def expand_mode(op: Operation) -> str | None:
    """How an operation that loads a device does it: none for a PDI, else write32 or ctrlpkt; None for what is unknown.

    mlir-aie resets the array first either way, so that what is loaded is the same.
    """
    value = op.attributes.get("expand_mode")
    if value is None:
        return "none"
    if isinstance(value, IntegerAttr):
        return dict(enumerate(_EXPAND_MODES)).get(value.value.data)
    return next((mode for mode in _EXPAND_MODES if mode in str(value)), None)


def _is_zero(value: Attribute) -> bool:
    return isinstance(value, IntegerAttr) and value.value.data == 0
