"""Operators of a model on the array or on the CPU: hand-worked layers, every rule, changes of configuration."""

import re
from itertools import combinations

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.operators import load_spec, operator_of, plan
from bdforge.operators.gemm import GemmProblem
from bdforge.perf import estimate
from bdforge.perf.bounds.array_operators import ArrayOperator, OperatorTime, operators_on
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.models import BITNET, SYNCHRONISING, Linear, Model, Stage
from bdforge.perf.bounds.operator_bound import cost_estimate
from bdforge.perf.bounds.part_times import OperatorSplit, split_parts
from bdforge.perf.bounds.stage_split import Offer, StageSplit
from support.built_designs import ROOT

NORM = ArrayOperator("norm", "n", ("norms",), {"rows": 1})
BOTH = ArrayOperator("norm and sum", "ns", ("norms", "sums"), {"rows": 1})
GATED = ArrayOperator("gated", "g", ("gates", "b"), {"M": 1})
STAGES = (
    Stage(("a",), {"norms": 0.5, "sums": 1.0, SYNCHRONISING: 0.25}, (NORM, BOTH)),
    Stage(("b",), {"norms": 0.25, SYNCHRONISING: 0.25}, (NORM,)),
    Stage(("c",), {"gates": 1.0, "norms": 0.25, SYNCHRONISING: 0.5}, (GATED,)),
)
LINEARS = tuple(Linear(name, 8, 8, 2) for name in "abc")
MODEL = Model("small", LINEARS, {}, ("norms", "sums", "gates", "end", SYNCHRONISING), "", STAGES)
NPU = [OperatorTime(name, "NPU", 2, 10.0, 1.0, "compute", "8", 2) for name in "abc"]
CPU = [OperatorTime(name, "CPU", 1, ms) for name, ms in
       {"norms": 8.0, "sums": 4.0, "gates": 6.0, "end": 1.0, SYNCHRONISING: 2.0}.items()]  # fmt: skip
"""In both layers together."""


def split(rule: str, switch_ms: float = 0.0, **ms: float) -> tuple[dict[str, OperatorTime], int]:
    """Parts by name: an operator's design takes `ms` in one layer."""

    def timed(operator: ArrayOperator, tokens: int) -> OperatorTime:
        return OperatorTime(operator.name, "NPU", 1, ms[operator.design], 0.25, "DRAM", str(tokens), 1)

    parts, changes = split_parts(MODEL, 5, NPU, CPU, OperatorSplit(timed, rule, switch_ms))
    return {part.operator: part for part in parts}, changes


DEAR = {"n": 100.0, "ns": 100.0, "g": 100.0}


@pytest.mark.parametrize(
    ("rule", "switch_ms", "ms", "array", "changes"),
    [
        ("cpu", 0, {"n": 0.0, "ns": 0.0, "g": 0.0}, set(), 0),
        ("estimate", 0, DEAR, set(), 0),
        ("estimate", 0, {**DEAR, "n": 1.5}, {"norm"}, 4),  # 3 ms for 4 of stage one; stage two's 2 are less
        ("estimate", 0, {**DEAR, "n": 1.5, "ns": 3.5}, {"norm and sum"}, 4),  # 7 ms for 8, and nothing to synchronise
        ("estimate", 0, {**DEAR, "g": 8.1}, set(), 0),  # 16.2 ms for product and gates, 16 in all
        ("estimate", 0, {**DEAR, "g": 8.0}, set(), 0),  # as long as without
        ("estimate", 0, {**DEAR, "g": 7.9}, {"gated"}, 4),
        ("estimate", 0.2, {**DEAR, "n": 1.5}, {"norm"}, 4),  # saves 1 ms, four changes cost 0.8
        ("estimate", 0.3, {**DEAR, "n": 1.5}, set(), 0),
        ("array", 0, DEAR, {"norm and sum", "norm", "gated"}, 10),
    ],
)
def test_operators_run_where_all_takes_least(rule, switch_ms, ms, array, changes):
    parts, found = split(rule, switch_ms, **ms)
    assert {name for name, part in parts.items() if part.where == "NPU"} - set("abc") == array
    assert found == changes


def test_the_parts_say_what_is_done_elsewhere_and_what_it_would_take():
    parts, _ = split("estimate", n=0.5, ns=3.5, g=7.0)
    assert parts["norm"] == OperatorTime("norm", "NPU", 4, 2.0, 1.0, "DRAM", "5", 4, "CPU: norms 6.0")
    assert parts["gated"] == OperatorTime("gated", "NPU", 2, 14.0, 0.5, "DRAM", "5", 2, "b 10.0, gates 6.0")
    assert "b" not in parts
    assert "gates" not in parts
    assert (parts["norms"].ms, parts["norms"].instead) == (2.0, "")  # stage three's, for which there is no operator
    assert (parts["sums"].ms, parts["sums"].instead) == (4.0, "")  # "ns" would do norms again
    assert parts["end"].ms == 1.0
    assert parts[SYNCHRONISING].ms == 1.5  # stage two reads nothing on the CPU
    kept, _ = split("cpu", n=0.5, ns=3.5, g=7.0)
    assert kept["norms"].instead == "n: 2.0, ns: 7.0"
    assert [kept[part.operator].ms for part in CPU] == [part.ms for part in CPU]


