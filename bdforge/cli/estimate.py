"""`bdforge estimate`: modelled speed of designs, of whole models, and of tables of measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from bdforge.cli.ending import BAD_INPUT
from bdforge.cli.json_output import ModelledComposition, ModelledDesign, ModelledLoad, ModelledProblem
from bdforge.cli.options import (
    DEFAULT_PRODUCT,
    AsJson,
    Force,
    Kernel,
    Out,
    ProductName,
    Rate,
    Shapes,
    Tokens,
    check_rate,
    number,
    print_or_write,
    problems,
    problems_of,
)
from bdforge.cli.plan import check_product
from bdforge.cli.progress import counting
from bdforge.common.files import FileError, read_bytes, read_text
from bdforge.common.messages import clip, listed
from bdforge.common.screen import new_table, put, say, screen
from bdforge.devices import Device, device_named
from bdforge.devices.timing import CONTEXT_NS, DISPATCHES, Timing, timing_in, timing_of
from bdforge.operators import ComposedPlan, ComposedSpec, Spec, load_spec, operator_of, plan, plan_of
from bdforge.operators.gemm import GemmProblem, GemmSpec, plan_gemm
from bdforge.perf import Estimate, estimate, estimate_table
from bdforge.perf.bounds.array_operators import Timed, operators_on
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.copies import Modelled
from bdforge.perf.bounds.estimate import INTERVAL
from bdforge.perf.bounds.layers import crossover, layers, write_csv
from bdforge.perf.bounds.load_time import FITTED_BYTES, load_times
from bdforge.perf.bounds.models import BITNET, MODELS, Linear, measured_cpu_tops, model_named
from bdforge.perf.bounds.operator_bound import CostEstimate, cost_estimate
from bdforge.perf.bounds.part_times import OperatorSplit
from bdforge.perf.bounds.stage_split import RULES
from bdforge.perf.estimate_report import cost_report, layers_report, report
from bdforge.perf.goals import goals
from bdforge.perf.tune.shapes import NAMES, Weighted
from bdforge.perf.tune.shapes import shapes as many_shapes
from bdforge.perf.tune.time_model import basis_named, kernel_on
from bdforge.runtime import BuildError, BuiltDesign


def model_command(
    name: str, tokens: int | None, fused: str, to: tuple[Path | None, bool], modelled: Modelled,
    split: OperatorSplit | None = None,
) -> None:  # fmt: skip
    """Print where a model's time goes, or write it as CSV to a file; `to` says whether it may replace one."""
    model = model_named(name)
    if tokens is None and not all(linear.M for linear in model.linears):
        raise typer.BadParameter(f"give --tokens, of {name}")
    fusions = tuple(part for part in fused.split(",") if part)
    found = layers(model, tokens or 256, fusions, modelled, split)
    if to[0] is None:
        put(screen(), layers_report(found))
    else:
        print_or_write(write_csv(found), *to, f": {len(found.parts)} operators, modelled")


def shapes_command(weighted: Sequence[Weighted], modelled: Modelled) -> None:
    """Print the time of many problems, each as often as it is run."""
    table = new_table(None, "=problem", ">times", ">us each", ">ms", ">TOPS", "bound", "name")
    total = 0.0
    for problem, count in weighted:
        found = modelled(problem)
        total += count * found.time_us / 1e3
        ms = f"{count * found.time_us / 1e3:.1f}"
        table.add_row(
            str(problem), str(count), f"{found.time_us:.0f}", ms, f"{found.tops:.2f}", found.bound, problem.name
        )
    low, high = (share * total for share in INTERVAL)
    runs = sum(count for _, count in weighted)
    put(screen(), table, f"all {runs}: {total:.1f} ms (modelled; {low:.1f} to {high:.1f}), dispatches included")


