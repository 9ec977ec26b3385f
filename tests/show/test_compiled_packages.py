"""Checks, runs and pages of MLIR need no package with compiled code but numpy, as browsers have no others."""

import subprocess
import sys

import pytest

from bdforge.devices.types import TYPES
from support.built_designs import ROOT

MISSING = ("pydantic", "pydantic_core", "ml_dtypes", "rich", "typer", "jinja2", "networkx", "matplotlib")
SCRIPT = f"""
import sys
sys.modules |= dict.fromkeys({MISSING!r})  # importing one is an ImportError
import numpy as np
import bdforge
import tools.site.playground.session
from bdforge.array.show.page import RunRecord, page

text, record = sys.stdin.read().replace("xi32>", "xbf16>"), RunRecord()
a, b = np.arange(4096, dtype=np.uint16), np.zeros(4096, np.uint16)
bdforge.emulate(text, [a, b], file="x.mlir", observers=[record], poison=True)
found = page(text, "x.mlir", record=record)
print((a == b).all(), found.faults, "<svg" in found.html)
"""


@pytest.mark.slow
def test_a_design_is_checked_run_and_shown_without_them():
    text = (ROOT / "examples/pass_through.mlir").read_text()
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "True () True\n"), done.stderr[-2000:]


@pytest.mark.parametrize(("name", "dtype"), [("int2", "int8"), ("bf16", "bfloat16"), ("bfp16", "float32")])
def test_a_type_knows_what_numpy_holds(name: str, dtype: str):
    assert TYPES[name].dtype.name == dtype
