"""What commands print of models, estimates, profiles and files of weights that are given here."""

from typing import Any

import numpy as np
import pytest
import typer

from bdforge.cli import checked_runs, estimate, machine_code, models, sweep, tune, weights
from bdforge.core.exact.profile import CoreProfile, PartProfile
from bdforge.models import Ledger
from bdforge.models.weights import TernaryMatrix, WeightError
from bdforge.operators import SpecError
from bdforge.operators.gemm import GemmProblem
from bdforge.perf.bounds.estimate import INTERVAL
from bdforge.perf.tune.balanced_tiles import Balance, RankedTile
from support.fakes import fake

SAME: Any = lambda given: given  # noqa: E731


def tile(m: int, compute: float, memory: float) -> RankedTile:
    """512 MACs take a cycle."""
    return RankedTile(m, 64, 32, m * 4.0, 11.0, compute, memory, 30.4)


STEPS = (tile(8, 100, 250), tile(16, 125, 120))
WALK = Balance(tuple(tile(8 * i, 100, 250) for i in range(1, 8)), STEPS, STEPS, 75.6, 80.2)


def test_a_balance_shows_five_ranked_tiles_every_step_and_the_share_of_the_first(printed):
    lines = printed(lambda: tune._print_balance(WALK, "it"))
    assert " ".join(lines).startswith("1. One core: the fastest of 7 tiles of whole blocks ")
    assert [line for line in lines if line.endswith(" 11")] == [f"{8 * i}x64x32 512.0 {32 * i} 11" for i in range(1, 6)]
    assert "2. The array: 8x64x32 computes 100 us and moves for 250 us: memory binds." in lines
    assert lines[lines.index("2. The array: 8x64x32 computes 100 us and moves for 250 us: memory binds.") + 1] == (
        "It does 30 operations per byte; to compute all the time it would need 76, m = 80 with its n."
    )
    assert "8x64x32 512.0 100 250 30 memory" in lines
    assert "16x64x32 512.0 125 120 30 compute" in lines
    assert lines[-1] == "balanced: 16x64x32, 125 us, 0.50 of the first"


def test_a_balance_that_no_height_gives_says_so(printed):
    never = Balance(WALK.ranked, STEPS, STEPS, 75.6, float("inf"))
    assert any(
        line.endswith("it would need 76, which no m gives its n.")
        for line in printed(lambda: tune._print_balance(never, ""))
    )


def modelled(us: float, tops: float = 1.5) -> Any:
    return fake(time_us=us, tops=tops, bound="compute")


def test_many_problems_are_each_counted_as_often_as_they_run(printed):
    """1500 us, three times, and 500 us once: 5 ms."""
    weighted = [(GemmProblem(1, 2, 3, "mine"), 3), (GemmProblem(4, 5, 6), 1)]
    lines = printed(lambda: estimate.shapes_command(weighted, lambda p: modelled(1500 if p.M == 1 else 500)))
    assert "1x2x3 3 1500 4.5 1.50 compute mine" in lines
    assert "4x5x6 1 500 0.5 1.50 compute" in lines
    low, high = (5 * share for share in INTERVAL)
    assert lines[-1] == f"all 4: 5.0 ms (modelled; {low:.1f} to {high:.1f}), dispatches included"


@pytest.mark.parametrize(("first", "told"), [(None, "nowhere up to 8192"), (8, "8")])
def test_a_processor_is_overtaken_from_an_m_on(printed, monkeypatch, first, told):
    asked: list[Any] = []
    monkeypatch.setattr(
        estimate, "crossover", lambda linear, rate, *how: asked.append((linear.K, linear.N, rate)) or first
    )
    monkeypatch.setattr(estimate, "measured_cpu_tops", lambda: 0.75)
    lines = printed(lambda: estimate.versus_command("cpu", 2.5, [GemmProblem(9, 64, 32)], SAME))
    assert lines[0] == "array (modelled) against a CPU at 2.50 TOPS (given):"
    assert f"64x32 {told}" in lines
    lines = printed(lambda: estimate.versus_command("cpu", None, [], SAME))
    assert lines[0].startswith("array (modelled) against a CPU at 0.75 TOPS (measured by others: ggml")
    assert asked == [(64, 32, 2.5), (2560, 3840, 0.75), (2560, 2560, 0.75), (2560, 13824, 0.75), (6912, 2560, 0.75)]


