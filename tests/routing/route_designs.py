"""Designs that are flows only, as text and parsed."""

from bdforge.array.mlir import parse
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.routing import route
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


def routes_text() -> str:
    """Routes and packet rules of twenty flows."""
    flows = [circuit((c, 1, "DMA", i), ((c + i) % 4, 2 + i, "DMA", c % 2)) for c in range(4) for i in range(4)]
    flows += [packets(i, (3, 2 + i, "Trace", 0), (0, 0, "DMA", 0)) for i in range(4)]
    routing = route(flows_only("npu1", *flows))
    return f"{[routing.paths(net) for net in routing.nets]} {sorted(routing.rules.items())}"
