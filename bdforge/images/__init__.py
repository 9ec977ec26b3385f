"""Containers of configurations: CDO command files, PDIs, xclbins, and the ELFs that a core's program comes in.

Small pure readers from bytes to values; ImageError names the offset at which a file is not what it claims to be.
Layouts: mlir-aie 5ff2ab97, aie-rt cc68248 (`xaie_elfloader.c`), bootgen aa3b7259, XRT 2.25 (`xrt/detail/xclbin.h`).
"""

from bdforge.images.cdo import Command, commands, writes
from bdforge.images.elf import Segment, core_segments, embedded_pdis
from bdforge.images.errors import ImageError
from bdforge.images.pdi import cdos
from bdforge.images.xclbin import pdis, sections

__all__ = [
    "Command", "ImageError", "Segment", "cdos", "commands", "core_segments", "embedded_pdis", "pdis", "sections",
    "writes",
]  # fmt: skip
