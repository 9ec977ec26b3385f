"""Rules of switches in physical form. A rule yields (operation at fault, message).

Source of what a switch can join: `bdforge.devices.switches`.
"""

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation

from bdforge.array.mlir.device_ops import EndOp, TileOp
from bdforge.array.mlir.fields import PortName
from bdforge.array.mlir.locations import location
from bdforge.array.mlir.switch_ops import (
    AmselOp,
    ConnectOp,
    MastersetOp,
    PacketRuleOp,
    PacketRulesOp,
    ShimMuxOp,
    SwitchboxOp,
    SwitchSettingsOp,
    WireOp,
)
from bdforge.array.mlir.verify_array import Faults, must_stand_in, rule
from bdforge.devices import PortBundle, TileKind
from bdforge.devices.limits import CORE
from bdforge.devices.rules import outside
from bdforge.devices.switches import (
    ARBITERS,
    MSELS_PER_ARBITER,
    PACKET_RULES_PER_SLAVE,
    SHIM_MM2S_SLAVES,
    SHIM_S2MM_MASTERS,
    STEPS,
    Switch,
)

_SETTINGS = (ConnectOp, AmselOp, MastersetOp, PacketRulesOp)


@rule
def settings(op: SwitchSettingsOp) -> Faults:
    """Once for a tile, with nothing but settings."""
    for other in op.tile.device_op.body.block.ops:
        if other is op:
            break
        if type(other) is type(op) and other.tile.place == op.tile.place:
            yield op, f"tile {op.tile.place} has one already (line {location(other).line})"
    allowed = (ConnectOp, EndOp) if isinstance(op, ShimMuxOp) else (*_SETTINGS, EndOp)
    for inner in op.settings.block.ops:
        if not isinstance(inner, allowed):
            yield inner, f"cannot stand in {op.name}"


@rule
def switchbox(op: SwitchboxOp) -> Faults:
    """Ports that exist, each used one way; connections that the switch can make."""
    switch = op.tile.switch
    takers: dict[PortName, Operation] = {}
    for setting in [*op.connects, *op.mastersets]:
        yield from _port(setting, setting.destination, switch.masters, "master", op)
        if (other := takers.setdefault(setting.destination, setting)) is not setting:
            bundle, channel = setting.destination
            line = location(other).line
            yield setting, f"master port {bundle} : {channel} of tile {op.tile.place} is set already (line {line})"
    for setting in op.connects:
        yield from _port(setting, setting.source, switch.slaves, "slave", op)
        yield from _joined(setting, setting.source, setting.destination, switch, op)
    yield from _packets(op, switch)


def _packets(op: SwitchboxOp, switch: Switch) -> Faults:
    connected = {connect.source: connect for connect in op.connects}
    seen: dict[PortName, Operation] = {}
    for slave in op.packet_rules:
        yield from _port(slave, slave.source, switch.slaves, "slave", op)
        other = connected.get(slave.source) or seen.setdefault(slave.source, slave)
        if other is not slave:
            bundle, channel = slave.source
            line = location(other).line
            yield slave, f"slave port {bundle} : {channel} of tile {op.tile.place} is set already (line {line})"
        for packet in slave.rules:
            for master in op.mastersets:
                if packet.target in master.arbiters:
                    yield from _joined(packet, slave.source, master.destination, switch, op)


def _port(at: Operation, port: PortName, present: Mapping[PortBundle, int], side: str, op: SwitchboxOp) -> Faults:
    bundle, channel = port
    count = present.get(bundle, 0)
    name = f"{op.tile.kind} {op.tile.place}"
    if count == 0:
        yield at, f"{name} has no {side} ports {bundle}; it has {', '.join(present)}"
    elif not 0 <= channel < count:
        yield at, f"{name} has {side} ports {bundle} : 0 to {count - 1}, not {channel}"


