"""Whole models: sums of their parts, fusions, published layers, and where a CPU is overtaken."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bdforge.devices import DEVICES, DeviceError
from bdforge.devices.hosts import HOSTS, host_named
from bdforge.operators.gemm import GemmProblem
from bdforge.perf import Estimate, GemmCase, PerfError, estimate
from bdforge.perf.bounds.copies import Copy, run_as
from bdforge.perf.bounds.layers import OperatorTime, _part, crossover, layers, overlapped_ms, write_csv
from bdforge.perf.bounds.models import ATTENTION, BITNET, GPT2_TRAIN, Linear, Model, Stage, model_named
from support.built_designs import ROOT
from tools.docs.bitnet import measured_cpu_us

TUNED = str(ROOT / "designs" / "gemm_i8_i2_tuned.toml")


def published(problem: GemmProblem, c: str = "int32") -> Estimate:
    """The int8 design of the published hybrid: 64x128x64, column-major B, one buffer of C (13.2 TOPS at best)."""
    return estimate(GemmCase(
        device="strix_halo", a="int8", b="int8", c=c, m=64, k=128, n=64, k_mt=128, rows=4, columns=8,
        b_layout="column", M=problem.M, K=problem.K, N=problem.N,
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "tokens", "ms"),
    [
        ("attention", 512, 50.9),
        ("attention", 2048, 594),
        ("norms", 3968, 187),
        ("attention", 256, 50.9 * 50.9 / 165),  # half of the first point goes on as that does from its double
        ("norms", 512, 52 * 52 / 96),
        ("linears", 256, 98 * (611 / 98) ** (1 / 3)),  # one of three doublings from 128 to 1024
        ("norms", 7688, 187 * 187 / 96),  # 3968 / 2048 times the last point
    ],
)
def test_a_cpu_takes_what_the_two_nearest_measured_points_say(operator: str, tokens: int, ms: float):
    """On straight lines in logarithms: by the first two below all points, by the last two above."""
    found = BITNET.cpu_ms(operator, tokens)
    assert found == pytest.approx(ms), f"{operator} of {tokens} tokens: {found} ms, by the nearest points {ms} ms"


def test_a_fusion_saves_what_it_was_said_to_save():
    apart = layers(BITNET, 512, (), published)
    assert set(apart.savings) == {"qkv", "gateup"}
    for name, saved in apart.savings.items():
        together = layers(BITNET, 512, (name,), published)
        assert apart.ms() - together.ms() == pytest.approx(saved)
        assert name not in together.savings
    names = {part.operator: part.problem for part in layers(BITNET, 512, ("qkv", "gateup"), published).parts}
    assert names["qkv"] == "512x2560x3840"
    assert names["gateup"] == "512x2560x13824"


MEASURED_MS = {"o": 1.159, "gate": 3.556, "down": 4.756}
"""Three layers of the published hybrid on Strix Halo, 1024 tokens: host to host, results scaled and synchronised."""


@pytest.mark.parametrize("name", MEASURED_MS)
def test_the_published_layers_are_met(name):
    """The GEMM, and its share of the CPU's work behind it: results come back and are scaled in proportion to N."""
    found = layers(BITNET, 1024, (), published)
    parts = {part.operator: part for part in found.parts}
    results = sum(linear.N for linear in BITNET.linears)
    (linear,) = (linear for linear in BITNET.linears if linear.name == name)
    behind = (parts["scale results"].ms + parts["synchronise results"].ms) / 30 * linear.N / results
    assert parts[name].ms / 30 + behind == pytest.approx(MEASURED_MS[name], rel=0.15)


def test_what_was_measured_once_is_always_the_same_and_the_rest_unknown():
    assert BITNET.cpu_ms("head of the last token", 100) == pytest.approx(6.9)
    with pytest.raises(PerfError, match="nobody measured 'dreaming' of bitnet-2b"):
        BITNET.cpu_ms("dreaming", 1024)


def test_a_training_step_has_its_twelve_sizes():
    assert len(GPT2_TRAIN.linears) == 15
    assert sum(linear.count for linear in GPT2_TRAIN.linears) == 147
    flops = sum(2 * linear.M * linear.K * linear.N * linear.count for linear in GPT2_TRAIN.linears)
    assert flops == pytest.approx(189.8e9, rel=0.001)


