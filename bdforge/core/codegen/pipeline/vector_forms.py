"""What the generations differ in for kernels that are written once: registers, accesses, immediates."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vectors:
    """Micro-tiles of C are `rows` x `columns`. An access moves `access` bytes; `parts` name those of an accumulator of
    32 bits an element.

    `widened` and `narrowed`, by bytes of an element: suffixes of loads and stores with conversion, and the parts that
    one of them fills; `converts` are the words before the suffixes, and what stands before the address. `accumulators`
    hold a micro-tile each, `small` are the steps that all accesses take as immediates. A `?` in the name of a part is
    l or h: such accumulators are halves, two to a number. `chain` are the cycles from a product of a sum to the next.
    """

    generation: str
    rows: int
    access: int
    accumulator: str
    parts: tuple[str, ...]
    widened: Mapping[int, tuple[str, tuple[str, ...]]]
    narrowed: Mapping[int, tuple[str, tuple[str, ...]]]
    signs: tuple[str, str]
    accumulators: int
    small: range
    columns: int = 8
    converts: tuple[str, str, str] = ("ups", "srs", "s0, ")
    chain: int = 2

    def sums(self, number: int) -> str:
        """The accumulator of a number."""
        return self.named(self.accumulator, number)

    def named(self, part: str, number: int) -> str:
        """A part of the accumulator of a number."""
        return f"{part.replace('?', 'lh'[number % 2])}{number // 2}" if "?" in part else f"{part}{number}"


AIE2P = Vectors(
    "aie2p", 8, 64, "dm", ("bmll", "bmlh", "bmhl", "bmhh"),
    {1: (".4x", ("dm",)), 2: (".2x", ("cml", "cmh"))},
    {1: (".4x", ("dm",)), 2: (".2x", ("cml", "cmh"))},
    (", upsSign1", ", srsSign1"), 5, range(-512, 449),
)  # fmt: skip
AIE2 = Vectors(
    "aie2", 4, 32, "cm", ("amll", "amlh", "amhl", "amhh"),
    {1: (".s32.s8", ("cm",)), 2: (".s32.s16", ("bml", "bmh"))},
    {1: (".s8.s32", ("cm",)), 2: (".s16.s32", ("bml", "bmh"))},
    ("", ""), 9, range(-256, 225),
)  # fmt: skip
AIE2_FLOATS = Vectors(
    "aie2", 4, 32, "bm?", ("am?l", "am?h"), {2: (".fp32.bf16", ("bm?",))}, {2: (".bf16.fp32", ("bm?",))},
    ("", ""), 18, range(-256, 225), 4, ("conv", "conv", ""), 4,
)  # fmt: skip
VECTORS = {vectors.generation: vectors for vectors in (AIE2P, AIE2)}
