"""Cores that compute at the same time: the same data, counts and faults as on one processor, also where they race."""

import numpy as np
import pytest

from bdforge.array.emulator import emulate
from bdforge.array.emulator.array import Array
from bdforge.array.emulator.cores import machine_code_core
from bdforge.array.emulator.errors import BudgetExceeded, CoreError
from bdforge.array.emulator.host import HostBuffers
from bdforge.array.emulator.scheduler import Scheduler
from bdforge.array.emulator.strictness import Strictness
from bdforge.core.exact import translated
from bdforge.core.isa.assembler import assemble
from bdforge.devices import mlir_device_named
from support.differences import same

NOPS = "        nop\n"
PROGRAM = f"""
        movxm p0, #0x70400
        movxm p1, #{{far}}
        movxm r8, #48
        movx r9, #-1
        movxm r7, #{{rounds}} - 1
        movxm r2, #{{seed}}
        movx r3, #0
        movx r5, #0
{NOPS * 7}
        .p2align 4
round:  acq r8, r9
        movxm r1, #{{passes}} - 1
{NOPS * 6}
        .p2align 4
again:  add r2, r2, #1
        jnz r1, #again
        add r1, r1, #-1
        add r3, r3, r2
        nop
        xor r5, r5, r2
        nop
        lda r6, [p1, #0]
{NOPS * 7}
        add r6, r6, r3
        st r6, [p1, #0]
        st r3, [p0, #0]
        st r5, [p0, #4]
{NOPS * 7}
{{more}}
        jnz r7, #round
        add r7, r7, #-1
{NOPS * 4}
        done
"""
ROUNDS, PASSES = 4, 700
NORTH, OWN = 0x60400, 0x70800
COLUMNS, ROWS = range(4), range(2, 6)
SPIN = f"        .p2align 4\nspin:   j #spin\n{NOPS * 5}"


def design() -> str:
    """Cores of four columns with a lock that they may acquire in each round, and what they store."""
    lines = []
    for column in COLUMNS:
        for row in ROWS:
            name = f"{column}_{row}"
            lines += [
                f"    %t{name} = aie.tile({column}, {row})",
                f"    %l{name} = aie.lock(%t{name}, 0) {{init = {ROUNDS} : i32}}",
                f'    %b{name} = aie.buffer(%t{name}) {{address = 1024 : i32, sym_name = "o{name}"}} : memref<2xi32>',
                f"    %c{name} = aie.core(%t{name}) {{ aie.end }}",
            ]
    return "module {\n  aie.device(npu2) {\n" + "\n".join(lines) + "\n  }\n}\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the design on so many processors, with sizes of what ran at once; `more`, `passes` are those of (1, 3)."""
    sizes: list[int] = []
    run_beside = translated.run_beside
    monkeypatch.setattr(machine_code_core, "run_beside", lambda cores: (sizes.append(len(cores)), run_beside(cores))[1])

    def running(processors: int, more: str = "", passes: int = PASSES, **options):
        monkeypatch.setattr(translated, "processors", lambda: processors)
        sizes.clear()
        elfs = {}
        for place in ((column, row) for column in COLUMNS for row in ROWS):
            column, row = place
            odd = place == (1, 3)
            source = PROGRAM.format(
                far=NORTH if row < max(ROWS) else OWN, rounds=ROUNDS, seed=place_seed(column, row),
                passes=passes if odd else PASSES, more=more if odd else "",
            )  # fmt: skip
            elfs[place] = tmp_path / f"{column}_{row}.elf"
            elfs[place].write_bytes(assemble(source, "aie2p", "beside.s").elf())
        result = emulate(design(), elfs=elfs, **options)
        return {name: view.copy() for name, view in result.buffers.items()}, result.cores, result.warnings, [*sizes]

    return running


def place_seed(column: int, row: int) -> int:
    """The same for two columns, so that their cores share programs."""
    return 100 * (column % 2) + row


def expected(column: int, row: int) -> tuple[int, int]:
    """The sum and the exclusive or of all numbers that a core counts through."""
    numbers = place_seed(column, row) + 1 + np.arange(ROUNDS * PASSES)
    return int(numbers.sum()), int(np.bitwise_xor.reduce(numbers))


def test_cores_that_race_do_the_same_on_any_number_of_processors(run):
    """Each adds to what its northern neighbour stores: which of them is last is settled, and what it stored."""
    buffers, cores, warnings, sizes = run(1)
    for column in COLUMNS:
        total, mixed = expected(column, 2)
        same(buffers[f"o{column}_2"], np.array([total, mixed], np.int32))  # no neighbour in the south
        for row in ROWS[1:]:
            assert buffers[f"o{column}_{row}"][1] == expected(column, row)[1]
    assert max(sizes) > 2
    for processors in (2, 3, 8):
        again = run(processors)
        assert again[1:] == (cores, warnings, sizes)
        for name, view in buffers.items():
            same(again[0][name], view)


FAULTS = {
    "a load nowhere": ("lda r6, [p3, #0]", PASSES, CoreError, "core \\(1, 3\\): .*loads 4 bytes at 0x"),
    "no end": (SPIN, PASSES, BudgetExceeded, "core \\(1, 3\\)"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_faults_are_the_same_on_any_number_of_processors(run, what):
    more, passes, kind, message = FAULTS[what]
    told = []
    for processors in (1, 4):
        with pytest.raises(kind, match=message) as raised:
            run(processors, more, passes, budget=200_000)
        told.append(str(raised.value))
    assert told[0] == told[1]


def test_other_schedules_choose_one_core_at_a_time(run):
    *_, sizes = run(4, schedule="random", seed=1)
    assert sizes == []


def test_cores_that_compute_for_a_short_time_run_by_themselves(run):
    """All but one come to their request before they count as long."""
    *_, sizes = run(4, passes=PASSES)
    assert sum(sizes) >= len(COLUMNS) * len(ROWS) * (ROUNDS - 1)
    short = translated.SHORT // 6 - 20
    *_, alone = run(4, passes=short)
    assert sum(alone) == sum(sizes) * 15 // 16


def reached(place: tuple[int, int]) -> set[tuple[int, int]]:
    """Tiles of the memories of a core, its own, south, west and north of it."""
    column, row = place
    return {(column, row), (column, row - 1), (column - 1, row), (column, row + 1)}


def test_none_of_those_that_run_at_once_reaches_memory_of_another():
    array = Array(mlir_device_named("npu2"), HostBuffers([]), Scheduler(), Strictness())
    cores = [array.core(column, row) for column in range(8) for row in ROWS]
    rounds = []
    while cores:
        chosen = machine_code_core.run_some(cores)
        assert chosen[0] is cores[0]
        together = [tile for core in chosen for tile in reached(core.place)]
        assert len(together) == len(set(together))
        cores = [core for core in cores if core not in chosen]
        rounds.append(len(chosen))
    assert rounds[0] == 8
