"""Streams: circuits and packet routes from sources to sinks of an array, as its switches make them.

Trace sources never send, and the way of completion tokens (from TileControl to a shim's South) carries nothing here:
tokens are counted where they arise; the switches tell whether they arrive.
"""

from collections.abc import Hashable, Mapping
from functools import partial

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.control_packet import ControlPort
from bdforge.array.emulator.cores.ports import CascadeFifo
from bdforge.array.emulator.errors import LoadError
from bdforge.array.emulator.packet import Arbiter, PacketSource, connect_packets
from bdforge.array.emulator.stream import Sink, Stream
from bdforge.array.emulator.tokens import token_problem
from bdforge.array.lower.array_state import ArrayState
from bdforge.array.lower.switch_state import written_switches
from bdforge.array.routing.nets import SwitchPort
from bdforge.array.routing.physical import RoutedStream, SwitchArbiter
from bdforge.devices import PortBundle
from bdforge.devices.register_names import What, register_at
from bdforge.devices.switch_registers import CASCADE
from bdforge.devices.txn_format.operations import Write


class WrittenStreams:
    """The streams of a configuration that was booted, which writes to switches change while it runs.

    LoadError for ends that no array has, for a stream that changes with words under way, and for circuits that are
    lost, once somebody sends: until then a tile may wait for the switch of another one.
    """

    def __init__(self, array: Array, state: ArrayState):
        self.array, self._state = array, state
        self._control_ports: dict[tuple[int, int], ControlPort] = {}
        self._arbiters: dict[SwitchArbiter, Arbiter] = {}
        self._ends = 0
        self._connected: Mapping[Hashable, RoutedStream] = {}
        self._changed = False
        self._connect()

    def write(self, address: int, value: int) -> None:
        """A switch, shim mux or cascade register becomes `value`, to which `settle` gives its effect."""
        if value != self.read(address):
            self._state.apply(Write(address, value))
            self._changed = True

    def read(self, address: int) -> int:
        """The word of a switch, shim mux or cascade register; 0 for one that nobody wrote."""
        register = register_at(address)
        tile = self._state.tiles.get((register.column, register.row))
        return 0 if tile is None else tile.registers.get((register.what, register.direction, register.index), 0)

    def settle(self) -> None:
        """Give what was written its effect."""
        if self._changed:
            self._changed = False
            self._connect()

    def _connect(self) -> None:
        """Connect what switches join now, and part what they joined before."""
        switches = written_switches(self._state, self.array.device)
        streams = {_way(stream): stream for stream in switches.streams() if stream.start.bundle is not PortBundle.SOUTH}
        before, self._connected = self._connected, streams  # South: nobody sends, no shim mux joins it to a DMA
        changed = [stream for way, stream in (*before.items(), *streams.items()) if (way in before) != (way in streams)]
        packets = any(stream.packet_id is not None for stream in changed)  # they share arbiters: all of them, or none
        for way, stream in before.items():
            if way not in streams or (packets and stream.packet_id is not None):
                self._part(stream)
        if packets:
            self._arbiters.clear()
        for way, stream in streams.items():
            if way not in before or (packets and stream.packet_id is not None):
                self.add(stream)
        self.array.token_ways = partial(token_problem, switches)
        join_cascades(self.array, self._state)

    def _part(self, stream: RoutedStream) -> None:
        """Take apart what `add` joined; LoadError while its words are under way."""
        where = str(stream.setting.location or register_at(stream.setting.address))
        ends = [end for end in stream.ends.values() if not _is_unheard(stream.start, end)]
        if not ends and not stream.lost:
            return
        source = self._source(stream.start, where)
        sinks = [self._sink(end, where) for end in ends]
        if (source.blocked and source.sinks) or any(sink.held for sink in sinks):
            error = LoadError(
                f"{where}: a switch is set anew while words from {source.owner.name} are under way; await the token of "
                "what takes them first"
            )
            self.array.strictness.fault("routing", error)
        source.packets, source.sinks, source.lost = None, [], None
        for sink in sinks:
            sink.source = sink.arbiter = None

    def add(self, stream: RoutedStream) -> None:
        where = str(stream.setting.location or register_at(stream.setting.address))
        for leaf in stream.leaves:
            if (end := stream.ends.get(leaf.master)) is None or _is_unheard(stream.start, end):
                continue
            if stream.packet_id is None:
                self._circuit(stream.start, end, where)
            else:
                self._packets(stream.packet_id, stream.start, end, leaf.keeps_header, where)
        if stream.lost and stream.start.bundle is not PortBundle.TRACE:
            self._lose(stream, where)
        unheard = all(_is_unheard(stream.start, end) for end in stream.ends.values())
        if stream.packet_id is not None and stream.arbiters and not unheard:
            source = self._source(stream.start, where)
            if source.packets is not None and (route := source.packets.routes.get(stream.packet_id)) is not None:
                route.way = [self._arbiter(arbiter, source) for arbiter in stream.arbiters]

    def _lose(self, stream: RoutedStream, where: str) -> None:
        """Words on a circuit that leads nowhere block for ever, and packets are gone: a fault of whoever sends them."""
        if stream.packet_id is None and len(stream.lost) == sum(
            leaf.master not in stream.ends for leaf in stream.leaves
        ):
            return  # they leave the array, where nobody takes them
        if stream.packet_id is None:
            error = LoadError(f"{where}: the words from {stream.source} are lost: {stream.lost[0]}")
            self._source(stream.start, where).lost = partial(self.array.strictness.fault, "routing", error)
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

    def _circuit(self, start: SwitchPort, end: SwitchPort, where: str) -> None:
        source, sink = self._source(start, where), self._sink(end, where)
        if sink.source is not None:
            raise LoadError(f"{where}: two circuits end in {sink.owner.name}; a port takes one")
        source.connect(sink)
        source.changed()  # who has waited for a way to send goes on

    def _packets(self, packet_id: int, start: SwitchPort, end: SwitchPort, keep: bool, where: str) -> None:
        if start.bundle is PortBundle.CORE:
            raise LoadError(
                f"{where}: a core's aie.put_stream cannot end a packet, so packets from Core : {start.channel} are "
                "not emulated; use aie.flow, or send them by DMA"
            )
        source, sink = self._source(start, where), self._sink(end, where)
        connect_packets(source, sink, packet_id, keep, self._ends, where)
        self._ends += 1

    def _source(self, end: SwitchPort, where: str) -> Stream:
        return self._ends_at(end, where)[0]

    def _sink(self, end: SwitchPort, where: str) -> Sink:
        return self._ends_at(end, where)[1]

    def _ends_at(self, end: SwitchPort, where: str) -> tuple[Stream, Sink]:
        """What sends and what receives at a port of a tile."""
        match end.bundle:
            case PortBundle.CORE:
                core = self.array.core(*end.tile)
                return core.output, core.input
            case PortBundle.TILE_CONTROL:
                port = self._control_port(end)
                return port.stream, port.sink
            case PortBundle.DMA:
                channels = self.array.tile(*end.tile).channels
                stream, sink = channels["MM2S", end.channel].stream, channels["S2MM", end.channel].sink
                assert stream is not None
                assert sink is not None
                return stream, sink
        raise LoadError(f"{where}: flows of bundle {end.bundle} are not emulated; use DMA, Core or TileControl")

    def _control_port(self, end: SwitchPort) -> ControlPort:
        if end.tile not in self._control_ports:
            self._control_ports[end.tile] = ControlPort(self.array.tile(*end.tile), self.array.controlled)
        return self._control_ports[end.tile]


