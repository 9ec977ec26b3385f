"""Where each tool of the real toolchain is.

Places follow the wheels `llvm-aie` (Peano) and `mlir_aie` and XRT's packages; variables are those that
mlir-aie and XRT read themselves.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from bdforge.common.compilers import query
from bdforge.runtime.toolchain.pins import MLIR_AIE_INSTALL, PEANO_INSTALL
from bdforge.runtime.toolchain.tool import Tool, ToolSearch, first_line, site_packages, version_of

PEANO_REMEDY = f"{PEANO_INSTALL}, or set PEANO_INSTALL_DIR"
AIECC_REMEDY = f"{MLIR_AIE_INSTALL}, or set MLIR_AIE_INSTALL_DIR"
PEANO, AIECC = "Peano clang++", "aiecc"  # names in reports
XRT_REMEDY = "install XRT (Debian, Ubuntu: apt install libxrt-utils) and source its setup.sh, which sets XILINX_XRT"

AIEBU_REMEDY = "install XRT's NPU tools (Debian, Ubuntu: apt install libxrt-utils-npu); the mlir_aie wheel holds it too"


def find_peano(environ: Mapping[str, str] = os.environ) -> Tool:
    """Peano's clang++, which compiles kernels for AIE cores."""
    tool = _tool(PEANO, PEANO_REMEDY, environ, replace(_peano("clang++"), check=_not_peano))
    wheel = wheel_version(tool, "llvm_aie")
    return replace(tool, version=f"{wheel}, {tool.version}") if wheel else tool


def find_object_linker(environ: Mapping[str, str] = os.environ) -> Tool:
    """Peano's ld.lld, which merges a design's kernel objects into the one file that its cores link."""
    return _tool("Peano ld.lld", PEANO_REMEDY, environ, _peano("ld.lld"))


def find_aiecc(environ: Mapping[str, str] = os.environ) -> Tool:
    """mlir-aie's compiler driver, which makes an xclbin and instruction words of MLIR."""
    files = ("bin/aiecc", "bin/aiecc.py")
    search = ToolSearch(files, "MLIR_AIE_INSTALL_DIR", (_mlir_aie_wheel(),), ("aiecc", "aiecc.py"))
    tool = _tool(AIECC, AIECC_REMEDY, environ, search, version=False)
    return replace(tool, version=wheel_version(tool, "mlir_aie") or version_of(tool.path))


def find_aie_api(environ: Mapping[str, str] = os.environ) -> Tool:
    """The AIE API header; the include folder is the parent of its folder."""
    search = ToolSearch(("include/aie_api/aie.hpp",), "MLIR_AIE_INSTALL_DIR", (_mlir_aie_wheel(),))
    path, searched = search.run(environ)
    if path is None and (aiecc := find_aiecc(environ)).root is not None:
        path, beside = ToolSearch(search.files, folders=(("beside aiecc", aiecc.root),)).run(environ)
        searched += beside
    version = str(path.stat().st_size) if path else ""  # its package's version is part of aiecc's
    return Tool("AIE API headers", path, version, searched, AIECC_REMEDY)


def find_xrt(environ: Mapping[str, str] = os.environ) -> Tool:
    """XRT's xclbinutil, which aiecc calls to write the xclbin."""
    folders = (("XRT's usual place", Path("/opt/xilinx/xrt")),)
    search = ToolSearch(("bin/xclbinutil", "unwrapped/xclbinutil"), "XILINX_XRT", folders, ("xclbinutil",))
    return _tool("xclbinutil (XRT)", XRT_REMEDY, environ, search)


def find_aiebu(environ: Mapping[str, str] = os.environ) -> Tool:
    """aiebu-asm, which makes full ELFs; XRT and the mlir_aie wheel both bring it."""
    folders = (("XRT's usual place", Path("/opt/xilinx/xrt")),)
    search = ToolSearch(("bin/aiebu-asm", "unwrapped/aiebu-asm"), "XILINX_XRT", folders, ("aiebu-asm",))
    tool = _tool("aiebu-asm", AIEBU_REMEDY, environ, search)
    if tool or (aiecc := find_aiecc(environ)).root is None:
        return tool
    beside = _tool(
        "aiebu-asm", AIEBU_REMEDY, environ, ToolSearch(("bin/aiebu-asm",), folders=(("beside aiecc", aiecc.root),))
    )
    return replace(beside, searched=tool.searched + beside.searched)


def find_cxx(program: str, environ: Mapping[str, str] = os.environ) -> Tool:
    """The host's C++ compiler called `program` (a name or a path)."""
    remedy = "install it (Debian, Ubuntu: apt install g++) or name another with cxx="
    return _tool(f"C++ compiler {program}", remedy, environ, ToolSearch((), programs=(program,)))


def missing_report(tools: Iterable[Tool]) -> str:
    """One entry for each missing tool: where it was looked for and how to get it; "" when all are there."""
    return "\n".join(f"  {tool.missing}" for tool in tools if not tool)


def _peano(program: str) -> ToolSearch:
    wheel = ("llvm-aie wheel", site_packages() / "llvm-aie")
    return ToolSearch((f"bin/{program}",), "PEANO_INSTALL_DIR", (wheel,), (program,))


def _mlir_aie_wheel() -> tuple[str, Path]:
    return "mlir_aie wheel", site_packages() / "mlir_aie"


def _tool(name: str, remedy: str, environ: Mapping[str, str], search: ToolSearch, version: bool = True) -> Tool:
    path, searched = search.run(environ)
    return Tool(name, path, version_of(path) if version else "", searched, remedy)


def _not_peano(clang: Path) -> str | None:
    """Why a clang++ from PATH is not Peano: any distribution's clang++ has the same name."""
    code, text = query([clang, "--print-targets"])
    if code != 0:
        return f"--print-targets ends with exit code {code}: {first_line(text)}"
    return None if "aie2" in text else "not Peano, it knows no aie2 target"


def wheel_version(tool: Tool, package: str) -> str:
    """Version of the wheel that holds a tool, installed or unpacked, by the metadata beside it; "" without one."""
    if tool.root is None:
        return ""
    folder = tool.root.resolve().parent
    named = (
        d for d in metadata.distributions(path=[str(folder)]) if (d.name or "").replace("-", "_").startswith(package)
    )
    return next((distribution.version for distribution in named), "")
