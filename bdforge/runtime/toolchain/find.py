"""Where each tool of the real toolchain is, and how it is searched for.

Places follow the wheels `llvm-aie` (Peano) and `mlir_aie` and XRT's packages; variables are those that
mlir-aie and XRT read themselves.
"""

import os
import shutil
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from bdforge.common.compilers import query
from bdforge.runtime.toolchain.pins import MLIR_AIE_INSTALL, PEANO_INSTALL

Verdict = Callable[[Path], str | None]
"""Why a file that was found cannot be used, or None."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, its place (None: not found), its version, where it was looked for, and how to get it."""

    name: str
    path: Path | None
    version: str
    searched: tuple[str, ...]
    remedy: str

    def __bool__(self) -> bool:
        return self.path is not None

    @property
    def root(self) -> Path | None:
        """Root of the installation: the folder that holds `bin/`."""
        return self.path.parent.parent if self.path else None

    @property
    def missing(self) -> str:
        """What is missing, where it was looked for and how to get it."""
        return f"{self.name}: looked in {'; '.join(self.searched)}\n    get it: {self.remedy}"


@dataclass(frozen=True, slots=True)
class ToolSearch:
    """Where to look for a tool, in order: a variable, folders, PATH.

    A variable that is set decides: when the tool is not below it, nothing else is tried, since another
    version would then be used without a word.
    """

    files: tuple[str, ...]  # relative to the variable's folder and to `folders`, in order of preference
    variable: str | None = None
    folders: tuple[tuple[str, Path], ...] = ()  # (what it is, where)
    programs: tuple[str, ...] = ()  # names on PATH
    check: Verdict | None = None  # of programs on PATH only

    def run(self, environ: Mapping[str, str]) -> tuple[Path | None, tuple[str, ...]]:
        """The file (None: nowhere) and the places that were searched."""
        searched: list[str] = []
        for description, found in self._candidates(environ):
            searched.append(description)
            if found is not None:
                return found, tuple(searched)
        return None, tuple(searched)

    def _candidates(self, environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
        if self.variable and (folder := environ.get(self.variable)):
            found = _first_file(Path(folder), self.files)
            yield f"{self.variable}={folder}{'' if found else f' (holds no {self.files[0]})'}", found
            return
        if self.variable:
            yield f"{self.variable} (not set)", None
        for what, folder in self.folders:
            yield f"{what} ({folder})", _first_file(folder, self.files)
        if self.programs:
            yield self._on_path(environ)

    def _on_path(self, environ: Mapping[str, str]) -> tuple[str, Path | None]:
        for program in self.programs:
            if not (found := shutil.which(program, path=environ.get("PATH", os.defpath))):
                continue
            if self.check and (reason := self.check(Path(found))):
                return f"PATH ({found}: {reason})", None
            return "PATH", Path(found)
        return "PATH", None


def _first_file(folder: Path, files: Sequence[str]) -> Path | None:
    return next((folder / file for file in files if (folder / file).is_file()), None)


def site_packages() -> Path:
    """Folder into which this Python installs wheels."""
    return Path(sysconfig.get_path("platlib"))


def version_of(program: Path | None) -> str:
    """First line that `program --version` prints; "unknown" when it fails, "" without a program."""
    if program is None:
        return ""
    code, text = query([program, "--version"])
    return first_line(text) if code == 0 and text.strip() else "unknown"


def first_line(text: str) -> str:
    """First line with something on it, or ""."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


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
    if path is None and (root := find_aiecc(environ).root) is not None:
        path, beside = ToolSearch(search.files, folders=(("beside aiecc", root),)).run(environ)
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
    if tool or (root := find_aiecc(environ).root) is None:
        return tool
    beside = _tool(
        "aiebu-asm", AIEBU_REMEDY, environ, ToolSearch(("bin/aiebu-asm",), folders=(("beside aiecc", root),))
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
