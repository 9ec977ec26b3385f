"""docs/bitnet.md and its picture, made from the models of time and from measurements that others published."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.operators import load_spec
from bdforge.operators.gemm import GemmProblem, GemmSpec
from bdforge.perf.bounds.array_operators import Timed, operators_on
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.copies import Modelled
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.bounds.layers import Layers, layers
from bdforge.perf.bounds.models import BITNET, macs_per_token
from bdforge.perf.bounds.part_times import OperatorSplit
from bdforge.perf.bounds.stage_split import SWITCH_MS
from bdforge.perf.plots.figure import BLUE, GREY, ORANGE, TEXT, VERMILION, new_figure
from tools.docs.markdown import bullet, prose, section, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DESIGNS = Path(__file__).resolve().parents[2] / "designs"
TEXT_FILE = Path(__file__).with_name("bitnet_text.md")
TOKENS = (256, 512, 1024, 2048, 4096)
LAYERS = 30
FUSIONS = ("qkv", "gateup")
RAW = "gemm_i8_i2_raw"
PUBLISHED = {
    "CPU": {512: 401, 1024: 874, 2048: 2010, 3968: 4712},
    "hybrid": {2048: 1554, 3968: 3826},
}
"""Milliseconds of a prompt, measured by casselc/bitnet-xdna2-strix-halo on a Ryzen AI Max+ 395 (15 and 16 threads): all
on the CPU, and its last hybrid with the NPU. Both computed SiLU; speeds carry over."""
STEPS = (
    ("seven products a layer, int32", "gemm_i8_i2_tuned", ()),
    ("Q, K, V as one", "gemm_i8_i2_tuned", FUSIONS[:1]),
    ("gate, up as one", "gemm_i8_i2_tuned", FUSIONS),
    ("scales on the array, bf16", "gemm_i8_i2_bf16", FUSIONS),
)


@cache
def measured_cpu_us(M: int, K: int, N: int) -> float:
    """Microseconds of an int8 x ternary GEMM on a CPU: its share of the measured time of BitNet's linear layers.

    Few rows take as long as their weights take to come from memory.
    """
    return 1e3 * BITNET.cpu_ms(BITNET.linears_on_cpu, M) * K * N / macs_per_token()


def modelled(design: str, fusions: tuple[str, ...], tokens: int) -> Layers:
    """BitNet-2B's prompt of so many tokens on a design."""
    spec = load_spec(DESIGNS / f"{design}.toml")
    assert isinstance(spec, GemmSpec)
    return layers(BITNET, tokens, fusions, _gemms(spec))


@cache
def timed() -> Timed:
    """Operators of designs of their own on Strix Halo."""
    product = device_named("strix_halo")
    return operators_on(product, timing_of(product), _gemms)


def _gemms(spec: GemmSpec) -> Modelled:
    product = device_named("strix_halo")
    return lambda problem: estimate(case_of(spec, product, problem))


def with_operators(tokens: int) -> Layers:
    """With all fusions, raw sums, and each other operator on the array where that is faster."""
    spec = load_spec(DESIGNS / f"{RAW}.toml")
    assert isinstance(spec, GemmSpec)
    return layers(BITNET, tokens, FUSIONS, _gemms(spec), OperatorSplit(timed()))


def last(tokens: int) -> Layers:
    """With all fusions that exist."""
    _, design, fusions = STEPS[-1]
    return modelled(design, fusions, tokens)


def overlapped(tokens: int) -> float:
    """Milliseconds with two micro-batches."""
    found = last(tokens).overlapped_ms
    assert found is not None
    return found


def page() -> str:
    """The whole page."""
    before, behind = TEXT_FILE.read_text(encoding="utf-8").split("<!-- estimate -->\n")
    return "\n".join([before + _estimate(), _parts(), _operators(), _savings(), behind.lstrip("\n")])


