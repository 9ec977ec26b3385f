"""docs/training.md, made from the models of time and from what others published of training on Phoenix."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from bdforge.devices import device_named
from bdforge.operators import load_spec
from bdforge.operators.gemm import GemmProblem, GemmSpec
from bdforge.operators.gemm.spec import Layouts, TileSizes
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.copies import run_as
from bdforge.perf.bounds.estimate import Estimate, estimate
from bdforge.perf.bounds.layers import Layers, layers
from bdforge.perf.bounds.models import GPT2_TRAIN
from bdforge.perf.tune.shapes import shapes
from tools.docs.markdown import prose, section, table

SPEC = Path(__file__).resolve().parents[2] / "designs" / "gemm_bf16_bf16_f32_64x64x32.toml"
TEXT_FILE = Path(__file__).with_name("training_text.md")
PAPER = {"256x768x50304": "4.2 (its best)", "256x768x2304": "1.8 (its least)"}
"""How much faster than the processor Roesti and Franz measured a size (Ryzen 9 7940HS), where their text says."""
LAYOUTS = (Layouts("row", "column", "row"), Layouts("row", "row", "row"), Layouts("column", "row", "row"))


@cache
def designs() -> dict[str, tuple[str, GemmSpec]]:
    """Products and specs by what the page calls them: the published tile, and what `bdforge tune` finds."""
    spec = load_spec(SPEC)
    assert isinstance(spec, GemmSpec)
    tuned = replace(spec, tile=TileSizes(64, 128, 64), buffers=replace(spec.buffers, k_mt=128, rho=4))
    wide = replace(
        spec, array=None, columns=8, tile=TileSizes(64, 64, 96),
        buffers=replace(spec.buffers, k_mt=128, rho=2, a_shims=2),
    )  # fmt: skip
    return {
        "Phoenix, published 64x64x32": ("phoenix", spec),
        "Phoenix, 64x128x64": ("phoenix", tuned),
        "Strix Halo, 64x64x96": ("strix_halo", wide),
    }


def modelled_on(product: str, spec: GemmSpec, problem: GemmProblem) -> Estimate:
    """A size on a design."""
    return estimate(case_of(spec, device_named(product), problem))


def step(product: str, spec: GemmSpec) -> Layers:
    """A step of training."""
    return layers(GPT2_TRAIN, 256, (), lambda problem: modelled_on(product, spec, problem))


def size_lines() -> Iterator[tuple[str, ...]]:
    """The twelve sizes, each with its time in a step on every design."""
    for problem, count in shapes(GPT2_TRAIN.name):
        found = [modelled_on(product, spec, problem) for product, spec in designs().values()]
        whole = found[0].case.padded
        yield (
            str(problem), str(count), problem.name, *(f"{count * each.time_us / 1e3:.1f}" for each in found),
            "x".join(map(str, whole)) if whole != tuple(problem.sizes.values()) else "",
            PAPER.get(str(problem), ""),
        )  # fmt: skip
    totals = [found.ms("NPU") for found in (step(*design) for design in designs().values())]
    yield ("together", "147", "dX and dW in one submission", *(f"{total:.1f}" for total in totals), "", "")


def step_lines() -> Iterator[tuple[str, ...]]:
    """A step as a whole on every design."""
    for name, design in designs().items():
        found = step(*design)
        (low, high), (least, most) = found.range_ms, found.joules
        dispatch = sum(part.dispatch_ms for part in found.parts)
        yield (
            name, f"{found.ms('NPU'):.0f}", f"{found.submissions}, {dispatch:.0f}", f"{found.ms('CPU'):.0f}",
            f"{found.ms():.0f} ({low:.0f} to {high:.0f})", f"{least:.0f} to {most:.0f}",
        )  # fmt: skip


def layout_lines() -> Iterator[tuple[str, ...]]:
    """What one design of each layout leaves to the host."""
    product, spec = designs()["Phoenix, published 64x64x32"]
    for layouts in LAYOUTS:
        other = replace(spec, layouts=layouts)
        turned = [_turned(product, other, first) for first in (0, 5, 6)]
        found = step(product, other)
        copied = sum(part.ms for part in found.parts if part.operator.endswith(", transposed"))
        names = f"{layouts.a}, {layouts.b}, {layouts.c}"
        yield (names, *turned, f"{copied:.0f}", f"{found.ms('NPU'):.0f}", f"{found.ms():.0f}")


def _turned(product: str, spec: GemmSpec, index: int) -> str:
    linear = GPT2_TRAIN.linears[index]
    given = {0: ("X", "W", "Y"), 5: ("dY", "W", "dX"), 6: ("dY", "X", "dW")}[index]
    names = dict[str, str](zip("ABC", given, strict=True))
    _, copies = run_as(
        linear, GemmProblem(linear.M, linear.K, linear.N), lambda problem: modelled_on(product, spec, problem)
    )
    return ", ".join(names[copy.operand] for copy in copies if copy.what.endswith(", transposed")) or "nothing"


_SIZES = (
    "All times are *modelled*, for all runs of a step together, dispatch included, on designs with column-major B. "
    "On Phoenix only the vocabulary needs padding, as it did there, and matrices of 256 rows are one "
    "panel: the whole of B passes once, and DRAM decides. GEMMs were measured 3.1 times as fast as the "
    "processor forward and 2.8 times backward by Roesti and Franz (Ryzen 9 7940HS), whose times are in "
    "pictures only; the last column has the sizes that their text names."
)
_BENCH = "On an NPU this times all of them, each as often as a step has it:"
_STEP = (
    "GEMMs, and the host's copies: floats to bf16 on all cores, transposed where the design's layout asks for "
    "it, and results added to gradients. The processor's other operators (attention, norms, GELU, the "
    "optimiser) are not in here. Energy is that time by the published power of the whole package "
    "(bdforge/devices/hosts.py): modelled, too. With the array, Roesti and Franz measured a whole step 1.7 "
    "times as fast on mains, 1.2 times on battery, and 1.4 times the work for each joule."
)
_LAYOUTS = (
    "What a design of each layout leaves to be transposed for the layer of q, k and v, the published tile on "
    "Phoenix. A product is computed as itself or as its transpose, whichever turns less. No layout serves all "
    "three products; three designs in turn would turn nothing, but switching the array's configuration takes "
    "some milliseconds, as long as several of these products."
)


def bench() -> str:
    """The command that times a step's sizes on an NPU."""
    sizes = ",".join(f"{problem}*{count}" for problem, count in shapes(GPT2_TRAIN.name))
    return f"```sh\nbdforge-run -x DESIGN.xclbin --energy --shapes {sizes}\n```\n"


def page() -> str:
    """The page."""
    columns = [f"{name}: ms" for name in designs()]
    sizes = table(("M x K x N", "times", "is", *columns, "padded to", "published: times the CPU"), size_lines())
    whole = table(("design", "GEMMs, ms", "dispatches, ms", "copies, ms", "together, ms", "J"), step_lines())
    head = ("A, B, C", "forward turns", "dX turns", "dW turns", "turning, ms", "GEMMs, ms", "together, ms")
    return "\n".join([
        TEXT_FILE.read_text(encoding="utf-8"),
        section("The twelve sizes", prose(_SIZES), sizes, prose(_BENCH), bench()),
        section("A step", prose(_STEP), whole),
        section("Layouts", prose(_LAYOUTS), table(head, layout_lines())),
    ])  # fmt: skip