def in_layouts(a: str, b: str, c: str = "row") -> Callable[[GemmProblem], Estimate]:
    """Estimates of the tile of GPT-2's published training on Phoenix, in layouts."""
    return lambda problem: estimate(GemmCase(
        device="phoenix", a="bf16", b="bf16", c="f32", m=64, k=64, n=32, k_mt=256, rows=4, columns=4,
        a_layout=a, b_layout=b, c_layout=c, M=problem.M, K=problem.K, N=problem.N,
    ))  # fmt: skip


FORWARD, TO_INPUTS, TO_WEIGHTS = GPT2_TRAIN.linears[0], GPT2_TRAIN.linears[5], GPT2_TRAIN.linears[6]


@pytest.mark.parametrize(
    ("layouts", "linear", "swapped", "turned"),
    [
        (("row", "column"), FORWARD, False, ""),
        (("row", "column"), TO_INPUTS, False, "B"),
        (("row", "column"), TO_WEIGHTS, False, "AB"),
        (("row", "row"), FORWARD, True, "AC"),  # X and Y are smaller than W
        (("row", "row"), TO_INPUTS, False, ""),
        (("row", "row"), TO_WEIGHTS, False, "A"),
        (("column", "row"), TO_WEIGHTS, False, ""),
        (("row", "packed"), FORWARD, True, "AC"),  # as row-major B, which the host packs
        (("row", "row"), Linear("tie", 256, 128, 1, 256, ("column", "row", "row")), False, "A"),  # M·K is K·N + M·N
        (("column", "column", "column"), TO_INPUTS, True, ""),
    ],
)
def test_the_host_transposes_as_little_as_a_design_allows(layouts, linear, swapped, turned):
    problem = GemmProblem(linear.M, linear.K, linear.N)
    found, copies = run_as(linear, problem, in_layouts(*layouts))
    sides = (problem.N, problem.M) if swapped else (problem.M, problem.N)
    assert sides == (found.case.M, found.case.N)
    assert "".join(copy.operand for copy in copies if copy.what.endswith(", transposed")) == turned
    sizes = {"A": (problem.M * problem.K, 6), "B": (problem.K * problem.N, 6)}
    sizes["C"] = (problem.M * problem.N, 12 if linear.added else 8)
    assert {copy.operand: copy.size_bytes for copy in copies} == {name: n * size for name, (n, size) in sizes.items()}


def test_copies_take_what_all_cores_need_or_what_memory_gives():
    copy = Copy("A", "copy in, transposed", 3.3e6)
    assert copy.ms(replace(HOSTS["phoenix"], cores=2)) == pytest.approx(0.5)
    assert copy.ms(replace(HOSTS["phoenix"], dram_gb_s=3.3)) == pytest.approx(1.0)


def test_the_host_s_copies_are_counted_for_every_product():
    """49 layers: A and B go in forward, A in backward as they lie; weights backward and both sides of dW transposed."""
    parts = {part.operator: part for part in layers(GPT2_TRAIN, 256, (), in_layouts("row", "column")).parts}
    counts = {"copy in": 3 * 49, "copy in, transposed": 3 * 49, "copy out": 49, "add out": 2 * 49}
    assert {name: parts[name].count for name in counts} == counts
    outputs = sum(256 * linear.N * linear.count for linear in GPT2_TRAIN.linears[:5])
    assert parts["copy out"].ms == pytest.approx(Copy("C", "copy out", 8 * outputs).ms(HOSTS["phoenix"]))


def test_gradients_of_a_layer_are_submitted_together():
    found = layers(GPT2_TRAIN, 256, (), in_layouts("row", "column"))
    assert found.submissions == 98
    alone = in_layouts("row", "column")(GemmProblem(2304, 256, 768))
    spared = alone.serial["dispatch"] - alone.case.timing.runlist_dispatch_ns / 1e3
    part = next(part for part in found.parts if part.operator == "dW qkv")
    assert part.ms == pytest.approx(12 * (alone.time_us - spared) / 1e3)
    assert {part.operator for part in found.parts if part.where == "CPU"} == {
        "copy in", "copy in, transposed", "copy out", "add out",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("joined", "dispatch_us", "counted", "submissions"),
    [(False, 100.0, 100.0, 3), (True, 100.0, 14.5, 0), (True, 14.5, 14.5, 0), (True, 2.0, 2.0, 0)],
)
def test_what_joins_another_is_handed_over_as_one_more_command(joined, dispatch_us, counted, submissions):
    """14.5 us, or less where a run of its own takes less."""

    def model(problem: GemmProblem) -> Any:
        case = in_layouts("row", "row")(problem).case
        return SimpleNamespace(case=case, time_us=1000.0, serial={"dispatch": dispatch_us}, bound="compute")

    part = _part(Linear("one", 64, 64, 3, 64, joined=joined), 1, model)
    assert (part.ms, part.dispatch_ms) == pytest.approx((3e-3 * (1000 - dispatch_us + counted), 3e-3 * counted))
    assert (part.submissions, part.count) == (submissions, 3)


