"""docs/accuracy.md: what was fitted, on which rows, and how far the models are off, row by row.

To add a section, append a function that returns Markdown to `SECTIONS`; `markdown` makes its parts.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, astuple, replace

from bdforge.perf.bounds.estimate import INTERVAL, OVERLAP_EXPONENT, estimate
from bdforge.perf.kernels.rates import FittedKernel, fitted_kernels
from bdforge.perf.rows import measured_rows
from bdforge.perf.table import step_of_core
from tools.docs.accuracy_emulated import agreement, side_by_side
from tools.docs.markdown import bullet, prose, section, table
from tools.fit.evaluation import (
    Result,
    all_rows,
    bias,
    fitted_parameters,
    goals,
    left_out_results,
    mean_error,
    median_error,
    no_overlap_loss,
    publication_left_out,
    results,
    unseen,
    worst_error,
)
from tools.fit.kernel_rates import published_rates
from tools.fit.parameters import FITTED_SOURCES, Parameters

_MEANINGS = (
    "ns that a shim of npu1 takes for a request, of at most 256 B",
    "ns of DRAM for a short run that lies beside those of other columns, Strix Halo",
    "ns of DRAM for a short run in a page of its own, Strix Halo",
    "times that on products with half of its memory bus",
    "share of a request's time in an array of one column",
    "exponent that joins cores and memory",
    "exponent that joins the parts of memory",
)
_LEFT_OUT = {
    "taka-5.3.2-doubleC": "k_mt unknown and the problem only as about 4K; kernel by its fitted form",
    "taka-5.3.3-noBDoverlap": "BDs written only after the round before has ended",
}


def introduction() -> str:
    """What the document is."""
    return "\n".join(
        [
            "# How far the models can be believed\n",
            prose(
                "Made by `python -m tools.docs accuracy`; a test keeps it current. No figure here was measured",
                "by this project: measured TOPS are published ones (`bdforge/perf/data`, the column `source`",
                "names where), modelled TOPS are those of `bdforge estimate`. Errors are modelled / measured TOPS",
                "- 1, so + is too fast.",
            ),
            prose(
                f"**A design of a publication that the models have never seen is off by {mean_error(unseen()):.1%} on",
                f"average, {median_error(unseen()):.1%} in the median and {worst_error(unseen()):.1%} at worst**",
                f"({len(unseen())} rows, each publication left out whole, parameters and kernels). Every estimate is",
                f"printed with a range, {INTERVAL[0]:g} to {INTERVAL[1]:g} of its time, that holds at least four in",
                "five rows of each publication left out so.",
            ),
            prose(
                "The sources state their own noise: 8 % between separate runs of one configuration on Strix Halo",
                "and about 10 % in one-shot sweeps (casselc), 6 % between two modes of the dispatch latency and",
                "0.92-1.04x between two versions of one README (IRON). Errors below 5-10 % say nothing.",
            ),
        ]
    )


def parameters() -> str:
    """What was fitted."""
    values = zip(asdict(Parameters()), _MEANINGS, astuple(Parameters()), astuple(fitted_parameters()), strict=True)
    used = [row for row in all_rows() if row.source in FITTED_SOURCES]
    cases = {replace(row.case, assumed=()) for row in used}
    rated = sum(case.core_macs_per_cycle is not None for case in cases)
    return section(
        "What was fitted",
        prose(
            f"{len(_MEANINGS)} parameters, jointly, by least squares of log(modelled / measured time) over",
            f"{len(used)} rows of {len(FITTED_SOURCES)} sources; none per row. Of {len(cases)} distinct rows, {rated}",
            "have their kernel's rate given; the others take forms with two parameters for each combination of types",
            "(below). A source of n rows weighs as n^3/4. A parameter that the rows hardly reach stays near its start.",
            f"`bdforge.devices.timing` and `OVERLAP_EXPONENT` = {OVERLAP_EXPONENT:g} hold them rounded.",
        ),
        table(
            ("parameter", "meaning", "start", "fitted"),
            [(f"`{name}`", meaning, f"{start:.3g}", f"{value:.3g}") for name, meaning, start, value in values],
        ),
        prose(
            "Not fitted, but measured by others on their own: the port's rates each way and both ways, a channel's",
            "share of its stream, and what a request takes on npu2 (bursts of 64 B on all channels of Strix Halo); nor",
            "npu1's GB/s (no row is bound by it; 20 is above the 17.1 that the tables imply), dispatch, controller and",
            "core costs. `bdforge.devices.timing` names their sources. The rows of `casselc-resweep` are derived:",
            "published ranges of bandwidth by run length, on the published problem, for an assumed tile.",
        ),
        prose(
            "What the parameters say: a shim fetches one run after the other, about 11 ns each on npu2 and 37 ns on",
            "npu1, whatever the stride; so half an array moves half as many short runs. Above that DRAM itself serves",
            "runs one by one where all columns read side by side in one row of a matrix (row-major B) and where each",
            "run lies in a page of its own (a stride of 4 KiB or more).",
        ),
    )


def held_to() -> str:
    """Goals and what is reached."""
    lines = [(g.text, f"{g.limit:.0%}", f"{g.reached:.1%}", "yes" if g.holds else "**no**") for g in goals()]
    ratios = ", ".join(f"{ratio:.1f}x for {types}" for types, ratio in short_run_ratios().items())
    return section(
        "What the models are held to",
        table(("what", "at most", "reached", "holds"), lines),
        prose(
            f"The loss without BD overlap is modelled at {no_overlap_loss():.1%} and was in no fit. Nor was the",
            "statement of Taka et al. that short contiguous runs make GEMMs on XDNA2 3.6x slower, of a design",
            f"that they do not name; with k_mt = k the models say of the designs of table 3: {ratios}.",
        ),
    )


def short_run_ratios() -> dict[str, float]:
    """Modelled slow-down of table 3's designs when k_mt is only k; Taka et al. state 3.6x without naming the design."""
    return {
        f"{result.row.case.a} -> {result.row.case.c}": result.found.tops
        / estimate(replace(result.row.case, k_mt=result.row.case.k)).tops
        for result in results("taka-table3")
    }


