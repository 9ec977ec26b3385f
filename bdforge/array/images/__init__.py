"""Containers of configurations: CDO command files, PDIs and xclbins.

Small pure readers from bytes to values; ImageError (`bdforge.common.binary`) names the offset at which a file is not
what it claims to be. Layouts: mlir-aie 5ff2ab97, aie-rt cc68248 (`xaie_elfloader.c`), bootgen aa3b7259, XRT 2.25
(`xrt/detail/xclbin.h`).
"""
