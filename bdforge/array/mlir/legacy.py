"""Texts that cannot be read, each with what replaces it: older forms of mlir-aie, and what only its passes read."""

import re

from bdforge.array.mlir.newer_ops import refused_operation
from bdforge.common.messages import clip

LEGACY_DEVICES = {
    "npu": "device 'npu' was renamed: write 'npu1'",
    "ipu": "device 'ipu' was renamed: write 'npu1'",
    "npu1_4col": "device 'npu1_4col' was dropped: the whole array with 4 columns is 'npu1'",
    "npu2_8col": "device 'npu2_8col' was dropped: the whole array with 8 columns is 'npu2'",
    "xcvc1902": "'xcvc1902' is no NPU; bdforge knows npu1, npu2 and their npu1_Ncol, npu2_Ncol parts",
    "xcve2302": "'xcve2302' is no NPU; bdforge knows npu1, npu2 and their npu1_Ncol, npu2_Ncol parts",
    "xcve2802": "'xcve2802' is no NPU; bdforge knows npu1, npu2 and their npu1_Ncol, npu2_Ncol parts",
}

LEGACY_OPERATIONS = {
    "aiex.runtime_sequence": "'aiex.runtime_sequence' was renamed: write 'aie.runtime_sequence'",
    "aiex.npu.shimtile_push_queue": "'aiex.npu.shimtile_push_queue' was replaced by 'aiex.npu.push_queue'",
}

_NO_PLACING = "write the array's tiles, flows and DMAs explicitly"
REMOVED_OPERATIONS = {
    "aie.shim_switchbox": "write aie.switchbox on the shim's tile",
    "aie.objectfifo.register_process": "write the core's program in an aie.core",
    **{f"aiex.{name}": _NO_PLACING for name in ("herd", "place", "route", "iter", "select", "getTile", "connection")},
}

LEGACY_DIMENSION = "dimensions without names were dropped: write <size = 4, stride = 1> instead of <4, 1>"

_LEGACY_FORMS = (
    (
        "aie.shim_dma_allocation",
        re.compile(r"\s*@[^\s(]+\s*\(\s*\"?(MM2S|S2MM)"),
        "shim_dma_allocation by column was dropped ('bdforge convert' rewrites it): write "
        "aie.shim_dma_allocation @name (%tile, MM2S, channel) "
        "with a shim's aie.tile",
    ),
    (
        "aiex.npu.dma_memcpy_nd",
        re.compile(r"\s*\(\s*-?\d+\s*,\s*-?\d+\s*,"),
        "dma_memcpy_nd with a leading column and row was dropped ('bdforge convert' rewrites it): write "
        "aiex.npu.dma_memcpy_nd(%a[..][..][..]); "
        "the metadata's shim_dma_allocation names the tile",
    ),
    (
        "aiex.dma_configure_task",
        re.compile(r"[^{]*\)\s*(repeat|bd_id)\s*%"),
        "a task's repeat and bd_id as operands are what mlir-aie's passes write for loops of the sequence: write "
        "{repeat_count = n : i32} behind its body and {bd_id = n : i32} behind its aie.dma_bd",
    ),
    (
        "aie.packet_flow",
        re.compile(r"\s*\([^)]*mask"),
        "a packet flow of several ids by a mask is not read here: write one aie.packet_flow for each id",
    ),
    (
        "aie.dma_start",
        re.compile(r"\s*\([^,]*,\s*@"),
        "a DMA at a named endpoint is not read here: write the channel's number, and aie.flow between the tiles",
    ),
    (
        "aie.logical_tile",
        re.compile(r"\s*<[^>]*>\s*\([^)]*\?"),
        "where this tile lies is left to mlir-aie's passes: write its column and row, or give the file behind them "
        "(input_physical.mlir in aiecc's folder)",
    ),
)


_COMPILER_DIALECTS = ("llvm", "dlti", "xllvm")
_AIECC_FILE = "input_with_addresses.mlir of aiecc's work folder (<design>.mlir.prj), or its routed input_physical.mlir"


def unknown_operation(name: str) -> str:
    """What to do about an operation that no dialect here has: which file of aiecc's to give instead."""
    dialect, name = name.partition(".")[0], clip(name)
    if (known := legacy_operation(name) or refused_operation(name)) is not None:
        return f"{known} ('bdforge convert' does it)" if "was renamed" in known else known
    if dialect in _COMPILER_DIALECTS:
        return (
            f"'{name}' belongs to text that is lowered for the cores' compiler (input_opt.mlir?), without buffers, BDs "
            f"and streams; give {_AIECC_FILE}"
        )
    if dialect in ("aie", "aiex"):
        return f"operation '{name}' is unknown; if aie-opt takes this text, give what aiecc made of it: {_AIECC_FILE}"
    return f"operation '{name}' is unknown"


def unknown_attribute(message: str) -> str | None:
    """What to do about a type or attribute of a dialect that designs do not use, from xDSL's complaint; else None."""
    found = re.fullmatch(r"'([\w.]+)' is not registered", message)
    if found is None or found[1].partition(".")[0] not in _COMPILER_DIALECTS:
        return None
    return f"'{found[1]}' belongs to text for the cores' compiler (input_opt.mlir?); give {_AIECC_FILE}"


def legacy_operation(name: str) -> str | None:
    """What replaced an operation that is gone, or None for one that never was."""
    if name in LEGACY_OPERATIONS:
        return LEGACY_OPERATIONS[name]
    if name in REMOVED_OPERATIONS:
        return f"'{name}' was removed from mlir-aie: {REMOVED_OPERATIONS[name]}"
    if name.startswith("aiex.ipu."):
        return f"'{name}' was renamed: write 'aiex.npu.{name.removeprefix('aiex.ipu.')}'"
    if name.startswith(("AIE.", "AIEX.")):
        return f"'{name}' was renamed: write '{name.lower()}'"
    if name.startswith("aie.objectfifo"):
        return (
            f"'{name}' is not explicit: lower it with aie-opt --aie-objectFifo-stateful-transform first, or give "
            f"{_AIECC_FILE}"
        )
    return None


def legacy_form(name: str, rest: str) -> str | None:
    """What replaced the spelling that follows an operation's name, or None."""
    return next((hint for op, form, hint in _LEGACY_FORMS if op == name and form.match(rest)), None)