def by_source() -> str:
    """Errors by source, and with the source or its whole publication left out of the fit."""
    kinds = (results, lambda source: left_out_results(source, (source,)), publication_left_out)
    groups = {source: [kind(source) for kind in kinds] for source in FITTED_SOURCES}
    groups["all"] = [[r for source in FITTED_SOURCES for r in groups[source][i]] for i in range(len(kinds))]
    lines = [
        (
            name, str(len(found[0])), f"{bias(found[0]):+.1%}",
            *(f"{measure(rows):.1%}" for rows in found for measure in (mean_error, worst_error)),
        )
        for name, found in groups.items()
    ]  # fmt: skip
    head = ("source", "rows", "bias", "mean", "worst", "left out: mean", "worst", "publication left out: mean", "worst")
    return section(
        "Errors by source, and left out",
        prose(
            "Mean error with its sign (bias), mean and worst absolute error: as fitted, with the source left out of",
            "the fit (of parameters and of kernels), and with everything of the same publication left out.",
        ),
        table(head, lines),
    )


def _rows_table(found: Iterable[Result]) -> str:
    head = ("source", "device", "types", "tile, k_mt", "problem", "measured TOPS", "modelled", "error", "bound")
    return table(head, [_row_cells(result) for result in found])


def _row_cells(result: Result) -> tuple[str, ...]:
    row, case, found = result.row, result.row.case, result.found
    return (
        row.source, case.device, f"{case.a} {case.b} {case.c}", f"{case.m}x{case.k}x{case.n}, {case.k_mt}",
        f"{case.M}x{case.K}x{case.N}", f"{row.tops:.2f}", f"{found.tops:.2f}", f"{result.error:+.1%}", found.bound,
    )  # fmt: skip


