"""Element-wise functions of bfloat16 as machine code: the bits of the C++ kernels, whatever the operands hold."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned, aligned_copy

from bdforge.core.codegen.kernels import assembled
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.translated import Translated
from bdforge.operators.elementwise.functions import FUNCTIONS
from codegen.test_assembled_kernels import call
from support.differences import same

BF16, TILE = ml_dtypes.bfloat16, 1024
FINITE = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(BF16)
FINITE = FINITE[np.isfinite(FINITE.astype(np.float32))]


def options(name: str) -> tuple[str, ...]:
    return f"FUNCTION={name}", f"TILE_ELEMENTS={TILE}", f"OPERANDS={FUNCTIONS[name].operands}"


def build_of(name: str) -> Build:
    return Build("aie2p", ("elementwise_bf16",), (8, 8, 8), tuple(f"-D{option}" for option in options(name)))


BUILDS = [build_of("add")]  # that of each day


def operands(name: str, seed: int) -> list[np.ndarray]:
    """Numbers whose products with each other are normal ones; zeros, opposites, and edges of exponents among them."""
    rng, count = np.random.default_rng(seed), FUNCTIONS[name].operands
    size = abs(FINITE.astype(np.float32))
    found = [rng.choice(FINITE[(size > 2.0**-30) & (size < 2.0**30) | (size == 0)], TILE) for _ in range(count)]
    found[0][:8] = [0, 1, -1, 80, -80, 9.5, -9.5, 2.0**-12]
    if FUNCTIONS[name].error is not None:  # far below 0 they come near to the least normal number
        found[0][8:] = rng.normal(scale=3, size=TILE - 8)
    if count == 2:
        found[1][:8] = 1
        found[1][40:80] = -found[0][40:80]
        found[0][40:80:7] = 0
    return found


@pytest.mark.daily("add")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_machine_code_gives_the_bits_of_the_compiled_kernel(kernel_library, name: str):
    for seed in range(2):
        given = operands(name, seed)
        wanted, found = aligned(TILE, BF16), np.zeros(TILE, BF16)
        kernel_library(build_of(name)).call("elementwise_bf16", *(aligned_copy(x, BF16) for x in given), wanted)
        call(assembled("elementwise_bf16", "aie2p", options(name)), "aie2p", [*given, found])
        nonzero = wanted.astype(np.float32) != 0  # which sign a sum that is zero has is not known of the core
        same(found[nonzero].view(np.uint16), wanted[nonzero].view(np.uint16))
        same(found.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.slow
def test_both_executors_agree_on_a_gate():
    given, runs = operands("gelu_gate", 5), []
    kernel = assembled("elementwise_bf16", "aie2p", options("gelu_gate"))
    for executor in (Translated, Interpreter):
        y = np.zeros(TILE, BF16)
        runs.append((call(kernel, "aie2p", [*given, y], executor=executor), y.tobytes()))
    assert runs[0] == runs[1]