def test_energy_is_that_of_the_package_for_the_time():
    found = layers(GPT2_TRAIN, 256, (), in_layouts("row", "column"))
    assert found.joules == pytest.approx((35 * found.ms() / 1e3, 54 * found.ms() / 1e3))
    assert set(HOSTS) == set(DEVICES)
    with pytest.raises(DeviceError, match="no power or memory of 'npu1'"):
        host_named("npu1")


def test_the_crossover_is_where_both_take_equally_long():
    linear = Linear("", 2560, 2560, 1)
    first = crossover(linear, 2.0, published)
    assert first is not None

    def array_wins(M: int) -> bool:
        found = published(GemmProblem(M, 2560, 2560))
        return found.time_us < 2 * found.case.macs / 2.0 / 1e6

    assert array_wins(first)
    assert not array_wins(first - 8)
    assert crossover(linear, 1e6, published) is None


@pytest.mark.parametrize(("wins_from", "first"), [(8, 8), (24, 24), (32, 32), (40, None)])
def test_a_crossover_lies_within_eight_and_the_most_rows(wins_from: int, first: int | None):
    def model(problem: GemmProblem) -> Any:
        return SimpleNamespace(case=problem, time_us=0.0 if wins_from <= problem.M else 1e9)

    assert crossover(Linear("", 64, 64, 1), 1.0, model, most=32) == first


def test_unknown_models_and_fusions_are_named():
    with pytest.raises(PerfError, match="no model is called 'llama'; there is bitnet-2b, gpt2"):
        model_named("llama")
    with pytest.raises(PerfError, match="gpt2 has no fusion qkv; there is none"):
        layers(GPT2_TRAIN, 256, ("qkv",), published)


def test_a_model_is_written_as_csv(run):
    assert run("estimate", TUNED, "--model", "gpt2", "--out", "parts.csv")[:2] == (
        0, "wrote parts.csv: 19 operators, modelled\n",
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(Path("parts.csv").read_text())))
    assert [row["problem"] for row in rows][:2] == ["256x768x2304", "256x768x768"]
    found = layers(GPT2_TRAIN, 256, (), published)
    assert write_csv(found).count("\n") == 1 + 15 + 4
    made = (OperatorTime("q", "NPU", 30, 60.125, 3.0625, "compute", "1x2x3", 30), OperatorTime("norms", "CPU", 1, 40.0))
    assert write_csv(replace(found, parts=made)).splitlines() == [
        "model,tokens,operator,where,count,problem,ms_modelled,dispatch_ms,bound,instead",
        "gpt2,256,q,NPU,30,1x2x3,60.12,3.062,compute,", "gpt2,256,norms,CPU,1,,40,0,,",
    ]  # fmt: skip


def test_micro_batches_take_turns():
    """Two stages of one layer, worked out by hand: 4 and 2 ms of CPU for both batches, products of 3 and 1 ms each."""
    stages = (Stage(("a",), {"early": 1.0}), Stage(("b", "c"), {"late": 1.0}))
    model = Model("two", (Linear("a", 8, 8, 1), Linear("b", 8, 8, 1), Linear("c", 8, 8, 1)), {"bc": ("b", "c")},
                  ("early", "late", "end"), "", stages)  # fmt: skip
    npu = [OperatorTime("a", "NPU", 1, 3.0), OperatorTime("bc", "NPU", 1, 1.0)]
    cpu = [
        OperatorTime("early", "CPU", 1, 4.0),
        OperatorTime("late", "CPU", 1, 2.0),
        OperatorTime("end", "CPU", 1, 0.5),
    ]
    # CPU 0-2, 2-4, array 2-5, 5-8; CPU 5-6, 8-9, array 8-9, 9-10; then 0.5 ms of CPU
    assert overlapped_ms(model, npu, cpu, 2) == pytest.approx(10.5)
    # alone: 4, then 3, then 2, then 1
    assert overlapped_ms(model, npu, cpu, 1) == pytest.approx(10.5)


