"""Panels of B that stay in memtiles: exact in every mode and schedule, a race that is found, bytes that move."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator import TimingOptions
from bdforge.design.sequences import Builder, evaluate
from bdforge.devices import TileKind, mlir_device_named
from bdforge.devices.registers import MEMTILE_WINDOW_LOCKS, TILE_REGISTERS, address
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import BlockWrite, Operation, Write
from bdforge.operators.gemm import GemmPlan, GemmProblem, GemmSequence, SpecError, sequence
from bdforge.operators.gemm.resident import divided, pool_of
from support.built_designs import small_gemm
from support.loaded_arrays import LoadedArray

SMALL: dict[str, Any] = {"m": 8, "k": 16, "n": 32, "residency": "b", "c_memtile_buffers": 1}
FED: dict[str, Any] = {**SMALL, "k": 64, "types": ("int8", "int2", "bf16"), "epilogue": {"scale": True, "bias": True}}
PARTS: dict[str, Any] = {**FED, "m": 32, "rho": 2, "k_mt": 128, "c_in_parts": True, "c_buffers": 2}
BIG: dict[str, Any] = {
    "m": 32, "k": 64, "n": 320, "rows": 4, "columns": 8, "k_mt": 256, "residency": "b", "c_memtile_buffers": 1,
}  # fmt: skip
BD, LOCK = TILE_REGISTERS[TileKind.MEMTILE].bd, TILE_REGISTERS[TileKind.MEMTILE].lock_offset
Change = Callable[[dict[str, int]], None]


class LoadedPanels(LoadedArray):
    def exact(self, sizes: tuple[int, int, int], seed: int, words: np.ndarray | None = None) -> bool:
        """Whether C is as it should be, under the adversary's schedule of a seed; 0 is in order."""
        inputs = self.plan.random(GemmProblem(*sizes), seed)
        schedule = "random" if seed else "in-order"
        found, _ = self.run(sizes, inputs, words, schedule=schedule, seed=seed)
        expected = self.plan.reference(inputs)["C"]
        off = np.abs(found["C"].astype(float) - expected.values.astype(float))
        return bool((off <= (0 if expected.bound is None else expected.bound)).all())


def division(plan: GemmPlan, depth: int) -> dict[str, int]:
    found = divided(pool_of(plan.spec, plan.design), Builder([], 1).constant(depth), any(plan.tiling.fed_bytes))
    return {name: evaluate(value, {}) for name, value in found._asdict().items()}


@pytest.mark.parametrize(
    ("tiles", "depth", "fed", "kept", "parts", "chunks", "chunk", "twice"),
    [
        (16, 8, 0, 8, 4, 0, 1, 1),
        (15, 8, 0, 8, 4, 0, 1, 0),
        (16, 6, 0, 6, 3, 0, 1, 1),  # as many parts as divide it, at most 4
        (16, 7, 0, 7, 1, 0, 1, 1),
        (8, 8, 0, 8, 4, 0, 1, 0),
        (18, 8, 1, 8, 4, 1, 1, 1),  # two slots for the numbers
        (17, 8, 1, 8, 4, 1, 1, 0),
        (10, 8, 1, 8, 4, 1, 1, 0),
        (9, 8, 1, 5, 1, 4, 1, 0),
        (7, 8, 0, 4, 4, 4, 1, 0),  # 4 stay, 2 slots, 4 that pass
        (66, 108, 0, 48, 4, 12, 5, 0),
    ],
)
def test_a_pool_holds_what_fits_and_passes_the_rest(tiles, depth, fed, kept, parts, chunks, chunk, twice):
    content = FED if fed else SMALL
    plan = small_gemm(**content, pool_bytes=tiles * content["k"] * 8)
    found = division(plan, depth)
    told = {"kept": kept, "parts": parts, "chunks": chunks, "chunk": chunk, "twice": twice}
    assert {name: found[name] for name in told} == told
    assert found["kept"] + found["chunks"] * found["chunk"] == depth + fed
    assert (found["kept"] * (1 + twice)) + 2 * found["chunk"] * (chunks > 0) <= tiles