def test_no_other_choice_takes_less():
    """Against every subset of operators, with times at random (seed 3)."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        ms = {(-1, name): float(rng.uniform(0, 9)) for name in "abc"}
        ms |= {(i, name): float(rng.uniform(0, 9)) for i, stage in enumerate(STAGES) for name in stage.shares}
        offers = [
            Offer(i, one, OperatorTime(one.name, "NPU", 1, float(rng.uniform(0, 12))),
                  frozenset({(-1 if name in "abc" else i, name) for name in one.replaces}))
            for i, stage in enumerate(STAGES) for one in stage.operators
        ]  # fmt: skip
        stages = StageSplit(MODEL, ms, tuple(offers), float(rng.uniform(0, 1)))
        once = [
            choice for count in range(5) for choice in combinations(offers, count)
            if sum(len(offer.work) for offer in choice) == len(set().union(*(offer.work for offer in choice)))
        ]  # fmt: skip
        assert stages.total_ms(stages.chosen("estimate")) == pytest.approx(min(map(stages.total_ms, once)))


def test_every_operator_of_a_model_has_a_design_with_its_axes_and_work_to_do():
    for stage in BITNET.stages:
        for operator in stage.operators:
            axes = operator_of(operator.spec()).axes
            assert tuple(operator.sizes_of(7)) == axes
            products = {*BITNET.fusions, *(linear.name for linear in BITNET.linears)}
            assert set(operator.replaces) <= {*stage.shares, *products}


def test_an_operator_takes_what_its_design_is_estimated_with():
    """By `cost_estimate` of the design with its changes; a GEMM by the model of GEMMs."""
    device = device_named("strix_halo")
    timing = timing_of(device)

    def gemms(spec):
        return lambda problem: estimate(case_of(spec, device, problem))

    timed = operators_on(device, timing, gemms)
    add = ArrayOperator("sum", "add_bf16", (), {"length": 64}, changes={"tile": 512})
    found = timed(add, 100)
    spec = add.spec()
    assert spec.content["tile"] == 512
    wanted = cost_estimate(plan(spec, device), operator_of(spec).problem([6400]), timing)
    serial_ms = (timing.dispatch_ns + timing.controller_sync_ns) / 1e6
    assert found == OperatorTime("sum", "NPU", 1, wanted.time_us / 1e3, serial_ms, wanted.bound, "6400", 1)
    gemm = ArrayOperator("product", "gemm_i8_i2_raw", (), {"M": 1}, {"K": 2560, "N": 640})
    raw = load_spec(ROOT / "designs" / "gemm_i8_i2_raw.toml")
    assert timed(gemm, 64).ms == gemms(raw)(GemmProblem(64, 2560, 640)).time_us / 1e3
    assert timed(gemm, 64).dispatch_ms == pytest.approx(serial_ms)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--split", "estimate"), "--split goes with --model"),
        (("--model", "bitnet-2b", "--tokens", "9", "--split", "npu"), "choose estimate, array, cpu"),
        (("--model", "bitnet-2b", "--tokens", "9", "--switch", "1"), "--switch goes with --split"),
    ],
)
def test_odd_splits_are_refused(run, options, fault):
    code, _, err = run("estimate", str(ROOT / "designs" / "gemm_i8_i2_raw.toml"), *options)
    assert code == 2
    assert fault in " ".join(err.replace("│", " ").split())


@pytest.mark.slow
def test_a_prompt_of_1024_tokens_takes_at_most_260_ms_with_operators_on_the_array(run):
    """BitNet-2B, one dispatch an operator, changes of configuration told and not counted."""
    design = str(ROOT / "designs" / "gemm_i8_i2_raw.toml")
    model = ("--model", "bitnet-2b", "--tokens", "1024", "--fused", "gateup")
    code, out, _ = run("estimate", design, *model, "--split", "estimate")
    assert code == 0
    assert float(re.match(r"bitnet-2b, 1024 tokens: (\d+) ms", out)[1]) <= 260  # type: ignore[index]
    lines = {line.split("  ")[0].strip(): line.split() for line in out.splitlines()}
    one = "q, k and v, an array each"
    for name in ("sum, norm, codes of 2560", "norm and codes of 2560", "attention", "gateup, gated", one):
        assert "NPU" in lines[name]
    assert lines[one][-6::2] == ["q", "k", "v"]  # the products that it makes instead, which took so many ms
    assert "CPU" in lines["rotary embedding"]
    changes = next(line for line in out.splitlines() if "changes of the array's configuration" in line)
    assert changes.startswith("270 changes of the array's configuration between designs, not counted (--switch)")
