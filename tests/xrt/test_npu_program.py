"""bdforge-run on the NPU of this machine, marked hardware: `scons device=strix_halo`, `scons cpp`, then these."""

import subprocess
from pathlib import Path

import pytest

from support.npu import ROOT, design_folder, obstacle

pytestmark = pytest.mark.hardware

PROGRAM = ROOT / "build" / "host" / "bin" / "bdforge-run"
BUILT_IN = [(256, 2560, 2560), (256, 2560, 640), (256, 2560, 13824), (256, 6912, 2560)]
CASES = [("xclbin", sizes) for sizes in [*BUILT_IN, (1, 1, 1), (33, 40, 70)]] + [("elf", sizes) for sizes in BUILT_IN]


@pytest.fixture(scope="module")
def folder() -> Path:
    if reason := obstacle():
        pytest.skip(reason)
    if not PROGRAM.is_file():
        pytest.skip(f"{PROGRAM} is missing; build it with scons cpp")
    return design_folder()


@pytest.mark.parametrize(("kind", "sizes"), CASES)
def test_every_element_is_verified(folder: Path, kind: str, sizes: tuple[int, int, int]):
    image = next(folder.glob(f"*.{kind}"), None)
    if image is None:
        pytest.skip(f"{folder} holds no {kind}; build it with scons device=strix_halo format={kind}")
    M, K, N = map(str, sizes)
    words = [PROGRAM, "-x", image, "-M", M, "-K", K, "-N", N, "--verify", "--iters", "5", "--warmup", "1"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"verified: {sizes[0] * sizes[2]} elements" in done.stdout
    assert "\nmeasured" in done.stdout
