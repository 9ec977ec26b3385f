"""Stream switches as registers hold them, written as the physical form of a device, so that routes can be followed."""

from collections.abc import Iterator, Mapping

from bdforge.devices import MLIR_DEVICES, TileKind
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
from bdforge.devices.switches import (
    MSELS_PER_ARBITER,
    SHIM_MM2S_SLAVES,
    SHIM_S2MM_MASTERS,
    PortBundle,
    masters_of,
    slaves_of,
)
from bdforge.lower.state import ArrayState, StateError, TileState


def physical_text(state: ArrayState) -> str:
    """MLIR with the switches and shim muxes of a state on the smallest npu2 that has all of its columns.

    Both generations have the same switches. StateError where no array has as many columns.
    """
    lines = [line for _, tile in sorted(state.tiles.items()) for line in _tile(tile)]
    return "\n".join([f"aie.device({_device(state)}) {{", *lines, "}"])


def _device(state: ArrayState) -> str:
    columns = 1 + max((column for column, _ in state.tiles), default=0)
    fitting = [d for d in MLIR_DEVICES.values() if d.name.startswith("npu2") and d.columns >= columns]
    if not fitting:
        raise StateError(f"column {columns - 1} is configured; no array has as many")
    return min(fitting, key=lambda device: device.columns).mlir


def _tile(tile: TileState) -> Iterator[str]:
    name = f"%t_{tile.column}_{tile.row}"
    yield f"  {name} = aie.tile({tile.column}, {tile.row})"
    settings = [*_circuits(tile), *_packets(tile)]
    if settings:
        yield f"  aie.switchbox({name}) {{"
        yield from (f"    {line}" for line in settings)
        yield "  }"
    joins = list(_mux(tile)) if tile.kind is TileKind.SHIM else []
    if joins:
        yield f"  aie.shim_mux({name}) {{"
        yield from (f"    aie.connect<{line}>" for line in joins)
        yield "  }"


def _circuits(tile: TileState) -> Iterator[str]:
    masters, slaves = masters_of(tile.kind), slaves_of(tile.kind)
    circuit = {"enable": 1, "packet": 0}
    enabled = {port for (port,), word in tile.of(What.SLAVE).items() if SLAVE.decode([word]) == circuit}
    for (port,), word in tile.of(What.MASTER).items():
        values = CIRCUIT_MASTER.decode([word])
        if values["enable"] and not values["packet"] and values["slave"] in enabled:
            yield f"aie.connect<{_port(slaves[values['slave']])}, {_port(masters[port])}>"


def _packets(tile: TileState) -> Iterator[str]:
    masters, slaves = masters_of(tile.kind), slaves_of(tile.kind)
    packet = {port: PACKET_MASTER.decode([word]) for (port,), word in tile.of(What.MASTER).items()}
    packet = {port: values for port, values in packet.items() if values["enable"] and values["packet"]}
    rules = {index: RULE.decode([word]) for index, word in tile.of(What.RULE).items()}
    rules = {index: values for index, values in rules.items() if values["enable"] and _is_packet(tile, index[0])}
    used = {(v["arbiter"], msel) for v in packet.values() for msel in _msels(v)}
    used |= {(values["arbiter"], values["msel"]) for values in rules.values()}
    for arbiter, msel in sorted(used):
        yield f"{_amsel(arbiter, msel)} = aie.amsel<{arbiter}> ({msel})"
    for port, values in packet.items():
        names = ", ".join(_amsel(values["arbiter"], msel) for msel in _msels(values))
        keeps = str(not values["drop_header"]).lower()
        if names:
            yield f"%m{port} = aie.masterset({_port(masters[port])}, {names}) {{keep_pkt_header = {keeps}}}"
    for port in sorted({port for port, _ in rules}):
        yield f"aie.packet_rules({_port(slaves[port])}) {{"
        yield from (_rule(values) for (slave, _), values in rules.items() if slave == port)
        yield "}"


def _is_packet(tile: TileState, slave: int) -> bool:
    word = tile.of(What.SLAVE).get((slave,), 0)
    return SLAVE.decode([word]) == {"enable": 1, "packet": 1}


def _msels(values: Mapping[str, int]) -> list[int]:
    return [msel for msel in range(MSELS_PER_ARBITER) if values["msels"] >> msel & 1]


def _amsel(arbiter: int, msel: int) -> str:
    return f"%a{arbiter}_{msel}"


def _rule(values: Mapping[str, int]) -> str:
    return f"  aie.rule({values['mask']}, {values['id']}, {_amsel(values['arbiter'], values['msel'])})"


def _port(port: tuple[PortBundle, int]) -> str:
    bundle, channel = port
    return f"{bundle} : {channel}"


def _mux(tile: TileState) -> Iterator[str]:
    mux = SHIM_MUX.decode([tile.of(What.MUX).get((), 0)])
    demux = SHIM_DEMUX.decode([tile.of(What.DEMUX).get((), 0)])
    for channel, port in enumerate(SHIM_MM2S_SLAVES):
        if mux[f"south_{port}"] == MUX_TO_DMA:
            yield f"DMA : {channel}, North : {port}"
    for channel, port in enumerate(SHIM_S2MM_MASTERS):
        if demux[f"south_{port}"] == MUX_TO_DMA:
            yield f"North : {port}, DMA : {channel}"
