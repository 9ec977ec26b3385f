"""The real toolchain: where its tools are, what is missing, and running them without half-written results."""

from bdforge.runtime.toolchain.find import (
    Tool,
    find_aie_api,
    find_aiebu,
    find_aiecc,
    find_cxx,
    find_object_linker,
    find_peano,
    find_xrt,
    missing_report,
)
from bdforge.runtime.toolchain.process import ToolError, run_tool

__all__ = [
    "Tool", "ToolError", "find_aie_api", "find_aiebu", "find_aiecc", "find_cxx", "find_object_linker", "find_peano",
    "find_xrt", "missing_report", "run_tool",
]  # fmt: skip
