"""Streams of any types and numbers on the emulated array, with kernels in numpy: every position once, in its place."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator import emulate
from bdforge.design import check, render, rtp_addresses
from bdforge.design.sequences import planned
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.devices import mlir_device_named
from bdforge.devices.types import TYPES
from bdforge.operators.stream_mapping import map_streams
from bdforge.operators.stream_program import StreamProgram
from bdforge.operators.tile_streams import StreamTiling, TileStream


def stream(name: str, type_: str, *shape: int) -> TileStream:
    return TileStream(name, TYPES[type_], shape)


ROWS, ONE, W, B = stream("X", "bf16", 64), stream("S", "f32"), stream("W", "bf16", 64), stream("B", "f32", 2, 16)
CODES, WIDE = stream("Q", "int8", 64), stream("Z", "f32", 4, 16)
Y, Z = stream("Y", "f32", 64), stream("Z", "f32")
Q32, V, ROWS_OUT = stream("R", "f32", 64), stream("V", "bf16", 64), stream("Y", "bf16", 64)
CASES: dict[str, tuple[str, StreamTiling]] = {
    "row and scale": ("npu2", StreamTiling("rows", 1, (ROWS,), (CODES, ONE), 4, 2, (W,))),
    "all that BDs hold": ("npu2", StreamTiling("rows", 1, (ROWS, WIDE), (Y, CODES, ONE), 4, 2, (W, B))),
    "three in turn on two channels": ("npu1", StreamTiling("rows", 1, (CODES, ONE, ROWS), (WIDE,), 3, 2)),
    "one core": ("npu2", StreamTiling("rows", 1, (CODES, ONE), (ROWS, WIDE), 1, 1, (), 1)),
    "rows of a tile": ("npu2", StreamTiling("rows", 4, (CODES,), (ROWS, ONE), 2, 3, (B,))),
    "a cast": ("npu2", StreamTiling("length", 64, (stream("X", "int8"),), (Z,), 2, 2)),
    "whole words of all": ("npu1", StreamTiling("length", 64, (stream("X", "int8"),), (stream("Y", "bf16"), Z), 1, 2)),
}
CHUNKED: dict[str, tuple[str, StreamTiling]] = {
    "one way, twice": ("npu2", StreamTiling("rows", 1, (ROWS,), (Y,), 4, 2, (), 2, 4, 2, 64)),
    "held, thrice": ("npu1", StreamTiling("rows", 1, (ROWS,), (ROWS_OUT,), 3, 2, (W, V), 2, 2, 3, 64)),
    "all that BDs hold": ("npu2", StreamTiling("rows", 1, (ROWS, Q32), (Y, CODES, ONE), 4, 2, (W,), 1, 2, 2, 64)),
    "one core": ("npu2", StreamTiling("rows", 1, (Q32, ROWS), (CODES,), 1, 1, (V, W), 2, 8, 2, 64)),
}
LONG, TABLE = stream("X", "bf16", 96), stream("T", "bf16", 32)
FREE: dict[str, tuple[str, StreamTiling]] = {
    "a cast, cut": ("npu1", StreamTiling("rows", 1, (ROWS,), (Y,), 4, 2, (), 2, 4)),
    "shared, in an odd number": (
        "npu2",
        StreamTiling(
            "rows",
            1,
            (LONG, TABLE, ONE),
            (stream("Y", "f32", 96),),
            3,
            2,
            (stream("C", "f32", 1),),
            2,
            3,
            shared=(TABLE, ONE),
        ),
    ),
    "two and what is held": (
        "npu2",
        StreamTiling("rows", 1, (Q32, ONE, CODES), (Y,), 2, 2, (W, V), 1, 4, shared=(ONE,)),
    ),
}
"""Those that are cut in chunks without passes."""
TWINS = ("one way, twice", "held, thrice", "row and scale", "rows of a tile")
"""Those like another one, for the sweep."""
MANY_STEPS = ("one core", "a cast", *TWINS)
"""Those that take more steps than a task repeats."""


def made(tiling: StreamTiling, given: list[np.ndarray], positions: int) -> list[np.ndarray]:
    """What a kernel makes of so many positions: each output tells all inputs and its own number."""
    moved = [x.reshape(positions, -1).astype(np.float64) for x in given[: len(tiling.inputs)]]
    held = [x.ravel().astype(np.float64) for x in given[len(tiling.inputs) :]]
    outputs = []
    for number, out in enumerate(tiling.outputs):
        lines = [np.stack([np.resize(line, out.elements) for line in x]) for x in moved]
        each = np.sum(lines, axis=0) + number
        for x in held:
            each += np.resize(x, out.elements)
        outputs.append(each.astype(out.type.dtype).reshape(positions, *out.shape))
    return outputs


def of_chunks(tiling: StreamTiling, streams: tuple[TileStream, ...]) -> tuple[TileStream, ...]:
    """Their chunks, as streams."""
    return tuple(
        stream if s.elements == 1 or tiling.shares(s) else TileStream(s.name, s.type, (s.elements // tiling.chunks,))
        for s in streams for stream in [s]
    )  # fmt: skip


def made_in_chunks(tiling: StreamTiling, given: list[np.ndarray], positions: int) -> list[np.ndarray]:
    """The same of each chunk, its number, and the sum of the row's inputs in all passes but the last."""
    one = replace(tiling, inputs=of_chunks(tiling, tiling.inputs), outputs=of_chunks(tiling, tiling.outputs), chunks=1)
    split = [x.reshape(positions, tiling.chunks, -1) for x in given[: len(tiling.inputs)]]
    held = [x.reshape(tiling.chunks, -1) for x in given[len(tiling.inputs) :]]
    total = np.sum([x.astype(np.float64).sum(axis=(1, 2)) for x in split], axis=0) * (tiling.passes - 1)
    outputs = []
    for chunk in range(tiling.chunks):
        found = made(one, [*(x[:, chunk] for x in split), *(x[chunk] for x in held)], positions)
        outputs.append([
            (y.reshape(positions, -1).astype(np.float64) + total[:, None] + chunk).astype(out.type.dtype)
            for y, out in zip(found, tiling.outputs, strict=True)
        ])  # fmt: skip
    return [
        outputs[-1][n].reshape(positions) if out.elements == 1
        else np.stack([y[n] for y in outputs], axis=1).reshape(positions, *out.shape)
        for n, out in enumerate(tiling.outputs)
    ]  # fmt: skip


