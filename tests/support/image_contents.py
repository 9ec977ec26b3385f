"""What is inside the files that the real tools make: xclbins and core programs."""

import json
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile


@dataclass(frozen=True)
class XclbinContents:
    """The array's columns, and the arguments of each kernel by its name."""

    columns: int
    kernels: dict[str, list[str]]


def xclbin_contents(xclbinutil: Sequence[str], xclbin: Path, folder: Path) -> XclbinContents:
    """What XRT's xclbinutil (a command) reads in `xclbin`; it writes into `folder`."""
    sections = {"AIE_PARTITION": "JSON", "EMBEDDED_METADATA": "RAW"}
    words = [w for name, kind in sections.items() for w in ("--dump-section", f"{name}:{kind}:{name}")]
    done = subprocess.run(
        [*xclbinutil, "--info", "--input", str(xclbin), *words, "--force"], cwd=folder,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "AIE_PARTITION" in done.stdout
    partition = json.loads((folder / "AIE_PARTITION").read_text())["aie_partition"]["partition"]
    kernels = ElementTree.fromstring((folder / "EMBEDDED_METADATA").read_text().rstrip("\0")).iter("kernel")
    arguments = {kernel.get("name", ""): [arg.get("name", "") for arg in kernel.iter("arg")] for kernel in kernels}
    return XclbinContents(int(partition["column_width"]), arguments)


def program_bytes(path: Path) -> int:
    """Bytes of the sections of an ELF that are loaded and executed."""
    wanted = SH_FLAGS.SHF_ALLOC | SH_FLAGS.SHF_EXECINSTR
    with path.open("rb") as file:
        sections = ELFFile(file).iter_sections()
        return sum(section["sh_size"] for section in sections if section["sh_flags"] & wanted == wanted)
