"""A full ELF: one file with the array configuration of an xclbin and an instruction stream for each problem.

The configuration (PDI) is taken out of the xclbin by xclbinutil; aiebu-asm puts it and the streams together. A stream
starts with LOADPDI, since nothing else configures the array when XRT opens a full ELF; aiebu-asm turns its id into the
PDI's address.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bdforge.design.manifest import ELF_KERNEL
from bdforge.design.sequences import PlannedSequence
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import LoadPdi
from bdforge.runtime.toolchain.process import ToolError, run_tool

PDI_ID = 1
POINTER_BYTES = 8
PARTITION, CONFIG = "partition.json", "elf.json"


@dataclass(frozen=True, slots=True)
class ElfTools:
    """Commands of the two tools, each as words."""

    xclbinutil: Sequence[str | Path]
    aiebu_asm: Sequence[str | Path]

    def dump(self, xclbin: Path) -> list[str | Path]:
        """Writes the xclbin's partition, and beside it the PDI as <uuid>.pdi."""
        return [*self.xclbinutil, "--input", xclbin, "--dump-section", f"AIE_PARTITION:JSON:{PARTITION}", "--force"]

    def assemble(self, output: Path) -> list[str | Path]:
        """Makes the ELF that `elf.json` describes."""
        return [*self.aiebu_asm, "-t", "aie2_config", "-j", CONFIG, "-o", output]


def write_full_elf(
    sequences: Mapping[str, PlannedSequence],
    xclbin: Path,
    output: Path,
    tools: ElfTools,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Write the ELF of a design with an instance for each sequence, by name, to `output` (absolute paths).

    The working files stay in `<output>.prj`, so that a command that failed can be repeated. ToolError says which did.
    """
    work = Path(f"{output}.prj")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    run_tool(tools.dump(xclbin), [], work, environ)
    pdi = _pdi(work)
    for name, planned in sequences.items():
        elf_words(planned, (work / pdi).stat().st_size).astype("<u4").tofile(work / f"{name}.bin")
    (work / CONFIG).write_text(json.dumps(elf_config(sequences, pdi), indent=2))
    run_tool(tools.assemble(output), [output], work, environ)


def elf_words(planned: PlannedSequence, pdi_bytes: int) -> np.ndarray:
    """An instruction stream, preceded by the loading of the PDI."""
    return encode([LoadPdi(PDI_ID, pdi_bytes, 0), *planned.operations()], planned.device)


def elf_config(sequences: Mapping[str, PlannedSequence], pdi: str) -> dict[str, Any]:
    """What aiebu-asm reads: one kernel whose instances are the sequences, all with the arguments of one program."""
    operands = [argument.name.lower() for argument in next(iter(sequences.values())).program.arguments]
    arguments = [
        {"name": name, "type": "char *", "offset": f"{POINTER_BYTES * index:#04x}"}
        for index, name in enumerate(operands)
    ]
    instances = [{"id": name, "TXN_ctrl_code_file": f"{name}.bin"} for name in sequences]
    pdis = [{"id": PDI_ID, "PDI_file": pdi}]
    return {"xrt-kernels": [{"name": ELF_KERNEL, "arguments": arguments, "PDIs": pdis, "instance": instances}]}


def _pdi(work: Path) -> str:
    """Name of the only PDI in the dumped partition."""
    try:
        partition = json.loads((work / PARTITION).read_text(encoding="utf-8"))["aie_partition"]
        names = [pdi["file_name"] for pdi in partition["PDIs"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ToolError(f"{work / PARTITION}: no partition of an xclbin: {type(error).__name__} {error}") from None
    if len(names) != 1 or not (work / names[0]).is_file():
        raise ToolError(f"{work / PARTITION}: expected one PDI beside it, it names {', '.join(names) or 'none'}")
    return names[0]
