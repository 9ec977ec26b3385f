"""The physical form of a device: its routes written as switch settings, as aiecc's input_physical.mlir has them."""

from collections import defaultdict
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, i1, i8
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from bdforge.array.mlir.array_ops import Endpoint, FlowOp
from bdforge.array.mlir.attributes import PacketInfo, PacketInfoAttr, number
from bdforge.array.mlir.device_ops import DeviceOp, EndOp, TileOp
from bdforge.array.mlir.fields import PortName
from bdforge.array.mlir.locations import keep_name, take_place, take_places
from bdforge.array.mlir.stream_ops import PacketDestOp, PacketFlowOp, PacketSourceOp
from bdforge.array.mlir.switch_ops import ShimMuxOp, SwitchboxOp, SwitchSettingsOp
from bdforge.array.routing.nets import Net, SwitchPort, flow_ends, master_of
from bdforge.array.routing.physical import is_physical
from bdforge.array.routing.result import Routing
from bdforge.array.routing.switch_settings import Users, circuits, connect, packet_settings
from bdforge.devices import PortBundle, TileKind
from bdforge.devices.limits import CONTROLLER_IDS
from bdforge.devices.switches import SHIM_MM2S_SLAVES, SHIM_S2MM_MASTERS, SHIM_TOKEN_MASTER

Place = tuple[int, int]
_TRUE = IntegerAttr(1, i1)


def write_routes(module: ModuleOp) -> None:
    """Put the devices of a module into physical form; RoutingError where flows do not fit.

    Like aiecc it gives every tile the id of its completion tokens, routes those of declared shims, drops every
    `aie.flow` and keeps every `aie.packet_flow`. Devices that set their switches themselves stay as they are.
    """
    for device in [op for op in module.walk() if isinstance(op, DeviceOp)]:
        if not is_physical(device):
            write_device_routes(device)


def write_device_routes(device: DeviceOp) -> None:
    """Put one device into physical form; RoutingError where its flows do not fit."""
    from bdforge.array.routing import route  # which reads physical forms too

    _name_tokens(device)
    _write(device, route(device))


_ROUTED: WeakKeyDictionary[DeviceOp, DeviceOp] = WeakKeyDictionary()
"""Settings of switches by device: a text is run more often than it changes."""
_OF_STREAMS = (TileOp, FlowOp, PacketFlowOp, SwitchboxOp, ShimMuxOp)


def routed(device: DeviceOp) -> DeviceOp:
    """What sets the switches of a device: itself, or a copy in physical form, of which only streams count.

    RoutingError where its flows, and the tokens of its shims, do not fit.
    """
    ops = list(device.body.block.ops)
    boxes = any(isinstance(op, SwitchboxOp) for op in ops)
    if is_physical(device) or (boxes and not any(isinstance(op, FlowOp | PacketFlowOp) for op in ops)):
        return device
    if device not in _ROUTED:
        known: dict[SSAValue, SSAValue] = {}
        copies = []
        for op in (op for op in ops if isinstance(op, _OF_STREAMS)):
            copies.append(op.clone(known))
            take_places(copies[-1], op)
        found = DeviceOp(properties=dict(device.properties), regions=[Region(Block([*copies, EndOp()]))])
        write_device_routes(found)
        _ROUTED[device] = found
    return _ROUTED[device]


def _name_tokens(device: DeviceOp) -> None:
    """Controller ids for all tiles and a way to the controller for the tokens of shims, as aiecc's overlay adds it.

    It comes last, also behind a flow of the text for the same packets, and so the controller gets their headers. Only
    a circuit of the text leaves no port for it.
    """
    tiles = [op for op in device.body.block.ops if isinstance(op, TileOp)]
    for tile in tiles:
        if tile.controller_id is None:
            tile.attributes["controller_id"] = PacketInfoAttr(PacketInfo(0, CONTROLLER_IDS[tile.row]))
    taken = {
        source.tile.place
        for _, packet_id, source, sink in flow_ends(device)
        if packet_id is None and (source.bundle, sink.bundle) == (PortBundle.TILE_CONTROL, PortBundle.SOUTH)
    }
    shims = {tile.place: tile for tile in tiles if tile.kind is TileKind.SHIM}
    for place, tile in shims.items():
        if place not in taken:
            flow = _token_flow(tile)
            _append(device, flow)
            take_place(flow, tile)