def _joined(at: Operation, slave: PortName, master: PortName, switch: Switch, op: SwitchboxOp) -> Faults:
    (enters, i), (leaves, o) = slave, master
    if switch.connects(enters, i, leaves, o):
        return
    reason = ""
    if op.tile.kind is TileKind.MEMTILE and {enters, leaves} <= set(STEPS):
        reason = "; north and south pass through a memtile on the same channel only (elsewhere silicon reports parity)"
    elif (enters, i) == (leaves, o):
        reason = f"; what comes from {enters} never goes back there"
    elif enters == leaves:
        reason = "; between ports of one side only the same channel passes"
    yield at, f"the switch of {op.tile.kind} {op.tile.place} cannot join {enters} : {i} to {leaves} : {o}{reason}"


must_stand_in((SwitchboxOp,), AmselOp, MastersetOp, PacketRulesOp, problem="must stand in an aie.switchbox")
must_stand_in((SwitchSettingsOp,), ConnectOp, problem="must stand in an aie.switchbox or aie.shim_mux")


@rule
def amsel(op: AmselOp) -> Faults:
    """Once, of an arbiter that there is."""
    if not 0 <= op.arbiter < ARBITERS or not 0 <= op.msel < MSELS_PER_ARBITER:
        problem = (
            f"<{op.arbiter}> ({op.msel}): a switch has arbiters 0 to {ARBITERS - 1} with msels 0 to "
            f"{MSELS_PER_ARBITER - 1} each"
        )
        yield op, problem
    block = op.parent_block()
    for other in () if block is None else block.ops:
        if isinstance(other, AmselOp) and other is not op and (other.arbiter, other.msel) == (op.arbiter, op.msel):
            yield op, f"arbiter {op.arbiter} msel {op.msel} is named twice in this switchbox"


@rule
def masterset(op: MastersetOp) -> Faults:
    """Of msels of one arbiter."""
    if not op.amsels:
        yield op, "needs at least one aie.amsel"
    arbiters = sorted({amsel.arbiter for amsel in op.arbiters})
    if len(arbiters) > 1:
        yield op, f"a master port takes packets of one arbiter, not of {', '.join(map(str, arbiters))}"


@rule
def packet_rules(op: PacketRulesOp) -> Faults:
    """Few enough."""
    for inner in op.rules_region.block.ops:
        if not isinstance(inner, PacketRuleOp | EndOp):
            yield inner, "cannot stand in aie.packet_rules, which holds aie.rule"
    if len(op.rules) > PACKET_RULES_PER_SLAVE:
        yield op, f"{len(op.rules)} rules; a slave port has {PACKET_RULES_PER_SLAVE}"


@rule
def packet_rule(op: PacketRuleOp) -> Faults:
    """An id and a mask that a header holds. Its operand and its neighbours see to its place."""
    for what, value in (("mask", op.mask), ("value", op.value)):
        if (problem := outside("pkt_id", value, CORE)) is not None:
            yield op, f"{what}: {problem}"


@rule
def shim_mux(op: ShimMuxOp) -> Faults:
    """On a shim: its DMA channels at the ports where they are."""
    if op.tile.kind is not TileKind.SHIM:
        yield op, f"tile {op.tile.place} is a {op.tile.kind}; only a shim has a mux"
    known = [
        *(((PortBundle.DMA, i), (PortBundle.NORTH, port)) for i, port in enumerate(SHIM_MM2S_SLAVES)),
        *(((PortBundle.NORTH, port), (PortBundle.DMA, i)) for i, port in enumerate(SHIM_S2MM_MASTERS)),
    ]
    for inner in op.connects:
        if (inner.source, inner.destination) not in known:
            yield inner, f"the mux of a shim joins {_texts(known)}; other ways out of the array are not known here"


def _texts(joins: Sequence[tuple[PortName, PortName]]) -> str:
    return ", ".join(f"{a} : {i} to {b} : {j}" for (a, i), (b, j) in joins)


@rule
def wire(op: WireOp) -> Faults:
    """Between tiles and their switches."""
    for value in (op.source, op.dest):
        if not isinstance(value.owner, TileOp | SwitchSettingsOp):
            yield op, "joins an aie.tile, aie.switchbox or aie.shim_mux with another"
