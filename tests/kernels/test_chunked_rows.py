"""Rows in chunks give the bits of whole rows, whatever they hold and the state begins with; as machine code, too."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned, aligned_copy

from bdforge.core.codegen.kernels import assembled
from codegen.test_assembled_kernels import call as run

BF16 = ml_dtypes.bfloat16


class Chunked(NamedTuple):
    """A kernel of whole rows, those of its passes, and what they are of."""

    generation: str
    whole: str
    passes: tuple[str, ...]
    chunk: int
    chunks: int
    options: tuple[str, ...] = ("EPSILON=1e-5F",)
    held: int = 1

    def has(self, option: str) -> bool:
        return f"{option}=1" in self.options

    @property
    def machine(self) -> bool:
        """Whether it is assembled, too."""
        return self.generation == "aie2p"

    @property
    def x_type(self) -> Any:
        return np.float32 if self.has("X_F32") else BF16

    @property
    def width(self) -> int:
        return self.chunk * self.chunks

    @property
    def type(self) -> str:
        """Of the kernels' names."""
        return "f32" if self.whole == "quantise" and self.has("X_F32") else "bf16"

    @property
    def symbols(self) -> list[str]:
        return [f"{self.whole}_{part}_{self.type}" for part in self.passes]

    @property
    def chunk_options(self) -> tuple[str, ...]:
        return f"TILE_ELEMENTS={self.chunk}", f"ROW_ELEMENTS={self.width}", *self.options

    def builds(self) -> tuple[Build, Build]:
        whole = f"TILE_ELEMENTS={self.width}", *self.options
        return (
            Build(self.generation, (f"{self.whole}_{self.type}",), (8, 8, 8), tuple(f"-D{option}" for option in whole)),
            Build(self.generation, tuple(self.symbols), (8, 8, 8), tuple(f"-D{o}" for o in self.chunk_options)),
        )


RMS, LAYER, CODED = ("statistics", "results"), ("sum", "squares", "results"), ("sum", "squares", "largest", "results")
EPSILON, SUM, CODES, FLOATS = "EPSILON=1e-5F", "RESIDUAL=1", "CODES=1", "X_F32=1"
CASES = [
    Chunked("aie2p", "rmsnorm", RMS, 128, 2, (EPSILON, SUM, CODES)),
    Chunked("aie2p", "softmax", ("largest", "sum", "results"), 64, 3, ("FACTOR=0.3F",), 0),
    Chunked("aie2", "layernorm", LAYER, 16, 5, (EPSILON, SUM), 2),
    Chunked("aie2", "quantise", ("largest", "results"), 32, 5, (CODES, FLOATS), 0),
]
OTHERS = [
    Chunked("aie2p", "layernorm", CODED, 128, 2, (EPSILON, CODES), 2),
    Chunked("aie2p", "quantise", ("largest", "results"), 128, 3, (CODES,), 0),
    Chunked("aie2p", "rmsnorm", RMS, 64, 3),
    Chunked("aie2p", "rmsnorm", RMS, 64, 3, (EPSILON, SUM)),
    Chunked("aie2p", "rmsnorm", RMS, 128, 5, (EPSILON, CODES)),
    Chunked("aie2", "rmsnorm", RMS, 32, 3, (EPSILON, SUM, CODES)),
    Chunked("aie2p", "layernorm", LAYER, 64, 3, (EPSILON,), 2),
    Chunked("aie2p", "layernorm", LAYER, 96, 2, (EPSILON, SUM), 2),
    Chunked("aie2p", "layernorm", LAYER, 64, 3, (EPSILON, FLOATS), 2),
    Chunked("aie2p", "layernorm", LAYER, 64, 2, (EPSILON, SUM, FLOATS), 2),
    Chunked("aie2", "layernorm", CODED, 32, 3, (EPSILON, CODES, SUM), 2),
    Chunked("aie2p", "layernorm", CODED, 64, 3, (EPSILON, CODES, SUM), 2),
    Chunked("aie2p", "layernorm", CODED, 64, 2, (EPSILON, CODES, FLOATS), 2),
    Chunked("aie2p", "layernorm", CODED, 128, 3, (EPSILON, CODES, SUM, FLOATS), 2),
    Chunked("aie2p", "rmsnorm", RMS, 64, 3, (EPSILON, FLOATS)),
    Chunked("aie2p", "rmsnorm", RMS, 96, 2, (EPSILON, SUM, FLOATS)),
    Chunked("aie2", "quantise", ("largest", "results"), 96, 2, (CODES,), 0),
    Chunked("aie2p", "quantise", ("largest", "results"), 64, 3, (CODES, FLOATS), 0),
    Chunked("aie2", "softmax", ("largest", "sum", "results"), 48, 4, ("FACTOR=2.0F",), 0),
]
"""For the sweep, as machine code of norms is: tests of the operator run that."""
BUILDS = [build for case in CASES for build in case.builds()]
Call = Callable[..., None]


