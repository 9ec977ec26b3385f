"""docs/accuracy.md: what was fitted, on which rows, and how far the models are off.

To add a section, append a function that returns Markdown to `SECTIONS`; `markdown` makes its parts.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from bdforge.perf.accuracy import HEAD, judged, table_lines
from bdforge.perf.bounds.compiled_operator import compiled_operators
from bdforge.perf.bounds.estimate import INTERVAL, OVERLAP_EXPONENT, estimate
from bdforge.perf.kernels.rates import FittedKernel, compiled_kernels, fitted_kernels
from bdforge.perf.plots.parity_plot import parity
from tools.docs.accuracy_emulated import agreement, side_by_side
from tools.docs.markdown import bullet, prose, section, table
from tools.fit.evaluation import (
    all_rows,
    every_second,
    fitted_parameters,
    goals,
    mean_error,
    median_error,
    no_overlap_loss,
    predicted,
    results,
)
from tools.fit.kernel_rates import published_rates
from tools.fit.parameters import MEMORY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEANINGS: Mapping[str, str] = {
    "npu1_request_ns": "ns that a shim of npu1 takes for a request, of at most 256 B",
    "shared_run_ns": "ns of DRAM for a short run that lies beside those of other columns, Strix Halo",
    "far_run_ns": "ns of DRAM for a short run in a page of its own, Strix Halo",
    "aligned_byte_ns": "ns a byte of such runs whole pages apart, where that is more, Strix Halo",
    "narrow_bus": "times that on products with half of its memory bus",
    "strix_port": "times Strix Halo's GB/s on Strix",
    "alone_share": "share of a request's time in an array of one column",
    "elf_dispatch_ns": "ns from handing over a full ELF to its start, Strix",
}


def introduction() -> str:
    """What the document is."""
    return "\n".join(
        [
            "# How far the models can be believed\n",
            prose(
                "For whoever bases a choice on a modelled time:",
                "how far such times are off, row by row of what others measured.",
            ),
            prose(
                "Made by `python -m tools.docs accuracy`; a test keeps it current. No figure here was measured",
                "by this project: measured times are published ones (`bdforge/perf/data`, the column `source`",
                "names where), modelled ones those of `bdforge estimate`. Errors are modelled / measured speed - 1,",
                "so + is too fast. `python -m bdforge.perf.accuracy` prints the tables, `bdforge estimate --csv TABLE`",
                "models rows of your own.",
            ),
            prose(
                f"**A design whose twins the models know is off by {mean_error(every_second()):.1%} on average and",
                f"{median_error(every_second()):.1%} in the median** ({len(every_second())} rows of GEMMs, each by a",
                "fit to every second other one of its source); rows that nothing was fitted to by",
                f"{mean_error(predicted()):.1%} and {median_error(predicted()):.1%} ({len(predicted())} rows). Every",
                f"estimate is printed with a range, {INTERVAL[0]:g} to {INTERVAL[1]:g} of its time, that holds four",
                "in five of either.",
            ),
            prose(
                "The sources state their own noise: 8 % between separate runs of one configuration on Strix Halo",
                "and about 10 % in one-shot sweeps (casselc), 6 % between two modes of the dispatch latency and",
                "0.92-1.04x between two versions of one README (IRON). Errors below 5-10 % say nothing.",
            ),
            "![Modelled over measured times](images/accuracy.png)\n",
        ]
    )


def picture() -> "Figure":
    """Modelled over measured times, with the range that estimates are printed with."""
    pairs = {
        text: [(each.measured_us / 1e3, each.modelled_us / 1e3) for each in judged() if each.fitted is fitted]
        for text, fitted in (("fitted", True), ("not fitted", False))
    }
    return parity(pairs, "ms", f"{len(judged())} published runs", INTERVAL)


def by_operator() -> str:
    """Errors by operator and source."""
    return section(
        "Errors by operator and source",
        prose(
            "As `bdforge estimate` models them today. `fitted`: some of the models' parameters are fitted to these",
            "rows, none a row; `in range`: measured within the printed range.",
        ),
        table(tuple(name.lstrip("=>") for name in HEAD), list(table_lines())),
    )


def parameters() -> str:
    """What was fitted."""
    found = fitted_parameters()
    lines = [(f"`{name}`", _MEANINGS[name], f"{start:.3g}", f"{found[name]:.3g}") for name, start in MEMORY.items()]
    cases = {replace(row.case, assumed=()) for row in all_rows()}
    rated = sum(case.core_macs_per_cycle is not None for case in cases)
    return section(
        "What was fitted",
        prose(
            f"{len(MEMORY)} parameters of memory and dispatch, jointly with the forms of kernels below, by least",
            f"squares of log(modelled / measured time) over {len(all_rows())} rows of GEMMs; none per row. Of",
            f"{len(cases)} distinct rows, {rated} have their kernel's rate given. A source of n rows weighs as n^3/4.",
            "A parameter that the rows hardly reach stays near its start. `bdforge.devices.timing` holds them rounded,",
            "and beside them two exponents of imperfect overlap, of memory's parts and of cores and memory",
            f"({OVERLAP_EXPONENT:g}), which were fitted to the first 57 rows and held since.",
        ),
        table(("parameter", "meaning", "start", "fitted"), lines),
        prose(
            "Not fitted, but measured by others on their own: the port's rates each way and both ways on Strix Halo, a",
            "channel's share of its stream, and what a request takes on npu2 (bursts of 64 B on all channels); nor",
            "npu1's GB/s (no row is bound by it; 20 is above the 17.1 that the tables imply), dispatch by xclbin,",
            "controller and core costs; `bdforge.devices.timing` names their sources. Rows of `casselc-resweep` are",
            "derived: published ranges of bandwidth by run length, on the published problem, for an assumed tile.",
        ),
        prose(
            "What the parameters say: a shim fetches one run after the other, about 11 ns each on npu2 and 37 ns on",
            "npu1, whatever the stride; so half an array moves half as many short runs. Above that DRAM itself serves",
            "short runs one by one where all columns read side by side in one row of a matrix (row-major B), and where",
            "each run lies in a page of its own (a stride of 4 KiB or more): the more columns fetch such runs, the",
            "slower, and slower yet where all strides are whole pages, as those of matrices of powers of two are. What",
            "long runs move beside them does not wait for that.",
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


def compilers() -> str:
    """Kernels of other compilers."""
    kernels = [
        (
            compiler, key[0], f"{key[1]} x {key[2]}", f"{form.macs_per_cycle:.0f}", f"{form.cycles_per_c:.2f}",
            "" if form.cycles_per_result is None else f"{form.cycles_per_result:.1f}",
            f"{form.cycles_per_slab:.0f}" if form.cycles_per_slab else "", str(form.rows),
        )
        for (compiler, key), form in compiled_kernels().items()
    ]  # fmt: skip
    operators = [
        (name, f"{form.element_cycles:.2f}", f"{form.row_cycles:.0f}" if form.row_cycles else "", str(form.count))
        for name, form in compiled_operators().items()
    ]
    return section(
        "Kernels of other compilers",
        prose(
            "Known by times of whole problems, each way of making a kernel by itself: IRON's and FLM's GEMMs by Peano",
            "(`peano`), and mlir-air's three: sums kept in bf16 (`direct`), f32 sums drained by a pass (`drain`), f32",
            "sums cast by a pass (`fused-cast`). Beside P and q cycles go for each element of C when a tile is done,",
            "and for each slab. Rows of a table get them by what source and notes say.",
        ),
        table(("compiler", "generation", "types", "P", "q", "each element", "each slab", "rows"), kernels),
        prose(
            "mlir-air's other operators: cycles of a core for each element (in attention each pair of query and",
            "key, and for each query and head; causal ones take as long as full ones):",
        ),
        table(("operator", "each element", "each row", "runs"), operators),
    )


def misses() -> str:
    """Known weaknesses."""
    baselines = [r for r in results("wang-table2") if (r.row.case.m, r.row.case.k) in ((96, 128), (64, 88))]
    alone = [r for r in results("casselc-geometry-bf16") if r.row.case.columns == 1]
    return section(
        "What misses, and what is not modelled",
        bullet(
            f"mlir-aie's examples as `wang-table2` has them: {' and '.join(f'{r.error:+.0%}' for r in baselines)}; the",
            "source does not say what else they wait for.",
        )
        + bullet(
            f"One column alone: {', '.join(f'{r.error:+.0%}' for r in alone)}. Its shim takes less for a request than",
            "one among eight; the share is fitted on these rows of one source and on nothing else.",
        )
        + bullet("A compiler that no row is known of: its kernels count as xchesscc's, which are the fastest.")
        + bullet("Writes in short runs cost what long ones do; bursts of 64 B were measured at half its rate.")
        + bullet("Norms of mlir-air whose rows are 4 KiB take a third longer an element than others; why is not known.")
        + bullet("Rows without a tile, and a source's own doubts (SUSPECT), are not judged."),
    )


SECTIONS: list[Callable[[], str]] = [
    introduction, by_operator, held_to, parameters, kernels, compilers, agreement, side_by_side, misses,
]  # fmt: skip
"""Functions that return the parts of the document, in order."""


def page() -> str:
    """The whole page."""
    return "\n".join(part() for part in SECTIONS)