MODES = [(SMALL, 0), (SMALL, 9 * 128), ({**SMALL, "columns": 4}, 5 * 128), (FED, 0), (FED, 2560), (PARTS, 0)]


@pytest.mark.daily("content2-640")
@pytest.mark.parametrize(("content", "pool"), MODES)
def test_every_mode_is_exact_on_one_loaded_array(content, pool):
    design = LoadedPanels.of(small_gemm(**content, pool_bytes=pool))
    for seed, sizes in enumerate([(7, 100, 33), (33, 128, 130), (70, 120, 64)]):
        assert design.exact(sizes, seed)


def test_eight_adversaries_find_nothing():
    design = LoadedPanels.of(small_gemm(**SMALL, pool_bytes=6 * 128))
    for seed in range(1, 9):
        assert design.exact((40, 16 * (seed % 8 + 1), 70), seed)


@pytest.mark.slow
@pytest.mark.parametrize(("K", "N"), [(2560, 3840), (2560, 2560), (2560, 640), (2560, 13824), (6912, 2560)])
@pytest.mark.parametrize("M", [256, 515])
def test_bitnets_shapes_are_exact(M, K, N):
    """Panels of 6912 stay in part here; 515 rows are ragged."""
    assert LoadedPanels.of(small_gemm(**BIG)).exact((M, K, N), seed=M % 2)


def changed(design: LoadedPanels, planned: GemmSequence, change: Change) -> np.ndarray:
    """A sequence's words with other BDs in the memtiles."""
    bases = {address(column, 1, 0xA0000) for column in range(design.plan.spec.columns)}
    operations: list[Operation] = []
    for operation in planned.operations():
        if isinstance(operation, BlockWrite) and operation.address in bases:
            bds = [BD.decode(operation.words[at : at + 8]) for at in range(0, len(operation.words), 8)]
            for bd in bds:
                change(bd)
            operation = replace(operation, words=tuple(word for bd in bds for word in BD.encode(bd)))
        operations.append(operation)
    return encode(operations, mlir_device_named(design.plan.mlir_device))


@pytest.mark.slow
def test_room_given_away_a_pass_too_early_is_found_by_an_adversary():
    """Two passes, of which the first gives the panel's room away; in order nobody notices."""
    design = LoadedPanels.of(small_gemm(**SMALL, pool_bytes=20 * 128))
    pool = pool_of(design.plan.spec, design.plan.design)
    free, full = (MEMTILE_WINDOW_LOCKS + lock.id for lock in pool.locks[:2])

    def early(bd: dict[str, int]) -> None:
        if bd["acquire_id"] == full and bd["release_id"] == full:
            bd.update(release_id=free, acquire_value=-1, release_value=1)
        elif bd["acquire_id"] == full:
            bd.update(acquire_enable=0, acquire_value=0, release_value=0)

    sizes = (32, 256, 130)
    words = changed(design, sequence(design.plan, *sizes), early)
    assert design.exact(sizes, 0, words)
    assert not all(design.exact(sizes, seed, words) for seed in range(1, 5))
    assert all(design.exact(sizes, seed) for seed in range(1, 5))


def test_nothing_stays_where_firmware_writes_between_runs():
    """Word 0 of column 0's memtile was seen to change."""
    design = LoadedPanels.of(small_gemm(**SMALL))
    sizes = (33, 64, 130)
    first = sequence(design.plan, *sizes)
    twice = [*first.operations(), Write(address(0, 1, 0), 0x00CD0CD0), *first.operations()]
    assert design.exact(sizes, 3, encode(twice, mlir_device_named(design.plan.mlir_device)))
    assert pool_of(design.plan.spec, design.plan.design).address >= 64


