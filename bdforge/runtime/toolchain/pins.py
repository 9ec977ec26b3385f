"""Builds of mlir-aie and Peano that are known to work together, and those that are known not to.

Wheels of Peano are called <LLVM version>.YYYYMMDDHH+<commit>; nightly ones age out of their release page, so a good one
is worth keeping. Sources: issues and pull requests of Xilinx/mlir-aie, Xilinx/llvm-aie, Xilinx/mlir-air (named below).
"""

import re
from dataclasses import dataclass

_RELEASES = "https://github.com/Xilinx/{0}/releases/expanded_assets/{1}"

MLIR_AIE = "1.4.2"
PEANO = "21.0.0.2026080301+c9c5ecb7"
"""mlir-aie's own pin of August 2026, used with mlir_aie 1.4.2 (llvm-aie 1262)."""

PEANO_INSTALL = f"pip install llvm-aie=={PEANO} -f {_RELEASES.format('llvm-aie', 'nightly')}"
MLIR_AIE_INSTALL = f"pip install mlir_aie=={MLIR_AIE} -f {_RELEASES.format('mlir-aie', f'v{MLIR_AIE}')}"

_STAMP = re.compile(r"\b\d+\.\d+\.\d+\.(20\d{8})\b")


@dataclass(frozen=True, slots=True)
class Build:
    """Peano's wheels from one stamp (YYYYMMDDHH) to before another, and what is known of them."""

    first: int
    end: int
    why: str


BAD_PEANO = (
    Build(2026051601, 2026062301, "llc stops with an assertion (findPrologueEpilogue) on kernels with an outer loop; "
          "when it was mended was not reported (mlir-air 1617, llvm-aie 1005)"),
    Build(2026062401, 2026070800, "wrong code without a word for integer-float-integer at -O2; kernel_opt=1 may help "
          "(mlir-aie 3219, llvm-aie 1056)"),
    Build(2026082101, 2026082102, "wrong code for a MAC loop with a table look-up at -O2 (llvm-aie 1262)"),
)  # fmt: skip

GOOD_PEANO = {
    2026051501: "last before the assertion of mlir-air 1617",
    2026062301: "last before the wrong code of mlir-aie 3219",
    2026080301: "mlir-aie's pin of August 2026",
    2026090201: "used with mlir_aie 1.4.3.dev55 by mlir-air; its stack frames need more than 1024 bytes",
    2026090701: "pin of mlir_aie 1.4.3; its stack frames need more than 1024 bytes",
    2026091401: "mlir-air's tests pass with mlir_aie 1.4.4.dev18; its stack frames need more than 1024 bytes",
}

_BIG_FRAMES = "stack frames of 22.x need 960 to 1216 bytes (mlir-air 1980): keep stack_bytes at 4096"


def peano_fault(version: str) -> str | None:
    """What is known to be wrong with a Peano of this version, or None."""
    stamp = _stamp(version)
    return next((build.why for build in BAD_PEANO if stamp is not None and build.first <= stamp < build.end), None)


def peano_note(version: str) -> str:
    """What else is known of a Peano of this version; "" where nothing is."""
    stamp = _stamp(version)
    if stamp is None:
        return "" if not version.startswith("22.") else _BIG_FRAMES
    return GOOD_PEANO.get(stamp) or (_BIG_FRAMES if version.startswith("22.") else "no report of this build was read")


def _stamp(version: str) -> int | None:
    found = _STAMP.search(version)
    return None if found is None else int(found[1])
