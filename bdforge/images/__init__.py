"""Containers of configurations: CDO command files, PDIs and xclbins.

Small pure readers from bytes to values; ImageError names the offset at which a file is not what it claims to be.
Layouts: mlir-aie 5ff2ab97, aie-rt cc68248 (`xaie_elfloader.c`), bootgen aa3b7259, XRT 2.25 (`xrt/detail/xclbin.h`).
"""

from bdforge.binary import ImageError
from bdforge.images.cdo import Command, commands, writes
from bdforge.images.pdi import cdos, embedded_pdis
from bdforge.images.xclbin import pdis, sections

__all__ = [
    "Command", "ImageError", "cdos", "commands", "embedded_pdis", "pdis", "sections", "writes",
]  # fmt: skip
