"""Folders of built designs whose cores run machine code, made without a compiler."""

import hashlib
import json
from pathlib import Path
from typing import Any

from bdforge.devices import device_named
from bdforge.operators import Plan, built_files, manifest, plan, render, spec_from
from bdforge.runtime import BuiltDesign
from bdforge.runtime.toolchain.assembled import built_image, toolchain_facts
from support.built_designs import spec_content

ONE_CORE = {"array": {"rows": 1, "columns": 1}}
AT_END = {"array": {"rows": 1, "columns": 1, "from_end": True}}
NORM = {"kind": "rows", "function": "rmsnorm", "width": 64, "codes": True, "problems": [{"rows": 5}]} | AT_END
RESIDUAL = NORM | {"residual": True}
PRODUCT = spec_content(16, 64, 32, types=("int8", "int2", "bf16", "int32"), rows=2, columns=1) | {
    "problems": [{"M": 5, "K": 64, "N": 64}]
}  # on two cores, one of which waits while the others run
SMALL: dict[str, dict[str, Any]] = {"norm": NORM, "product": PRODUCT, "residual": RESIDUAL}
"""Specs by name: what a layer begins with, of rows of 64."""

LAYER: dict[str, Any] = {
    "kind": "composition",
    "parameters": ["tokens"],
    "outputs": ["sum", "codes", "scales"],
    "steps": [
        {
            "design": "norm", "name": "first norm", "sizes": {"rows": "tokens"},
            "tensors": {"X": "x", "W": "w", "Y": "first codes", "Scale": "first scales"},
        },
        {
            "design": "product", "name": "a", "sizes": {"M": "tokens", "K": 64, "N": 128},
            "tensors": {"A": "first codes", "B": "wa", "C": "y"},
        },
        {
            "design": "product", "name": "b", "sizes": {"M": "tokens", "K": 64, "N": 64},
            "tensors": {"A": "first codes", "B": "wb", "C": "z"},
        },
        {
            "design": "residual", "name": "second norm", "sizes": {"rows": "tokens"},
            "tensors": {"X": "x", "R": "z", "W": "w2", "Sum": "sum", "Y": "codes", "Scale": "scales"},
        },
    ],
    "buffers": {"state": ["x", "sum"], "weights": ["w", "wa", "wb", "w2"]},
    "problems": [{"name": "small", "tokens": 21}],
}  # fmt: skip
"""A norm, two products on its codes by one design, and the norm of a sum, which read what the steps before made."""


def coded(folder: Path, name: str, device: str = "strix_halo", **changes: Any) -> BuiltDesign:
    """The built design of a spec of SMALL, in a folder of its name."""
    return coded_plan(folder / name, plan(spec_from(SMALL[name] | changes, name), device_named(device)))


def coded_plan(folder: Path, planned: Plan) -> BuiltDesign:
    """What scons makes of a plan with toolchain=bdforge, but for kernels of the host: nothing calls one."""
    folder.mkdir(parents=True)
    files, text = built_files(planned, ()), render(planned, [])
    made = built_image(
        text, str(folder / files["mlir"]), planned.kernels.defines, [], code_at_end=planned.design.code_at_end
    )
    content = {"mlir": text.encode(), "xclbin": made.xclbin, "host_kernels": b""}
    if planned.reference_file is not None:
        content["reference"] = planned.reference_file.read_bytes()
    for role, data in content.items():
        (folder / files[role]).parent.mkdir(exist_ok=True)
        (folder / files[role]).write_bytes(data)
    hashes = {role: hashlib.sha256(data).hexdigest() for role, data in content.items()}
    facts = manifest(planned, planned.problems, hashes, toolchain=toolchain_facts("bdforge", [], made.without))
    (folder / "manifest.json").write_text(json.dumps(facts))
    return BuiltDesign.load(folder)
