"""An NPU that programs with XRT find: files of a device that is not there, and a library that shows them."""

import fcntl
import os
import secrets
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bdforge.common.messages import InputError, clip_path
from bdforge.devices import Device, TileKind
from bdforge.devices.pci import IDENTITIES, VENDOR
from bdforge.devices.registers import address
from bdforge.devices.timing import POWER_HZ
from bdforge.runtime.service.wire import connected

SOCKET_VARIABLE = "BDFORGE_DEVICE_SOCKET"
"""Names the server that programs connect to; without it, hosts in C++ start one of their own."""
END_SECONDS = 10.0


@contextmanager
def serving() -> Iterator[str]:
    """A server while the context lasts; gives its name, for SOCKET_VARIABLE."""
    name = f"bdforge-{secrets.token_hex(16)}"
    control, theirs = connected()
    with control, theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        words = [sys.executable, "-m", "bdforge.cli", "device", "--serve", str(theirs.fileno())]
        server = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()
        socket.send_fds(control, [b"\0"], [listener.fileno()])
        try:
            listener.close()
            yield name
        finally:
            control.close()
            _ended(server)


def _ended(server: subprocess.Popen) -> None:
    try:
        server.wait(END_SECONDS)
    except subprocess.TimeoutExpired:  # the machine is that busy
        server.kill()  # whatever is below it ends with it
        server.wait()


LIBRARY = "libbdforge-npu.so"
LIBRARY_VARIABLE = "BDFORGE_NPU_LIBRARY"
BDF = "0000:c5:00.1"
"""The device's PCI address."""
_PREFIX = "bdforge-npu-"
_YOUNG_SECONDS = 60.0  # of a folder that its process may not have locked yet

_BUILT = Path(__file__).parents[3] / "build/host/lib" / LIBRARY
_AIE_METADATA, _AIE_VERSION, _CLOCKS, _FIRMWARE_VERSION, _POWER_MODE, _RESOURCES = 1, 2, 3, 8, 9, 12
"""Parameters of DRM_IOCTL_AMDXDNA_GET_INFO (Linux, `amdxdna_accel.h`)."""


class SoftwareNpuError(InputError):
    """The software NPU cannot be set up."""


def preload_library() -> Path:
    """The library that BDFORGE_NPU_LIBRARY names, or that `scons cpp` has built beside this bdforge."""
    named = os.environ.get(LIBRARY_VARIABLE)
    library = Path(named) if named else _BUILT
    if not library.is_file():
        way = (
            f"unset or correct {LIBRARY_VARIABLE}"
            if named
            else f"build it with scons cpp, or name it by {LIBRARY_VARIABLE}"
        )
        raise SoftwareNpuError(f"{clip_path(library)}: there is no such library, which shows an NPU to programs; {way}")
    return library.resolve()


@contextmanager
def shown(
    device: Device, socket_name: str, log: Path, library: Path, *, trace: bool = False
) -> Iterator[dict[str, str]]:
    """The environment in which programs find an NPU, while the context lasts: `device`, whose contexts are arrays of
    the server `socket_name`. What goes wrong on it is written to `log`, with `trace` whatever it is asked for."""
    with _own_folder() as folder:
        _write_files(folder, device)
        traced = {"BDFORGE_DEVICE_TRACE": "1"} if trace else {}
        before = os.environ.get("LD_PRELOAD", "")
        yield traced | {
            SOCKET_VARIABLE: socket_name,
            "BDFORGE_NPU": str(folder),
            "BDFORGE_DEVICE_LOG": str(log.absolute()),
            "LD_PRELOAD": f"{library}:{before}" if before else str(library),
        }


@contextmanager
def _own_folder() -> Iterator[Path]:
    """A new folder, locked while it is used; those of processes that were killed are removed."""
    base = Path(tempfile.gettempdir())
    for old in base.glob(f"{_PREFIX}*"):
        with suppress(OSError), _locked(old):
            if time.time() - old.stat().st_mtime > _YOUNG_SECONDS:
                shutil.rmtree(old)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder, _locked(Path(folder)):
        yield Path(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """While nobody else has a folder locked; OSError where somebody has. The system unlocks when the process ends."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(file)


def _write_files(folder: Path, product: Device) -> None:
    """What XRT looks at: the driver's links to its device, the device's files, its node, and the driver's answers."""
    identity = IDENTITIES[product.name]
    device = folder / "sys/devices/pci0000:00" / BDF
    (device / "accel/accel0").mkdir(parents=True)
    texts = {
        "device_type": "0", "vbnv": identity.name, "vendor": f"{VENDOR:#06x}", "device": f"{identity.device:#06x}",
        "revision": f"{identity.revision:#04x}", "subsystem_vendor": f"{VENDOR:#06x}",
        "subsystem_device": f"{identity.device:#06x}", "fw_version": "0.0.0.0",
    }  # fmt: skip
    for name, text in texts.items():
        (device / name).write_text(f"{text}\n")
    for link, up in (("sys/bus/pci/devices", "../../.."), ("sys/bus/pci/drivers/amdxdna", "../../../..")):
        (folder / link).mkdir(parents=True)
        (folder / link / BDF).symlink_to(f"{up}/devices/pci0000:00/{BDF}")
    (folder / "sys/module/amdxdna").mkdir(parents=True)
    (folder / "dev/accel").mkdir(parents=True)
    (folder / "dev/accel/accel0").touch()
    (folder / "info").mkdir()
    arrays = [product.part(columns + 1) for columns in range(product.columns)]
    (folder / "info/arrays").write_text("\n".join([str(product.core_rows), *arrays, ""]))
    for parameter, content in _answers(product).items():
        (folder / "info" / str(parameter)).write_bytes(content)


def _answers(product: Device) -> dict[int, bytes]:
    """The driver's answers by parameter, as the structures of `amdxdna_accel.h`."""
    mhz = int(max(POWER_HZ[product.name].values()) / 1e6)
    clocks = b"".join(struct.pack("<16sII", name, mhz, 0) for name in (b"MP-NPU Clock", b"H Clock"))
    return {
        _AIE_METADATA: _metadata(product),
        _AIE_VERSION: struct.pack("<II", 0, 0),  # nobody tells what firmware says
        _CLOCKS: clocks,
        _FIRMWARE_VERSION: bytes(16),
        _POWER_MODE: bytes(8),
        _RESOURCES: struct.pack("<5Q", mhz, 0, 0, 0, 0),
    }


def _metadata(product: Device) -> bytes:
    """Size of a column, columns, rows, version; then of cores, memtiles and shims: rows, first row, channels, locks."""
    rows = range(product.rows)
    head = struct.pack("<IHHII", address(1, 0, 0), product.columns, product.rows, 0, 0)
    tiles = b""
    for kind in (TileKind.CORE, TileKind.MEMTILE, TileKind.SHIM):
        own = [row for row in rows if product.kind(0, row) is kind]
        limits = product.generation.limits(kind)
        tiles += struct.pack("<5H6x", len(own), own[0], limits.channels, limits.locks, 0)
    return head + tiles
