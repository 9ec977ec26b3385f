"""Stream switches as registers hold them, so that routes can be followed."""

from collections import defaultdict

from bdforge.array.lower.array_state import ArrayState, StateError, TileState
from bdforge.array.routing.nets import SwitchPort
from bdforge.array.routing.packets import PacketRule
from bdforge.array.routing.physical import Switches
from bdforge.devices import MLIR_DEVICES, Device, PortBundle, TileKind
from bdforge.devices.register_names import What
from bdforge.devices.switch_registers import (
    CIRCUIT_MASTER,
    MUX_TO_DMA,
    PACKET_MASTER,
    RULE,
    SHIM_DEMUX,
    SHIM_MUX,
    SLAVE,
)
from bdforge.devices.switches import MSELS_PER_ARBITER, SHIM_MM2S_SLAVES, SHIM_S2MM_MASTERS, masters_of, slaves_of


def smallest_device(state: ArrayState) -> Device:
    """The smallest npu2 that has all columns of a state; StateError where no array has as many.

    Both generations have the same switches.
    """
    columns = 1 + max((column for column, _ in state.tiles), default=0)
    fitting = [d for d in MLIR_DEVICES.values() if d.name.startswith("npu2") and d.columns >= columns]
    if not fitting:
        raise StateError(f"column {columns - 1} is configured; no array has as many")
    return min(fitting, key=lambda device: device.columns)


def written_switches(state: ArrayState, device: Device) -> Switches:
    """The settings of all switches and shim muxes; each slave port's is the write that enabled it."""
    found = Switches(device)
    for _, tile in sorted(state.tiles.items()):
        for (port,), word in tile.of(What.SLAVE).items():
            if SLAVE.decode([word])["enable"]:
                found.settings[_slave(tile, port)] = tile.origins[What.SLAVE, "", (port,)]
        _circuits(found, tile)
        _packets(found, tile)
        if tile.kind is TileKind.SHIM:
            _mux(found, tile)
    return found


def _circuits(found: Switches, tile: TileState) -> None:
    circuit = {"enable": 1, "packet": 0}
    enabled = {port for (port,), word in tile.of(What.SLAVE).items() if SLAVE.decode([word]) == circuit}
    for (port,), word in tile.of(What.MASTER).items():
        values = CIRCUIT_MASTER.decode([word])
        if values["enable"] and not values["packet"] and values["slave"] in enabled:
            found.circuits[_slave(tile, values["slave"])].append(_master(tile, port))


def _packets(found: Switches, tile: TileState) -> None:
    listeners: dict[tuple[int, int], list[SwitchPort]] = defaultdict(list)
    for (port,), word in tile.of(What.MASTER).items():
        values = PACKET_MASTER.decode([word])
        if values["enable"] and values["packet"]:
            found.keeps[_master(tile, port)] = not values["drop_header"]
            for msel in range(MSELS_PER_ARBITER):
                if values["msels"] >> msel & 1:
                    listeners[values["arbiter"], msel].append(_master(tile, port))
    switched = {port for (port,), word in tile.of(What.SLAVE).items() if SLAVE.decode([word])["packet"]}
    rules: dict[SwitchPort, list[PacketRule]] = defaultdict(list)
    for (port, _), word in tile.of(What.RULE).items():
        values = RULE.decode([word])
        if values["enable"] and port in switched:
            target = values["arbiter"], values["msel"]
            masters = tuple(sorted(listeners[target]))
            rules[_slave(tile, port)].append(PacketRule(values["id"], values["mask"], *target, masters))
    found.rules |= {port: tuple(of_port) for port, of_port in rules.items()}


def _slave(tile: TileState, port: int) -> SwitchPort:
    return SwitchPort(tile.column, tile.row, *slaves_of(tile.kind)[port])


def _master(tile: TileState, port: int) -> SwitchPort:
    return SwitchPort(tile.column, tile.row, *masters_of(tile.kind)[port])


def _mux(found: Switches, tile: TileState) -> None:
    mux = SHIM_MUX.decode([tile.of(What.MUX).get((), 0)])
    demux = SHIM_DEMUX.decode([tile.of(What.DEMUX).get((), 0)])
    south = SwitchPort(tile.column, tile.row, PortBundle.SOUTH, 0)
    joined = {way for way in SHIM_MM2S_SLAVES if mux[f"south_{way}"] == MUX_TO_DMA}
    found.joined_slaves |= {south._replace(channel=way) for way in joined}
    joined = {way for way in SHIM_S2MM_MASTERS if demux[f"south_{way}"] == MUX_TO_DMA}
    found.joined_masters |= {south._replace(channel=way) for way in joined}
