"""What the generations' registers and accesses differ in, for kernels that are written once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bdforge.codegen.kernels.function import Function


@dataclass(frozen=True, slots=True)
class Vectors:
    """Micro-tiles of C are `rows` x 8. An access moves `access` bytes; `parts` name those of an accumulator of int32.

    `widened` and `narrowed`, by bytes of an element: suffixes of loads and stores with conversion, and the parts that
    one of them fills.
    """

    generation: str
    rows: int
    access: int
    accumulator: str
    parts: tuple[str, ...]
    widened: Mapping[int, tuple[str, tuple[str, ...]]]
    narrowed: Mapping[int, tuple[str, tuple[str, ...]]]
    signs: tuple[str, str]

    def sums(self, number: int) -> str:
        """The accumulator of a number."""
        return f"{self.accumulator}{number}"

    def load_sums(self, f: Function, number: int, place: tuple[str, int], size: int, memory: str) -> None:
        """Load a micro-tile of C, whose elements have `size` bytes, into an accumulator; s0 is the shift."""
        suffix, parts = self.widened.get(size, ("", self.parts))
        for i, (part, at) in enumerate(self._places(parts, place, size)):
            wide = f"vlda.ups{suffix} {part}{number}, s0, {at}{self.signs[0]}"
            f.add(wide if suffix else f"vlda {part}{number}, {at}", "", f"{memory} {i}")

    def store_sums(self, f: Function, number: int, place: tuple[str, int], size: int, memory: str) -> None:
        """Store a micro-tile of C; s0 is the shift."""
        suffix, parts = self.narrowed.get(size, ("", self.parts))
        for i, (part, at) in enumerate(self._places(parts, place, size)):
            narrow = f"vst.srs{suffix} {part}{number}, s0, {at}{self.signs[1]}"
            f.add(narrow if suffix else f"vst {part}{number}, {at}", "", f"{memory} {i}")

    def _places(self, parts: tuple[str, ...], place: tuple[str, int], size: int) -> Iterator[tuple[str, str]]:
        """Where each part of an accumulator lies, whose elements have `size` bytes in memory."""
        (base, offset), step = place, self.rows * 8 * size // len(parts)
        return ((part, f"[{base}, #{offset + i * step}]") for i, part in enumerate(parts))

    def load_tile(self, f: Function, unit: str, number: int, pointer: str, size: int, memory: str) -> None:
        """Load a micro-tile of `size` bytes into an x register, and step on."""
        if self.access == 64:
            f.add(f"vld{unit} x{number}, [{pointer}], #{size}", "", memory)
            return
        for i, half in zip(range(size // self.access), ("wl", "wh"), strict=False):
            f.add(f"vld{unit} {half}{number}, [{pointer}], #{self.access}", "", f"{memory} {i}")


AIE2P = Vectors(
    "aie2p", 8, 64, "dm", ("bmll", "bmlh", "bmhl", "bmhh"),
    {1: (".4x", ("dm",)), 2: (".2x", ("cml", "cmh"))},
    {1: (".4x", ("dm",)), 2: (".2x", ("cml", "cmh"))},
    (", upsSign1", ", srsSign1"),
)  # fmt: skip
AIE2 = Vectors(
    "aie2", 4, 32, "cm", ("amll", "amlh", "amhl", "amhh"),
    {1: (".s32.s8", ("cm",)), 2: (".s32.s16", ("bml", "bmh"))},
    {1: (".s8.s32", ("cm",)), 2: (".s16.s32", ("bml", "bmh"))},
    ("", ""),
)  # fmt: skip
VECTORS = {vectors.generation: vectors for vectors in (AIE2P, AIE2)}
