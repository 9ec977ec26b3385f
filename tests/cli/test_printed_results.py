"""What commands print of results that are given here: each number in its column, in its unit, and the exit code."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from bdforge.cli import build, checked_runs, doctor, emulate, machine_code, texts
from bdforge.cli import run as run_module
from bdforge.cli.check_run import _array
from bdforge.cli.checked_runs import CheckedRun
from bdforge.core.isa.hazard_layout import HazardVerdict
from bdforge.operators import SpecError
from bdforge.runtime import ElementMismatch
from bdforge.runtime.npu import Finding
from bdforge.runtime.toolchain.doctor import PURPOSES
from support.fakes import fake

WRONG = ElementMismatch("C", (1, 2), 5, 6, 3)


@pytest.mark.parametrize(("wrong", "closeness", "verdict"), [
    (None, "exact", "exact"), (None, "within its bound", "within its bound"),
    (None, "", "not checked: it has no reference"),
    (WRONG, "exact", "WRONG: C[1, 2] is 5, expected 6; 3 elements are wrong"),
    (WRONG, "", "WRONG: C[1, 2] is 5, expected 6; 3 elements are wrong"),
])  # fmt: skip
def test_a_run_is_exact_within_its_bound_or_wrong(wrong: ElementMismatch | None, closeness: str, verdict: str):
    assert checked_runs._verdict(wrong, closeness) == (verdict, wrong is not None)


@pytest.fixture
def ran(monkeypatch, printed):
    """`run_problems` with runs that end as told: its code and its lines."""

    def ran(problems: int, own: int = 0, *, wrong: tuple[int, ...] = (), **how: Any) -> tuple[int, list[str]]:
        def checked(task: int, timeline: Path | None = None) -> CheckedRun:
            warnings = ("loud",) if task in wrong else ()
            return CheckedRun("exact", task in wrong, "none", 1.26, warnings, None)

        monkeypatch.setattr(run_module, "tasks_of", lambda *given: list(range(problems or own)))
        monkeypatch.setattr(run_module, "checked_run", checked)
        plan = fake(
            problems=[fake(name="", sizes={})] * own, summary="a design", cost=lambda problem: fake(operations=12),
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


def test_four_cores_without_machine_code_are_told(printed, monkeypatch):
    made = fake(without={(0, 2 + i): f"why {i}" for i in range(6)})
    monkeypatch.setattr(texts, "device_programs", lambda *given: made)
    monkeypatch.setattr(texts, "programmed", lambda *given: "configuration")
    device: Any = fake(device=fake(generation=fake(name="AIE2P")))
    lines = printed(lambda: texts._programmed(device, [], [], None), err=True)  # type: ignore[arg-type]
    assert lines == [f"bdforge: core (0, {2 + i}) has no machine code: why {i}" for i in range(4)]


def test_an_operand_of_words_is_taken_in_its_type(tmp_path):
    """A file without bf16 has uint16; block floats come as float32."""
    np.save(tmp_path / "A.npy", np.array([0x3F80, 0xC000], np.uint16))
    words: Any = fake(name="A", blocked=False, type="bf16")
    assert _array(words, tmp_path).astype(np.float32).tolist() == [1.0, -2.0]
    np.save(tmp_path / "A.npy", np.array([1.5], np.float32))
    assert _array(fake(name="A", blocked=True, type="bfp16"), tmp_path).tolist() == [1.5]
    assert _array(fake(name="B", blocked=False, type="bf16"), tmp_path) is None


def test_a_manifest_without_its_spec_says_what_is_missing(run):
    Path("manifest.json").write_text(json.dumps({"schema": 3}))
    code, _, err = run("check-run", "manifest.json", ".")
    assert (code, err) == (2, "bdforge: manifest.json: design is missing; build the design again\n")