def versus_command(other: str, cpu_tops: float | None, shapes: Sequence[GemmProblem], modelled: Modelled) -> None:
    """Print from which M on the array is faster than a CPU, for K and N of shapes or of BitNet's layers."""
    if other != "cpu":
        raise typer.BadParameter(f"--versus {other!r}: only cpu is there")
    linears = [Linear("", shape.K, shape.N, 1) for shape in shapes] or BITNET.fused(("qkv", "gateup"))
    rate = cpu_tops or measured_cpu_tops()
    source = "given" if cpu_tops else "measured by others: ggml, 15 threads of a Ryzen AI Max+ 395, ternary weights"
    table = new_table(None, "layer", "=K x N", "faster from M")
    for linear in linears:
        first = crossover(linear, rate, modelled)
        table.add_row(linear.name, f"{linear.K}x{linear.N}", "nowhere up to 8192" if first is None else str(first))
    put(screen(), f"array (modelled) against a CPU at {rate:.2f} TOPS ({source}):", table)


MODEL_NAMES = ", ".join(MODELS)
ManyShapes = Annotated[
    str | None,
    typer.Option("--shapes", help=f"Many problems: {', '.join(NAMES)}, MxKxN*TIMES,... or a file of such lines."),
]

SplitRule = Annotated[
    str | None,
    typer.Option(
        "--split", help=f"Where a model's other operators run: {', '.join(RULES)}; `estimate` takes what is fastest."
    ),
]
Switch = Annotated[
    float | None, number("Milliseconds that each change of the array's configuration counts, with --split.", "--switch")
]
Versus = Annotated[str | None, typer.Option(help="`cpu`: the M from which on the array is faster, for K and N.")]
CpuTops = Annotated[
    float | None, number("The CPU's TOPS; `bdforge-run --device cpu` measures them.", least=1e-3, most=1e6)
]


app = typer.Typer()


@app.command(name="estimate")
def estimate_command(
    design: Annotated[Path | None, typer.Argument(help="Design spec, or folder of a built design.")] = None,
    shape: Shapes = None,
    shapes: ManyShapes = None,
    device: ProductName = DEFAULT_PRODUCT,
    kernel: Kernel = "fitted",
    rate: Rate = None,
    power: Annotated[
        str | None, typer.Option(help="Power mode: saver, balanced or turbo, where its clock is known.")
    ] = None,
    dispatch: Annotated[str, typer.Option(help=f"How runs are handed over: {', '.join(DISPATCHES)}.")] = "xrt",
    model: Annotated[str | None, typer.Option(help=f"A whole model on the design: {MODEL_NAMES}.")] = None,
    tokens: Tokens = None,
    fused: Annotated[str, typer.Option(help="GEMMs of the model that are made one, such as qkv,gateup.")] = "",
    split: SplitRule = None,
    switch: Switch = None,
    versus: Versus = None,
    cpu_tops: CpuTops = None,
    csv: Annotated[
        Path | None, typer.Option(help="Table of measured GEMMs or operators instead: docs/performance.md.")
    ] = None,
    out: Out = None,
    force: Force = False,
    as_json: AsJson = False,
    with_accuracy: Annotated[bool, typer.Option("--accuracy", help="How far models and measurements differ.")] = False,
) -> None:
    """Model the speed of a design, of a whole model on it, or of a table's rows, and name the bound that binds."""
    if as_json and (design is None or any((csv, model, shapes, versus, with_accuracy))):
        raise typer.BadParameter("it goes with a design and its problems alone", param_hint="--json")
    if with_accuracy:
        _accuracy()
        return
    if csv is not None:
        _check_table(design, any((shape, tokens, rate, power)) or kernel != "fitted" or dispatch != "xrt")
        _table(csv, out, force)
    elif design is not None:
        if (out is not None or force) and model is None:
            raise typer.BadParameter("--out and --force go with --csv or --model; a design's estimate is printed")
        _check_extras((model, shapes, versus), tokens, fused, cpu_tops)
        _check_split(split, switch, model)
        spec, where = _spec(design, device, power, dispatch)
        if not isinstance(spec, GemmSpec):
            if model or shapes or versus or rate or kernel != "fitted":
                raise typer.BadParameter(f"--model, --shapes, --versus, --rate, --kernel need a GEMM, not {spec.kind}")
            _operator(spec, design, shape, where, as_json)
            return
        modelled = _modelled(spec, where, kernel, rate)
        if model is not None:
            others = OperatorSplit(_operators(where, kernel), split, switch or 0.0) if split else None
            model_command(model, tokens, fused, (out, force), modelled, others)
        elif shapes is not None:
            shapes_command(many_shapes(shapes, tokens), modelled)
        elif versus is not None:
            versus_command(versus, cpu_tops, problems(shape), modelled)
        else:
            found = [(each.sizes, modelled(each)) for each in problems(shape) or spec.problems]
            _tell(spec, design, where, found, as_json)
    else:
        raise typer.BadParameter("name a design, or a table with --csv")


