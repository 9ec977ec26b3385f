"""Every AIE kernel compiles for this machine without a warning, with g++ and with clang++ where it is installed."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
GENERATIONS = {"aie2": 20, "aie2p": 21}  # __AIE_ARCH__
TILE = [
    "-DFUNCTION=relu2_gate",
    "-DTILE_ELEMENTS=64",
    "-DEPSILON=1e-6F",
    "-DHEAD_DIM=64",
    "-DFACTOR=1.0F",
    "-DSCORE_SCALE=0.125F",
    "-DSOFT_CAP=30",
    *(f"-D{name}=4" for name in ("GROUP", "KV_HEADS", "ROWS", "COLUMNS")),
]
OWN = {"gate_i32_bf16": "#undef FUNCTION\n#define FUNCTION relu2\n"}
"""What a kernel wants otherwise than those before it."""
AIE2P_ALONE = ("bfp16", "attention")
VARIANTS = {"plain": [], "in two parts, clipped": ["-DDIM_RHO=2", "-DRELU"]}


@pytest.fixture
def warnings(tmp_path: Path) -> Callable[..., str]:
    """What a compiler says of all kernels of a generation."""

    def warnings(compiler: str, generation: str, *flags: str, dim: int = 64) -> str:
        if not shutil.which(compiler):
            pytest.skip(f"{compiler} is not installed")
        refused = () if generation == "aie2p" else AIE2P_ALONE
        sources = sorted(s for s in (KERNELS / "aie2p").glob("*.cc") if not any(word in s.stem for word in refused))
        assert sources
        whole = tmp_path / "all.cc"  # one unit: reading the AIE API takes longer than all kernels
        whole.write_text("".join(f'{OWN.get(source.stem, "")}#include "{source}"\n' for source in sources))
        words = [compiler, "-std=c++20", f"-D__AIE_ARCH__={GENERATIONS[generation]}", f"-I{KERNELS / 'hostapi'}", *TILE]
        words += [f"-DDIM_{axis}={dim}" for axis in "MKN"]
        return subprocess.run([*words, *flags, str(whole)], capture_output=True, text=True, check=False).stderr

    return warnings


@pytest.mark.daily("plain-aie2p-g++")
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_kernels_have_no_warnings(warnings: Callable[..., str], variant: str, generation: str, compiler: str):
    assert warnings(compiler, generation, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *VARIANTS[variant]) == ""


@pytest.mark.slow
@pytest.mark.parametrize("generation", GENERATIONS)
def test_optimised_kernels_have_no_warnings(warnings: Callable[..., str], generation: str):
    """What only an optimiser sees, such as stores beyond an array's row by loops that are unrolled, is said to whoever
    builds a design."""
    assert warnings("g++", generation, "-O3", "-march=native", "-S", "-o", "/dev/null", dim=32) == ""