def _way(stream: RoutedStream) -> Hashable:
    """What tells two streams apart: where words come from, which, and where they go."""
    leaves = tuple((leaf.master, leaf.keeps_header, stream.ends.get(leaf.master)) for leaf in stream.leaves)
    return stream.source, stream.start, stream.packet_id, leaves, tuple(stream.arbiters), tuple(stream.lost)


def join_cascades(array: Array, state: ArrayState) -> None:
    """Join neighbours of which one gives its cascade to the side from which the other takes its own."""
    sides = {place: tile.of(What.CASCADE) for place, tile in state.tiles.items()}
    set_ = {place: CASCADE.decode([found[()]]) for place, found in sorted(sides.items()) if found}
    for (column, row), values in set_.items():
        east = values["output_east"]
        target = (column + 1, row) if east else (column, row - 1)
        if target not in set_ or set_[target]["input_west"] != east:
            continue
        sender, receiver = array.core(column, row), array.core(*target)
        joined = sender.cascade_out
        if joined is None or joined is not receiver.cascade_in:
            sender.cascade_out = receiver.cascade_in = CascadeFifo(sender, receiver, array.scheduler.wake)


def _is_unheard(start: SwitchPort, end: SwitchPort) -> bool:
    """Whether nothing is carried here: traces, and completion tokens on their way out of the array."""
    is_token = start.bundle is PortBundle.TILE_CONTROL and end.bundle is PortBundle.SOUTH and end.row == 0
    return start.bundle is PortBundle.TRACE or is_token
