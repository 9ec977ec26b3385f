"""Programs with the real XRT on the software NPU."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from library_builds import FOREIGN, Done

from bdforge.devices import device_named
from bdforge.runtime.service.software_npu import shown
from support.xrt_packages import Packages


@dataclass(frozen=True)
class SoftwareNpu:
    """A device whose log lies in `folder`."""

    xrt: Packages
    server: str
    library: Path
    folder: Path
    device: str = "strix_halo"

    @property
    def log(self) -> list[str]:
        """What it was asked for, and what went wrong: lines without time and process."""
        file = self.folder / "device.log"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.split(": ", 1)[-1] for line in lines]

    def run(self, *words: Path | str, cwd: Path | None = None, environ: Mapping[str, str] | None = None) -> Done:
        """A program on the device."""
        product = device_named(self.device)
        with shown(product, self.server, self.folder / "device.log", self.library, trace=True) as variables:
            return run_alone(self.xrt.command(*words), variables | dict(environ or {}), cwd)


def run_alone(words: Sequence[str], environ: dict[str, str], cwd: Path | None) -> Done:
    """Runs a program in a process group of its own, of which nothing may be left afterwards."""
    process = subprocess.Popen(
        words, cwd=cwd, env=os.environ | FOREIGN | environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    output, errors = process.communicate(timeout=120)
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return subprocess.CompletedProcess(words, process.returncode, output, errors)
    raise AssertionError(f"{words[0]} left processes behind")
