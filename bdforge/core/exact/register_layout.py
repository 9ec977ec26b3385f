"""Where registers lie in the fast executor: leaves that make up a composed register lie one after the other."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from bdforge.core.isa import RegisterLeaf, leaves, load
from bdforge.core.isa.core_registers import prefix

FORWARDED = (1 << 12) + 33 * 64  # no multiple of 4 KiB, at which loads of one copy wait for stores to the other
"""Distance of the second copy of vector registers, as readers see them to which results are forwarded: `kRegisters`."""

_TOGETHER = (
    ("wl", "wh"), ("bmll", "bmlh", "bmhl", "bmhh"), ("amll", "amlh", "amhl", "amhh"), ("lfl", "lfh"), ("sfl", "sfh"),
    ("ql", "qh"), ("el", "eh"), ("r",), ("m", "dn", "dj", "dc"),
)  # fmt: skip
_ALIGNMENT = 64
_WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class OperandSegment:
    """Adjacent bytes of an operand: where they lie among the registers and within the operand, and their bits.

    `vector` parts are kept twice (see FORWARDED); others are words of `bits` bits.
    """

    place: int
    offset: int
    size_bytes: int
    bits: int
    vector: bool

    @property
    def ends(self) -> tuple[int, int]:
        """Behind it, among the registers and within the operand."""
        return self.place + self.size_bytes, self.offset + self.size_bytes


class RegisterLayout:
    """Places of a generation's registers."""

    def __init__(self, generation: str) -> None:
        self.generation = generation

    @cached_property
    def places(self) -> dict[str, int]:
        """Byte offset of every leaf."""
        found: dict[str, int] = {}
        at = 0
        for group in self._groups():
            at = -(-at // _ALIGNMENT) * _ALIGNMENT
            for leaf in group:
                found[leaf.name] = at
                at += _bytes(leaf)
        assert at <= FORWARDED
        return found

    def _groups(self) -> Iterator[list[RegisterLeaf]]:
        """Families of leaves, each in the order in which composed registers have them."""
        every = {leaf.name: leaf for r in load(self.generation).registers for leaf in leaves(self.generation, r)}
        for family in _TOGETHER:
            mine = [leaf for name, leaf in every.items() if prefix(name) in family]
            yield sorted(mine, key=lambda leaf: (_number(leaf.name), family.index(prefix(leaf.name))))
            every = {name: leaf for name, leaf in every.items() if prefix(name) not in family}
        yield sorted(every.values(), key=lambda leaf: leaf.name)

    def leaf_at(self, place: int) -> str:
        """The leaf that has the byte at a place, in either copy."""
        place %= FORWARDED
        return max((name for name, first in self.places.items() if first <= place), key=self.places.__getitem__)

    def size_bytes(self, operand: tuple[RegisterLeaf, ...]) -> int:
        """Bytes of an operand."""
        return self.segments(operand)[-1].ends[1]

    @cache  # noqa: B019 - layouts stay, and a generation's operands are few
    def segments(self, operand: tuple[RegisterLeaf, ...]) -> tuple[OperandSegment, ...]:
        """An operand's bytes, adjacent vector parts and words joined; words of fewer bits stay alone."""
        found: list[OperandSegment] = []
        words = all(leaf.bits <= _WORD_BITS for leaf in operand)
        for index, leaf in enumerate(operand):
            offset = 4 * index if words else leaf.lsb // 8
            part = OperandSegment(self.places[leaf.name], offset, _bytes(leaf), leaf.bits, _is_vector(leaf))
            last = found[-1] if found else None
            if last and last.vector == part.vector and last.ends == (part.place, part.offset):
                found[-1] = OperandSegment(
                    last.place, last.offset, last.size_bytes + part.size_bytes, part.bits, part.vector
                )
            else:
                found.append(part)
        return tuple(found)


def _bytes(leaf: RegisterLeaf) -> int:
    return max(leaf.bits, _WORD_BITS) // 8


def _is_vector(leaf: RegisterLeaf) -> bool:
    """Whether results are ever forwarded to readers of this leaf."""
    return leaf.bits > _WORD_BITS or prefix(leaf.name) in ("el", "eh")


def _number(name: str) -> int:
    digits = name.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
    return int(digits) if digits else 0


@cache
def layout_of(generation: str) -> RegisterLayout:
    """The layout of a generation; made once."""
    return RegisterLayout(generation)