def _accuracy() -> None:
    mean, middle, *_ = goals()
    say(
        f"{mean.rows} published GEMMs, each by a fit to others: {mean.reached:.1%} off on average, "
        f"{middle.reached:.1%} in the median; docs/accuracy.md has them by operator and source"
    )
    for goal in goals():
        say(f"{goal.text}: {goal.reached:.1%}, at most {goal.limit:.0%}{'' if goal.holds else ': MISSED'}")


def _check_table(design: Path | None, of_designs: bool) -> None:
    """`of_designs`: whether options are given that go with a design."""
    if design is not None:
        raise typer.BadParameter("name either a design or a table, not both")
    if of_designs:
        raise typer.BadParameter(
            "--shape, --tokens, --rate, --kernel, --power and --dispatch go with a design; a table has columns for "
            "sizes, rate, clock and dispatch"
        )


def _table(csv: Path, out: Path | None, force: bool) -> None:
    given = read_text(csv)
    with counting(screen(stderr=True)) as shown:
        task = shown.add_task("modelling rows", total=max(given.count("\n") - 1, 0))
        text, faults = estimate_table(given, str(csv), lambda: shown.advance(task))
    print_or_write(text, out, force, f": {text.count(chr(10)) - 1} rows, modelled")
    if faults:
        say(listed([*(f"bdforge: {fault}" for fault in faults)], "\n"), err=True)
        raise typer.Exit(BAD_INPUT)


def _check_extras(
    chosen: tuple[str | None, str | None, str | None], tokens: int | None, fused: str, cpu_tops: float | None
) -> None:
    """`chosen`: --model, --shapes and --versus."""
    model, shapes, versus = chosen
    if len([one for one in chosen if one is not None]) > 1:
        raise typer.BadParameter("give one of --model, --shapes and --versus")
    if (fused and model is None) or (tokens and model is None and shapes is None):
        raise typer.BadParameter("--tokens and --fused go with --model, --tokens with --shapes too")
    if cpu_tops is not None and versus is None:
        raise typer.BadParameter("--cpu-tops goes with --versus cpu")


def _check_split(split: str | None, switch: float | None, model: str | None) -> None:
    if split is not None and model is None:
        raise typer.BadParameter("--split goes with --model")
    if split not in (None, *RULES):
        raise typer.BadParameter(f"--split {clip(repr(split))}: choose {', '.join(RULES)}")
    if switch is not None and split is None:
        raise typer.BadParameter("--switch goes with --split")


Where = tuple[Device, Timing]
"""A product, and its constants in a power mode and with a way in which runs are handed over."""


def _spec(design: Path, device: str, power: str | None, dispatch: str) -> tuple[Spec, Where]:
    """The spec of a file and its product, or those of which the design in a folder was built."""
    if not design.is_dir():
        return load_spec(design), _where(device, power, dispatch)
    manifest = BuiltDesign.load(design).manifest
    check_product(design, manifest.device, device)
    return plan_of(manifest, design).spec, _where(manifest.device, power, dispatch)


def _where(device: str, power: str | None, dispatch: str) -> Where:
    product = device_named(device)
    return product, timing_in(timing_of(product), product.name, power=power, dispatch=dispatch)


def _modelled(spec: GemmSpec, where: Where, kernel: str, rate: float | None) -> Modelled:
    """How a problem is modelled on a design; refused are options and sizes that it cannot have."""
    basis, (product, timing) = basis_named(kernel), where
    if rate is not None and basis != "fitted":
        raise typer.BadParameter(f"--rate and --kernel {kernel} exclude each other; give one")
    plan = plan_gemm(spec, product)
    check_rate(rate, product)

    def modelled(problem: GemmProblem) -> Estimate:
        plan.check(problem)
        case = case_of(spec, product, problem, core_macs_per_cycle=rate)
        return estimate(case, timing=timing, kernel=None if basis == "fitted" else kernel_on(plan, case, basis))

    return modelled


