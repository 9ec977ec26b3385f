"""`bdforge estimate`: modelled speed of designs and of tables of measurements."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bdforge.cli_files import FileError, named, new_file, read_text
from bdforge.devices import DEVICES, Device, device_named
from bdforge.devices.timing import PEAK_MACS
from bdforge.perf import GemmCase, KernelCycles, PerfError, estimate, estimate_table
from bdforge.perf.accuracy import accuracy
from bdforge.perf.designs import case_of
from bdforge.perf.kernel_schedule import ScheduleError
from bdforge.perf.report import report
from bdforge.perf.tune_kernel import kernel_of
from bdforge.plan import Problem, load_spec, plan_gemm
from bdforge.plan.staging import check_problem

app = typer.Typer()
KERNELS = ("fitted", "schedule")


@app.command(name="estimate")
def estimate_command(
    design: Annotated[Path | None, typer.Argument(help="Design spec, such as designs/gemm_i8_i2_bitnet.toml.")] = None,
    m: Annotated[int | None, typer.Option("-M", min=1, help="Rows of A and C.")] = None,
    k: Annotated[int | None, typer.Option("-K", min=1, help="Depth.")] = None,
    n: Annotated[int | None, typer.Option("-N", min=1, help="Columns of B and C.")] = None,
    device: Annotated[str, typer.Option(help=f"One of {', '.join(DEVICES)}.")] = "strix_halo",
    kernel: Annotated[
        str, typer.Option(help="Kernel's cycles: `fitted` to published rates, or our ideal `schedule`.")
    ] = "fitted",
    rate: Annotated[float | None, typer.Option(min=0.1, help="Kernel's MACs per cycle, when known.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Table with the columns of measured_gemm.csv instead.")] = None,
    out: Annotated[Path | None, typer.Option(help="New file for the table with modelled columns.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite that file.")] = False,
    with_accuracy: Annotated[bool, typer.Option("--accuracy", help="Print docs/accuracy.md.")] = False,
) -> None:
    """Model the speed of a GEMM design, or of every row of a table, and name the bound that binds."""
    if with_accuracy:
        typer.echo(accuracy(), nl=False)
        return
    if csv is not None and design is not None:
        raise typer.BadParameter("name either a design or a table, not both")
    if csv is not None:
        if any((m, k, n, rate)) or kernel != KERNELS[0]:
            raise typer.BadParameter("-M, -K, -N, --rate and --kernel go with a design; a table has columns for them")
        _table(csv, out, force)
    elif design is not None:
        if out is not None or force:
            raise typer.BadParameter("--out and --force go with --csv; a design's estimate is printed")
        _design(design, (m, k, n), device, kernel, rate)
    else:
        raise typer.BadParameter("name a design, or a table with --csv")


def _table(csv: Path, out: Path | None, force: bool) -> None:
    if out is not None and not force:
        new_file(out)
    text = estimate_table(read_text(csv), str(csv))
    if out is None:
        typer.echo(text, nl=False)
        return
    with named(out, "written"):
        out.write_text(text, encoding="utf-8")
    typer.echo(f"wrote {out}: {text.count(chr(10)) - 1} rows, modelled")


def _design(
    path: Path, sizes: tuple[int | None, int | None, int | None], device: str, kernel: str, rate: float | None
) -> None:
    if kernel not in KERNELS:
        raise typer.BadParameter(f"{kernel!r} is not one of {', '.join(KERNELS)}", param_hint="--kernel")
    if rate is not None and kernel != KERNELS[0]:
        raise typer.BadParameter(f"--rate and --kernel {kernel} exclude each other; give one")
    spec = load_spec(path)
    plan = plan_gemm(spec, device_named(device))
    _check_rate(rate, plan.device)
    M, K, N = sizes
    if any(sizes) and not (M and K and N):
        raise typer.BadParameter("give all of -M, -K and -N, or none for the design's problems")
    problems = [Problem(M, K, N)] if M and K and N else list(spec.problems)
    if not problems:
        raise FileError(f"{path}: has no problems; give -M, -K and -N")
    for problem in problems:
        check_problem(plan, problem)
    for problem in problems:
        case = case_of(spec, plan.device, problem, core_macs_per_cycle=rate)
        found = estimate(case, kernel=_scheduled(case) if kernel == "schedule" else None)
        Console(highlight=False, soft_wrap=True).print(report(found))


def _check_rate(rate: float | None, device: Device) -> None:
    most = max(PEAK_MACS[device.generation.name].values())
    if rate is not None and rate > most:
        raise typer.BadParameter(
            f"--rate {rate:g} is more than the {most} MACs per cycle that a core of {device.name} does at most"
        )


def _scheduled(case: GemmCase) -> KernelCycles:
    try:
        return kernel_of(case, "ideal")
    except ScheduleError as error:
        raise PerfError(f"{error}; or estimate with --kernel fitted") from None
