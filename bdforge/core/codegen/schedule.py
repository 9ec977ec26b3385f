"""A list scheduler: straight code in a right order becomes bundles in which nothing is read too early.

Each instruction waits for what it needs by the distances of `bdforge.core.isa.effects`; of those that are ready, the
one with the longest way to the end goes first. All results have landed when a block ends, so blocks know nothing of
each other.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from bdforge.core.codegen.basic_block import AssemblyOp, BasicBlock, Cycle, bundle_lines, instruction
from bdforge.core.isa import EncodeError, Instruction, Isa
from bdforge.core.isa.core_registers import is_status
from bdforge.core.isa.effects import Touch, done_after, effects, register_order, touched
from bdforge.core.isa.flow import DELAY_SLOTS


@dataclass(slots=True)
class _Node:
    """An instruction with what it waits for: (before, cycles)."""

    op: AssemblyOp
    instruction: Instruction
    before: list[tuple["_Node", int]] = field(default_factory=list)
    after: list[tuple["_Node", int]] = field(default_factory=list)
    rank: int = 0
    cycle: int = -1

    @property
    def name(self) -> str:
        return self.instruction.form.name

    @property
    def locks(self) -> bool:
        """Whether others may look at memory from here on: locks, and the end."""
        return self.name.startswith(("ACQ", "REL", "DONE"))

    @property
    def stores(self) -> bool:
        return self.name.startswith(("ST", "VST"))

    @property
    def loads(self) -> bool:
        return not self.stores and bool(self.instruction.form.timing.memory_stages)

    @property
    def memory_stage(self) -> int:
        return self.instruction.form.timing.memory_stages[-1]


def scheduled(isa: Isa, block: BasicBlock) -> list[str]:
    """The lines of a block, a multiple of 16 bytes; CodegenError for an instruction that does not exist."""
    nodes = _nodes(isa, block.ops)
    branch = None if block.branch is None else _nodes(isa, [block.branch])[0]
    _connect(isa, nodes, branch)
    table = _placed(isa, nodes, block.quiet)
    if branch is not None:
        table = _branch(nodes, branch, table, block.quiet)
    length = max(_landed(nodes), block.quiet)
    while len(table.cycles) < length:
        table.cycles.append(Cycle())
    return bundle_lines(isa, table.cycles)


def placed(isa: Isa, ops: Sequence[AssemblyOp]) -> list[Cycle]:
    """What issues in which cycle, for others to go on with: results may still be on their way at the end."""
    nodes = _nodes(isa, ops)
    _connect(isa, nodes, None)
    return _placed(isa, nodes, 0).cycles


def _nodes(isa: Isa, ops: Sequence[AssemblyOp]) -> list[_Node]:
    return [_Node(op, instruction(isa.generation, op.text)) for op in ops]


def _connect(isa: Isa, nodes: Sequence[_Node], branch: _Node | None) -> None:
    """Who waits for whom, and how far each is from the end, with the branch's delay slots."""
    every = nodes if branch is None else [*nodes, branch]
    slots = () if branch is None else ((branch, node, 0) for node in nodes if node.locks)  # no locks in delay slots
    for node, other, cycles in (*_register_order(isa, every), *_memory_order(nodes), *slots):
        node.before.append((other, cycles))
        other.after.append((node, cycles))
    for node in reversed(every):
        behind = DELAY_SLOTS if node is branch else 0
        node.rank = max((after.rank + cycles for after, cycles in node.after), default=behind)


def _register_order(isa: Isa, nodes: Sequence[_Node]) -> Iterator[tuple[_Node, _Node, int]]:
    """(later, earlier, least cycles between them) for each register that both touch; nobody reads old values."""
    by_leaf: dict[str, list[Touch]] = defaultdict(list)
    for index, node in enumerate(nodes):
        for leaf, access, writes in touched(isa.generation, node.instruction):
            # Of status flags only the carry is read: what writes the others in any order keeps nobody waiting.
            if not writes or not is_status(leaf) or leaf == "srCarry":
                by_leaf[leaf].append((index, access, writes))
    for touches in by_leaf.values():
        for earlier, later, cycles, _ in register_order(touches, least=0):
            yield nodes[later], nodes[earlier], cycles


