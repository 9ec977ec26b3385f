"""Options that several commands share, so that each word means the same everywhere; what they write, and warn of."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bdforge.array.emulator.scheduler import MOST_STEPS
from bdforge.array.emulator.strictness import CAUTIONS, CHECKS, HABITS, NAMES
from bdforge.common.files import new_file, write_whole
from bdforge.common.messages import InputError, clip, listed
from bdforge.common.pictures import new_picture
from bdforge.common.screen import say, say_prose
from bdforge.common.task_runners import in_processes, on_cluster
from bdforge.common.tasks import Workers, kept_results
from bdforge.devices import DEVICES, Device
from bdforge.devices.types import ORDERS, PEAK_MACS, Order, order_named
from bdforge.operators import DATA, Operator, Problem
from bdforge.operators.gemm import AXES, GemmProblem

LARGE = (1 << 63) - 1
"""Of counts and seeds that nothing else bounds."""
SIZE_MAX = 10**9
"""Of sizes and counts that something is made or repeated of."""
_LISTED = re.compile(r"-?\d{1,19}", re.ASCII)


def number(meaning: str, *names: str, least: float = 0, most: float = SIZE_MAX) -> Any:
    """An option for a number from `least` to `most`; named as its parameter is, without `names`."""
    return typer.Option(*names, min=least, max=most, help=meaning, callback=_finite)


def _finite(value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is no number")
    return value


def whole_numbers(text: str, option: str, least: int, most: int = SIZE_MAX) -> list[int]:
    """Numbers of a list with commas; a usage error for others, and for those outside of `least` to `most`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(_LISTED.fullmatch(part) and least <= int(part) <= most for part in parts):
        raise typer.BadParameter(
            f"{clip(repr(text))}: give whole numbers from {least} to {most}, with commas", param_hint=option
        )
    return [int(part) for part in parts]


def _data(kind: str) -> str:
    if kind not in DATA:
        raise typer.BadParameter(f"{clip(repr(kind))}: choose {', '.join(DATA)}")
    return kind


app = typer.Typer()
_SHAPE = re.compile(r"\s*\d{1,18}\s*(?:[x,]\s*\d{1,18}\s*)*", re.IGNORECASE | re.ASCII)
_WHOLE = re.compile(r"(\d{1,19})(?:[eE]\+?(\d{1,2}))?", re.ASCII)
_COUNTS = ("", "one positive number", "two positive numbers", "three positive numbers")
_EXAMPLE = (256, 2560, 640)

SpecFile = Annotated[Path, typer.Argument(help="Design spec, such as designs/gemm_i8_i2_bitnet.toml.")]
SpecOption = Annotated[Path, typer.Option("--design", help="Design spec, such as designs/gemm_i8_i2_bitnet.toml.")]
SequenceName = Annotated[str | None, typer.Option("--sequence", help="Runtime sequence, when there are several.")]
Types = Annotated[str, typer.Option(help="Types of A, B, C and, if need be, the accumulator.")]
Shapes = Annotated[
    list[str] | None,
    typer.Option("--shape", help="Sizes (a GEMM's MxKxN) instead of the design's problems; repeatable."),
]
Shape = Annotated[str | None, typer.Option(help="MxKxN instead of the design's problems.")]
Tokens = Annotated[int | None, number("Tokens of a model, which are M of its layers.", least=1)]
Rate = Annotated[float | None, number("Kernel's MACs per cycle, when known.", least=0.1)]
BLayout = Annotated[str, typer.Option("--b-layout", help=f"Layout of B in DRAM: {', '.join(ORDERS)}.")]
Layouts = Annotated[str, typer.Option("--layouts", help=f"Layouts of B, with commas: {', '.join(ORDERS)}.")]
DEFAULT_PRODUCT = "strix_halo"


def completing(names: Iterable[str]) -> Callable[[str], list[str]]:
    """What shells offer for an option or argument of these `names`."""
    known = tuple(names)
    return lambda incomplete: [name for name in known if name.startswith(incomplete)]


ProductName = Annotated[
    str, typer.Option("--device", help=f"One of {', '.join(DEVICES)}.", autocompletion=completing(DEVICES))
]
Module = Annotated[str | None, typer.Option("--module", help="aie.device of the file, when it holds several.")]
Kernel = Annotated[
    str,
    typer.Option(
        help="Whose kernel cycles: `fitted` to published rates, our loops as `compiled` ones were measured or as their "
        "`ideal` schedule, or `assembled` ones counted."
    ),
]
Wait = Annotated[str | None, typer.Option(help="How runs wait: column or wide; the design's way without.")]
InFlight = Annotated[int | None, number("Steps at a time, 1 to 4 (wide: 1); 0 takes the most.", most=4)]
Seed = Annotated[
    int,
    number("Seed of what is random: a run's data, a schedule, or what is drawn.", most=LARGE),
]
Data = Annotated[
    str,
    typer.Option(help=f"What inputs are: {', '.join(DATA)}.", callback=_data),
]
Tensors = Annotated[
    list[str] | None, typer.Option("--tensor", help="Tensors of the file of weights, fused along N; repeatable.")
]
Poison = Annotated[
    bool,
    typer.Option(
        "--poison", help="Reading memory that nobody wrote is an error, and writing beside a kernel's arguments."
    ),
]
Jobs = Annotated[int, number("Processes.", "-j", least=1, most=256)]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Address of a Dask scheduler whose workers do it instead, such as tcp://host:8786."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object instead of lines.")]
Insts = Annotated[
    Path | None, typer.Option(help="Instruction words to run, instead of the sequence where a text has one.")
]
Timing = Annotated[bool, typer.Option("--timing", help="Time the run (emulated) and tell where it goes.")]


