"""From plans of instructions to the fast executor's steps.

An instruction has a buffer for what it has read and made: its address at 0, stepped pointers and counters behind it,
then operands and results. Operands are read where they lie when the results are made in the cycle of their read, else
they are copied in that cycle. Results land from the buffer in theirs.
"""

from dataclasses import dataclass, field

from bdforge.core.exact.engine_build import FORWARD, LAND, OPERATE, READ, REQUEST, STORE
from bdforge.core.exact.instruction_plan import PART_BITS, InstructionPlan, PlannedOperand
from bdforge.core.exact.register_layout import FORWARDED, OperandSegment, RegisterLayout
from bdforge.core.exact.requests import PARTS, Asking
from bdforge.core.isa.meaning import ADDRESS, APPROXIMATION, DATA, AddressWalk, Meaning, MeaningKind, MemoryAccess

BUFFER_BYTES = 1344  # those of six slots fit into what the library keeps for a bundle
_FIRST, _ALIGNMENT = 64, 64  # the first operand's offset in the buffer, and how operands are aligned
_WORD_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Constant:
    """A number that stands for its place among a program's constants."""

    value: int


Place = int | Constant


@dataclass(slots=True)
class EngineStep:
    """A row to be: function by name, cycles from issue, phase, places and options."""

    function: str
    delay: int
    phase: int
    places: tuple[Place, ...] = ()
    options: tuple[int, ...] = ()


