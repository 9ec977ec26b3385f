"""`bdforge estimate --model` and `--versus cpu`: whole models, and where the array overtakes a CPU."""

from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from bdforge.cli.options import print_or_write
from bdforge.common.screen import new_table, put, screen
from bdforge.operators.gemm import Problem
from bdforge.perf import Estimate, GemmCase
from bdforge.perf.bounds.estimate import INTERVAL
from bdforge.perf.bounds.layers import crossover, layers, write_csv
from bdforge.perf.bounds.models import BITNET, MODELS, Linear, measured_cpu_tops, model_named
from bdforge.perf.estimate_report import layers_report
from bdforge.perf.tune.shapes import Weighted

CaseOf = Callable[[Problem], GemmCase]
Estimator = Callable[[GemmCase], Estimate]


def model_command(
    name: str, tokens: int | None, fused: str, to: tuple[Path | None, bool], case_of: CaseOf, model_case: Estimator
) -> None:
    """Print where a model's time goes, or write it as CSV to a file; `to` says whether it may replace one."""
    model = model_named(name)
    if tokens is None and not all(linear.M for linear in model.linears):
        raise typer.BadParameter(f"give --tokens, of {name}")
    fusions = tuple(part for part in fused.split(",") if part)
    found = layers(model, tokens or 256, fusions, case_of, model_case)
    if to[0] is None:
        put(screen(), layers_report(found))
    else:
        print_or_write(write_csv(found), *to, f": {len(found.parts)} operators, modelled")


def shapes_command(weighted: Sequence[Weighted], case_of: CaseOf, model_case: Estimator) -> None:
    """Print the time of many problems, each as often as it is run."""
    table = new_table(None, "=problem", ">times", ">us each", ">ms", ">TOPS", "bound", "name")
    total = 0.0
    for problem, count in weighted:
        found = model_case(case_of(problem))
        total += count * found.time_us / 1e3
        ms = f"{count * found.time_us / 1e3:.1f}"
        table.add_row(
            str(problem), str(count), f"{found.time_us:.0f}", ms, f"{found.tops:.2f}", found.bound, problem.name
        )
    low, high = (share * total for share in INTERVAL)
    runs = sum(count for _, count in weighted)
    put(screen(), table, f"all {runs}: {total:.1f} ms (modelled; {low:.1f} to {high:.1f}), dispatches included")


def versus_command(
    other: str, cpu_tops: float | None, shapes: Sequence[Problem], case_of: CaseOf, model_case: Estimator
) -> None:
    """Print from which M on the array is faster than a CPU, for K and N of shapes or of BitNet's layers."""
    if other != "cpu":
        raise typer.BadParameter(f"--versus {other!r}: only cpu is there")
    linears = [Linear("", shape.K, shape.N, 1) for shape in shapes] or BITNET.fused(("qkv", "gateup"))
    rate = cpu_tops or measured_cpu_tops()
    source = "given" if cpu_tops else "measured by others: ggml, 15 threads of a Ryzen AI Max+ 395, ternary weights"
    table = new_table(None, "layer", "=K x N", "faster from M")
    for linear in linears:
        first = crossover(linear, rate, case_of, model_case)
        table.add_row(linear.name, f"{linear.K}x{linear.N}", "nowhere up to 8192" if first is None else str(first))
    put(screen(), f"array (modelled) against a CPU at {rate:.2f} TOPS ({source}):", table)


MODEL_NAMES = ", ".join(MODELS)
