"""What commands print of results that are given here: each number in its column, in its unit, and the exit code."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer

from bdforge.cli import build, doctor, emulate, estimate, machine_code, models, sweep, texts, tune, weights
from bdforge.cli import run as run_module
from bdforge.core.exact.profile import CoreProfile, PartProfile
from bdforge.core.isa.hazard_layout import HazardVerdict
from bdforge.models import Ledger
from bdforge.models.weights import TernaryMatrix, WeightError
from bdforge.operators import SpecError
from bdforge.operators.gemm import GemmProblem
from bdforge.perf.bounds.estimate import INTERVAL
from bdforge.perf.tune.balanced_tiles import Balance, RankedTile
from bdforge.runtime import ElementMismatch
from bdforge.runtime.npu import Finding
from bdforge.runtime.toolchain.doctor import PURPOSES


def fake(**facts: Any) -> Any:
    return SimpleNamespace(**facts)


@pytest.fixture
def printed(monkeypatch, capfd) -> Callable[..., list[str]]:
    """Lines that a call prints, each blank once; those of standard error with `err`."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def printed(call: Callable[[], object], *, err: bool = False) -> list[str]:
        call()
        out, told = capfd.readouterr()
        return [" ".join(line.split()) for line in (told if err else out).splitlines()]

    return printed


def tile(m: int, compute: float, memory: float) -> RankedTile:
    """512 MACs take a cycle."""
    return RankedTile(m, 64, 32, m * 4.0, 111.0, compute, memory, 30.4)


WALK = Balance(tuple(tile(8 * i, 100, 250) for i in range(1, 8)), (tile(8, 100, 250), tile(16, 125, 120)), 75.6, 80.2)


def test_a_balance_shows_five_ranked_tiles_every_step_and_the_share_of_the_first(printed):
    lines = printed(lambda: tune._print_balance(WALK, "it"))
    assert " ".join(lines).startswith("1. One core: the fastest of 7 tiles whose A and B come in time ")
    assert [line for line in lines if line.endswith(" 111")] == [
        f"{8 * i}x64x32 512.0 {32 * i} 111" for i in range(1, 6)
    ]
    assert "2. The array: 8x64x32 computes 100 us and moves for 250 us: memory binds." in lines
    assert lines[lines.index("2. The array: 8x64x32 computes 100 us and moves for 250 us: memory binds.") + 1] == (
        "It does 30 operations per byte; to compute all the time it would need 76, m = 80 with its n."
    )
    assert "8x64x32 512.0 100 250 30 memory" in lines
    assert "16x64x32 512.0 125 120 30 compute" in lines
    assert lines[-1] == "balanced: 16x64x32, 125 us, 0.50 of the first"


def test_a_balance_that_no_height_gives_says_so(printed):
    never = Balance(WALK.ranked, WALK.steps, 75.6, float("inf"))
    assert any(
        line.endswith("it would need 76, which no m gives its n.")
        for line in printed(lambda: tune._print_balance(never, ""))
    )


def checked(wrong: ElementMismatch | None = None, closeness: str = "exact", name: str = "") -> Any:
    problem = fake(name=name, __str__=lambda self: "1x2x3")
    found = fake(sequence="sequence", seconds=1.26, warnings=("loud",) if wrong else (), timing=None)
    return run_module._Checked(problem, found, wrong, closeness)


WRONG = ElementMismatch("C", (1, 2), 5, 6, 3)


@pytest.mark.parametrize(("row", "verdict"), [
    (checked(), "exact"), (checked(closeness="within its bound"), "within its bound"),
    (checked(closeness=""), "not checked: it has no reference"),
    (checked(WRONG), "WRONG: C[1, 2] is 5, expected 6; 3 elements are wrong"),
    (checked(WRONG, closeness=""), "WRONG: C[1, 2] is 5, expected 6; 3 elements are wrong"),
])  # fmt: skip
def test_a_run_is_exact_within_its_bound_or_wrong(row: Any, verdict: str):
    assert row.verdict == verdict


