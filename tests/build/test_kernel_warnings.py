"""Every AIE kernel compiles for this machine without a warning, with g++ and with clang++ where it is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
GENERATIONS = {"aie2": 20, "aie2p": 21}  # __AIE_ARCH__
TILE = [
    *(f"-DDIM_{axis}=64" for axis in "MKN"),
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


@pytest.mark.daily("plain-aie2p-g++", "in two parts, clipped-aie2-g++")
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_kernels_have_no_warnings(tmp_path: Path, variant: str, generation: str, compiler: str):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    refused = () if generation == "aie2p" else AIE2P_ALONE
    sources = sorted(s for s in (KERNELS / "aie2p").glob("*.cc") if not any(word in s.stem for word in refused))
    assert sources
    whole = tmp_path / "all.cc"  # one unit: reading the AIE API takes longer than all kernels
    whole.write_text("".join(f'{OWN.get(source.stem, "")}#include "{source}"\n' for source in sources))
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-D__AIE_ARCH__={GENERATIONS[generation]}"]
    words = [compiler, *flags, f"-I{KERNELS / 'hostapi'}", *TILE, *VARIANTS[variant], str(whole)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