@pytest.mark.parametrize(
    ("tokens", "fixed", "taken"), [(None, True, 256), (7, True, 7), (None, False, None), (7, False, 7)]
)
def test_a_model_without_its_own_sizes_wants_tokens(monkeypatch, printed, tokens, fixed: bool, taken):
    """One with M of its own is counted for 256."""
    asked: list[Any] = []
    model = fake(linears=[fake(M=3), fake(M=3 if fixed else 0)])
    monkeypatch.setattr(estimate, "model_named", lambda name: model)
    monkeypatch.setattr(estimate, "layers", lambda *given: asked.append(given))
    monkeypatch.setattr(estimate, "layers_report", lambda found: "report")
    call = lambda: estimate.model_command("it", tokens, "qkv,,gateup", (None, False), SAME)  # noqa: E731
    if taken is None:
        with pytest.raises(typer.BadParameter, match="give --tokens, of it"):
            call()
        return
    assert printed(call) == ["report"]
    assert asked[0][:3] == (model, taken, ("qkv", "gateup"))


def share(name: str, bundles: int, macs: int, **slots: int) -> PartProfile:
    found = PartProfile(name)
    found.bundles, found.macs = bundles, macs
    found.slots.update(slots)
    return found


def test_a_profile_shows_shares_of_bundles_slots_and_macs(printed):
    profile = CoreProfile("core (0, 2)", "k.elf", 50, 40, 7, {"lock": 2, "cascade": 1}, [
        share("mm", 30, 6000, lda=15, vec=30), share("zero", 10, 0, st=1),
    ])  # fmt: skip
    lines = printed(lambda: machine_code.show_profiles([profile]))
    assert lines[0] == "core (0, 2), k.elf: 40 bundles (emulated)"
    assert "mm 30 75.0% 50% 0% 0% 0% 0% 100% 200.0" in lines
    assert "zero 10 25.0% 0% 0% 10% 0% 0% 0% 0.0" in lines
    assert lines[-1] == "waited 7 cycles for its own banks; blocked on 1 x cascade, 2 x lock"
    idle = CoreProfile("core", "f", 0, 0, 0, {}, [])
    assert printed(lambda: machine_code.show_profiles([idle]))[-1].endswith("blocked on nothing")
    assert printed(lambda: machine_code.show_profiles([])) == ["no core ran machine code: there is nothing to profile"]


@pytest.mark.parametrize(("columns", "text"), [(10, "0.00 M"), (10_000, "1.00 M"), (9_999_900, "999.99 M"),
                                               (9_999_990, "1.00 B"), (25_000_000, "2.50 B")])  # fmt: skip
def test_parameters_are_those_of_matrices_and_embedding(columns: int, text: str):
    """A matrix of 100 inputs, and 1000 numbers of an embedding; from 10^9 on in billions."""
    model: Any = fake(
        layers=[fake(linears=[fake(shape=(100, columns))])], embedding=np.zeros((10, 100)),
    )  # fmt: skip
    assert models._params(model) == text


@pytest.mark.parametrize(("tokens", "at_once", "steps"), [(6, 6, [6]), (3, 1, [1, 1, 1])])
def test_a_rate_is_of_all_tokens_in_steps_with_logits_of_the_last(monkeypatch, tokens, at_once, steps):
    ticks = iter((10.0, 12.0))
    monkeypatch.setattr(models.time, "perf_counter", lambda: next(ticks))
    taken: list[tuple[int, str, int]] = []
    model: Any = fake(
        cache=lambda: "cache",
        next_logits=lambda ids, cache, micro: taken.append((len(ids), cache, micro)),
    )  # fmt: skip
    assert models._rate(model, [1] * 9, tokens, at_once, 4) == tokens / 2
    assert taken == [(step, "cache", 4) for step in steps]