def test_shares_of_a_layers_stages_add_up_to_each_operator():
    """Norms and codes by the widths before q, o, gate and down; results by those behind; half a residual before and
    behind attention's output."""
    assert [stage.linears for stage in BITNET.stages] == [("q", "k", "v"), ("o",), ("gate", "up"), ("down",)]
    inputs, outputs = 2560 + 2560 + 2560 + 6912, 2560 + 2 * 640 + 2560 + 2 * 6912 + 2560
    expected = {
        "norms": [2560 / inputs] * 3 + [6912 / inputs],
        "quantise activations": [2560 / inputs] * 3 + [6912 / inputs],
        "scale results": [2560 / outputs, 3840 / outputs, 2560 / outputs, 13824 / outputs],
        "synchronise results": [2560 / outputs, 3840 / outputs, 2560 / outputs, 13824 / outputs],
        "residual": [0.5, 0, 0.5, 0], "rotary embedding": [0, 1, 0, 0], "attention": [0, 1, 0, 0],
        "cache and embedding": [0, 1, 0, 0], "activation": [0, 0, 0, 1],
    }  # fmt: skip
    found = {name: [stage.shares.get(name, 0) for stage in BITNET.stages] for name in expected}
    assert {name for stage in BITNET.stages for name in stage.shares} == set(expected)
    for name, shares in expected.items():
        assert found[name] == pytest.approx(shares), name
        assert sum(found[name]) == pytest.approx(1), name
    assert set(BITNET.cpu) - set(expected) == {"head of the last token"}


def test_of_an_odd_number_of_tokens_the_larger_half_is_a_micro_batch():
    """Of 513 tokens 257, which take two panels of 256 rows; 256 would take one."""
    found = layers(BITNET, 513, (), published)
    npu = [part for part in layers(BITNET, 257, (), published).parts if part.where == "NPU"]
    cpu = [part for part in found.parts if part.where == "CPU"]
    assert found.overlapped_ms == pytest.approx(overlapped_ms(BITNET, npu, cpu, 2))
    assert layers(BITNET, 1, (), published).overlapped_ms is None


def test_attention_grows_from_batch_to_batch():
    """A stage of attention and a product of no time: the second batch's 3 ms of 4 come behind the first's 1."""
    model = Model("looks back", (Linear("a", 8, 8, 1),), {}, (ATTENTION,), "", (Stage(("a",), {ATTENTION: 1.0}),))
    cpu = [OperatorTime(ATTENTION, "CPU", 1, 4.0)]
    assert overlapped_ms(model, [OperatorTime("a", "NPU", 1, 10.0)], cpu, 2) == pytest.approx(1 + 10 + 10)
    assert overlapped_ms(model, [OperatorTime("a", "NPU", 1, 0.0)], cpu, 2) == pytest.approx(4)


def test_what_the_array_scales_costs_the_cpu_nothing():
    designs = published, lambda problem: published(problem, "bf16")
    sums, scaled = (layers(BITNET, 1024, ("qkv", "gateup"), modelled) for modelled in designs)
    one, other = ({part.operator: part.ms for part in found.parts if part.where == "CPU"} for found in (sums, scaled))
    assert one["scale results"] == pytest.approx(43)
    assert other["scale results"] == 0
    assert other["synchronise results"] == pytest.approx(one["synchronise results"] / 2)
    assert other["attention"] == one["attention"]


def test_few_rows_take_the_cpu_as_long_as_their_weights():
    """Decoding, 79.8 tokens a second with 6.9 ms of head; one row costs far more than a 1,024th of 1,024."""
    layer = sum(measured_cpu_us(1, linear.K, linear.N) * linear.count for linear in BITNET.linears)
    assert layer == pytest.approx(1e6 / 79.8 - 6900, rel=0.02)
    assert measured_cpu_us(1024, 2560, 2560) == pytest.approx(611e3 / 30 * 2560 * 2560 / 69_468_160)
