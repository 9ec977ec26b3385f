"""Flows: circuits and packet routes from the sources to the sinks of an array.

Trace sources never send, and the way of completion tokens (from TileControl to a shim's South) carries nothing here:
tokens are counted where they arise. Both are accepted and left out. In the physical form the switches say where words
go, and whether there is a way for tokens.
"""

from functools import partial

from bdforge.devices import TileKind
from bdforge.devices.limits import CORE_STREAM_PORTS, PACKET_IDS
from bdforge.emulator.array import Array
from bdforge.emulator.control_packet import ControlPort
from bdforge.emulator.cores.core import Core
from bdforge.emulator.dma import Channel
from bdforge.emulator.errors import DesignError
from bdforge.emulator.packet import Arbiter, PacketSource, connect_packets
from bdforge.emulator.stream import Sink, Stream
from bdforge.emulator.tokens import token_problem
from bdforge.mlir import Location, location
from bdforge.mlir.array_ops import DeviceOp, Endpoint, FlowOp
from bdforge.mlir.stream_ops import PacketFlowOp
from bdforge.mlir.words import Bundle
from bdforge.routing.nets import is_wire, leaves_array
from bdforge.routing.physical import Arbiter as SwitchArbiter
from bdforge.routing.physical import Stream as SwitchedStream
from bdforge.routing.physical import Switches


class Flows:
    """The connections of one configuration."""

    def __init__(self, array: Array):
        self.array = array
        self.control_ports: dict[tuple[int, int], ControlPort] = {}
        self._arbiters: dict[SwitchArbiter, Arbiter] = {}
        self._ends = 0

    def circuit(self, op: FlowOp) -> None:
        """Connect an aie.flow; DesignError for an end that is none, or is in use."""
        if not _is_left_out(op.source, op.destination):
            self._circuit(op.source, op.destination, location(op))

    def packets(self, op: PacketFlowOp) -> None:
        """Connect an aie.packet_flow; DesignError also for an id that headers cannot hold."""
        where = location(op)
        if op.id >= PACKET_IDS:
            raise DesignError(f"{where}: packet id {op.id} is outside 0 to {PACKET_IDS - 1}, what a header holds")
        for end in (end for end in op.destinations if not _is_left_out(op.source, end)):
            keep = op.keep_header or end.bundle is not Bundle.DMA  # switches drop headers at DMAs only (MA)
            self._packets(op.id, op.source, end, keep, where)

    def physical(self, device: DeviceOp) -> None:
        """Connect what the switches of a device in physical form do; DesignError for circuits that are lost."""
        switches = Switches(device)
        for stream in switches.streams():
            if stream.start.bundle is not Bundle.SOUTH:  # nobody sends there: no shim mux joins it to a DMA
                self._stream(stream)
        self.array.token_ways = partial(token_problem, switches)

    def _stream(self, stream: SwitchedStream) -> None:
        where = location(stream.op)
        for leaf in stream.leaves:
            if (end := stream.ends.get(leaf.master)) is None:
                continue
            if stream.packet_id is None:
                self._circuit(stream.start, end, where)
            else:
                self._packets(stream.packet_id, stream.start, end, leaf.keeps_header, where)
        if stream.lost and stream.start.bundle is not Bundle.TRACE:
            self._lose(stream, where)
        if stream.packet_id is not None and stream.arbiters and not _unheard(stream):
            source = self._source(stream.start, where)
            if source.packets is not None and (route := source.packets.routes.get(stream.packet_id)) is not None:
                route.way = [self._arbiter(arbiter, source) for arbiter in stream.arbiters]

    def _lose(self, stream: SwitchedStream, where: Location) -> None:
        """A circuit that leads nowhere blocks for ever; packets that do are a fault when somebody sends them."""
        what = f"{where}: the words from {stream.source}"
        if stream.packet_id is None:
            error = DesignError(f"{what} are lost: {stream.lost[0]}")
            self.array.strictness.fault("routing", error)
            return
        source = self._source(stream.start, where)
        if source.packets is None:
            source.packets = PacketSource(source)
        source.packets.lost[stream.packet_id] = f"{where}: {stream.lost[0]}"

    def _arbiter(self, place: SwitchArbiter, source: Stream) -> Arbiter:
        arbiter = self._arbiters.setdefault(place, Arbiter(None, -1, place=str(place)))
        if source not in arbiter.sources:
            arbiter.sources.append(source)
        return arbiter

    def _circuit(self, start: Endpoint, end: Endpoint, where: Location) -> None:
        if start.bundle is Bundle.TRACE or _is_token_path(start, end):
            return
        source, sink = self._source(start, where), self._sink(end, where)
        if source.packets is not None:
            raise DesignError(f"{where}: a circuit leaves {source.owner.name}, which an aie.packet_flow uses already")
        if sink.arbiter is not None:
            raise DesignError(f"{where}: a circuit ends in {sink.owner.name}, where an aie.packet_flow arrives already")
        if sink.source is source:
            return
        if sink.source is not None:
            raise DesignError(f"{where}: two flows end in {sink.owner.name}; a circuit port takes one")
        source.connect(sink)

    def _packets(self, packet_id: int, start: Endpoint, end: Endpoint, keep: bool, where: Location) -> None:
        if start.bundle is Bundle.TRACE:
            return
        if start.bundle is Bundle.CORE:
            raise DesignError(
                f"{where}: a core's aie.put_stream cannot end a packet, so packets from Core : {start.channel} are "
                "not emulated; use aie.flow, or send them by DMA"
            )
        if _is_token_path(start, end):
            return
        source, sink = self._source(start, where), self._sink(end, where)
        connect_packets(source, sink, packet_id, keep, self._ends, str(where))
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
        return self.array.core(end.tile.column, end.tile.row)

    def control_port(self, end: Endpoint, where: Location) -> ControlPort:
        """The control port of a tile, made on first use."""
        place = end.tile.column, end.tile.row
        if end.channel != 0:
            raise DesignError(f"{where}: tile {place} has TileControl : 0 only, not {end.channel}")
        if place not in self.control_ports:
            self.control_ports[place] = ControlPort(self.array.tile(*place), self.array.controlled)
        return self.control_ports[place]


def _unheard(stream: SwitchedStream) -> bool:
    """Whether a stream carries nothing here: traces, and completion tokens on their way to the controller."""
    only_tokens = all(_is_token_path(stream.start, end) for end in stream.ends.values())
    return stream.start.bundle is Bundle.TRACE or only_tokens


def _is_left_out(start: Endpoint, end: Endpoint) -> bool:
    return is_wire(start, "slave") or is_wire(end, "master") or leaves_array(start, end)


def _is_token_path(source: Endpoint, destination: Endpoint) -> bool:
    """Whether completion tokens go this way to the controller: out of the array at a shim's South."""
    to_controller = destination.bundle is Bundle.SOUTH and destination.tile.row == 0
    return to_controller and source.bundle is Bundle.TILE_CONTROL
