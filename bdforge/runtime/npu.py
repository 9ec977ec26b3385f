"""What running on the NPU needs of a machine (driver, device node, permissions, locked memory, clocks, pyxrt), and XRT
for compiling hosts.

Read from /proc, /sys and /dev below a root, so that tests can make machines up; clocks are asked of the driver.
"""

import ctypes
import grp
import importlib.util
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

ROOT = Path("/")
HEAP_BYTES = 64 << 20  # the NPU's user-space driver locks a heap of this size (XRT 2.25, libxrt_driver_xdna)

# Linux's include/uapi/drm/amdxdna_accel.h: DRM_IOCTL_AMDXDNA_GET_INFO takes parameter, size and address of a buffer.
_GET_INFO, _QUERY_CLOCKS, _GET_POWER_MODE = 0xC0106447, 3, 9
_CLOCK, _CLOCKS, _POWER_MODE_BYTES = "<16sII", 2, 8
_POWER_MODES = ("default", "low", "medium", "high", "turbo")
_SLOW_MODES = ("low", "medium")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the real chain needs: whether it is there, what was seen, and how to mend it.

    `fault` is what is known to be wrong with what is there. What is not `needed` may be in order as it is; the remedy
    says when it is not. `purposes` are those of `doctor.PURPOSES` that it serves.
    """

    name: str
    present: bool
    detail: str
    remedy: str = ""
    fault: str = ""
    needed: bool = True
    purposes: tuple[str, ...] = ("npu",)

    @property
    def fails(self) -> bool:
        """Whether what it is for cannot work."""
        return bool(self.fault) or (self.needed and not self.present)


def first_missing(root: Path | None = None) -> str:
    """The first thing that runs from Python need and that is not there, and how to get it; "" when all is."""
    failing = (finding for finding in machine(root or ROOT) if finding.fails)
    return next((f"{finding.name}: {finding.detail}; {finding.remedy}" for finding in failing), "")


def machine(root: Path) -> Iterator[Finding]:
    """What is found below `root`, in the order in which it matters."""
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
    yield _locked_memory(root)
    yield _translation(root)
    yield _clocks(nodes)
    yield binding()


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


def _locked_memory(root: Path) -> Finding:
    """The limit of this very process: a login by ssh may keep 8 MiB whatever limits.conf says."""
    limit = _memlock(root / "proc/self/limits")
    enough = limit == "unlimited" or (limit.isdigit() and int(limit) > HEAP_BYTES)
    seen = f"{int(limit) >> 10} KiB for this process" if limit.isdigit() else limit
    return Finding(
        "locked memory", enough, seen,
        f"XRT locks {HEAP_BYTES >> 20} MiB: add '* soft memlock unlimited' and '* hard memlock unlimited' to "
        "/etc/security/limits.conf and log in again. A login by ssh or a service may keep its own limit: then "
        "sudo prlimit --memlock=unlimited --pid $$ in that shell, or LimitMEMLOCK=infinity in the unit of the service",
    )  # fmt: skip


def _memlock(limits: Path) -> str:
    """The soft limit as the kernel writes it: "unlimited" or bytes."""
    try:
        lines = limits.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        return f"unknown: {limits}: {error.strerror}"
    found = [line.split()[3] for line in lines if line.startswith("Max locked memory") and len(line.split()) > 3]
    return found[0] if found else f"unknown: {limits} does not say"


def _translation(root: Path) -> Finding:
    """Whether the IOMMU translates the NPU's addresses; storms of faults made runs a thousand times slower."""
    groups = root / "sys/kernel/iommu_groups"
    words = _words(root / "proc/cmdline")
    options = [word for word in words if word.partition("=")[0] in ("iommu", "amd_iommu", "intel_iommu")]
    said = f" (kernel command line: {' '.join(options)})" if options else ""
    kinds = _npu_group_types(root)
    if not groups.is_dir() or not any(groups.iterdir()):
        passes, seen = True, "no IOMMU groups, nothing is translated"
    elif kinds:
        passes, seen = kinds == {"identity"}, f"the NPU's group is of type {', '.join(sorted(kinds))}"
    else:
        passes = "iommu=pt" in options
        seen = "passed through" if passes else "addresses are translated, or the kernel's default decides"
    return Finding(
        "address translation (IOMMU)", passes, seen + said,
        "fine as long as dmesg shows no IO_PAGE_FAULT; if it does, or if runs of milliseconds take seconds, add "
        "iommu=pt to the kernel command line (GRUB_CMDLINE_LINUX in /etc/default/grub, then sudo update-grub) and "
        "restart",
        needed=False,
    )  # fmt: skip