def workers_of(jobs: int, scheduler: str | None, own: bool = True) -> Workers:
    """Who does a command's tasks: those of -j or --scheduler.

    Results are kept in the cache where bdforge's `own` code decides them: of others' nobody knows when it changes.
    """
    if scheduler is not None and jobs != 1:
        raise typer.BadParameter("-j and --scheduler go each without the other", param_hint="--scheduler")
    run = in_processes(jobs) if scheduler is None else on_cluster(scheduler)
    return Workers(run, kept_results() if own else None)


def check_rate(rate: float | None, device: Device) -> None:
    most = max(PEAK_MACS[device.generation.name].values())
    if rate is not None and rate > most:
        raise typer.BadParameter(
            f"--rate {rate:g} is more than the {most} MACs per cycle that a core of {device.name} does at most"
        )


def whole_number(text: str | int) -> int:
    """A number from 0 on as options take it, 200000000 or 2e8, or as their default; a usage error for what is none."""
    match = _WHOLE.fullmatch(str(text))
    number = 0 if match is None else int(match[1]) * 10 ** int(match[2] or 0)
    if match is None or number > MOST_STEPS:
        raise typer.BadParameter(
            f"{clip(str(text))!r} is not a whole number such as 2000 or 2e3, {MOST_STEPS:.0e} at most"
        )
    return number


Budget = Annotated[
    int,
    typer.Option(parser=whole_number, metavar="STEPS", help="Of a run, and bundles of each core, at most; also 1e12."),
]


def sizes(text: str, axes: Sequence[str] = AXES) -> tuple[int, ...]:
    """The sizes of `MxKxN` (or `M,K,N`), as an operator's axes are; a usage error otherwise."""
    if not axes:
        raise typer.BadParameter(f"{clip(text)!r}: the design is of one size; [sequence] and [[operand]] make it any")
    found = tuple(map(int, re.split("[xX,]", text))) if _SHAPE.fullmatch(text) else ()
    if len(found) != len(axes) or min(found) < 1:
        example = "x".join(map(str, _EXAMPLE[: len(axes)]))
        raise typer.BadParameter(f"{clip(text)!r} is not {'x'.join(axes)}, {_COUNTS[len(axes)]} such as {example}")
    return found


def problem(text: str) -> GemmProblem:
    M, K, N = sizes(text)
    return GemmProblem(M, K, N)


def problems_of(operator: Operator, texts: list[str] | None) -> list[Problem]:
    """Those of a repeatable --shape for an operator, none without."""
    return [operator.problem(sizes(text, operator.axes)) for text in texts or []]


def problems(texts: list[str] | None) -> list[GemmProblem]:
    """Those of a repeatable --shape, none without."""
    return [problem(text) for text in texts or []]


def layouts(text: str) -> tuple[Order, ...]:
    """Those of --layouts, each once; TypeNameError for what is none."""
    return tuple(dict.fromkeys(order_named(name) for name in text.split(",")))


def new_path(meaning: str, *names: str, judge: Callable[[Path, bool], object] = new_file) -> Any:
    """An option for a file that a command writes in the end: `judge` refuses what cannot be before anything is done."""

    def judged(ctx: typer.Context, value: Path | None) -> Path | None:
        if value is not None:
            judge(value, ctx.params.get("force", False))
        return value

    return typer.Option(*names, help=meaning, callback=judged)


def new_drawing(error: type[InputError], *names: str) -> Any:
    """An option for a picture; `error` for a file that is none."""
    meaning = "New picture: a .png or .svg file."
    return new_path(meaning, *names, judge=lambda path, force: new_picture(path, force, error))


Out = Annotated[Path | None, new_path("New file to write; without it, the screen.", "--out", "-o")]
OutFile = Annotated[Path, new_path("New file to write.", "--out", "-o")]
Html = Annotated[
    Path | None,
    new_path(
        "New page of the design, for a browser: one file, with its text, checks, memory, streams and BDs.", "--html"
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.", is_eager=True)]


def write(path: Path, content: str | bytes, force: bool, what: str = "") -> None:
    """Write a new file whole or not at all, and say so; `what` is in it. FileError where one is that stays."""
    write_whole(new_file(path, force), content)
    say(f"wrote {path}{what}")


def print_or_write(text: str, out: Path | None, force: bool, what: str = "") -> None:
    """Text to the screen, or to the file `out`."""
    if out is None:
        say(text, nl=False)
    else:
        write(out, text, force, what)


Permissive = Annotated[
    list[str] | None,
    typer.Option(
        "--permissive",
        help="Switch a check off by its name (`bdforge checks` lists them); repeatable.",
        autocompletion=completing(NAMES),
    ),
]


def print_warnings(warnings: Iterable[str]) -> None:
    """Warnings, one a line, apart from what the command prints: the first ten, then how many more."""
    if found := [f"warning: {warning}" for warning in warnings]:
        say(listed(found, "\n"), err=True)


@app.command()
def checks() -> None:
    """List what --permissive switches off: errors first, then warnings, then what silicon does."""
    for what, names in (("error", CHECKS), ("warning", CAUTIONS), ("as silicon", HABITS)):
        for name, meaning in names.items():
            say_prose(f"{name} ({what}): {meaning}")
