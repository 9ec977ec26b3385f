"""Containers of configurations: CDO command files, PDIs and xclbins.

Small pure readers from bytes to values; ImageError names the offset at which a file is not what it claims to be.
Layouts: mlir-aie 5ff2ab97, aie-rt cc68248 (`xaie_elfloader.c`), bootgen aa3b7259, XRT 2.25 (`xrt/detail/xclbin.h`).
"""

from bdforge.array.images.cdo import Command, commands, writes
from bdforge.array.images.pdi import cdos, embedded_pdis
from bdforge.array.images.xclbin import pdis, sections
from bdforge.common.binary import ImageError

__all__ = [
    "Command", "ImageError", "cdos", "commands", "embedded_pdis", "pdis", "sections", "writes",
]  # fmt: skip