def test_a_ledger_shows_seconds_of_the_host_and_milliseconds_of_the_npu():
    ledger = Ledger()
    for npu in (1500.0, 1000.0):
        with ledger.timed("qkv", "emulated", "array", npu):
            pass
    with ledger.timed("norm", "cpu", "only there"):
        pass
    next(iter(ledger)).host_seconds = 1.23456
    rows = list(zip(*(column.cells for column in models.ledger_table(ledger).columns), strict=True))
    assert rows[0] == ("qkv", "emulated", "array", "2", "1.235", "2.50")
    assert (rows[1][:4], rows[1][5]) == (("norm", "cpu", "only there", "1"), "")


def swept(layout: Any, tops: float, bound: str, m: int = 1) -> Any:
    return sweep.Swept(layout, fake(tops=tops, bound=bound, case=fake(M=m, K=1, N=1)))


def test_a_sweep_tells_least_middle_and_most_and_the_ratio_to_the_first_layout():
    found = [swept("row", tops, "shim", m) for m, tops in enumerate((4.0, 1.0, 2.0))]
    found += [
        swept("column", tops, bound, m)
        for m, (tops, bound) in enumerate([(2.0, "DRAM"), (3.0, "DRAM"), (3.0, "compute")])
    ]
    rows = list(zip(*(column.cells for column in sweep._table(found, ("row", "column"), "").columns), strict=True))
    assert rows == [
        ("row", "1.00", "2.00", "4.00", "", "shim (100%)"),
        ("column", "2.00", "3.00", "3.00", "0.50 to 3.00, 1.50 in the middle", "DRAM (67%)"),
    ]  # fmt: skip


def finalist(i: int) -> Any:
    """Emulated up to the eighth; the ninth was passed over."""
    emulated, why = (fake(ratio=1.25) if i < 8 else None), ("too deep" if i == 8 else "")
    return fake(ranked=fake(candidate=(i,), time_us=100.0 + i), emulated=emulated, time_us=130.0 + i, passed_over=why)


def test_a_ranking_shows_eight_of_the_fastest_as_modelled_and_corrected(monkeypatch):
    monkeypatch.setattr(tune, "design_name", lambda candidate: f"d{candidate[0]}")
    found: Any = fake(wanted=fake(problems=[0, 0]), finalists=[finalist(i) for i in range(10)])

    def rows() -> list[tuple]:
        return list(zip(*(column.cells for column in tune._ranking(found).columns), strict=True))

    assert rows() == [(f"d{i}", str(100 + i), str(130 + i), "1.250") for i in range(8)]
    found.finalists = found.finalists[7:]
    assert rows() == [("d7", "107", "137", "1.250"), ("d8", "108", "too deep", "-"), ("d9", "109", "-", "-")]


def test_matrices_of_a_file_are_listed_as_k_by_n(run, monkeypatch):
    monkeypatch.setattr(weights.weights, "tensors", lambda file: [("up", (64, 32)), ("n" * 300, (8, 4))])
    code, out, _ = run("weights", "list", "m.gguf")
    assert (code, out.splitlines()[0]) == (0, "up  64 x 32")
    assert out.splitlines()[1].startswith("n" * 200)
    assert len(out.splitlines()[1]) < 300


def operand(name: str, *sizes: str) -> Any:
    return fake(name=name, axes=[fake(size=size) for size in sizes])


def test_weights_of_a_file_are_the_first_matrix_that_stays(monkeypatch):
    """K x N as the problem has them; vectors that stay are none."""
    matrix = TernaryMatrix(np.zeros((6, 4), np.int8), ("w",), (4,), (1.0,))
    monkeypatch.setattr(checked_runs, "staying", lambda program: [operand("scale", "n"), operand("B", "k", "n")])
    design: Any = fake(name="mine", program=fake(values={"k": "K", "n": "N"}))
    found = checked_runs._stored(design, fake(sizes={"M": 9, "K": 6, "N": 4}), matrix)  # type: ignore[arg-type]
    assert list(found) == ["B"]
    assert found["B"] is matrix.weights
    with pytest.raises(WeightError, match="is 6 x 4, expected 4 x 6"):
        checked_runs._stored(design, fake(sizes={"K": 4, "N": 6}), matrix)  # type: ignore[arg-type]
    monkeypatch.setattr(checked_runs, "staying", lambda program: [operand("scale", "n")])
    with pytest.raises(SpecError, match="mine has no matrix that stays from run to run; run it without --weights"):
        checked_runs._stored(design, fake(sizes={}), matrix)  # type: ignore[arg-type]
