"""Decoding and encoding of bundles, driven by the tables alone."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property

from bdforge.core.isa.errors import DecodeError, EncodeError, IsaError
from bdforge.core.isa.forms import Bundle, Form, Format, Instruction
from bdforge.core.isa.isa_tables import GENERATIONS, read_formats, read_forms, read_kinds
from bdforge.core.isa.operand_kinds import RegisterClass, Value
from bdforge.devices import Generation

_AIE2P_SIZES = {0b0000: 2, 0b1000: 4, 0b0010: 8, 0b1010: 10, 0b0110: 12, 0b1110: 14, 0b0100: 6, 0b1100: 6}
_INDEX_BITS = 0xFF  # low bits of a slot word by which forms are looked up
_CACHED_WORDS = 1 << 16  # slot words kept decoded, per slot; a core's whole program has at most 8192 bundles


class Isa:
    """The instruction set of a generation: `load("aie2p")` and `load("aie2")` give the two there are.

    `forms` and `formats` are by name, `nops` the instruction that fills each slot, `registers` all register names.
    """

    def __init__(self, generation: str) -> None:
        self.generation = generation
        kinds = read_kinds(generation)
        self.forms: Mapping[str, Form] = {form.name: form for form in read_forms(generation, kinds)}
        self.formats: Mapping[str, Format] = {fmt.name: fmt for fmt in read_formats(generation)}
        self.nops = {f.slot: Instruction(f) for f in self.forms.values() if f.name.startswith("NOP")}
        classes = [kind for kind in kinds.values() if isinstance(kind, RegisterClass)]
        self.registers = frozenset(register for kind in classes for register in kind.codes)
        self._candidates: dict[tuple[str, int], list[Form]] = {}
        self._words: dict[str, dict[int, Instruction]] = {slot: {} for slot in self.nops}
        self._of_size = {n: [fmt for fmt in self.formats.values() if fmt.size == n] for n in range(2, 17, 2)}
        self._smallest = sorted(self.formats.values(), key=lambda fmt: (fmt.size, len(fmt.lanes)))
        self._fitting: dict[frozenset[str], Format | None] = {}

    def __repr__(self) -> str:
        return f"Isa({self.generation})"

    @cached_property
    def last_stage(self) -> int:
        """The last stage at which an instruction reads or writes a register; no unit is taken any longer."""
        return max(form.timing.last_stage for form in self.forms.values())

    @cached_property
    def last_memory_stage(self) -> int:
        """The last stage at which an instruction reads or writes memory."""
        return max(max(form.timing.memory_stages, default=0) for form in self.forms.values())

    def form(self, name: str) -> Form:
        """The form of this name; IsaError if there is none."""
        if name not in self.forms:
            raise IsaError(f"{self.generation} has no instruction form {name!r}")
        return self.forms[name]

    def instruction(self, name: str, **operands: Value) -> Instruction:
        """The instruction of a form with operands by field name; IsaError for a missing or unknown one."""
        form = self.form(name)
        if set(operands) != set(form.names):
            raise IsaError(f"{name} takes operands ({', '.join(form.names)}), not ({', '.join(operands)})")
        return Instruction(form, tuple(operands[n] for n in form.names))

    def size(self, first_byte: int) -> int:
        """Bytes of the bundle that starts with this byte; every byte starts one."""
        low = first_byte & 15 ^ (1 if self.generation == "aie2" else 0)  # AIE2 marks 16 bytes the other way round
        return 16 if low & 1 else _AIE2P_SIZES[low]

    def decode(self, data: bytes, offset: int = 0) -> Bundle:
        """The bundle at `offset`; DecodeError names the bits for which no bundle is known."""
        if not 0 <= offset < len(data):
            raise DecodeError(offset, (0, 7), f"the code ends at {len(data):#x}")
        size = self.size(data[offset])
        if offset + size > len(data):
            reason = f"a bundle of {size} bytes starts here, but the code ends at {len(data):#x}"
            raise DecodeError(offset, (0, 8 * (len(data) - offset) - 1), reason)
        word = int.from_bytes(data[offset : offset + size], "little")
        fmt = self._format(word, size, offset)
        slots = [
            self._words[slot].get(part := word >> lsb & (1 << width) - 1) or self._slot_word(slot, part, lsb, offset)
            for slot, lsb, width in fmt.lanes
        ]
        return Bundle(fmt, tuple(slots))

    def decode_program(self, data: bytes) -> Iterator[tuple[int, Bundle]]:
        """Bundles of `data` one after the other with their offsets; DecodeError at an unknown one."""
        offset = 0
        while offset < len(data):
            bundle = self.decode(data, offset)
            yield offset, bundle
            offset += bundle.size

    def bundle(self, instructions: Iterable[Instruction]) -> Bundle:
        """The smallest bundle that holds these instructions, its other slots filled with NOPs.

        EncodeError if two instructions share a slot or no format holds all the slots.
        """
        given: dict[str, Instruction] = {}
        for instruction in instructions:
            slot = instruction.form.slot
            if slot in given:
                raise EncodeError(f"{given[slot].form.name} and {instruction.form.name} both need slot {slot}")
            given[slot] = instruction
        fmt = self.bundle_format(frozenset(given))
        return Bundle(fmt, tuple(given.get(slot, self.nops[slot]) for slot, _, _ in fmt.lanes))

    def encode(self, instructions: Iterable[Instruction]) -> bytes:
        """Bytes of the smallest bundle that holds these instructions (see `bundle`)."""
        return bytes(self.bundle(instructions))

    def nop(self, size: int) -> Bundle:
        """A bundle of `size` bytes that does nothing; EncodeError if the size is none of 2, 4, ... 16."""
        for fmt in self._smallest:
            if fmt.size == size:
                return Bundle(fmt, tuple(self.nops[slot] for slot, _, _ in fmt.lanes))
        raise EncodeError(f"no bundle has {size} bytes; sizes are 2, 4, ... 16")

    def bundle_format(self, slots: frozenset[str]) -> Format:
        """The smallest format that holds these slots; EncodeError if there is none."""
        if slots not in self._fitting:
            self._fitting[slots] = next((fmt for fmt in self._smallest if fmt.slots >= slots), None)
        fmt = self._fitting[slots]
        if fmt is None:
            raise EncodeError(f"no bundle format of {self.generation} holds slots {', '.join(sorted(slots))} together")
        return fmt

    def _format(self, word: int, size: int, offset: int) -> Format:
        same_size = self._of_size[size]
        for fmt in same_size:
            if word & fmt.mask == fmt.value:
                if stray := word & ~fmt.used:
                    raise DecodeError(offset, _span(stray), f"format {fmt.name} leaves these bits 0")
                return fmt
        nearest = min(same_size, key=lambda fmt: ((word ^ fmt.value) & fmt.mask).bit_count())
        wrong = (word ^ nearest.value) & nearest.mask
        raise DecodeError(offset, _span(wrong), f"no format of {size} bytes has them; the nearest is {nearest.name}")

    def _slot_word(self, slot: str, word: int, lsb: int, offset: int) -> Instruction:
        """Decode a slot word: the form whose fixed bits match, whose fields hold assigned codes and whose free bits
        are 0. Should an invented word leave several, the one with most fixed bits is taken."""
        best: Instruction | None = None
        refused: list[tuple[Form, int, str]] = []
        for form in self._possible(slot, word & _INDEX_BITS):
            if word & form.mask != form.value:
                continue
            instruction = _instruction(form, word, refused)
            if instruction and (best is None or form.mask.bit_count() > best.form.mask.bit_count()):
                best = instruction
        if best is None:
            raise _unknown_word(slot, word, self.nops[slot].form.width, lsb, offset, refused)
        known = self._words[slot]
        if len(known) >= _CACHED_WORDS:
            known.clear()
        known[word] = best
        return best

    def _possible(self, slot: str, low: int) -> list[Form]:
        """Forms of the slot whose low bits may be these; kept, for walking over all for each word is slow."""
        if (slot, low) not in self._candidates:
            mine = (form for form in self.forms.values() if form.slot == slot)
            self._candidates[slot, low] = [f for f in mine if not (f.value ^ low) & f.mask & _INDEX_BITS]
        return self._candidates[slot, low]


@cache
def _load(generation: str) -> Isa:
    if generation not in GENERATIONS:
        raise IsaError(f"unknown generation {generation!r}; there are {' and '.join(GENERATIONS)}")
    return Isa(generation)


def load(generation: str | Generation) -> Isa:
    """The instruction set of a generation by name or as a device has it; made once. IsaError for an unknown name."""
    return _load((generation if isinstance(generation, str) else generation.name).lower())


def _instruction(form: Form, word: int, refused: list[tuple[Form, int, str]]) -> Instruction | None:
    stray = word & form.free_bits
    if stray:
        refused.append((form, stray, "bits that are 0 in all known code"))
        return None
    values = []
    for f in form.fields:
        value = f.kind.decode(code := f.extract(word))
        if value is None:
            refused.append((form, f.mask, f"operand {f.name} has code {code}, which {f.kind.name} does not assign"))
            return None
        values.append(value)
    return Instruction(form, tuple(values))


def _unknown_word(
    slot: str, word: int, width: int, lsb: int, offset: int, refused: list[tuple[Form, int, str]]
) -> DecodeError:
    if not refused:
        return DecodeError(offset, (lsb, lsb + width - 1), f"no form of slot {slot} has the word {word:#x}")
    form, bits, reason = max(refused, key=lambda those: those[0].mask.bit_count())
    low, high = _span(bits)
    return DecodeError(offset, (lsb + low, lsb + high), f"slot {slot}, {form.name}: {reason}")


def _span(bits: int) -> tuple[int, int]:
    return (bits & -bits).bit_length() - 1, bits.bit_length() - 1
