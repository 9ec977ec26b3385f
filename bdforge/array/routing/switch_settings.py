"""Settings of one stream switch as operations, each with the place of the flow that it comes from."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeVar

from xdsl.dialects.builtin import IndexType, IntegerAttr, i1, i8
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from bdforge.array.mlir.attributes import number
from bdforge.array.mlir.device_ops import EndOp
from bdforge.array.mlir.fields import PortName
from bdforge.array.mlir.locations import take_place
from bdforge.array.mlir.switch_ops import AmselOp, ConnectOp, MastersetOp, PacketRuleOp, PacketRulesOp
from bdforge.array.routing.nets import Net, SwitchPort
from bdforge.array.routing.packets import PacketRule
from bdforge.devices import PortBundle
from bdforge.devices.limits import PACKET_IDS

OpT = TypeVar("OpT", bound=Operation)


class Users:
    """The flow that settings come from: the first that uses a port, the first of an id at a slave port."""

    def __init__(self) -> None:
        self.ports: dict[SwitchPort, Operation] = {}
        self.ids: dict[tuple[SwitchPort, int | None], Operation] = {}

    def add(self, net: Net, slave: SwitchPort, master: SwitchPort) -> None:
        """A net joins two ports."""
        for port in (slave, master):
            self.ports.setdefault(port, net.flows[0])
        self.ids.setdefault((slave, net.packet_id), net.flows[0])

    def of_rule(self, slave: SwitchPort, rule: PacketRule) -> Operation:
        """The flow of the first id that takes a rule."""
        return next((self.ids[slave, i] for i in range(PACKET_IDS) if rule.matches(i) and (slave, i) in self.ids),
                    self.ports[slave])  # fmt: skip


def circuits(joined: Mapping[tuple[SwitchPort, SwitchPort], Operation]) -> Iterator[ConnectOp]:
    """A connection for each pair of ports."""
    for (slave, master), flow in joined.items():
        yield connect(slave.name, master.name, flow)


def connect(source: PortName, destination: PortName, flow: Operation) -> ConnectOp:
    """One connection; of a mux too."""
    return _placed(ConnectOp(properties={**_port("source", *source), **_port("dest", *destination)}), flow)


def _placed(op: OpT, flow: Operation) -> OpT:
    """A setting with the place of the flow that it comes from."""
    take_place(op, flow)
    return op


def packet_settings(
    rules: Mapping[SwitchPort, tuple], keeps: Mapping[SwitchPort, bool], users: Users
) -> Iterator[Operation]:
    """Msels, then masters, then slaves with their rules."""
    amsels: dict[tuple[int, int], AmselOp] = {}
    listening: dict[SwitchPort, dict[SSAValue, None]] = defaultdict(dict)
    for rule in sorted((rule for found in rules.values() for rule in found), key=lambda rule: rule[2:]):
        if (rule.arbiter, rule.msel) not in amsels:
            properties: dict[str, Attribute] = {
                "arbiterID": IntegerAttr(rule.arbiter, i8), "msel": IntegerAttr(rule.msel, i8),
            }  # fmt: skip
            amsels[rule.arbiter, rule.msel] = AmselOp(properties=properties, result_types=[IndexType()])
        for master in rule.masters:
            listening[master][amsels[rule.arbiter, rule.msel].result] = None
    yield from amsels.values()
    for master, values in sorted(listening.items(), key=lambda item: item[0]):
        properties = _port("dest", *master.name)
        if keeps.get(master):
            properties["keep_pkt_header"] = IntegerAttr(1, i1)
        masterset = MastersetOp(operands=[list(values)], properties=properties, result_types=[IndexType()])
        yield _placed(masterset, users.ports[master])
    for slave, found in sorted(rules.items(), key=lambda item: item[0]):
        block = Block([
            _placed(PacketRuleOp(operands=[amsels[rule.arbiter, rule.msel].result],
                                 properties={"mask": IntegerAttr(rule.mask, i8), "value": IntegerAttr(rule.id, i8)}),
                    users.of_rule(slave, rule))
            for rule in found
        ])  # fmt: skip
        block.add_op(EndOp())
        yield PacketRulesOp(properties=_port("source", *slave.name), regions=[Region(block)])


def _port(side: str, bundle: PortBundle, channel: int) -> dict[str, Attribute]:
    return {f"{side}_bundle": number(bundle.code), f"{side}_channel": number(channel)}