def _memory_order(nodes: Sequence[_Node]) -> Iterator[tuple[_Node, _Node, int]]:
    """Loads and stores that may meet, and locks, which keep all memory on their side."""
    earlier: list[_Node] = []
    for node in nodes:
        if not (node.locks or node.stores or node.loads):
            continue
        for other in earlier:
            cycles = _memory_distance(other, node)
            if cycles is not None:
                yield node, other, cycles
        if node.locks:
            earlier.clear()
        earlier.append(node)


def _memory_distance(first: _Node, second: _Node) -> int | None:
    if first.locks and second.locks:
        return max((cycle + 1 for _, cycle, _ in effects(first.instruction).units), default=1)
    # A lock lets others at the memory: stores before it must have written, and nothing behind it began.
    if first.locks or second.locks:
        return 1 if first.locks else first.memory_stage
    if first.loads and second.loads:
        return None
    if None not in (first.op.memory, second.op.memory) and first.op.memory != second.op.memory:
        return None
    return max(0, first.memory_stage - second.memory_stage + (1 if first.stores else 0))


class _Table:
    """Cycles with what issues in them, and the units that are taken."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.cycles: list[Cycle] = []
        self._taken: dict[tuple[str, int], list[bool]] = defaultdict(list)  # whether who takes it only reserves it

    def fits(self, node: _Node, cycle: int) -> bool:
        """Whether slots and units are free."""
        slots = [*self.at(cycle).slots(self.isa.generation), node.instruction.form.slot]
        if len(set(slots)) < len(slots) or not self._has_format(frozenset(slots)):
            return False
        units = effects(node.instruction).units
        return all(reserved and other for unit, at, reserved in units for other in self._taken[unit, cycle + at])

    def put(self, node: _Node, cycle: int) -> None:
        """Issue an instruction."""
        node.cycle = cycle
        self.at(cycle).ops.append(node.op)
        for unit, at, reserved in effects(node.instruction).units:
            self._taken[unit, cycle + at].append(reserved)

    def at(self, cycle: int) -> Cycle:
        """What issues in a cycle."""
        while len(self.cycles) <= cycle:
            self.cycles.append(Cycle())
        return self.cycles[cycle]

    def _has_format(self, slots: frozenset[str]) -> bool:
        try:
            return bool(self.isa.bundle_format(slots))
        except EncodeError:
            return False


def _placed(isa: Isa, nodes: Sequence[_Node], quiet: int, fixed: Mapping[int, _Node] = MappingProxyType({})) -> _Table:
    """A table with all nodes, none before `quiet`, beside others that have their cycles."""
    table = _Table(isa)
    for cycle, node in fixed.items():
        table.put(node, cycle)
    waiting, cycle = sorted(nodes, key=lambda node: -node.rank), quiet
    for node in nodes:
        node.cycle = -1
    while waiting:
        left: list[_Node] = []
        for node in waiting:
            ready = all(0 <= other.cycle <= cycle - cycles for other, cycles in node.before)
            if ready and table.fits(node, cycle):
                table.put(node, cycle)
            else:
                left.append(node)
        waiting, cycle = left, cycle + 1
    return table


def _branch(nodes: Sequence[_Node], branch: _Node, table: _Table, quiet: int) -> _Table:
    """Issue the branch as early as its delay slots hold all that is left: what is in its way goes behind it."""
    cycle = _earliest(nodes, branch, quiet)
    while not table.fits(branch, cycle):
        beside = _placed(table.isa, nodes, quiet, {cycle: branch})
        if _earliest(nodes, branch, quiet) <= cycle:
            beside.at(cycle + DELAY_SLOTS)
            return beside
        table, cycle = _placed(table.isa, nodes, quiet), cycle + 1
    table.put(branch, cycle)
    table.at(cycle + DELAY_SLOTS)
    return table


def _earliest(nodes: Sequence[_Node], branch: _Node, quiet: int) -> int:
    last = max((node.cycle for node in nodes), default=-1)
    ready = max((other.cycle + cycles for other, cycles in branch.before), default=0)
    return max(quiet, ready, last - DELAY_SLOTS, _landed(nodes) - DELAY_SLOTS - 1)


def _landed(nodes: Sequence[_Node]) -> int:
    """The first cycle at which a following block may begin: all results there, all stores written, all units free."""
    return max((node.cycle + done_after(node.instruction) for node in nodes), default=0)
