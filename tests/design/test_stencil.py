"""The stencil of examples/: no operator of ours, a design written by hand, against numpy over the whole image."""

import subprocess

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator.verification import verify_design
from bdforge.design import check, render
from bdforge.devices.capacities import KNOWN
from bdforge.runtime import load_kernels
from support.differences import same
from support.examples import EXAMPLES, example

SOURCE = EXAMPLES / "stencil"
stencil = example("stencil/stencil.py")


def swept(image: np.ndarray, sweeps: int) -> np.ndarray:
    """The stencil by shifted copies of the whole image."""
    for _ in range(sweeps):
        wide = np.pad(image.astype(np.int64), 1)
        near = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        image = np.floor_divide(4 * image.astype(np.int64) + near, 8)
    return image.astype(np.int32)


@pytest.mark.daily(every=4)
@pytest.mark.parametrize(
    ("lines", "width", "cores", "images"), [(2, 16, 4, 1), (3, 48, 1, 3), (9, 16, 4, 2), (64, 64, 2, 1)]
)
@pytest.mark.parametrize("seed", range(3))
def test_every_core_is_one_sweep_in_any_order(lines, width, cores, images, seed):
    text = render(stencil.smoothing(stencil.stencil(width, cores), lines, images))
    rng = np.random.default_rng(seed)
    image = rng.integers(-(1 << 24), 1 << 24, (images, lines, width), dtype=np.int32)
    smoothed = np.full_like(image, 77)
    kernels = {"smooth": stencil.smooth}
    arguments = [image.ravel(), smoothed.ravel()]
    capacity = (KNOWN, 0, KNOWN)[seed]
    result = bdforge.emulate(text, arguments, kernels, schedule="random", seed=seed, poison=True, capacity=capacity)
    same(smoothed, [swept(each, cores) for each in image])
    assert result.warnings == ()


def test_the_design_is_legal_and_the_same_for_any_number_of_lines():
    design = stencil.stencil(64)
    assert check(design) == []
    texts = [render(stencil.smoothing(design, lines)) for lines in (2, 64)]
    for text in texts:
        found = verify_design(text, "stencil")
        assert (found.faults, found.warnings) == ((), ())
    configurations = {text[: text.index("aie.runtime_sequence")].rsplit("//", 1)[0] for text in texts}
    assert len(configurations) == 1


def test_the_kernel_for_the_array_computes_the_same_line(tmp_path):
    library = tmp_path / "smooth.so"
    subprocess.run(
        ["g++", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-DWIDTH=48", SOURCE / "smooth.cc", "-o", library],
        check=True,
    )
    lines = np.random.default_rng(3).integers(-(1 << 24), 1 << 24, (3, 48), dtype=np.int32)
    ours, other = np.zeros((2, 48), np.int32)
    load_kernels(library)["smooth"](*lines, ours)
    stencil.smooth(*lines, other)
    same(ours, other)


def test_the_example_prints_its_design(capsys):
    example("stencil/stencil.py", "__main__")
    text = capsys.readouterr().out
    assert text == render(stencil.smoothing(stencil.stencil(64), 64))
