"""The NPU of this machine, for tests marked `hardware`: what it lacks, and the design that is built for it."""

import os
from pathlib import Path

from bdforge.runtime import BuildError, BuiltDesign
from bdforge.runtime.toolchain.doctor import examine

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "BDFORGE_TEST_DESIGN"
NEEDED = ("kernel driver amdxdna", "NPU device node", "access to the NPU", "locked memory")


def design_folder() -> Path:
    """Where the tests look for the BitNet design: BDFORGE_TEST_DESIGN, or where `scons` leaves it."""
    return Path(os.environ.get(VARIABLE) or ROOT / "build" / "strix_halo" / "gemm_i8_i2_bitnet")


def obstacle(*more: str) -> str | None:
    """Why nothing can run on an NPU here, with the way out; None when it can. `more` are findings of the doctor."""
    wanted = (*NEEDED, *more)
    missing = [finding for finding in examine() if finding.name in wanted and not finding.present]
    if missing:
        return "; ".join(f"{finding.name}: {finding.detail} ({finding.remedy})" for finding in missing)
    try:
        BuiltDesign.load(design_folder()).image("xclbin")
    except BuildError as error:
        return str(error)
    return None
