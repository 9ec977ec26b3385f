"""What the generations' registers and accesses differ in, for kernels that are written once."""

from collections.abc import Mapping
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
        base, offset = place
        if size == 4:
            for i, part in enumerate(self.parts):
                f.add(f"vlda {part}{number}, [{base}, #{offset + i * self.access}]", "", f"{memory} {i}")
            return
        suffix, parts = self.widened[size]
        step = self._elements * size // len(parts)
        for i, part in enumerate(parts):
            text = f"vlda.ups{suffix} {part}{number}, s0, [{base}, #{offset + i * step}]{self.signs[0]}"
            f.add(text, "", f"{memory} {i}")

    def store_sums(self, f: Function, number: int, place: tuple[str, int], size: int, memory: str) -> None:
        """Store a micro-tile of C; s0 is the shift."""
        base, offset = place
        if size == 4:
            for i, part in enumerate(self.parts):
                f.add(f"vst {part}{number}, [{base}, #{offset + i * self.access}]", "", f"{memory} {i}")
            return
        suffix, parts = self.narrowed[size]
        step = self._elements * size // len(parts)
        for i, part in enumerate(parts):
            text = f"vst.srs{suffix} {part}{number}, s0, [{base}, #{offset + i * step}]{self.signs[1]}"
            f.add(text, "", f"{memory} {i}")

    def load_tile(self, f: Function, unit: str, number: int, pointer: str, size: int, memory: str) -> None:
        """Load a micro-tile of `size` bytes into an x register, and step on."""
        if self.access == 64:
            f.add(f"vld{unit} x{number}, [{pointer}], #{size}", "", memory)
            return
        for i, half in zip(range(size // self.access), ("wl", "wh"), strict=False):
            f.add(f"vld{unit} {half}{number}, [{pointer}], #{self.access}", "", f"{memory} {i}")

    @property
    def _elements(self) -> int:
        return self.rows * 8


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