def _operators(where: Where, kernel: str) -> Timed:
    """How a model's operators are timed, by designs of their own."""
    return operators_on(*where, lambda spec: _modelled(spec, where, kernel, None))


def _operator(spec: Spec, path: Path, shapes: list[str] | None, where: Where, as_json: bool) -> None:
    """Estimates of any operator, by what its runs cost."""
    product, timing = where
    if isinstance(spec, ComposedSpec):
        _composition(BuiltDesign.load(path), shapes, timing, as_json)
        return
    planned = plan(spec, product)
    chosen = problems_of(operator_of(spec), shapes) or planned.problems
    found = [(problem.sizes, cost_estimate(planned, problem, timing)) for problem in chosen]
    _tell(spec, path, where, found, as_json)


def _composition(built: BuiltDesign, shapes: list[str] | None, timing: Timing, as_json: bool) -> None:
    """The steps of each problem of a built composition, and all of them in one command."""
    plan = plan_of(built.manifest, built.folder)
    assert isinstance(plan, ComposedPlan)
    chosen = problems_of(operator_of(plan.spec), shapes) or plan.problems
    found = [ModelledComposition.of(plan, each, built.sequence(each.sizes), timing) for each in chosen]
    load = _load(built.folder, timing)
    if as_json:
        ModelledDesign(design=plan.spec.name, device=plan.device.name, problems=[*found], load=load).print()
        return
    for problem, one in zip(chosen, found, strict=True):
        _print_composition(f"{plan.summary}, {problem}: modelled", one)
    _print_load(load)


def _print_composition(title: str, found: ModelledComposition) -> None:
    table = new_table(title, "=step", "design", "problem", ">us", "bound", ">change, us")
    for step in found.steps:
        shown = (f"{step.time_us:.0f}", step.bound) if step.design else ("", "")
        table.add_row(step.name, step.design, step.problem, *shown, f"{step.change_us:.0f}")
    steps, changes = sum(step.time_us for step in found.steps), sum(step.change_us for step in found.steps)
    total = f"{steps + changes + found.dispatch_us:.0f} us: steps {steps:.0f}, changes {changes:.0f}"
    further = f"{found.further_us:.1f} instead as a further command of a list"
    put(screen(), table, f"{total}, one dispatch {found.dispatch_us:.0f} ({further})")


def _tell(
    spec: Spec, path: Path, where: Where, found: Sequence[tuple[Mapping[str, int], Estimate | CostEstimate]],
    as_json: bool,
) -> None:  # fmt: skip
    """Estimates of problems by their sizes; FileError where a design has none, nor any were given."""
    if not found:
        raise FileError(f"{path}: has no problems; give one with --shape {'x'.join(operator_of(spec).axes)}")
    (product, timing), told = where, [ModelledProblem.of(sizes, one) for sizes, one in found]
    load = _load(path, timing)
    if as_json:
        ModelledDesign(design=spec.name, device=product.name, problems=[*told], load=load).print()
        return
    put(screen(), *(report(one) if isinstance(one, Estimate) else cost_report(one) for _, one in found))
    _print_load(load)


def _load(path: Path, timing: Timing) -> ModelledLoad | None:
    """What loading a built design takes; None where cores lack machine code, so that bytes are missing."""
    if not path.is_dir():
        return None
    built = BuiltDesign.load(path)
    made = built.manifest.toolchain
    if "xclbin" not in built.manifest.files or (made is not None and made.host_cores):
        return None
    found = load_times(read_bytes(built.image("xclbin"), BuildError), timing)
    return ModelledLoad(**asdict(found))


def _print_load(load: ModelledLoad | None) -> None:
    if load is None:
        return
    least = f"{CONTEXT_NS / 1e6:.1f} to " if load.cdo_bytes >= FITTED_BYTES.stop else ""
    cdo, packets = (f"{size / 1e3:.0f} KB" for size in (load.cdo_bytes, load.packet_bytes))
    say(
        f"loading it, modelled with low confidence: {least}{load.pdi_us / 1e3:.1f} ms as a PDI of {cdo}; "
        f"{load.writes_us:.0f} us by register writes; {load.packets_us:.0f} us by {packets} of control packets through "
        "one stream"
    )