def rows_used() -> str:
    """Every fitted row."""
    return section("Rows used", _rows_table(result for source in FITTED_SOURCES for result in results(source)))


def rows_left_out() -> str:
    """Rows that were only predicted."""
    rows = [row for row in measured_rows() if row.core_only and row.tops]
    cases = [replace(row.case, core_macs_per_cycle=None) for row in rows]
    modelled = [step_of_core(estimate(case))[1] for case in cases]
    errors = ", ".join(f"{tops / (row.tops or 1) - 1:+.1%}" for row, tops in zip(rows, modelled, strict=True))
    return section(
        "Rows only predicted",
        "".join(bullet(f"`{source}`: {reason}.") for source, reason in _LEFT_OUT.items()),
        _rows_table(result for source in _LEFT_OUT for result in results(source)),
        prose(
            f"`wang-table1` gives one core alone; with kernels by their fitted form its errors are {errors}.",
            "The row of an AMD library (bf16 x int4) gives no tile and cannot be judged. Rows of which nothing was",
            "fitted, and bandwidths that publications imply, are among [papers](papers.md).",
        ),
    )


def kernels() -> str:
    """Kernels known by rate."""
    return section(
        "Kernels known by rate",
        prose(
            "`cycles = m·k·n / P + q·m·n`, fitted for each generation and types and used where a row has no rate",
            "of its own. Rates are those of compiled kernels, memory bank stalls included. The last column is the",
            "error of the cycles.",
        ),
        table(
            ("generation", "types", "P", "q", "rows and errors"),
            [_kernel_cells(key, form) for key, form in sorted(fitted_kernels().items())],
        ),
    )


def _kernel_cells(key: tuple[str, str, str, str], form: FittedKernel) -> tuple[str, ...]:
    rates = [rate for rate in published_rates() if (rate.generation.name, *rate.types) == key]
    tiles = [
        f"{rate.m}x{rate.k}x{rate.n}{f' rho {rate.rho}' if rate.rho > 1 else ''} "
        f"{form.cycles(rate.m, rate.k, rate.n) / rate.cycles - 1:+.1%}"
        for rate in rates
    ]
    generation, a, b, c = key
    rate, per_c = f"{form.macs_per_cycle:.0f}", f"{form.cycles_per_c:.3f}"
    return generation, f"{a} x {b} -> {c}", rate, per_c, ", ".join(tiles)


def misses() -> str:
    """Known weaknesses."""
    baseline = next(result for result in results("wang-table2") if (result.row.case.m, result.row.case.k) == (96, 128))
    (operator,) = results("iron-gemm-operator-npu2")
    alone = [r for r in results("casselc-geometry-bf16") if r.row.case.columns == 1]
    return section(
        "What misses",
        bullet(
            f"The double-buffered bfp16 baseline of `wang-table2`: {baseline.error:+.0%}, most of it from the",
            "published kernel rate alone; the source does not say what else the design waits for.",
        )
        + bullet(
            f"One column alone: {', '.join(f'{r.error:+.0%}' for r in alone)}. Its shim takes less for a request than",
            "one among eight; the share is fitted on these five rows of one source and on nothing else.",
        )
        + bullet(
            f"`iron-gemm-operator-npu2`: {operator.error:+.0%}, although compute was shown not to matter.",
        )
        + bullet(
            "On Strix and Krackan nobody measured a shim or DRAM alone: they have Strix Halo's port and requests, and",
            "the fitted factor for runs that are served one by one.",
        )
        + bullet(
            "Weights that stay on the array (B resident in memtiles) are no case of this model yet.",
        )
        + bullet(
            "Writes in short runs cost what long ones do; 64-byte bursts were measured at half of the port's rate.",
        ),
    )


SECTIONS: list[Callable[[], str]] = [
    introduction, parameters, held_to, by_source, rows_used, rows_left_out, kernels, agreement,
    side_by_side, misses,
]  # fmt: skip
"""Functions that return the parts of the document, in order."""


def page() -> str:
    """The whole page."""
    return "\n".join(part() for part in SECTIONS)