def _words(file: Path) -> list[str]:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").split()
    return []


def _npu_group_types(root: Path) -> set[str]:
    """The types of the IOMMU groups of the devices that the driver has, such as identity or DMA-FQ."""
    files = (root / "sys/bus/pci/drivers/amdxdna").glob("*:*/iommu_group/type")
    return {word for file in files for word in _words(file)[:1]}


def _clocks(nodes: list[Path]) -> Finding:
    name = "clock and power mode"
    modes = [seen for node in nodes if (seen := _asked(node))]
    if not modes:
        return Finding(
            name, False, "the driver does not tell",
            "'xrt-smi examine -r platform' may; results that are all slower by the same factor are the clock",
            needed=False,
        )  # fmt: skip
    slow = [mode for mode, _ in modes if mode in _SLOW_MODES]
    seen = "; ".join(f"mode {mode}, {', '.join(clocks)} now (it rises with the first work)" for mode, clocks in modes)
    return Finding(name, not slow, seen, "sudo xrt-smi configure --pmode performance", needed=False)


def _asked(node: Path) -> tuple[str, list[str]] | None:
    """Power mode and clocks as the driver says them; None when it does not."""
    try:
        device = os.open(node, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        mode = _info(device, _GET_POWER_MODE, _POWER_MODE_BYTES)[0]
        clocks = _info(device, _QUERY_CLOCKS, _CLOCKS * struct.calcsize(_CLOCK))
    except OSError:
        return None
    finally:
        os.close(device)
    named = [
        f"{clock.partition(bytes(1))[0].decode(errors='replace')} {mhz} MHz"
        for clock, mhz, _ in struct.iter_unpack(_CLOCK, clocks)
    ]
    return _POWER_MODES[mode] if mode < len(_POWER_MODES) else f"number {mode}", named


def binding() -> Finding:
    found = sys.modules.get("pyxrt") is not None or importlib.util.find_spec("pyxrt") is not None
    remedy = "install XRT's Python package (Debian, Ubuntu: apt install python3-xrt) and use its Python version"
    return Finding("pyxrt", found, "importable" if found else "this Python cannot import it", remedy)


def _info(device: int, parameter: int, size: int) -> bytes:
    buffer = ctypes.create_string_buffer(size)
    ioctl(device, _GET_INFO, struct.pack("<IIQ", parameter, size, ctypes.addressof(buffer)))
    return buffer.raw


HEADER = "xrt/experimental/xrt_ext.h"  # of XRT with NPU support; an older one lacks it
LIBRARY = "libxrt_coreutil.so"


@dataclass(frozen=True, slots=True)
class XrtDevelopment:
    """Folders of an XRT: headers (`xrt/...` below it) and libxrt_coreutil."""

    include: Path
    library: Path


def find_development(wanted: str = "auto", environ: Mapping[str, str] = os.environ) -> XrtDevelopment | None:
    """The XRT to build with: below the prefix `wanted`, nowhere for "none"; for "auto" where XILINX_XRT says, then in
    XRT's usual places. None when there is none.
    """
    if wanted == "none":
        return None
    if wanted != "auto":
        return _below(Path(wanted))
    if folder := environ.get("XILINX_XRT"):
        return _below(Path(folder))
    found = (_below(prefix) for prefix in (Path("/opt/xilinx/xrt"), Path("/usr"), Path("/usr/local")))
    return next(filter(None, found), None)


def _below(prefix: Path) -> XrtDevelopment | None:
    include = prefix / "include"
    if not (include / HEADER).is_file():
        return None
    libraries = [prefix / "lib" / LIBRARY, *sorted(prefix.glob(f"lib/*/{LIBRARY}"))]  # lib/<multiarch> on Debian
    library = next((path.parent for path in libraries if path.exists()), None)
    return XrtDevelopment(include, library) if library else None