@pytest.fixture
def ran(monkeypatch, printed):
    """`run_problems` with runs that end as told: its code and its lines."""

    def ran(problems: int, own: int = 0, *, wrong: tuple[int, ...] = (), **how: Any) -> tuple[int, list[str]]:
        rows = iter(checked(WRONG if i in wrong else None) for i in range(problems or own))
        monkeypatch.setattr(run_module, "_run_one", lambda *given: next(rows))
        plan = fake(
            problems=[fake(name="", sizes={})] * own, random=lambda problem, seed: {}, summary="a design",
            padding=lambda sequence: "none", cost=lambda problem: fake(operations=12),
        )  # fmt: skip
        code: list[int] = []
        given = [fake(name="", sizes={})] * problems
        options = (None, [], 0, how.pop("timed", None))
        lines = printed(lambda: code.append(
            run_module.run_problems(fake(name="mine", cores_note=""), plan, given, *options, **how)
        ))  # fmt: skip
        return code[0], lines

    return ran


def test_every_problem_is_run_and_one_wrong_element_fails_the_command(ran):
    """Those of the command line; without any those of the design."""
    for given, own, wrong, count, code in ((2, 3, (), 2, 0), (0, 3, (), 3, 0), (3, 0, (2,), 3, 1), (3, 0, (0,), 3, 1)):
        found, lines = ran(given, own, wrong=wrong)
        assert (found, sum("none 12" in line for line in lines)) == (code, count), (given, own, wrong)
    with pytest.raises(SpecError, match="mine names no problems; give one with --shape"):
        ran(0)


def test_wrong_results_suggest_poison_unless_it_was_there(ran):
    for wrong, poison, told in (((0,), False, True), ((0,), True, False), ((), False, False)):
        assert (run_module.SUGGESTION in ran(1, wrong=wrong, poison=poison)[1]) == told, (wrong, poison)


def test_a_timeline_holds_one_problem(ran):
    """Not those of the design either, if they are several."""
    timed = run_module.TimedRuns("ideal", Path("t.json"))
    assert ran(1, 2, timed=timed)[0] == ran(0, 1, timed=timed)[0] == ran(2, timed=run_module.TimedRuns("ideal"))[0] == 0
    for given, own in ((2, 0), (0, 2)):
        with pytest.raises(SpecError, match="a timeline holds one problem, not 2; choose one with --shape"):
            ran(given, own, timed=timed)


@pytest.mark.parametrize(("code", "ends"), [(0, 0), (1, 2), (2, 2)])
@pytest.mark.parametrize("target", ["host", "all", "emulate"])
def test_a_build_calls_scons_for_each_target_and_ends_as_bad_input(monkeypatch, tmp_path, target, code, ends):
    monkeypatch.chdir(tmp_path)
    calls: list[Any] = []
    monkeypatch.setattr(build, "scons", lambda *words: calls.append(words) or (code, ""))
    with pytest.raises(typer.Exit) as ended:
        build.build_command(["mine/a.toml", "gemm"], "phoenix", target, Path("made"))
    assert ended.value.exit_code == ends
    assert calls == [("device=phoenix", f"design={tmp_path}/mine/a.toml,gemm", f"build={tmp_path}/made", target)]


def test_a_build_of_nothing_named_is_of_the_default_and_of_no_other_target(monkeypatch):
    calls: list[Any] = []
    monkeypatch.setattr(build, "scons", lambda *words: calls.append(words) or (0, ""))
    with pytest.raises(typer.Exit):
        build.build_command(None, "strix", "host", Path("/out"))
    assert calls == [("device=strix", "design=default", "build=/out", "host")]
    with pytest.raises(typer.BadParameter, match="choose host, all or emulate"):
        build.build_command(None, "strix", "ggml", Path("/out"))
    assert len(calls) == 1


