"""Images that SCons makes without a compiler for cores: files, manifest, and what is said of those not for silicon."""

import json

import pytest

from bdforge.array.images.programs import read_programs
from bdforge.design.manifest import manifest_fault
from bdforge.devices import device_named
from bdforge.operators import load_spec, plan

NAME, CPP_ONLY = "gemm_i8_i8_i32_one_core", "layernorm_bf16"


def manifest_of(tree, name: str, device: str = "strix_halo") -> dict:
    return json.loads((tree / "build" / device / name / "manifest.json").read_text())


def test_an_xclbin_is_built_without_tools(scons, tree, quick_cxx):
    result = scons(f"design={NAME}", quick_cxx, PATH="/usr/bin:/bin", PEANO_INSTALL_DIR="/nowhere")
    assert result.returncode == 0, result.stderr
    folder = tree / "build/strix_halo" / NAME
    planned = plan(load_spec(tree / f"designs/{NAME}.toml"), device_named("strix_halo"))
    for problem in planned.spec.problems:
        words = planned.sequence(problem).words().astype("<u4").tobytes()
        assert (folder / f"insts_{problem.sequence}.bin").read_bytes() == words
    (program,) = read_programs((folder / f"{NAME}.xclbin").read_bytes())
    assert program.tile == (0, 2)
    manifest = manifest_of(tree, NAME)
    assert manifest_fault(manifest) is None
    assert manifest["toolchain"]["name"] == "bdforge"
    assert manifest["toolchain"]["host_cores"] == []
    assert {"xclbin", "toolchain"} <= manifest["files"].keys()


@pytest.mark.slow
def test_a_design_whose_kernels_exist_in_cpp_only_gets_an_image_that_is_not_for_silicon(scons, tree, quick_cxx):
    result = scons(f"design={CPP_ONLY}", "device=phoenix", "toolchain=bdforge", quick_cxx)
    assert result.returncode == 0, result.stderr
    assert f"{CPP_ONLY}.emulated.xclbin is for the emulated array, no xclbin for silicon" in result.stderr
    manifest = manifest_of(tree, CPP_ONLY, "phoenix")
    assert "xclbin" not in manifest["files"]
    assert manifest["files"]["emulated"]["path"] == f"{CPP_ONLY}.emulated.xclbin"
    assert len(manifest["toolchain"]["host_cores"]) == 16


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ((f"design={CPP_ONLY}", "device=phoenix", "kernels=asm"), "kernels=asm, but layernorm_bf16 is not assembled"),
        (("toolchain=aiecc", "kernels=asm"), "kernels=asm is for toolchain=bdforge: aiecc links objects of Peano"),
    ],
)
def test_contrary_choices_are_refused(scons, choices, said):
    result = scons(*choices)
    assert result.returncode == 2
    assert said in result.stderr
