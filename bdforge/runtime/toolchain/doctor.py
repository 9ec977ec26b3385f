"""What of the real chain is on this machine: driver, permissions, XRT, compilers, with the command that mends each."""

import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from bdforge.runtime.npu import ROOT, Finding, machine
from bdforge.runtime.toolchain.aiecc import aiecc_fault, aiecc_note
from bdforge.runtime.toolchain.find import (
    AIECC,
    PEANO,
    Tool,
    find_aie_api,
    find_aiebu,
    find_aiecc,
    find_cxx,
    find_object_linker,
    find_peano,
    find_xrt,
)
from bdforge.runtime.toolchain.pins import peano_fault, peano_note

PURPOSES = {
    "build": "an xclbin, by scons",
    "npu": "running on an NPU",
    "tests": "our own tests",
}
"""What things are needed for; the emulated array needs Python and a C++ compiler only."""


def examine(environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> list[Finding]:
    """Every finding, in the order in which they matter: versions, machine, then tools."""
    return [*_versions(environ), *machine(root), _xrt_library(environ, root), *_tools(environ), *_tests()]


def _versions(environ: Mapping[str, str]) -> Iterator[Finding]:
    seen = f"{platform.python_version()} ({sys.executable}, {platform.system()} {platform.machine()})"
    yield Finding("Python", True, seen, purposes=tuple(PURPOSES))
    cxx = find_cxx("g++", environ)
    yield Finding(cxx.name, bool(cxx), _seen(cxx), cxx.remedy, purposes=("build", "tests"))


def _xrt_library(environ: Mapping[str, str], root: Path) -> Finding:
    """XRT's library; the name of its file ends with the version."""
    named = [Path(environ["XILINX_XRT"])] if environ.get("XILINX_XRT") else []
    folders = [*named, root / "opt/xilinx/xrt", root / "usr", root / "usr/local"]
    patterns = ("lib/libxrt_coreutil.so.*", "lib/*/libxrt_coreutil.so.*")
    found = sorted(file.resolve() for folder in folders for pattern in patterns for file in folder.glob(pattern))
    seen = (
        f"{found[-1]} {found[-1].name.partition('.so.')[2]}" if found else f"looked in {'; '.join(map(str, folders))}"
    )
    return Finding("XRT", bool(found), seen, "install XRT (Debian, Ubuntu: apt install libxrt-npu2 libxrt-utils)")


def _tools(environ: Mapping[str, str]) -> Iterator[Finding]:
    for find in (find_xrt, find_peano, find_object_linker, find_aiecc, find_aie_api, find_aiebu):
        tool: Tool = find(environ)
        note, fault = _known(tool)
        seen, needed = _seen(tool), find is not find_aiebu  # only format=elf calls that
        detail = f"{seen} ({note})" if note else seen
        yield Finding(tool.name, bool(tool), detail, tool.remedy, fault, needed, ("build",))


def _tests() -> Iterator[Finding]:
    """Packages of the extra `dev`, as the project's metadata name them."""
    try:
        required = metadata.requires("bdforge") or []
    except metadata.PackageNotFoundError:  # a tree that is not installed
        required = []
    names = (re.match(r"[\w.-]+", line) for line in required if re.search(r"extra\s*==\s*.dev.", line))
    for name in (match.group() for match in names if match and match.group() != "bdforge"):
        version = next((found.version for found in metadata.distributions(name=name)), "")
        remedy = "pip install 'bdforge[dev]' (in a checkout './go test' does)"
        yield Finding(f"package {name}", bool(version), version or "not installed", remedy, purposes=("tests",))


def _seen(tool: Tool) -> str:
    return f"{tool.path} {tool.version}".strip() if tool else f"looked in {'; '.join(tool.searched)}"


def _known(tool: Tool) -> tuple[str, str]:
    """What is known of this build of a tool, and what of it is bad."""
    if not tool:
        return "", ""
    if tool.name == AIECC:
        return aiecc_note(tool), aiecc_fault(tool) or ""
    if tool.name == PEANO:
        return peano_note(tool.version), peano_fault(tool.version) or ""
    return "", ""
