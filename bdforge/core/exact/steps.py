"""Steps of one instruction, as translation makes them: where its operands lie, and how its results land."""

from dataclasses import dataclass, field

from bdforge.core.exact.engine_build import FORWARD, LAND, READ, REQUEST
from bdforge.core.exact.instruction_plan import PART_BITS, InstructionPlan, PlannedOperand
from bdforge.core.exact.register_layout import FORWARDED, OperandSegment, RegisterLayout
from bdforge.core.isa.meaning import ADDRESS, DATA

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
