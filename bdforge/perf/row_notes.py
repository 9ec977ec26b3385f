"""What source and notes of a row of measurements say of its design, where its columns say nothing."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

SAID: Mapping[str, tuple[tuple[str, str], ...]] = {
    "bd_overlap": ((r"noBDoverlap|not overlapped|without BD overlap", "no"),),
    "b_resident": (
        (r"no resident B|non-?resident|B re-?read", "no"),
        (r"B (is |stays )?(kept |held )?resident|resident[- ]?B\b|B (is |stays )?(held|kept) in (the )?memtile", "yes"),
    ),
    "compiler": (
        (r"fused[- ]cast", "air-fused-cast"),
        (r"\bdrain\b", "air-drain"),
        (r"\bdirect\b.*\bherd\b|\bherd\b.*\bdirect\b|\bair\b.*\bdirect\b", "air-direct"),
        (r"xchesscc", "xchesscc"),
        (r"peano|\biron\b|\bflm\b|fastflowlm", "peano"),
    ),
    "dispatch": (
        (r"run-?list|grouped|in groups|chained", "runlist"),
        (r"\bmlir-air\b|\bair-|full elf", "elf"),
    ),
}
"""What source and notes say: patterns of a column, in any case, of which the first that is found gives its value."""
_STOCK = re.compile(r"whole_array|mlir-?aie|\biron\b|AMD example", re.IGNORECASE)
_FLM = re.compile(r"\bflm\b", re.IGNORECASE)
_FLM_PANEL_BYTES = 150_000
"""A panel of B that FLM's GEMMs keep: K up to 1024 at n = 64 in bf16 (README, v1), 2048 in bfp16 by their times."""
_HERD = re.compile(r"\bherd (\d+)x(\d+)")
_DEPTH = re.compile(r"resident\b.*\bwhen K ?<= ?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RowNotes:
    """The words of a row."""

    text: str

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> "RowNotes":
        """Of its source and notes."""
        return cls(f"{fields.get('source', '')} {fields.get('notes', '')}")

    def value(self, column: str) -> str:
        """What they say of a column of `SAID`, "" where nothing."""
        return next((value for words, value in SAID[column] if re.search(words, self.text, re.IGNORECASE)), "")

    @property
    def stock(self) -> bool:
        """Whether they name one of mlir-aie's and IRON's examples, whose slabs are as deep as a tile."""
        return bool(_STOCK.search(self.text)) and not _FLM.search(self.text)

    @property
    def herd(self) -> tuple[int, int]:
        """Cores over M and over N of one of mlir-air's herds, 0 and 0 where there is none."""
        found = _HERD.search(self.text)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def resident(self, depth: int, panel_bytes: float) -> bool:
        """Whether B is read once and stays in memtiles: K, and the bytes of a panel of B; 0 where unknown."""
        stays = self.value("b_resident")
        if stays != "no" and (limit := _DEPTH.search(self.text)):
            return depth <= int(limit[1])
        return stays == "yes" or (not stays and "flm/gemm" in self.text and 0 < panel_bytes <= _FLM_PANEL_BYTES)
