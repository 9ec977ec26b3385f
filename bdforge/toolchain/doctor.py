"""What of the real chain is on this machine: driver, permissions, XRT, compilers, with the command that mends each."""

import importlib.util
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from bdforge.toolchain.aiecc import aiecc_fault, aiecc_note
from bdforge.toolchain.find import (
    AIECC,
    PEANO,
    find_aie_api,
    find_aiebu,
    find_aiecc,
    find_object_linker,
    find_peano,
    find_xrt,
)
from bdforge.toolchain.machine import Finding, machine
from bdforge.toolchain.pins import peano_fault, peano_note
from bdforge.toolchain.tool import Tool

ROOT = Path("/")


def examine(environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> list[Finding]:
    """Every finding, in the order in which they matter: machine first, then tools."""
    return [*machine(root), *_python(), *_tools(environ)]


def _python() -> Iterator[Finding]:
    found = importlib.util.find_spec("pyxrt") is not None
    remedy = "install XRT's Python package (Debian, Ubuntu: apt install python3-xrt) and use its Python version"
    yield Finding("pyxrt", found, "importable" if found else "this Python cannot import it", remedy)


def _tools(environ: Mapping[str, str]) -> Iterator[Finding]:
    for find in (find_xrt, find_peano, find_object_linker, find_aiecc, find_aie_api, find_aiebu):
        tool: Tool = find(environ)
        seen = f"{tool.path} {tool.version}".strip() if tool else f"looked in {'; '.join(tool.searched)}"
        note, fault = _known(tool)
        yield Finding(tool.name, bool(tool), f"{seen} ({note})" if note else seen, tool.remedy, fault)


def _known(tool: Tool) -> tuple[str, str]:
    """What is known of this build of a tool, and what of it is bad."""
    if not tool:
        return "", ""
    if tool.name == AIECC:
        return aiecc_note(tool), aiecc_fault(tool) or ""
    if tool.name == PEANO:
        return peano_note(tool.version), peano_fault(tool.version) or ""
    return "", ""
