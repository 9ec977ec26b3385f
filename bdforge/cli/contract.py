"""`bdforge contract`: how a tensor contraction runs on a GEMM design's array, step by step."""

import re
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from bdforge.cli.options import LARGE, Force, Out, ProductName, Rate, check_rate, print_or_write, whole_numbers
from bdforge.common.messages import clip
from bdforge.common.screen import put, say, screen
from bdforge.common.tree import tree
from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.operators import load_spec
from bdforge.operators.contraction import contraction, parse, plan_contraction
from bdforge.operators.contraction.report import report_lines
from bdforge.operators.gemm import GemmSpec, plan_gemm
from bdforge.perf import estimate
from bdforge.perf.bounds.contraction import contraction_case
from bdforge.perf.estimate_report import report

app = typer.Typer()
_DESIGN = "gemm_bf16_bf16_f32_64x64x64.toml"
_SIZE = re.compile(r"([A-Za-z])=(\d{1,12})")


@app.command(name="contract")
def contract_command(
    expression: Annotated[str, typer.Argument(help='Einsum expression of two tensors, such as "acd,db->abc".')],
    sizes: Annotated[str, typer.Option(help="Size of each label: a=384,b=376,...")],
    design: Annotated[
        Path | None,
        typer.Option(help=f"The GEMM design whose array computes it; {_DESIGN} of those that came without."),
    ] = None,
    strides: Annotated[
        list[str] | None,
        typer.Option(help="Strides of the first input, the second, the output, as 5,1: once each; row-major without."),
    ] = None,
    staged: Annotated[str | None, typer.Option(help="Operands to stage, such as AB; chosen without.")] = None,
    once: Annotated[str, typer.Option(help="Operands that are staged before, whose copies cost nothing.")] = "",
    device: ProductName = "phoenix",
    rate: Rate = None,
    out: Out = None,
    force: Force = False,
) -> None:
    """Plan a tensor contraction: types, fusion, tiles, staging, loops; its modelled time; its sequence program."""
    design = design or tree() / "designs" / _DESIGN
    spec = load_spec(design)
    if not isinstance(spec, GemmSpec):
        raise typer.BadParameter(f"{design} is no GEMM design; contractions run on one")
    _operands(staged, "--staged")
    _operands(once, "--once")
    parse(expression)
    given = contraction(expression, _sizes(sizes), _strides(strides))
    check_rate(rate, device_named(device))
    plan = plan_contraction(given, plan_gemm(spec, device_named(device)), staged, once)
    if out is not None:
        print_or_write(plan.program.model_dump_json(exclude_none=True), out, force, ": a sequence program")
    for line in report_lines(given, plan, once):
        say(line)
    put(screen(), report(estimate(contraction_case(plan, core_macs_per_cycle=rate), timing=timing_of(device))))


def _sizes(text: str) -> dict[str, int]:
    found = [_SIZE.fullmatch(entry.strip()) for entry in text.split(",")]
    if not all(found):
        raise typer.BadParameter(f"{clip(text)!r} is no list of sizes such as a=384,b=376", param_hint="--sizes")
    if twice := [label for label, count in Counter(match[1] for match in found if match).items() if count > 1]:
        raise typer.BadParameter(f"{twice[0]} has several sizes; give each label one", param_hint="--sizes")
    return {match[1]: int(match[2]) for match in found if match}


def _strides(texts: list[str] | None) -> list[list[int] | None]:
    if texts is None:
        return [None, None, None]
    if len(texts) != 3:
        raise typer.BadParameter("give three: of the first input, the second, the output", param_hint="--strides")
    return [whole_numbers(text, "--strides", -LARGE, LARGE) if text else None for text in texts]


def _operands(names: str | None, option: str) -> None:
    if set(names or "") - set("ABC") or len(set(names or "")) < len(names or ""):
        raise typer.BadParameter(f"{clip(names or '')!r} is not A, B and C, each at most once", param_hint=option)
