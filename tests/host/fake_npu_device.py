"""The fake NPU: a preloaded library that answers XRT's user-space driver as the kernel driver would, and computes."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from library_builds import ROOT, Done

from bdforge.xrt import XrtPackages

BDF = "0000:c5:00.1"
SOURCES = ROOT / "tests" / "host" / "fake_npu"


def build_library(xrt: XrtPackages, archive: Path, output: Path) -> Path:
    """Compiles the library against the driver's interface in Linux's headers."""
    # Linux's headers mark flexible arrays with a macro that user space has to define.
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-D__counted_by(x)="]
    include = [f"-I{ROOT / 'host/include'}", f"-I{ROOT / 'host/src'}", "-isystem", str(xrt.prefix / "include")]
    sources = [str(path) for path in sorted(SOURCES.glob("*.cpp"))]
    done = subprocess.run(
        ["g++", *flags, *include, *sources, str(archive), "-ldl", "-o", str(output)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return output


@dataclass(frozen=True)
class FakeNpu:
    """A fake device below `folder`, of which programs see nothing but this device."""

    xrt: XrtPackages
    library: Path
    folder: Path
    manifest: Path

    def make(self, name: str = "NPU Strix Halo") -> None:
        """The files by which XRT finds a device called `name`."""
        device = self.folder / "sys/devices/pci0000:00" / BDF
        (device / "accel/accel0").mkdir(parents=True)
        (device / "device_type").write_text("0\n")
        (device / "vbnv").write_text(f"{name}\n")
        for link, up in (("sys/bus/pci/devices", "../../.."), ("sys/bus/pci/drivers/amdxdna", "../../../..")):
            (self.folder / link).mkdir(parents=True)
            (self.folder / link / BDF).symlink_to(f"{up}/devices/pci0000:00/{BDF}")
        (self.folder / "dev/accel").mkdir(parents=True)
        (self.folder / "dev/accel/accel0").touch()

    @property
    def log(self) -> list[str]:
        """What the driver did."""
        file = self.folder / "log"
        return file.read_text().splitlines() if file.exists() else []

    def run(self, *words: Path | str, mode: str = "compute", cwd: Path | None = None) -> Done:
        """A program on the device; `mode` compute, hang, error or lose-chain."""
        loader, *rest = self.xrt.command(*words)
        environ = {
            "BDFORGE_FAKE_NPU": str(self.folder),
            "BDFORGE_FAKE_NPU_MODE": mode,
            "BDFORGE_FAKE_NPU_MANIFEST": str(self.manifest),
            "BDFORGE_FAKE_NPU_LOG": str(self.folder / "log"),
        }
        return run_alone([loader, "--preload", str(self.library), *rest], environ, cwd)


def run_alone(words: Sequence[str], environ: dict[str, str], cwd: Path | None) -> Done:
    """Runs a program in a process group of its own, of which nothing may be left afterwards."""
    process = subprocess.Popen(
        words, cwd=cwd, env=os.environ | environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    output, errors = process.communicate(timeout=120)
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return subprocess.CompletedProcess(words, process.returncode, output, errors)
    raise AssertionError(f"{words[0]} left processes behind")