def piece_of(tiling: StreamTiling) -> StreamTiling:
    """Of what a core's kernel takes at a time."""
    inputs, outputs, held = (of_chunks(tiling, some) for some in (tiling.inputs, tiling.outputs, tiling.held))
    return replace(tiling, chunks=1, inputs=inputs, outputs=outputs, held=held)


def made_freely(tiling: StreamTiling, given: list[np.ndarray], positions: int) -> list[np.ndarray]:
    """Of chunks as of tiles of their own, but for what they share."""
    one, streams, found = piece_of(tiling), (*tiling.inputs, *tiling.held), []
    for chunk in range(tiling.chunks):
        cut = []
        for x, s in zip(given, streams, strict=True):
            rows, whole = 1 if s in tiling.held else positions, s.elements == 1 or tiling.shares(s)
            cut.append(x if whole else x.reshape(rows, tiling.chunks, -1)[:, chunk])
        found.append(made(one, cut, positions))
    return [np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True)]


def chunk_kernels(tiling: StreamTiling) -> dict[str, Any]:
    """A kernel for each pass: all but the last one sum inputs, and scribble over outputs."""
    ways = (tiling.inputs, *([tiling.held] if tiling.held else []), tiling.outputs)
    ways = tuple(of_chunks(tiling, some) for some in ways)

    def typed(buffer: np.ndarray, streams: tuple[TileStream, ...]) -> list[np.ndarray]:
        ends = np.cumsum([s.elements * s.type.bits // 8 for s in streams])
        parts = np.split(buffer.view(np.uint8), ends)
        return [part.view(s.type.dtype) for part, s in zip(parts, streams, strict=False)]

    def summing(*arguments: Any) -> None:
        *buffers, state, chunk = arguments
        parts = [typed(buffer, streams) for buffer, streams in zip(buffers, ways, strict=True)]
        state[1] = 0 if chunk == 0 and state[0] != 1 else state[1]
        state[0] = 1
        state[1] += sum(int(x.astype(np.float64).sum()) for x in parts[0])
        for y in parts[-1]:
            y[:] = 3

    def last(*arguments: Any) -> None:
        *buffers, state, chunk = arguments
        parts = [typed(buffer, streams) for buffer, streams in zip(buffers, ways, strict=True)]
        one = replace(tiling, inputs=ways[0], outputs=ways[-1], chunks=1)
        given = [x for some in parts[:-1] for x in some]
        for y, value in zip(parts[-1], made(one, given, 1), strict=True):
            y[:] = (value.ravel().astype(np.float64) + state[1] + chunk).astype(y.dtype)
        state[0] = 2

    return {f"pass{n}": last if n == tiling.passes - 1 else summing for n in range(tiling.passes)}


def loaded(tiling: StreamTiling, device: str) -> tuple[str, Any, Any]:
    """MLIR, program, and the kernel."""
    kernels = chunk_kernels(tiling) if tiling.passes > 1 else {"f": None}
    design = map_streams("streams", device, tiling, tuple(kernels), 1024, "streams")
    assert not check(design)

    one = piece_of(tiling) if tiling.chunks > 1 else tiling

    def kernel(*tiles: np.ndarray) -> None:
        streams = (*one.inputs, *one.held, *one.outputs)
        typed = [tile.view(s.type.dtype) for tile, s in zip(tiles, streams, strict=True)]  # bfloat16 comes as bits
        cut = [x[: one.elements(s)] for x, s in zip(typed, one.inputs, strict=False)]
        held = [x[: s.elements] for x, s in zip(typed[len(cut) :], one.held, strict=False)]
        given = [*cut, *held]
        for to, value in zip(typed[len(given) :], made(one, given, one.tile), strict=True):
            to[: value.size] = value.ravel()

    found = kernels if tiling.passes > 1 else {"f": kernel}
    return render(design), StreamProgram(tiling, rtp_addresses(design), 4).program(), found


def inputs(tiling: StreamTiling, size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(size)
    shapes = {s: (size, *s.shape) for s in tiling.inputs} | {s: s.shape for s in tiling.held}
    return {s.name: rng.integers(-9, 10, shape).astype(s.type.dtype) for s, shape in shapes.items()}


EACH = [
    pytest.param(cases, name, marks=pytest.mark.slow if name in TWINS else ())
    for cases in (CASES, CHUNKED, FREE) for name in cases
]  # fmt: skip


@pytest.mark.daily("cases6-whole words of all", "cases3-one core")
@pytest.mark.parametrize(("cases", "name"), EACH)
def test_every_position_is_computed_in_its_place(cases, name):
    product, tiling = cases[name]
    device = mlir_device_named(product).part(tiling.columns)
    wanted_of = made if cases is CASES else made_in_chunks if cases is CHUNKED else made_freely
    mlir, program, kernels = loaded(tiling, device)
    panel, columns = tiling.panel, tiling.columns
    sizes = (1, panel, panel + 1, 2 * panel - 1, columns * panel + 3, 66 * columns * panel + 5)
    if name not in MANY_STEPS:
        sizes = sizes[:-1]
    if tiling.chunks > 1:
        sizes = sizes[::2] if name != "one core" else sizes
    for number, size in enumerate(sizes):
        sequence = planned(program, {tiling.axis: size}, mlir_device_named(device))
        given = inputs(tiling, size)
        buffers = arguments(sequence, placed(sequence, given))
        result = emulate(
            mlir, buffers, kernels, instructions=sequence.words(), seed=number,
            schedule=("in-order", "random")[number % 2], poison=number % 3 == 0,
        )  # fmt: skip
        assert result.warnings == ()
        found = fetched(sequence, buffers)
        for out, wanted in zip(tiling.outputs, wanted_of(tiling, list(given.values()), size), strict=True):
            assert np.array_equal(found[out.name], wanted), (out.name, size)