@dataclass(slots=True)
class Steps:
    """Steps of one instruction, as they are made.

    `careful` ones also keep account of what is unknown: they check what is read, and tell it of what lands.
    """

    layout: RegisterLayout
    plan: InstructionPlan
    careful: bool = False
    made: list[EngineStep] = field(default_factory=list)
    used: int = _FIRST
    data: int = 0
    data_bytes: int = 0
    flags: dict[str, int] = field(default_factory=dict)

    def buffer(self, size_bytes: int) -> int:
        """The place of a new part of the buffer."""
        at = self.used
        self.used += -(-size_bytes // _ALIGNMENT) * _ALIGNMENT
        assert self.used <= BUFFER_BYTES
        return ~at

    def add(self, function: str, stage: int, phase: int, *places: Place, options: tuple[int, ...] = ()) -> None:
        """A step at a stage."""
        self.made.append(EngineStep(function, stage - 1, phase, places, options))

    def source(self, name: str | int, at_stage: int) -> Place:
        """Where an operand lies at a stage; it is copied there if it is read before, or is in several pieces."""
        if isinstance(name, int):
            return Constant(name)
        if name == DATA:
            return self.data
        if name == ADDRESS:
            return ~0
        if name in self.plan.constants:
            return Constant(self.plan.constants[name])
        operand = self.plan.read(name)
        image = FORWARDED if operand.bypass else 0
        segments = self.layout.segments(operand.leaves)
        places = [segment.place + (image if segment.vector else 0) for segment in segments]
        for segment, place in zip(segments, places, strict=True) if self.careful else ():
            self.add("known", operand.stage, REQUEST, place, options=(segment.size_bytes,))
        if operand.stage == at_stage and len(segments) == 1:
            return places[0]
        to = self.buffer(self.layout.size_bytes(operand.leaves))
        for segment, place in zip(segments, places, strict=True):
            self.copy(place, ~(~to + segment.offset), segment.size_bytes, segment.size_bytes, operand.stage)
        return to

    def copy(self, source: Place, to: int, source_bytes: int, bytes_: int, stage: int) -> None:
        """Copy the low bytes, the rest zeroed."""
        same = source_bytes == bytes_
        name = f"copy{bytes_}" if same and bytes_ in (4, 32, 64, 256) else "copy"
        self.add(name, stage, READ, source, to, options=(min(source_bytes, bytes_), bytes_))

    def land(self, operand: PlannedOperand, buffer: int) -> None:
        """Let a result land, and show it to those to whom it is forwarded."""
        for segment in self.layout.segments(operand.leaves):
            source = ~(~buffer + segment.offset)
            self._tell(operand, segment)
            if not segment.vector:
                self._land_words(source, segment.place, segment.size_bytes, segment.bits, operand.stage)
                continue
            name = f"land{segment.size_bytes}" if segment.size_bytes in (32, 64, 256) else "land"
            # Landings come before all reads of a cycle, so those of the next one see it; who gets it forwarded, now.
            self.add(name, operand.stage + 1, LAND, source, segment.place, options=(segment.size_bytes,))
            if operand.bypass:
                name = f"forward{segment.size_bytes}" if segment.size_bytes in (64, 256) else "forward"
                self.add(name, operand.stage, FORWARD, source, segment.place, options=(segment.size_bytes,))

    def land_part(self, operand: PlannedOperand, buffer: int, part: Place) -> None:
        """Let the part with a number land; the rest of the register stays."""
        (segment,) = self.layout.segments(operand.leaves)
        self.add("land_part", operand.stage + 1, LAND, buffer, segment.place, part, options=(PART_BITS // 8,))

    def _tell(self, operand: PlannedOperand, segment: OperandSegment) -> None:
        """What of a result is unknown."""
        if not self.careful:
            return
        places = self.flags.get(operand.name, Constant(0)), segment.place
        options = (segment.size_bytes, segment.offset)
        self.add("tell", operand.stage + 1, LAND, *places, options=(*options, 0))
        if operand.bypass and segment.vector:
            self.add("tell", operand.stage, FORWARD, *places, options=(*options, 1))

    def flag(self, name: str) -> int:
        """The place of the mask of what is unknown of a result."""
        return self.flags.setdefault(name, self.buffer(4))

    def _land_words(self, source: int, place: int, size_bytes: int, bits: int, stage: int) -> None:
        mask = ((1 << bits) - 1) & _WORD_MASK
        signed = mask - (1 << 32) if mask >> 31 else mask
        for at in range(0, size_bytes, 4):
            self.add("land_word", stage + 1, LAND, ~(~source + at), place + at, options=(signed,))

    def result(self, name: str) -> int:
        """The buffer of a result."""
        return self.buffer(self.layout.size_bytes(self.plan.writes[name].leaves))


_WALK_RESULTS = {"ptr_out": 4, "sp": 4, "dc": 8, "dcl": 8, "dch": 12, "pos_out": 16, "avail_out": 16}
_STORED, _LINE = 20, 24  # of a FIFO: how many bytes it stores, and its address
_FIFO_KINDS = ("fill", "pop", "push", "flush")
_WALKS = {
    AddressWalk.INDEX: "walk_index",
    AddressWalk.STACK: "walk_index",
    AddressWalk.POST: "walk_post",
    AddressWalk.STACK_STEP: "walk_post",
    AddressWalk.WALK_2D: "walk_2d",
    AddressWalk.WALK_3D: "walk_3d",
}
_CONDITIONS = {"always": 0, "zero": 1, "nonzero": 2, "decrement": 2}
_ALIASES = ("move", "store_low")
_PRODUCT_BYTES = 64 + 256  # conf, and the lanes behind it
_GATHERED_BYTES = 32
_WORD_BYTES, _PART_BYTES = 4, PART_BITS // 8
_NUMBERS = 5  # of a request, at most


def steps_of(layout: RegisterLayout, plan: InstructionPlan, known: list[Asking], careful: bool) -> Steps:
    """The steps of an instruction; `known` lists the kinds of requests that the program has."""
    steps = Steps(layout, plan, careful)
    _walk(steps)
    if plan.meaning.kind is MeaningKind.BRANCH:
        _branch(steps)
        return steps
    if plan.meaning.request:
        steps.data_bytes = _answer_bytes(plan.meaning)
        steps.data = steps.buffer(steps.data_bytes)
        _ask(steps, known)
    _compute(steps)
    if plan.meaning.counts:
        _count(steps, *plan.meaning.counts)
    return steps


def _ask(steps: Steps, known: list[Asking]) -> None:
    """Add the step of a request; `known` lists the kinds that a program has, by number."""
    plan, meaning = steps.plan, steps.plan.meaning
    sizes = [_size(steps, name) for name in meaning.asks]
    kind = Asking(meaning.request, tuple(size > _WORD_BYTES for size in sizes))
    if kind not in known:
        known.append(kind)
    sources = [steps.source(name, plan.ask) for name in meaning.asks]
    numbers = [s for s, size in zip(sources, sizes, strict=True) if size <= _WORD_BYTES]
    data = [(s, size) for s, size in zip(sources, sizes, strict=True) if size > _WORD_BYTES]
    given, given_bytes = data[0] if data else (0, 0)
    numbers += [0] * (_NUMBERS - len(numbers))
    options = (known.index(kind), given_bytes, steps.data_bytes)
    steps.add("ask", plan.ask, REQUEST, *numbers, given, steps.data, options=options)


def _size(steps: Steps, name: str | int) -> int:
    """Bytes of an operand."""
    operand = next((o for o in steps.plan.reads if o.name == name), None)
    return _WORD_BYTES if operand is None else steps.layout.size_bytes(operand.leaves)


def _answer_bytes(meaning: Meaning) -> int:
    """Bytes of what a request answers, with room to the widest register; 0 without answer."""
    if DATA not in meaning.inputs:
        return 0
    if meaning.request != "get cascade":
        return 2 * _WORD_BYTES
    return _PART_BYTES * (1 if isinstance(meaning.asks[1], int) else PARTS)


def _count(steps: Steps, counter: str, result: str) -> None:
    place = steps.result(result)
    steps.add("count_part", steps.plan.count, READ, steps.source(counter, steps.plan.count), place, steps.flag(result))
    steps.land(steps.plan.writes[result], place)


def _walk(steps: Steps) -> None:
    plan, meaning = steps.plan, steps.plan.meaning
    if meaning.access and meaning.access.counter:
        _step_fifo(steps, meaning.access)
    elif meaning.walk is not AddressWalk.NONE:
        stack = meaning.walk in (AddressWalk.STACK, AddressWalk.STACK_STEP)
        _step_pointer(steps, steps.source("sp" if stack else "ptr", plan.walk))
    for name, offset in _WALK_RESULTS.items():
        if name in plan.writes:
            steps.land(plan.writes[name], ~offset)


def _step_fifo(steps: Steps, access: MemoryAccess) -> None:
    """What a FIFO moves from where, then the step of its pointer behind that."""
    plan, stage = steps.plan, steps.plan.walk
    walks = plan.meaning.walk is not AddressWalk.NONE
    sources = steps.source("ptr", stage), steps.source(access.counter, stage)
    options = _FIFO_KINDS.index(access.kind), access.amount, int(walks)
    steps.add("fifo_step", stage, OPERATE, *sources, options=options)
    if walks:
        _step_pointer(steps, ~_WALK_RESULTS["ptr_out"])
    steps.add("copy4", stage, OPERATE, ~_LINE, ~0)


def _step_pointer(steps: Steps, base: Place) -> None:
    plan, meaning = steps.plan, steps.plan.meaning
    places: list[Place] = [base]
    if meaning.walk in (AddressWalk.WALK_2D, AddressWalk.WALK_3D):
        leaves = plan.read(meaning.offset).leaves
        places += [steps.layout.places[leaf.name] for leaf in leaves if leaf.name.startswith("m")]
    else:
        places.append(steps.source(meaning.offset or 0, plan.walk))
    steps.add(_WALKS[meaning.walk], plan.walk, OPERATE, *places)


def _compute(steps: Steps) -> None:
    plan, meaning = steps.plan, steps.plan.meaning
    access = meaning.access
    if access:
        steps.data = steps.buffer(access.size_bytes)
        if not access.store:
            _load(steps, access)
    if meaning.operation == "none":
        return
    results = [steps.data if name == DATA else steps.result(name) for name in meaning.outputs]
    if meaning.operation in _ALIASES:
        results = [_moved(steps, results[0])]
    elif meaning.operation == "multiply":
        _multiply(steps, results[0])
    else:
        inputs = [steps.source(name, plan.operate) for name in meaning.inputs if name != APPROXIMATION]
        flags = [steps.flag(name) for name in meaning.doubtful]
        steps.add(meaning.operation, plan.operate, OPERATE, *inputs, *results, *flags, options=_options(steps))
    for name, place in zip(meaning.outputs, results, strict=True):
        if isinstance(meaning.part, str):
            steps.land_part(plan.writes[name], place, steps.source(meaning.part, 0))
        elif name != DATA:
            steps.land(plan.writes[name], place)
    if access and access.store:
        name = "store_some" if access.counter else "store"
        steps.add(name, plan.store, STORE, steps.data, ~_STORED, options=(access.size_bytes,))


def _load(steps: Steps, access: MemoryAccess) -> None:
    stage, size = steps.plan.load, access.size_bytes
    if access.kind == "gather":
        steps.data = steps.buffer(_GATHERED_BYTES)
        source = steps.source(access.addresses, stage)
        steps.add("gather", stage, READ, source, steps.data, options=(access.amount, size, access.first))
    elif access.kind == "plain":
        steps.add(f"load{size}" if size in (32, 64) else "load", stage, READ, 0, steps.data, options=(size,))
    else:
        taken = access.amount * (access.kind == "pop")
        steps.add("load_line", stage, READ, steps.source("ptr", stage), steps.data, options=(size, taken))


def _multiply(steps: Steps, result: int) -> None:
    """The product as soon as its operands are read, the sum when the accumulators are: nothing is copied for later."""
    plan, meaning = steps.plan, steps.plan.meaning
    *accumulators, s1, s2, conf = meaning.inputs
    stages = {operand.name: operand.stage for operand in plan.reads}
    early = max(stages[str(name)] for name in (s1, s2, conf))
    product = steps.buffer(_PRODUCT_BYTES)
    sources = [steps.source(name, early) for name in (s1, s2, conf)]
    steps.add("multiply", early, READ, *sources, product, options=meaning.options[:1])
    places = [steps.source(name, plan.operate) for name in accumulators]
    steps.add("accumulated", plan.operate, OPERATE, *places, product, result, options=meaning.options)


def _options(steps: Steps) -> tuple[int, ...]:
    meaning = steps.plan.meaning
    if meaning.operation == "accumulate":  # the library wants the number of accumulators last
        bits, *minus = meaning.options
        return (bits, *minus, *[0] * (2 - len(minus)), len(minus))
    if meaning.operation == "faccumulate":
        return (*meaning.options[:3], len(meaning.inputs) - 1 | meaning.options[3] << 2)
    return meaning.options


def _moved(steps: Steps, result: int) -> int:
    """A copy, or nothing where what was loaded is the result."""
    plan, meaning = steps.plan, steps.plan.meaning
    (name,) = meaning.inputs
    if name == DATA:
        return steps.data
    source = steps.source(name, plan.operate)
    constant = isinstance(source, Constant)
    source_bytes = 8 if constant else steps.layout.size_bytes(plan.read(str(name)).leaves)
    if meaning.outputs[0] == DATA:
        assert meaning.access
        result_bytes = meaning.access.size_bytes
    else:
        result_bytes = steps.layout.size_bytes(plan.writes[meaning.outputs[0]].leaves)
    steps.copy(source, result, source_bytes, result_bytes, plan.operate)
    return result


def _branch(steps: Steps) -> None:
    plan, meaning = steps.plan, steps.plan.meaning
    places = [steps.source(name, plan.operate) for name in meaning.inputs]
    places += [0] * (2 - len(places))
    buffers = {name: steps.buffer(4) for name in meaning.outputs}
    lr = buffers.get("lr", ~0)
    made = [buffers[name] for name in meaning.outputs if name != "lr"] or [~0, ~0]
    kind, calls = _CONDITIONS[meaning.operation], int("lr" in buffers)
    options = (kind, calls, int(meaning.operation == "decrement"), int(meaning.inputs[0] == "lr"))
    steps.add("branch", plan.operate, REQUEST, *places, lr, *made, options=options)
    for name, place in buffers.items():
        steps.land(plan.writes[name], place)