def rows(case: Chunked) -> Iterator[np.ndarray]:
    rng, width = np.random.default_rng(case.width), case.width
    for scale in (1, 1e-9, 1e4):
        yield rng.normal(scale=scale, size=width)
    if case.whole == "quantise":
        yield rng.normal(scale=2.0**-110, size=width)  # whose scale is 0
    late, spike = rng.normal(size=width), np.zeros(width)
    late[-3:], spike[width // 2] = 1e4, -300
    yield from (late, spike, np.zeros(width), np.full(width, 1.5))


def whole_row(case: Chunked, library, x: list[np.ndarray], held: list[np.ndarray]) -> list[np.ndarray]:
    made = [aligned(case.width, case.x_type)] if case.has("RESIDUAL") else []
    coded = case.has("CODES")
    if coded and case.whole == "layernorm" and made:  # all that is made is one behind the other
        sums = case.width * np.dtype(case.x_type).itemsize
        room = aligned(sums + case.width + 4, np.uint8)
        library.call(f"{case.whole}_{case.type}", *(aligned_copy(one, one.dtype) for one in (*x, *held)), room)
        return [room[:sums].view(case.x_type), room[sums:-4].view(np.int8), room[-4:].view(np.float32)]
    made += [aligned(case.width, np.int8), aligned(1, np.float32)] if coded else [aligned(case.width, BF16)]
    library.call(f"{case.whole}_{case.type}", *(aligned_copy(one, one.dtype) for one in (*x, *held)), *made)
    return made


def in_chunks(case: Chunked, call: Call, x: list[np.ndarray], held: list[np.ndarray]) -> list[np.ndarray]:
    """By `call(symbol, operands, chunk)`, as a core does it; memory begins as anything."""

    def cut(arrays: list[np.ndarray], chunk: int) -> np.ndarray:
        parts = [array[chunk * case.chunk : (chunk + 1) * case.chunk].view(np.uint8) for array in arrays]
        return aligned_copy(np.concatenate(parts), np.uint8)

    state, bytes_ = aligned(128, np.int32), case.chunk * (2 - case.has("CODES"))
    total = np.dtype(case.x_type).itemsize * case.chunk * case.has("RESIDUAL")
    state[:], made = 0x7FC00001, []
    for symbol in case.symbols:
        made = []
        for chunk in range(case.chunks):
            room = aligned(total + bytes_ + 64, np.uint8)
            room[:] = 0xFF
            operands = [cut(x, chunk), *([cut(held, chunk)] if held else []), room.view(BF16), state]
            call(symbol, operands, chunk)
            made.append(operands[-2].view(np.uint8))
    y = np.concatenate([room[total : total + bytes_] for room in made]).view(np.int8 if case.has("CODES") else BF16)
    found = [np.concatenate([room[:total] for room in made]).view(case.x_type)] if total else []
    return [*found, y, *([made[-1][total + bytes_ :][:4].view(np.float32)] if case.has("CODES") else [])]


def compare(case: Chunked, whole, call: Call) -> None:
    rng = np.random.default_rng(5)
    for row in rows(case):
        more = [rng.permutation(row).astype(BF16)] if case.has("RESIDUAL") else []
        x, held = [row.astype(case.x_type), *more], [rng.normal(size=case.width).astype(BF16) for _ in range(case.held)]
        found = in_chunks(case, call, x, held)
        for one, wanted in zip(found, whole_row(case, whole, x, held), strict=True):
            assert one.astype(np.float32).tolist() == wanted.astype(np.float32).tolist()


def marked(cases: Iterable[Chunked], daily: Iterable[Chunked] = CASES) -> list[Any]:
    return [
        pytest.param(
            case, id="-".join(map(str, case[:2] + case[5])), marks=() if case in daily else pytest.mark.slow
        )
        for case in cases
    ]  # fmt: skip


@pytest.mark.parametrize("case", marked([*CASES, *OTHERS]))
def test_chunks_give_the_bits_of_whole_rows(kernel_library, case):
    whole, chunked = (kernel_library(build) for build in case.builds())
    compare(case, whole, lambda symbol, operands, chunk: chunked.call(symbol, *operands, chunk))


@pytest.mark.slow
@pytest.mark.parametrize("case", marked((case for case in [*CASES, *OTHERS] if case.machine), CASES[1:2]))
def test_machine_code_gives_the_bits_of_whole_rows(kernel_library, case):
    kernels = {symbol: assembled(symbol, case.generation, case.chunk_options) for symbol in case.symbols}
    (build, _) = case.builds()
    compare(case, kernel_library(build), lambda symbol, operands, chunk: run(kernels[symbol], "aie2p", operands, chunk))
