"""Stream switches and shim muxes as register writes (mlir-aie 5ff2ab97, `AIERT.cpp`)."""

from xdsl.ir import Operation as MlirOperation

from bdforge.array.mlir.switch_ops import MastersetOp, PacketRulesOp, ShimMuxOp, SwitchboxOp
from bdforge.array.routing.physical import keeps_header
from bdforge.array.txn.writer import Writer
from bdforge.devices import PortBundle, TileKind
from bdforge.devices.switch_registers import (
    CIRCUIT_MASTER,
    MUX_TO_DMA,
    PACKET_MASTER,
    RULE,
    SHIM_DEMUX,
    SHIM_DEMUX_OFFSET,
    SHIM_MUX,
    SHIM_MUX_OFFSET,
    SLAVE,
    master_offset,
    rule_offset,
    slave_offset,
)


def set_switch(writer: Writer, box: SwitchboxOp) -> None:
    """Circuits, then packet masters, then packet slaves with their rules, whose ports mlir.verify_switch knows."""
    kind, switch = box.tile.kind, box.tile.switch
    for connect in box.connects:
        slave, master = switch.slave_number(*connect.source), switch.master_number(*connect.destination)
        values = {"enable": 1, "slave": slave}
        _write(writer, connect, box, master_offset(kind, master), CIRCUIT_MASTER.encode(values))
        _write(writer, connect, box, slave_offset(kind, slave), SLAVE.encode({"enable": 1}))
    for masterset in box.mastersets:
        _set_master(writer, box, masterset)
    for rules in box.packet_rules:
        _set_rules(writer, box, rules)


def _set_master(writer: Writer, box: SwitchboxOp, op: MastersetOp) -> None:
    (arbiter,) = {amsel.arbiter for amsel in op.arbiters}  # as mlir.verify_switch sees to
    values = {
        "enable": 1, "packet": 1, "drop_header": int(not keeps_header(box, op)),
        "msels": sum({1 << amsel.msel for amsel in op.arbiters}), "arbiter": arbiter,
    }  # fmt: skip
    port = box.tile.switch.master_number(*op.destination)
    _write(writer, op, box, master_offset(box.tile.kind, port), PACKET_MASTER.encode(values))


def _set_rules(writer: Writer, box: SwitchboxOp, op: PacketRulesOp) -> None:
    kind, port = box.tile.kind, box.tile.switch.slave_number(*op.source)
    for number, rule in enumerate(op.rules):
        values = {
            "id": rule.value, "mask": rule.mask, "enable": 1, "msel": rule.target.msel, "arbiter": rule.target.arbiter,
        }  # fmt: skip
        _write(writer, rule, box, slave_offset(kind, port), SLAVE.encode({"enable": 1, "packet": 1}))
        _write(writer, rule, box, rule_offset(kind, port, number), RULE.encode(values))


def set_mux(writer: Writer, mux: ShimMuxOp) -> None:
    """Fields of a shim's mux and demux for its DMA, whose ports mlir.verify_switch knows."""
    for connect in mux.connects:
        (_, channel), (destination, way) = connect.source, connect.destination
        inward = destination is PortBundle.NORTH
        layout, offset = (SHIM_MUX, SHIM_MUX_OFFSET) if inward else (SHIM_DEMUX, SHIM_DEMUX_OFFSET)
        name = f"south_{way if inward else channel}"
        value = layout.encode({name: MUX_TO_DMA})[0]
        writer.mask(connect, mux.tile.place, offset, layout.fields[name].mask, value)


def _write(writer: Writer, op: MlirOperation, box: SwitchboxOp, offset: int, words: list[int]) -> None:
    writer.write(op, box.tile.place, offset, words[0])


def has_token_route(box: SwitchboxOp) -> bool:
    """Whether something leaves a shim's switch where the controller reads tokens."""
    south = (PortBundle.SOUTH, 0)
    return box.tile.kind is TileKind.SHIM and any(op.destination == south for op in (*box.connects, *box.mastersets))
