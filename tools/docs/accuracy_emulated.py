"""Sections of docs/accuracy.md about timed emulation; `emulated` runs what they tell."""

from tools.docs.emulated import STOCK, Comparison, read_table
from tools.docs.markdown import prose, section, table


def agreement() -> str:
    """Both models on the same designs."""
    rows = [row for row in read_table() if row.group == "agreement"]
    worst = max(rows, key=lambda row: abs(row.difference))
    lines = [
        (
            row.design, row.device, f"{row.M}x{row.K}x{row.N}", row.bound, f"{row.modelled_us:.0f}",
            f"{row.emulated_us:.0f}", f"{row.difference:+.1%}",
        )
        for row in rows
    ]  # fmt: skip
    return section(
        "Timed emulation beside the estimate",
        prose(
            f"{len(rows)} designs, each rendered, executed on the emulated array with clocks, and estimated in closed",
            "form, with the same kernel cycles (the ideal schedule). `python -m tools.docs emulated` repeats it.",
        ),
        table(("design", "device", "problem", "bound", "modelled us", "emulated us", "difference"), lines),
        prose(
            f"The largest difference is {worst.difference:+.1%} ({worst.design} on {worst.device}). The emulation adds",
            "what the closed form leaves out: the first slabs on their way, the drain of the last tiles of C, tasks",
            "that start late, and channels that wait for each other; it takes away what the form counts as if it",
            "never overlapped. Both share the constants of `bdforge.devices.timing`, so their agreement says that",
            "the mechanics are right, not the constants: those are judged above.",
        ),
    )


def side_by_side() -> str:
    """BitNet's design and the stock tilings in one simulator."""
    rows = [row for row in read_table() if row.group == "side by side"]
    designs = list(dict.fromkeys(row.design for row in rows))
    lines = [_line(rows, design, kernel) for kernel in ("ideal", "compiled") for design in designs]
    shapes = list(dict.fromkeys((row.M, row.K, row.N) for row in rows))
    factors = [
        f"{design} takes {_factor(rows, design, 'ideal'):.2f} of it ({_factor(rows, design, 'compiled'):.2f})"
        for design in designs
        if design not in STOCK
    ]
    return section(
        "BitNet's design beside stock tilings",
        prose(
            "BitNet-2B's layers with 1024 tokens on Strix Halo, all in the same simulator: emulated TOPS,",
            f"modelled TOPS in brackets. {STOCK[0]}, and {STOCK[1]} with single C, are mlir-aie's",
            "whole_array tilings with int8 B, column-major, k_mt = k. `ideal` kernels follow their overlapped",
            "schedule; `compiled` ones a plain loop nest at the share of it that published compiled kernels reach",
            "(docs/kernel_costs.md).",
        ),
        table(("design", "kernels", *(f"{M}x{K}x{N}" for M, K, N in shapes)), lines),
        prose(
            "Against the time of the faster stock tiling over all four layers, with ideal kernels (compiled ones in",
            f"brackets), {'; '.join(factors)}. Why the tuned design is as it is, and what would lift it further:",
            "[the tuned design](operators/gemm_speed.md#the-tuned-bitnet-design).",
        ),
    )


def _line(rows: list[Comparison], design: str, kernel: str) -> tuple[str, ...]:
    found = [row for row in rows if (row.design, row.kernel) == (design, kernel)]
    return design, kernel, *(f"{row.tops(row.emulated_us):.1f} ({row.tops(row.modelled_us):.1f})" for row in found)


def _factor(rows: list[Comparison], design: str, kernel: str) -> float:
    """Emulated time over that of the faster stock tiling, all layers together."""
    total = {
        name: sum(row.emulated_us for row in rows if (row.design, row.kernel) == (name, kernel))
        for name in (design, *STOCK)
    }
    return total[design] / min(total[name] for name in STOCK)
