"""Designs that are flows only, as text and parsed."""

from bdforge.array.mlir import parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.devices import MLIR_DEVICES

End = tuple[int, int, str, int]


def end(port: End) -> str:
    """`%t0_2, DMA : 1`."""
    column, row, bundle, channel = port
    return f"%t{column}_{row}, {bundle} : {channel}"


def circuit(source: End, sink: End) -> str:
    """One aie.flow."""
    return f"aie.flow({end(source)}, {end(sink)})"


def packets(packet_id: int, source: End, *sinks: End) -> str:
    """One aie.packet_flow."""
    ends = " ".join(f"aie.packet_dest<{end(sink)}>" for sink in sinks)
    return f"aie.packet_flow({packet_id}) {{ aie.packet_source<{end(source)}> {ends} }}"


def flows_only(device: str, *flows: str) -> DeviceOp:
    """A device with every tile, and these flows from line 3 on."""
    facts = MLIR_DEVICES[device]
    tiles = " ".join(
        f"%t{column}_{row} = aie.tile({column}, {row})" for column in range(facts.columns) for row in range(facts.rows)
    )
    text = "\n".join([f"module {{ aie.device({device}) {{", tiles, *flows, "} }"])
    return next(op for op in parse(text, "flows.mlir").walk() if isinstance(op, DeviceOp))
