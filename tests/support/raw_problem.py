"""A built design with what `support.raw_npu` runs: an xclbin, instruction words and operands as files in its folder."""

import hashlib
import json
from pathlib import Path

import numpy as np

from bdforge.array.images.image_build import image, program_of
from bdforge.array.lower import configuration
from bdforge.array.mlir import parsed
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.design.sequences.buffers import fetched
from bdforge.operators import Plan
from bdforge.operators.gemm import sequence
from bdforge.runtime.toolchain.assembled import built_image
from support.built_designs import PlannedDesign
from support.gemm_problems import filled

XCLBIN = "design.xclbin"


def write_problem(design: PlannedDesign, sizes: tuple[int, int, int], seed: int = 1) -> np.ndarray:
    """Writes the files of a GEMM with random operands; the C that it must give."""
    add_xclbin(design)
    planned, arrays, expected = filled(design, *sizes, seed)
    np.asarray(planned.words(), "<u4").tofile(design.folder / "words.bin")
    for number, array in enumerate(arrays):
        array.tofile(design.folder / f"{number}.bin")
    return expected


def read_result(design: PlannedDesign, sizes: tuple[int, int, int]) -> np.ndarray:
    """C as the last run left it."""
    content = np.fromfile(design.folder / "2.bin", np.uint8)
    return fetched(sequence(design.plan, *sizes), [content] * 3)["C"]


def marked_xclbin(text: str) -> bytes:
    """An xclbin of a design's text, whose cores have no machine code."""
    device = next(op for op in parsed(text).walk() if isinstance(op, DeviceOp))
    return image(configuration(device, program_of), ".xclbin", bare=True)


def coded_xclbin(text: str, plan: Plan) -> bytes:
    """An xclbin of a design's text with machine code in every core."""
    made = built_image(text, "design.mlir", plan.kernels.defines, [])
    assert not made.without
    return made.xclbin


def add_xclbin(design: PlannedDesign) -> Path:
    """An xclbin whose cores have no machine code, listed in the design's manifest."""
    path = design.folder / XCLBIN
    path.write_bytes(marked_xclbin(design.mlir))
    facts = json.loads((design.folder / "manifest.json").read_text())
    facts["files"]["xclbin"] = {"path": XCLBIN, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    (design.folder / "manifest.json").write_text(json.dumps(facts))
    return path
