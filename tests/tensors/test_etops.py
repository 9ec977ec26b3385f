"""A second oracle: etops, the package of TEIR's authors. It is no part of bdforge; `pip install etops` brings it.

It runs in a process of its own, since it does not check the sizes of arrays. It adds in float32, so that small integers
are exact.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bdforge
from bdforge.models.tensors import Einsum
from bdforge.operators.contraction import contraction
from support.built_designs import build, spec_content
from support.differences import same
from support.tccg import tccg

SECONDS = 120
SCRIPT = """
import json, sys
import etops, numpy as np

for number, case in enumerate(json.load(sys.stdin)):
    a, b = (np.load(f"{number}_{name}.npy") for name in "ab")
    c = np.zeros(case["shape"], np.float32)
    config = etops.TensorOperationConfig(
        backend="tpp", data_type=etops.float32, prim_first=etops.prim.zero, prim_main=etops.prim.gemm,
        prim_last=etops.prim.none, dim_types=[getattr(etops.dim, kind) for kind in case["types"]],
        exec_types=[etops.exec.seq] * len(case["types"]), dim_sizes=case["sizes"], strides=[case["strides"]],
    )
    options = {"target_m": 4, "target_n": 4, "target_k": 4, "num_threads": 1, "packed_gemm_support": True,
               "br_gemm_support": True, "packing_support": True, "sfc_support": False, "l2_cache_size": 1 << 20}
    etops.TensorOperation(etops.optimize(config, options)).execute(a, b, c)
    np.save(f"{number}_c.npy", c)
"""


def facts(expression: str, sizes: dict[str, int]) -> dict:
    """A contraction as etops takes it: the output's unit stride in the first input."""
    found = contraction(expression, sizes)
    last = next(dim for dim in found.dims if dim.strides[2] == 1)
    found = found if last.strides[0] is not None else found.exchanged()
    return {
        "swapped": found.swapped,
        "shape": [sizes[label] for label in expression.split("->")[1]],
        "types": [dim.kind.lower() for dim in found.dims],
        "sizes": [dim.size for dim in found.dims],
        "strides": [[dim.strides[tensor] or 0 for dim in found.dims] for tensor in range(3)],
    }


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("etops") is None, reason="etops is not installed; pip install etops")
def test_the_authors_package_computes_the_same(tmp_path: Path):
    build(tmp_path / "design", spec_content(8, 8, 8, types=("bf16", "bf16", "f32"), layouts="row row row"), "second")
    array, cases = Einsum(bdforge.load(tmp_path / "design")), [case.reduced for case in tccg()]
    told, ours = [], []
    for number, case in enumerate(cases):
        x, y = case.arrays(np.random.default_rng(number), ("bf16", "bf16"))
        ours.append(array(case.expression, x, y))
        told.append(facts(case.expression, dict(case.sizes)))
        given = (y, x) if told[-1]["swapped"] else (x, y)
        for name, one in zip("ab", given, strict=True):
            np.save(tmp_path / f"{number}_{name}.npy", one.astype(np.float32))
    subprocess.run(
        [sys.executable, "-c", SCRIPT], input=json.dumps(told), cwd=tmp_path, text=True, check=True, timeout=SECONDS
    )
    for number, (case, got) in enumerate(zip(cases, ours, strict=True)):
        same(got, np.load(tmp_path / f"{number}_c.npy"), case.expression)
