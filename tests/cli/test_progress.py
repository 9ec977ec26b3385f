"""Long work: what a terminal shows of it, and that a pipe gets nothing."""

import io
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import bdforge
from bdforge.array.emulator import EmulationError
from bdforge.array.emulator.observe import watching
from bdforge.cli import progress
from bdforge.cli.progress import bar, counting, emulating
from support.built_designs import ROOT
from support.core_bodies import design
from support.small_designs import loopback

FOREVER = "scf.while : () -> () { %yes = arith.constant 1 : i1\nscf.condition(%yes) } do { scf.yield }"


def terminal(width: int = 200) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def arrays() -> list[np.ndarray]:
    return [np.arange(96, dtype=np.int32), np.zeros(96, np.int32)]


def test_whoever_watches_sees_operations_steps_and_who_moved():
    with watching() as run:
        bdforge.emulate(loopback(), arrays())
        first = run.total
        assert run.done == run.total > 0
        assert run.steps > 0
        assert run.party.startswith(("memtile", "shim"))
        words = [np.arange(8 * 4096, dtype=np.int32), np.zeros(8 * 4096, np.int32)]
        bdforge.emulate((ROOT / "examples/pass_through_8_columns.mlir").read_text(), words)
        assert run.done == run.total != first


def test_nobody_watches_a_run_outside():
    with watching() as run:
        pass
    bdforge.emulate(loopback(), arrays())
    assert (run.done, run.total, run.steps, run.party) == (0, 0, 0, "")


def test_a_terminal_shows_name_share_and_party():
    console = terminal()
    with emulating("gemm.mlir", console, after_seconds=0):
        bdforge.emulate(loopback(), arrays())
        for _ in range(1000):
            if "steps, " in written(console):
                break
            time.sleep(0.01)
    assert "gemm.mlir" in written(console)
    assert "steps, " in written(console)


def test_a_core_that_never_ends_is_named():
    with watching() as run, pytest.raises(EmulationError):
        bdforge.emulate(design(FOREVER, {}), budget=1000)
    assert run.party == "core (1, 3)"


def test_short_work_shows_nothing_on_a_terminal():
    console = terminal()
    with emulating("gemm.mlir", console, after_seconds=1e6):
        bdforge.emulate(loopback(), arrays())
    assert written(console) == ""


def test_a_pipe_gets_nothing():
    console = Console(file=io.StringIO())
    with emulating("gemm.mlir", console, after_seconds=0):
        bdforge.emulate(loopback(), arrays())
    with counting(console) as progress:
        progress.update(progress.add_task("parts", total=2), completed=1)
    assert written(console) == ""


@pytest.mark.parametrize(("steps", "party", "total", "done", "of", "shown"), [
    (0, "", 0, 0, (0, 0), (None, 0, "starts")), (0, "", 0, 0, (0, 1), (None, 0, "starts")),
    (1234, "core (0, 2)", 0, 0, (0, 1), (None, 0, "1,234 steps, core (0, 2)")),
    (5, "shim (0, 0)", 8, 3, (0, 0), (8, 3, "5 steps, shim (0, 0)")),
    (5, "shim (0, 0)", 8, 3, (2, 7), (8, 3, "2 of 7: 5 steps, shim (0, 0)")), (0, "", 0, 0, (2, 7), (7, 2, "2 of 7")),
])  # fmt: skip
def test_a_bar_has_operations_done_of_all_and_no_share_without_a_number(steps, party, total, done, of, shown):
    tasks = progress._Tasks()
    tasks.tell(*of)
    watched: Any = SimpleNamespace(done=done, total=total, steps=steps, party=party)
    with bar(Console(file=io.StringIO())) as drawn:
        task = drawn.add_task("it", total=None, state="")
        progress._update(drawn, task, watched, tasks)
    (found,) = drawn.tasks
    assert (found.total, found.completed, found.fields["state"]) == shown


@pytest.mark.parametrize(
    "command",
    [
        "verify a.mlir", "show a.mlir", "show a.mlir --json", "show a.mlir --html a.html", "route a.mlir",
        "lower a.mlir", "convert a.mlir --dialect 1.4", "render a.toml --shape 4096", "insts encode a.mlir -o a.bin",
    ],
)  # fmt: skip
def test_commands_on_large_designs_show_that_they_work(run, monkeypatch, command: str):
    shown = []

    @contextmanager
    def watched(design: Path):
        yield shown.append(design.name)

    for module in ("texts", "emulate", "insts"):
        monkeypatch.setattr(f"bdforge.cli.{module}.working", watched)
    Path("a.mlir").write_text((ROOT / "examples/pass_through.mlir").read_text())
    Path("a.toml").write_text((ROOT / "designs/add_i8.toml").read_text())
    assert run(*command.split())[0] == 0
    assert shown == [command.split()[2 if command.startswith("insts") else 1]]