FINDINGS = [
    Finding("one", False, "unseen", "get one", purposes=("build", "npu")),
    Finding("two", True, "seen", "mend two", "is broken", purposes=("npu",)),
    Finding("three", False, "perhaps", "see three", needed=False, purposes=("tests",)),
    Finding("four", True, "there", "nothing", purposes=("build",)),
]


def test_each_purpose_counts_what_it_lacks_itself(run, monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda: FINDINGS)
    lines = run("doctor")[1].splitlines()
    assert lines[1:] == [
        "missing  one: unseen", "         get one", "bad      two: seen", "         is broken", "         mend two",
        "check    three: perhaps", "         see three", "ok       four: there",
        f"build ({PURPOSES['build']}): 1 missing or bad: one", f"npu ({PURPOSES['npu']}): 2 missing or bad: one, two",
        f"tests ({PURPOSES['tests']}): all there",
    ]  # fmt: skip
    for purpose, code, shown in (("build", 1, {"one", "four"}), ("npu", 1, {"one", "two"}), ("tests", 0, {"three"})):
        found, out, _ = run("doctor", "--for", purpose)
        told = {name for name in ("one", "two", "three", "four") if f" {name}: " in out}
        assert (found, told) == (code, shown), purpose


@pytest.mark.parametrize(("wrong", "code"), [("", 0), ("host buffer 0, element 3 is 1", 1)])
def test_an_npu_that_gives_other_results_fails_the_command(capfd, wrong: str, code: int):
    with pytest.raises(typer.Exit) as ended:
        emulate._compared(Path("a.xclbin"), wrong)
    assert ended.value.exit_code == code
    out, err = capfd.readouterr()
    said = f"a.xclbin: {wrong or 'ended on the NPU, every element as emulated'}\n"
    assert (out, err) == (("", said) if wrong else (said, ""))


def test_ten_hazards_are_shown_cut_and_the_rest_counted():
    """Of all programs together; what is only unusual refuses nothing."""
    found = [
        HazardVerdict(tuple(f"rule{i}: {'x' * 200}" for i in range(9)), ""),
        HazardVerdict(("y" * 400,) * 2, "odd"),
    ]
    with pytest.raises(machine_code.HazardError) as refused:
        machine_code._judge({verdict: ["k.elf"] for verdict in found}, "it has")
    told = [f"  rule{i}: {'x' * 200}" for i in range(9)]
    assert str(refused.value).splitlines() == ["it has:", *told, f"  {'y' * 358}", "and 1 more"]
    machine_code._judge({HazardVerdict((), "odd"): ["k.elf"]}, "nothing")


def test_programs_are_chosen_by_their_core():
    programs: list[Any] = [fake(name=name) for name in ("tile (0, 2)", "PDI 1, tile (0, 2)", "tile (10, 2)", "")]
    assert machine_code._chosen(programs, None, Path("f")) == programs
    for core in ("0,2", "(0, 2)", " 0 , 2"):
        assert machine_code._chosen(programs, core, Path("f")) == programs[:2], core
    with pytest.raises(
        machine_code.ImageError, match=r"f has no program of tile \(1, 2\); there is tile \(0, 2\), PDI 1, "
    ):
        machine_code._chosen(programs, "1,2", Path("f"))
    with pytest.raises(machine_code.ImageError, match="there is one without a tile"):
        machine_code._chosen(programs[3:], "1,2", Path("f"))


SAME: Any = lambda given: given  # noqa: E731


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


def stopped(cycle: int, **registers: int) -> Any:
    """A core with registers, of which only whole ones are shown."""
    decoded = fake(registers=dict.fromkeys((*registers, "wl0")), generation="aie2p", decode=lambda code, pc: [])
    return fake(isa=decoded, code=b"", pc=0, cycle=cycle, read=lambda name: registers.get(name, 9))