@pytest.mark.parametrize(
    ("c", "sizes", "megabytes"),
    [
        ("int32", (4096, 2560, 2560), 60), ("bf16", (4096, 2560, 2560), 39),
        ("int32", (1024, 2560, 13824), 100), ("bf16", (1024, 2560, 13824), 72),
    ],
)  # fmt: skip
def test_dram_sees_b_once(c, sizes, megabytes):
    scaled: dict[str, Any] = {"epilogue": {"scale": True}} if c == "bf16" else {}
    plan = small_gemm(**BIG, types=("int8", "int2", c), **scaled)
    M, K, N = sizes
    moved = sequence(plan, *sizes).traffic()
    assert moved.read_bytes + moved.write_bytes <= megabytes * 1e6
    steps = -(-N // (8 * 320))
    assert moved.read_bytes >= steps * (M * K + 8 * 320 * K // 4)


@pytest.mark.daily("content0-0")
@pytest.mark.parametrize(("content", "pool"), MODES[:4])
def test_the_emulated_shims_move_the_bytes_of_the_sequence(content, pool):
    design = LoadedPanels.of(small_gemm(**content, pool_bytes=pool))
    sizes = (70, 120, 130)
    options = TimingOptions(kernels=dict.fromkeys(design.kernels, 1))
    timed = design.run(sizes, design.plan.random(GemmProblem(*sizes), 1), timing=options)[1].timing
    planned = sequence(design.plan, *sizes).traffic()
    assert timed is not None
    assert (timed.dram.read_bytes, timed.dram.write_bytes) == (planned.read_bytes, planned.write_bytes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"rows": 4, "columns": 2}, "needs a column for each of 4 rows"),
        ({"pool_bytes": 3 * 128}, "leave room for 3 tiles of B in a memtile, it takes 4"),
    ],
)
def test_what_cannot_stay_is_refused(content, message):
    with pytest.raises(SpecError, match=message):
        small_gemm(**SMALL | content)


@pytest.mark.parametrize(("tiles", "depth", "steps"), [
    # Panels of 16 rows. All of B stays: 64 of A are a BD's most, one of which may have moved back.
    (16, 8, {63 * 16: 1, 63 * 16 + 1: 1, 64 * 16: 2, 64 * 16 + 1: 2, 126 * 16 + 1: 2, 127 * 16: 3}),
    # 12 chunks come again for each panel: 21 times 12 are at most 256 runs of a task.
    (66, 108, {20 * 16: 1, 20 * 16 + 1: 1, 21 * 16: 2, 40 * 16 + 1: 2, 41 * 16: 3}),
    (66, 108, {1: 1, 16: 1, 17: 1}),
])  # fmt: skip
def test_a_step_has_as_many_panels_as_a_task_repeats(tiles: int, depth: int, steps: dict[int, int]):
    plan = small_gemm(**SMALL, pool_bytes=tiles * 128)
    assert {M: sequence(plan, M, 16 * depth, 64).counts().steps for M in steps} == steps


@pytest.mark.parametrize(("depth", "kept"), [(4, 4), (5, 1), (14, 2), (15, None), (16, 0), (24, 0), (25, None)])
def test_a_pool_of_four_tiles_takes_what_an_even_number_of_chunks_brings(depth: int, kept: int | None):
    """What is over comes in at most 10 chunks beside the two of the pool: 10 of 1 tile, 6 or 10 of 2; 15 are 16 so."""
    plan = small_gemm(**SMALL, pool_bytes=4 * 128)
    found = division(plan, depth)
    assert (found["kept"] if found["fits"] else None) == kept
    if kept is None:
        with pytest.raises(SpecError, match=f"K = {16 * depth} is too deep for B to stay in memtiles"):
            sequence(plan, 64, 16 * depth, 64)
    else:
        assert sequence(plan, 64, 16 * depth, 64).counts().steps == 1
