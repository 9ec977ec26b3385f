"""What stays packed from call to call goes to no design, problem or place that reads it otherwise."""

from typing import Any

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.operators.gemm import plan_gemm, sequence, spec_from
from bdforge.runtime import Loaded, OperandError
from support.built_designs import spec_content
from support.differences import same
from support.idle_backend import IdleBackend
from support.scaled_rows import PROGRAM, arrays, design_of

DEVICE = device_named("strix_halo")
PROGRAMS = {"rows": PROGRAM}
for name, (types, k, n, k_mt) in {
    "ternary": (("int8", "int2", "int32"), 16, 32, 32), "wide tiles": (("int8", "int2", "int32"), 16, 64, 32),
    "int4": (("int8", "int4", "int32"), 16, 16, 32), "int8": (("int8", "int8", "int32"), 16, 16, 32),
}.items():  # fmt: skip
    content = spec_content(16, k, n, k_mt=k_mt, types=types, layouts="row packed row")
    PROGRAMS[name] = sequence(plan_gemm(spec_from(content, "small"), DEVICE), 64, 64, 64).program
K, N = 64, 64


def loaded(name: str) -> Loaded:
    return Loaded(design_of(PROGRAMS[name], name), IdleBackend())


def weights(high: int = 1) -> np.ndarray:
    return np.random.default_rng(K).integers(-high, high + 1, (K, N), np.int8)


A = np.ones((5, K), np.int8)


@pytest.mark.parametrize(("maker", "taker"), [(a, b) for a in list(PROGRAMS)[1:] for b in list(PROGRAMS)[1:]])
def test_a_design_takes_what_another_packed_only_in_its_own_layout(maker: str, taker: str):
    packed, gemm = loaded(maker).pack(weights()), loaded(taker)
    problem = gemm.prepared(M=5, K=K, N=N)
    if maker == taker:
        same(gemm.unpack(packed)["B"], weights())
        same(gemm(A, packed), problem(B=packed))
        return
    for use in (lambda: gemm(A, packed), lambda: problem(B=packed), lambda: gemm.unpack(packed)):
        with pytest.raises(OperandError, match=f"B of K = {K}, N = {N} .*by {maker}"):
            use()


def test_what_is_not_staged_is_checked_too():
    rows, given = loaded("rows"), arrays()
    packed = rows.pack(given["B"])
    assert rows(given["A"], packed).shape == (8,)
    with pytest.raises(OperandError, match="packed B of n = 8"):
        rows.prepared(m=6, n=16)(B=packed)


def test_bytes_from_elsewhere_are_what_the_design_packs():
    """K of 33 leaves padding in the tile of 16: bytes of code 0 + 1 = 1 in all four fields, 0x55."""
    gemm = loaded("ternary")
    ternary = weights()[:33]
    good = gemm.pack(ternary).data.copy().view(np.uint8)
    same(gemm.unpack(gemm.packed(good, K=33, N=N))["B"], ternary)
    assert (good == 0x55).sum() > 0
    same(gemm.unpack(gemm.packed(good.view("<u4"), K=33, N=N))["B"], ternary, "as words")
    same(gemm.unpack(gemm.packed(np.repeat(good, 2)[::2], K=33, N=N))["B"], ternary, "every other byte of more")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda data: data | 0x03, "the value at .* is 2"),  # code 3
        (lambda data: np.where(data == 0x55, np.uint8(0x56), data), "byte [0-9]+ is 0x56"),  # padding that is not 0
        (lambda data: data[:-1], "takes [0-9]+ bytes, got"),
        (lambda data: np.append(data, data[:1]), "takes [0-9]+ bytes, got"),
        (lambda data: data.tolist(), "got list"),
        (lambda data: data.astype(object), "packed B must hold numbers"),
    ],
)
def test_other_bytes_are_refused(change: Any, named: str):
    gemm = loaded("ternary")
    data = gemm.pack(np.zeros((33, N), np.int8)).data.copy().view(np.uint8)
    with pytest.raises(OperandError, match=named):
        gemm.packed(change(data), K=33, N=N)


def test_an_argument_comes_from_one_place():
    """Factors and biases of an epilogue stand in one buffer: packed together, or one of both would be lost."""
    content = spec_content(16, 64, 32, layouts="row packed row", types=("int8", "int2", "bf16"))
    content["epilogue"] = {"scale": True, "bias": True}
    PROGRAMS["scaled"] = sequence(plan_gemm(spec_from(content, "small"), DEVICE), 64, 64, 64).program
    gemm, numbers = loaded("scaled"), np.full(N, 2, np.float32)
    scales, bias = gemm.pack(weights(), column_scales=numbers), gemm.pack(weights(), bias=numbers)
    for beside in (numbers, bias):
        with pytest.raises(OperandError, match=r"(bias|B) stands in one buffer with packed B"):
            gemm(A, scales, bias=beside)
    assert gemm(A, gemm.pack(weights(), column_scales=numbers, bias=numbers)).shape == (5, N)
