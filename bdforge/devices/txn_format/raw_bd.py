"""`aiex.npu.writebd`: a buffer descriptor from raw register fields.

Source: mlir-aie 5ff2ab97, `AIEDmaToNpu.cpp` (`WriteBdToBlockWritePattern`).
"""

from collections.abc import Callable, Mapping

from bdforge.devices import Generation, TileKind
from bdforge.devices.bd_registers import Bits, RegisterError
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.registers import RUNTIME_AXI_CACHE, TILE_REGISTERS
from bdforge.devices.txn_format.bd_encoding import burst_code

# Register field of each attribute; `buffer_offset` and `burst_length` depend on the tile.
_FIELDS = {
    "buffer_length": "length", "enable_packet": "packet_enable", "out_of_order_id": "out_of_order_id",
    "packet_id": "packet_id", "packet_type": "packet_type",
    "d0_size": "d0_wrap", "d0_stride": "d0_step", "d1_size": "d1_wrap", "d1_stride": "d1_step", "d2_stride": "d2_step",
    "iteration_current": "iteration_current", "iteration_size": "iteration_wrap", "iteration_stride": "iteration_step",
    "next_bd": "next", "use_next_bd": "use_next", "valid_bd": "valid",
    "lock_rel_val": "release_value", "lock_rel_id": "release_id",
    "lock_acq_enable": "acquire_enable", "lock_acq_val": "acquire_value", "lock_acq_id": "acquire_id",
    "d0_zero_before": "d0_pad_before", "d1_zero_before": "d1_pad_before", "d2_zero_before": "d2_pad_before",
    "d0_zero_after": "d0_pad_after", "d1_zero_after": "d1_pad_after", "d2_zero_after": "d2_pad_after",
}  # fmt: skip


def raw_bd_words(
    kind: TileKind,
    generation: Generation,
    values: Mapping[str, int],
    too_wide: Callable[[RegisterError], None] | None = None,
) -> list[int]:
    """Register words of `aiex.npu.writebd`, whose `values` go into the fields as they are.

    As in mlir-aie `d2_size` is left out everywhere (shims and core tiles have no such field), and `buffer_offset`
    counts bytes on shims and core tiles but words on memtiles. RegisterError names a field that its value does not fit
    (`too_wide` gets it and may let it pass); ValueError one that the tile's BD has not.
    """
    layout = TILE_REGISTERS[kind].bd
    fields: dict[str, int] = {}
    for attribute, name in _FIELDS.items():
        value = values[attribute]
        if name in layout.fields:
            fields[name] = _pattern(layout.fields[name], value)
        elif value:
            raise ValueError(f"{attribute} = {value}, but a {kind} BD has no such field")
    offset = values["buffer_offset"]
    if kind is TileKind.SHIM:
        fields |= {"address_low": offset, "axi_cache": RUNTIME_AXI_CACHE}
        fields["burst"] = burst_code(generation, values.get("burst_length", 0))
    else:
        fields["address"] = offset // GRANULE_BYTES if kind is TileKind.CORE else offset
    return layout.encode(fields, too_wide)


def _pattern(field: Bits, value: int) -> int:
    """Signed fields may be given as their bit pattern."""
    lowest, highest = field.bounds
    return value - (highest - lowest + 1) if field.signed and highest < value <= highest - lowest else value