def _estimate() -> str:
    head = ("tokens", *(name for name, _, _ in STEPS), "two micro-batches", "tokens/s", "CPU", "hybrid")
    return section("How long a prompt takes", *(
        prose(
            "Milliseconds for all 30 layers and the last token's logits on Strix Halo. Products on the array are",
            "*modelled*; the CPU's parts beside them are those that others *measured* in C++ (not this package's",
            "own), one after the other but in the column of micro-batches; each column adds to the one before it.",
            "The two last columns are *measured* whole prompts (`bdforge/perf/data/cpu_operators.csv` and",
            "`tools/docs/bitnet.py` have the sources).",
        ),
        table(head, (_row(tokens) for tokens in TOKENS)),
        prose(
            f"At 3,968 tokens the CPU takes {PUBLISHED['CPU'][3968]:,} ms, the hybrid {PUBLISHED['hybrid'][3968]:,}.",
            _range(1024),
        ),
        "![Modelled and measured prompts](images/bitnet.png)\n",
    ))  # fmt: skip


def _range(tokens: int) -> str:
    low, high = last(tokens).range_ms
    return (
        f"The column before micro-batches is {low:.0f} to {high:.0f} ms at {tokens:,} tokens, where four in five"
        " estimates of products lie; how well micro-batches overlap was measured by nobody."
    )


def _row(tokens: int) -> tuple[str, ...]:
    steps = [f"{modelled(design, fusions, tokens).ms():,.0f}" for _, design, fusions in STEPS]
    best = overlapped(tokens)
    measured = [PUBLISHED[which].get(tokens) for which in ("CPU", "hybrid")]
    shown = ["" if ms is None else f"{ms:,}" for ms in measured]
    return f"{tokens:,}", *steps, f"**{best:,.0f}**", f"{1e3 * tokens / best:,.0f}", *shown


def _parts() -> str:
    lines = []
    for number, part in enumerate(last(1024).parts):
        per = [last(tokens).parts[number].ms for tokens in (256, 1024, 4096)]
        us = 1e3 * part.ms / LAYERS
        lines.append((part.operator, part.where, *(f"{ms:,.1f}" for ms in per), f"{us:,.0f}", f"{us / 1.024:,.0f}"))
    return section("Part by part", *(
        prose(
            "With all fusions, one after the other: milliseconds of all layers, and at 1,024 tokens the share of a",
            "layer and of a token in it.",
        ),
        table(("part", "where", "256", "1,024", "4,096", "us a layer", "ns a token and layer"), lines),
    ))  # fmt: skip


def _operators() -> str:
    found = with_operators(1024)
    rows = ((part.operator, part.where, part.problem, f"{part.ms:.1f}", part.instead) for part in found.parts)
    low, high = (found.changes * ms for ms in SWITCH_MS)
    totals = ", ".join(f"{with_operators(tokens).ms():,.0f} ms for {tokens:,}" for tokens in (256, 1024, 4096))
    return section("Other operators on the array", *(
        prose(
            f"`bdforge estimate designs/{RAW}.toml --model bitnet-2b --tokens 1024 --fused qkv,gateup --split",
            "estimate`: other operators by designs of their own where that takes less, one dispatch each; milliseconds",
            f"of all layers of 1,024 tokens, {found.ms():.0f} together. The last column has what the same work takes",
            "elsewhere: by the CPU's operators or by the product that is replaced, or by a design that could do it.",
            "Products leave sums as bfloat16; scales of rows and weights are factors that whatever reads them next",
            "takes along.",
        ),
        table(("part", "where", "problem", "ms", "instead"), rows),
        prose(
            f"So a prompt takes {totals} tokens. Between designs the array's configuration changes {found.changes}"
            f" times, which is not counted: contexts that take turns would add {low:.0f} to {high:.0f} ms (measured by"
            " others), one configuration that holds all designs nothing. `--switch MS` counts it.",
        ),
    ))  # fmt: skip