def _token_flow(tile: TileOp) -> PacketFlowOp:
    assert tile.controller_id is not None
    ends = [(PacketSourceOp, PortBundle.TILE_CONTROL, 0), (PacketDestOp, PortBundle.SOUTH, SHIM_TOKEN_MASTER)]
    block = Block([
        kind(operands=[tile.result], properties={"bundle": number(bundle.code), "channel": number(channel)})
        for kind, bundle, channel in ends
    ])  # fmt: skip
    block.add_op(EndOp())
    properties: dict[str, Attribute] = {
        "ID": IntegerAttr(tile.controller_id.id, i8), "keep_pkt_header": _TRUE, "priority_route": _TRUE,
    }  # fmt: skip
    return PacketFlowOp.build(properties=properties, regions=[Region(block)])


def _append(device: DeviceOp, op: Operation) -> None:
    last = device.body.block.last_op
    assert last is not None
    device.body.block.insert_op_before(op, last)


def _write(device: DeviceOp, routing: Routing) -> None:
    keeps = _keepers(device)
    joins: dict[Place, dict[tuple[SwitchPort, SwitchPort], Operation]] = defaultdict(dict)
    users = Users()
    for net in routing.nets:
        for slave, master in routing.connections(net):
            users.add(net, slave, master)
            if net.packet_id is None:
                joins[slave.tile][slave, master] = net.flows[0]
    muxes = _muxes(routing.nets)
    for op in list(device.body.block.ops):
        if isinstance(op, FlowOp):
            op.detach()
            op.erase()
    rules: dict[Place, dict[SwitchPort, tuple]] = defaultdict(dict)
    for slave, found in routing.rules.items():
        rules[slave.tile][slave] = found
    tiles = {op.place: op for op in device.body.block.ops if isinstance(op, TileOp)}
    for place in sorted(joins.keys() | rules.keys()):
        tile = tiles.get(place) or _new_tile(device, place)
        settings = [*circuits(joins[place]), *packet_settings(rules[place], keeps, users)]
        _append_settings(device, SwitchboxOp, tile, settings)
        if place in muxes:
            _append_settings(device, ShimMuxOp, tile, [connect(*ends, flow) for ends, flow in muxes[place].items()])


def _keepers(device: DeviceOp) -> dict[SwitchPort, bool]:
    """Whether the last master port of packets keeps their headers: as the last flow to it says (MA)."""
    ends = [(flow, sink) for flow, _, _, sink in flow_ends(device) if isinstance(flow, PacketFlowOp)]
    return {master_of(sink): flow.keep_header for flow, sink in ends}


def _new_tile(device: DeviceOp, place: Place) -> TileOp:
    column, row = place
    tile = TileOp(properties={"col": number(column), "row": number(row)}, result_types=[IndexType()])
    _name(tile.result, f"tile_{column}_{row}")
    _append(device, tile)
    return tile


def _muxes(nets: Sequence[Net]) -> dict[Place, dict[tuple[PortName, PortName], Operation]]:
    """What each shim's mux joins, the DMA channels at the ends of its streams, and the flow that asks for it."""
    found: dict[Place, dict] = defaultdict(dict)
    for net in nets:
        if _is_shim_dma(net.start):
            channel = net.start.channel
            join = (PortBundle.DMA, channel), (PortBundle.NORTH, SHIM_MM2S_SLAVES[channel])
            found[net.source.tile].setdefault(join, net.flows[0])
        for sink, end in net.ends.items():
            if _is_shim_dma(end):
                join = (PortBundle.NORTH, SHIM_S2MM_MASTERS[end.channel]), (PortBundle.DMA, end.channel)
                found[sink.tile].setdefault(join, net.sinks[sink])
    return found


def _is_shim_dma(end: Endpoint) -> bool:
    return end.bundle is PortBundle.DMA and end.tile.kind is TileKind.SHIM


def _append_settings(
    device: DeviceOp, kind: type[SwitchSettingsOp], tile: TileOp, settings: Sequence[Operation]
) -> None:
    body = Region(Block([*settings, EndOp()]))
    op = kind.build(operands=[tile.result], result_types=[IndexType()], regions=[body])
    _name(op.result, f"{kind.name.removeprefix('aie.')}_{tile.column}_{tile.row}")
    _append(device, op)


def _name(value: SSAValue, name: str) -> None:
    value.name_hint = name
    keep_name(value, name)
