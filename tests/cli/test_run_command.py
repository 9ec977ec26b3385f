"""`bdforge run`: what it says to a spec in a built design's place."""

from pathlib import Path

import pytest

from support.built_designs import ROOT

SPEC = ROOT / "designs/gemm_i8_i2_bitnet.toml"


def test_a_spec_that_was_not_built_is_told_how(run):
    code, out, err = run("run", str(SPEC))
    assert (code, out) == (2, "")
    assert "'scons device=strix_halo design=gemm_i8_i2_bitnet host'" in err
    assert err.endswith("then: bdforge run build/strix_halo/gemm_i8_i2_bitnet\n")


@pytest.mark.parametrize("devices", [["strix"], ["krackan", "strix"]])
def test_a_spec_that_was_built_is_told_where(run, devices):
    for device in devices:
        Path(f"build/{device}/gemm_i8_i2_bitnet").mkdir(parents=True)
        Path(f"build/{device}/gemm_i8_i2_bitnet/manifest.json").write_text("{}")
    folders = " or ".join(f"build/{device}/gemm_i8_i2_bitnet" for device in devices)
    assert run("run", str(SPEC))[2].endswith(f"run what was built of it: bdforge run {folders}\n")


def test_a_device_that_the_design_is_for_is_named(run):
    spec = ROOT / "designs/gemm_bf16_bf16_bf16_96x56x96.toml"
    assert "device=phoenix" in run("run", str(spec))[2]
