"""Operators beside products in bdforge-run: by the manifest alone, each against its reference in Python."""

from pathlib import Path
from typing import Any

import pytest
from library_builds import run, small_design

from bdforge.devices import device_named
from bdforge.operators import plan, spec_from

CORNER: dict[str, Any] = {"array": {"rows": 1, "columns": 2}}
OPERATORS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "attention": (
        {"heads": 4, "kv_heads": 2, "head_dim": 64, "tile": {"queries": 16, "keys": 16}},
        {"queries": 19, "keys": 37},
    ),
    "rope": ({"heads": 3, "head_dim": 64}, {"tokens": 13}),
    "softmax": ({"width": 64, "scale": 0.5}, {"rows": 13}),
    "convert": ({"function": "quantise", "width": 64}, {"rows": 13}),
    "rows": ({"function": "rmsnorm", "width": 64, "residual": True, "codes": True}, {"rows": 13}),
}


@pytest.mark.daily("convert")  # C++ of the others takes seconds each
@pytest.mark.parametrize("kind", OPERATORS)
def test_an_operator_is_run_and_verified_by_the_library(build: Path, tmp_path: Path, kind: str):
    content, sizes = OPERATORS[kind]
    planned = plan(spec_from({"kind": kind} | content | CORNER, "small"), device_named("strix_halo"))
    image = small_design(tmp_path, planned)
    given = [word for name, count in sizes.items() for word in ("-s", f"{name}={count}")]
    options = ["-d", "emulated", "--verify", "-i", "1", "--warmup", "0"]
    done = run(build / "bin" / "bdforge-run", "-x", image, *given, *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified: " in done.stdout
