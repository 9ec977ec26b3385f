"""What of the real chain is on this machine: driver, permissions, XRT, compilers, with the command that mends each."""

import grp
import importlib.util
import os
import resource
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from bdforge.toolchain.pins import peano_fault, peano_note
from bdforge.toolchain.tool import Tool

ROOT = Path("/")
HEAP_BYTES = 64 << 20  # the NPU's user-space driver locks a heap of this size (XRT 2.25, libxrt_driver_xdna)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that running on the NPU needs: whether it is there, what was seen, and how to mend it.

    `fault` is what is known to be wrong with what is there.
    """

    name: str
    present: bool
    detail: str
    remedy: str = ""
    fault: str = ""


def examine(environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> list[Finding]:
    """Every finding, in the order in which they matter: machine first, then tools."""
    return [*_machine(root), *_python(), *_tools(environ)]


def _machine(root: Path) -> Iterator[Finding]:
    loaded = (root / "sys/module/amdxdna").exists()
    yield Finding(
        "kernel driver amdxdna", loaded, "loaded" if loaded else "not loaded",
        "Linux 6.14 or newer has it: sudo modprobe amdxdna (older: build github.com/amd/xdna-driver)",
    )  # fmt: skip
    nodes = sorted((root / "dev/accel").glob("accel*")) if (root / "dev/accel").is_dir() else []
    seen = ", ".join(str(node) for node in nodes) or "no /dev/accel/accel*"
    yield Finding(
        "NPU device node", bool(nodes), seen, "load the driver; check that the NPU is enabled in the firmware"
    )
    yield _access(nodes)
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    enough = soft == resource.RLIM_INFINITY or soft > HEAP_BYTES
    limit = "unlimited" if soft == resource.RLIM_INFINITY else f"{soft >> 10} KiB"
    yield Finding(
        "locked memory", enough, limit,
        "add '* soft memlock unlimited' and '* hard memlock unlimited' to /etc/security/limits.conf and log in again",
    )  # fmt: skip


def _access(nodes: list[Path]) -> Finding:
    remedy = "sudo usermod -aG render $USER, then log in again"
    if not nodes:
        return Finding("access to the NPU", False, "nothing to open", remedy)
    closed = [str(node) for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    groups = {_group(gid) for gid in os.getgroups()}
    detail = f"cannot open {', '.join(closed)}" if closed else "read and write"
    return Finding(
        "access to the NPU", not closed, f"{detail} (render group: {'yes' if 'render' in groups else 'no'})", remedy
    )


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


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
