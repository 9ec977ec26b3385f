"""Streams of any types and numbers on the emulated array, with kernels in numpy: every position once, in its place."""

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
CASES: dict[str, tuple[str, StreamTiling]] = {
    "row and scale": ("npu2", StreamTiling("rows", 1, (ROWS,), (CODES, ONE), 4, 2, (W,))),
    "all that BDs hold": ("npu2", StreamTiling("rows", 1, (ROWS, WIDE), (Y, CODES, ONE), 4, 2, (W, B))),
    "three in turn on two channels": ("npu1", StreamTiling("rows", 1, (CODES, ONE, ROWS), (WIDE,), 3, 2)),
    "one core": ("npu2", StreamTiling("rows", 1, (CODES, ONE), (ROWS, WIDE), 1, 1, (), 1)),
    "rows of a tile": ("npu2", StreamTiling("rows", 4, (CODES,), (ROWS, ONE), 2, 3, (B,))),
    "a cast": ("npu2", StreamTiling("length", 64, (stream("X", "int8"),), (Z,), 2, 2)),
    "whole words of all": ("npu1", StreamTiling("length", 64, (stream("X", "int8"),), (stream("Y", "bf16"), Z), 1, 2)),
}


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


def loaded(tiling: StreamTiling, device: str) -> tuple[str, Any, Any]:
    """MLIR, program, and the kernel."""
    design = map_streams("streams", device, tiling, "f", 1024, "streams")
    assert not check(design)

    def kernel(*tiles: np.ndarray) -> None:
        streams = (*tiling.inputs, *tiling.held, *tiling.outputs)
        typed = [tile.view(s.type.dtype) for tile, s in zip(tiles, streams, strict=True)]  # bfloat16 comes as bits
        cut = [x[: tiling.elements(s)] for x, s in zip(typed, tiling.inputs, strict=False)]
        given = [*cut, *typed[len(cut) : len(cut) + len(tiling.held)]]
        for to, value in zip(typed[len(given) :], made(tiling, given, tiling.tile), strict=True):
            to[: value.size] = value.ravel()

    return render(design), StreamProgram(tiling, rtp_addresses(design), 4).program(), kernel


def inputs(tiling: StreamTiling, size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(size)
    shapes = {s: (size, *s.shape) for s in tiling.inputs} | {s: s.shape for s in tiling.held}
    return {s.name: rng.integers(-9, 10, shape).astype(s.type.dtype) for s, shape in shapes.items()}


@pytest.mark.parametrize("name", CASES)
def test_every_position_is_computed_in_its_place(name):
    product, tiling = CASES[name]
    device = mlir_device_named(product).part(tiling.columns)
    mlir, program, kernel = loaded(tiling, device)
    panel, columns = tiling.panel, tiling.columns
    sizes = (1, panel, panel + 1, 2 * panel - 1, columns * panel + 3, 66 * columns * panel + 5)
    for number, size in enumerate(sizes):
        sequence = planned(program, {tiling.axis: size}, mlir_device_named(device))
        given = inputs(tiling, size)
        buffers = arguments(sequence, placed(sequence, given))
        result = emulate(
            mlir, buffers, {"f": kernel}, instructions=sequence.words(), seed=number,
            schedule=("in-order", "random")[number % 2], poison=number % 3 == 0,
        )  # fmt: skip
        assert result.warnings == ()
        found = fetched(sequence, buffers)
        for out, wanted in zip(tiling.outputs, made(tiling, list(given.values()), size), strict=True):
            assert np.array_equal(found[out.name], wanted), (out.name, size)
