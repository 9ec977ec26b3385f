"""Flows: circuits and packet routes from the sources to the sinks of an array.

Trace sources never send, and the way of completion tokens (from TileControl to a shim's South) carries nothing here:
tokens are counted where they arise. Both are accepted and left out.
"""

from bdforge.devices import TileKind
from bdforge.devices.limits import CORE_STREAM_PORTS, PACKET_IDS
from bdforge.emulator.array import Array
from bdforge.emulator.control_packet import ControlPort
from bdforge.emulator.core import Core, core_at
from bdforge.emulator.dma import Channel
from bdforge.emulator.errors import DesignError
from bdforge.emulator.packet import connect_packets
from bdforge.emulator.stream import Sink, Stream
from bdforge.mlir import Location, location
from bdforge.mlir.array_ops import Endpoint, FlowOp
from bdforge.mlir.stream_ops import PacketFlowOp
from bdforge.mlir.words import Bundle


class Flows:
    """The connections of one configuration."""

    def __init__(self, array: Array):
        self.array = array
        self.control_ports: dict[tuple[int, int], ControlPort] = {}
        self._ends = 0

    def circuit(self, op: FlowOp) -> None:
        """Connect an aie.flow; DesignError for an end that is none, or is in use."""
        where = location(op)
        if op.source.bundle is Bundle.TRACE or _is_token_path(op.source, op.destination):
            return
        source, sink = self._source(op.source, where), self._sink(op.destination, where)
        if source.packets is not None:
            raise DesignError(f"{where}: a circuit leaves {source.owner.name}, which an aie.packet_flow uses already")
        if sink.arbiter is not None:
            raise DesignError(f"{where}: a circuit ends in {sink.owner.name}, where an aie.packet_flow arrives already")
        if sink.source is not None:
            raise DesignError(f"{where}: two flows end in {sink.owner.name}; a circuit port takes one")
        source.connect(sink)

    def packets(self, op: PacketFlowOp) -> None:
        """Connect an aie.packet_flow; DesignError also for an id that headers cannot hold."""
        where = location(op)
        if op.id >= PACKET_IDS:
            raise DesignError(f"{where}: packet id {op.id} is outside 0 to {PACKET_IDS - 1}, what a header holds")
        if op.source.bundle is Bundle.TRACE:
            return
        if op.source.bundle is Bundle.CORE:
            raise DesignError(
                f"{where}: a core's aie.put_stream cannot end a packet, so packets from Core : {op.source.channel} are "
                "not emulated; use aie.flow, or send them by DMA"
            )
        for end in op.destinations:
            if _is_token_path(op.source, end):
                continue
            keep = op.keep_header or end.bundle is not Bundle.DMA  # switches drop headers at DMAs only (MA)
            source, sink = self._source(op.source, where), self._sink(end, where)
            connect_packets(source, sink, op.id, keep, self._ends, str(where))
            self._ends += 1

    def _source(self, end: Endpoint, where: Location) -> Stream:
        if end.bundle is Bundle.CORE:
            return self._core(end, where).output.stream
        if end.bundle is Bundle.TILE_CONTROL:
            return self.control_port(end, where).stream
        stream = self._channel(end, "MM2S", where).stream
        assert stream is not None
        return stream

    def _sink(self, end: Endpoint, where: Location) -> Sink:
        if end.bundle is Bundle.CORE:
            return self._core(end, where).input.sink
        if end.bundle is Bundle.TILE_CONTROL:
            return self.control_port(end, where).sink
        sink = self._channel(end, "S2MM", where).sink
        assert sink is not None
        return sink

    def _channel(self, end: Endpoint, direction: str, where: Location) -> Channel:
        if end.bundle is not Bundle.DMA:
            raise DesignError(f"{where}: flows of bundle {end.bundle} are not emulated; use DMA, Core or TileControl")
        tile = self.array.tile(end.tile.column, end.tile.row)
        if (direction, end.channel) not in tile.channels:
            raise DesignError(
                f"{where}: {tile.name} has {direction} channels 0 to {tile.limits.channels - 1}, not {end.channel}"
            )
        return tile.channels[direction, end.channel]

    def _core(self, end: Endpoint, where: Location) -> Core:
        tile = self.array.tile(end.tile.column, end.tile.row)
        if tile.kind is not TileKind.CORE or end.channel >= CORE_STREAM_PORTS:
            ports = "Core : 0 only" if tile.kind is TileKind.CORE else "no core"
            raise DesignError(f"{where}: {tile.name} has {ports}, so Core : {end.channel} is no end of a flow")
        return core_at(self.array, end.tile.column, end.tile.row)

    def control_port(self, end: Endpoint, where: Location) -> ControlPort:
        """The control port of a tile, made on first use."""
        place = end.tile.column, end.tile.row
        if end.channel != 0:
            raise DesignError(f"{where}: tile {place} has TileControl : 0 only, not {end.channel}")
        if place not in self.control_ports:
            self.control_ports[place] = ControlPort(self.array.tile(*place))
        return self.control_ports[place]


def _is_token_path(source: Endpoint, destination: Endpoint) -> bool:
    """Whether completion tokens go this way to the controller: out of the array at a shim's South."""
    to_controller = destination.bundle is Bundle.SOUTH and destination.tile.row == 0
    return to_controller and source.bundle is Bundle.TILE_CONTROL