def test_a_stopped_core_shows_what_changed_in_the_order_of_numbers(printed, monkeypatch):
    monkeypatch.setattr(machine_code, "bundle_text", lambda generation, bundle: "nop")
    look = machine_code._Looker()
    first = printed(lambda: look((0, 2), stopped(3, r10=1, r2=0x20, p0=0, lc=4), " at main"))
    assert first == ["core (0, 2) at main, cycle 3: nop", "lc 0x4", "r2 0x20", "r10 0x1"]
    assert printed(lambda: look((0, 2), stopped(4, r10=1, r2=0, p0=0, lc=4), ""))[1:] == ["r2 0x0"]
    assert printed(lambda: look((1, 2), stopped(4, r10=1), ""))[1:] == ["r10 0x1"], "another core begins anew"
    for _ in range(machine_code.MOST_LOOKS - 4):
        look((0, 2), stopped(5), "")
    assert printed(lambda: look((0, 2), stopped(5), ""))[-1] == "no more than 32 are shown"
    assert printed(lambda: look((0, 2), stopped(6), "")) == []


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
    taken: list[tuple[int, int, int]] = []
    model: Any = fake(
        cache=lambda: "cache",
        hidden=lambda ids, cache, micro: taken.append((len(ids), micro, 0)) or np.zeros((len(ids), 2)),
        logits=lambda hidden: taken.append((len(hidden), -1, -1)),
    )  # fmt: skip
    assert models._rate(model, [1] * 9, tokens, at_once, 4) == tokens / 2
    assert taken == [entry for step in steps for entry in ((step, 4, 0), (1, -1, -1))]


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


def test_four_cores_without_machine_code_are_told(printed, monkeypatch):
    made = fake(without={(0, 2 + i): f"why {i}" for i in range(6)})
    monkeypatch.setattr(texts, "device_programs", lambda *given: made)
    monkeypatch.setattr(texts, "programmed", lambda *given: "configuration")
    device: Any = fake(device=fake(generation=fake(name="AIE2P")))
    lines = printed(lambda: texts._programmed(device, [], [], None), err=True)  # type: ignore[arg-type]
    assert lines == [f"bdforge: core (0, {2 + i}) has no machine code: why {i}" for i in range(4)]


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
    monkeypatch.setattr(run_module, "staying", lambda program: [operand("scale", "n"), operand("B", "k", "n")])
    design: Any = fake(name="mine", program=fake(values={"k": "K", "n": "N"}))
    found = run_module._stored(design, fake(sizes={"M": 9, "K": 6, "N": 4}), matrix)  # type: ignore[arg-type]
    assert list(found) == ["B"]
    assert found["B"] is matrix.weights
    with pytest.raises(WeightError, match="is 6 x 4, expected 4 x 6"):
        run_module._stored(design, fake(sizes={"K": 4, "N": 6}), matrix)  # type: ignore[arg-type]
    monkeypatch.setattr(run_module, "staying", lambda program: [operand("scale", "n")])
    with pytest.raises(SpecError, match="mine has no matrix that stays from run to run; run it without --weights"):
        run_module._stored(design, fake(sizes={}), matrix)  # type: ignore[arg-type]


def test_an_operand_of_words_is_taken_in_its_type(tmp_path):
    """A file without bf16 has uint16; block floats come as float32."""
    np.save(tmp_path / "A.npy", np.array([0x3F80, 0xC000], np.uint16))
    words: Any = fake(name="A", blocked=False, type="bf16")
    assert run_module._array(words, tmp_path).astype(np.float32).tolist() == [1.0, -2.0]
    np.save(tmp_path / "A.npy", np.array([1.5], np.float32))
    assert run_module._array(fake(name="A", blocked=True, type="bfp16"), tmp_path).tolist() == [1.5]
    assert run_module._array(fake(name="B", blocked=False, type="bf16"), tmp_path) is None


def test_a_manifest_without_its_spec_says_what_is_missing(run):
    Path("manifest.json").write_text(json.dumps({"schema": 3}))
    code, _, err = run("check-run", "manifest.json", ".")
    assert (code, err) == (2, "bdforge: manifest.json: design is missing; build the design again\n")