def _savings() -> str:
    return section("What each step saves", "".join(bullet(line) for line in _bullets()))


def _bullets() -> Iterator[str]:
    ms = [modelled(design, fusions, 1024).ms() for _, design, fusions in STEPS]
    yield f"Q, K and V as one product: {ms[0] - ms[1]:.0f} ms of 1,024 tokens; gate and up as one: {ms[1] - ms[2]:.0f}."
    yield (
        f"Scales in the epilogue, bf16 results: {ms[2] - ms[3]:.0f} ms, all of it the CPU's: nothing to scale, half as"
        " much to synchronise. The array gains nothing, since its cores then do the scaling."
    )
    cost = overlapped(256) - last(256).ms()
    yield (
        f"Two micro-batches in turn (`--micro-batch`, half of the prompt): {ms[3] - overlapped(1024):.0f} ms. At 256"
        f" tokens they would cost {cost:.0f}, since half a panel of rows takes the array as long as a whole one."
    )
    yield _few()


def _few() -> str:
    shapes = {"QKV": (2560, 3840), "out": (2560, 2560), "gate and up": (2560, 13824), "down": (6912, 2560)}
    told = ", ".join(f"{name} from M = {_crossing(K, N)}" for name, (K, N) in shapes.items())
    one = sum(measured_cpu_us(1, K, N) for K, N in shapes.values()) * LAYERS / 1e3
    return (
        f"The array is faster than that CPU for {told}; decoding, M = 1, is therefore the CPU's: {one:.1f} ms a token"
        " there for all products. `--split estimate` compares with the CPU at hand instead, on which it times a few"
        " products."
    )


def _crossing(K: int, N: int) -> str:
    spec, product = load_spec(DESIGNS / "gemm_i8_i2_bf16.toml"), device_named("strix_halo")
    assert isinstance(spec, GemmSpec)
    rows = range(8, 257, 8)
    faster = [estimate(case_of(spec, product, GemmProblem(M, K, N))).time_us < measured_cpu_us(M, K, N) for M in rows]
    first = next((M for M, wins in zip(rows, faster, strict=True) if wins), None)
    return "nowhere below 256" if first is None else str(first)


def picture() -> "Figure":
    """Tokens per second over the prompt's length."""
    figure, (axes,) = new_figure(7, 4)
    for (name, design, fusions), colour in zip((STEPS[0], STEPS[-1]), (GREY, ORANGE), strict=True):
        runs = [modelled(design, fusions, tokens) for tokens in TOKENS]
        rates = [1e3 * tokens / run.ms() for tokens, run in zip(TOKENS, runs, strict=True)]
        axes.plot(TOKENS, rates, color=colour, marker="o", label=f"{name} (modelled, with its range)")
        ends = ([1e3 * tokens / run.range_ms[end] for tokens, run in zip(TOKENS, runs, strict=True)] for end in (1, 0))
        axes.fill_between(TOKENS, *ends, color=colour, alpha=0.15, linewidth=0)
    rates = [1e3 * tokens / overlapped(tokens) for tokens in TOKENS]
    axes.plot(TOKENS, rates, color=VERMILION, marker="o", label="and two micro-batches (modelled)")
    for (which, points), marker in zip(PUBLISHED.items(), "sD", strict=True):
        rates = [1e3 * tokens / ms for tokens, ms in points.items()]
        axes.plot(list(points), rates, color=BLUE, marker=marker, linestyle=":", label=f"{which} (measured by others)")
    axes.set_xscale("log", base=2)
    axes.set_xticks(TOKENS, [f"{tokens:,}" for tokens in TOKENS])
    axes.set_ylim(0)
    axes.set_xlabel("tokens of the prompt", color=TEXT)
    axes.set_ylabel("tokens per second", color=TEXT)
    axes.set_title("BitNet-b1.58-2B-4T, prefill on Strix Halo", color=TEXT, fontsize=11)
    axes.legend(frameon=False, fontsize=8)
    return figure
