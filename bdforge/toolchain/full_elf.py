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

from bdforge.devices import mlir_device_named
from bdforge.operators.gemm import Plan, Problem, sequence
from bdforge.operators.gemm.manifest import ELF_KERNEL, manifest
from bdforge.toolchain.process import ToolError, run_tool
from bdforge.txn import LoadPdi, encode

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
    plan: Plan,
    problems: Sequence[Problem],
    xclbin: Path,
    output: Path,
    tools: ElfTools,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Write the ELF of `plan` with an instance for each problem to `output` (absolute paths).

    The working files stay in `<output>.prj`, so that a command that failed can be repeated. ToolError says which did.
    """
    work = Path(f"{output}.prj")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    run_tool(tools.dump(xclbin), [], work, environ)
    pdi = _pdi(work)
    for problem in dict.fromkeys(problems):
        elf_words(plan, problem, (work / pdi).stat().st_size).astype("<u4").tofile(work / f"{problem.sequence}.bin")
    (work / CONFIG).write_text(json.dumps(elf_config(plan, pdi, problems), indent=2))
    run_tool(tools.assemble(output), [output], work, environ)


def elf_words(plan: Plan, problem: Problem, pdi_bytes: int) -> np.ndarray:
    """The instruction stream of `problem`, preceded by the loading of the PDI."""
    operations = sequence(plan, problem.M, problem.K, problem.N).operations()
    return encode([LoadPdi(PDI_ID, pdi_bytes, 0), *operations], mlir_device_named(plan.mlir_device))


def elf_config(plan: Plan, pdi: str, problems: Sequence[Problem]) -> dict[str, Any]:
    """What aiebu-asm reads: one kernel whose instances are the problems' sequences."""
    operands = [argument["name"].lower() for argument in manifest(plan, ())["arguments"]]
    arguments = [
        {"name": name, "type": "char *", "offset": f"{POINTER_BYTES * index:#04x}"}
        for index, name in enumerate(operands)
    ]
    names = [problem.sequence for problem in dict.fromkeys(problems)]
    instances = [{"id": name, "TXN_ctrl_code_file": f"{name}.bin"} for name in names]
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
