"""Whole models: the products of a step of training, and what rounding to bfloat16 does to one of them."""

from dataclasses import dataclass
from functools import cache
from statistics import fmean

import numpy as np

from bdforge.array.emulator import emulate
from bdforge.common.tree import tree
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.devices import device_named
from bdforge.devices.types import TYPES
from bdforge.operators import render
from bdforge.operators.gemm import GemmProblem, load_spec, plan_gemm
from bdforge.perf.assembled.counted_core import core_elfs
from bdforge.perf.bounds.case import GemmCase, case_of
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.bounds.layers import Layers, layers
from bdforge.perf.prompts import prompt_of
from bdforge.perf.reproduce.entries import Fields
from bdforge.perf.reproduce.quantity import Producer, Quantity
from bdforge.perf.tune.shapes import WHOLE, Weighted, shapes

_SEED, _ROWS = 3, 64  # of the product that is rounded; more rows tell nothing more
_ROUNDED_BY = "gemm_bf16_bf16_f32_64x64x64"


@dataclass(frozen=True, slots=True)
class ModelProducts:
    """Products of a model on one design, each as often as it is run, and what its host does around all of them."""

    cases: tuple[tuple[GemmCase, int], ...]
    whole: Layers

    @property
    def first_times(self) -> float:
        """Mean over the sizes: a load of another configuration and the product, over the product on the loaded one."""
        times = [(estimate(case).time_us, case.timing.reconfiguration_ns / 1e3) for case, _ in self.cases]
        return fmean((us + load) / us for us, load in times)

    @property
    def padded(self) -> int:
        """The longest padded axis of any that is padded."""
        axes = (pair for case, _ in self.cases for pair in zip(case.padded, (case.M, case.K, case.N), strict=True))
        return max(ours for ours, wanted in axes if ours > wanted)

    @property
    def products_ms(self) -> float:
        """Without what each submission takes."""
        return sum(count * (estimate(case).time_us - case.timing.dispatch_ns / 1e3) for case, count in self.cases) / 1e3

    def copies_ms(self, *, turned: bool) -> float:
        """Of the host's copies into and out of buffers, those that transpose or the others."""
        found = (part for part in self.whole.parts if part.where == "CPU")
        return sum(part.ms for part in found if part.operator.endswith(", transposed") == turned)

    @property
    def dispatch_ms(self) -> float:
        return sum(part.dispatch_ms for part in self.whole.parts)


def _products(fields: Fields) -> ModelProducts:
    """Of a `model` on a `design`, all of them, or those of one size MxKxN, `only`."""
    spec, device = load_spec(tree() / "designs" / f"{fields['design']}.toml"), device_named(fields["device"])
    weighted: tuple[Weighted, ...] = shapes(fields["model"])
    chosen = [(problem, count) for problem, count in weighted if fields.get("only", str(problem)) == str(problem)]
    whole = _whole(fields["model"], fields["design"], fields["device"])
    return ModelProducts(tuple((case_of(spec, device, problem), count) for problem, count in chosen), whole)


@cache
def _whole(model: str, design: str, device: str) -> Layers:
    spec, array = load_spec(tree() / "designs" / f"{design}.toml"), device_named(device)
    known = WHOLE[model]
    rows = known.linears[0].M
    return layers(known, rows, (), lambda problem: estimate(case_of(spec, array, problem)))


PRODUCTS = Producer(
    _products,
    {
        "sizes": Quantity("sizes", "counted", lambda made: len(made.cases)),
        "gflop": Quantity("GFLOP", "counted", lambda made: sum(2 * case.macs * n for case, n in made.cases) / 1e9),
        "padded": Quantity("elements", "counted", lambda made: made.padded),
        "products_ms": Quantity("ms", "modelled", lambda made: made.products_ms),
        "copies_ms": Quantity("ms", "modelled", lambda made: made.copies_ms(turned=False)),
        "turns_ms": Quantity("ms", "modelled", lambda made: made.copies_ms(turned=True)),
        "dispatch_ms": Quantity("ms", "modelled", lambda made: made.dispatch_ms),
        "step_ms": Quantity("ms", "modelled", lambda made: made.whole.ms()),
        "joules": Quantity("J", "modelled", lambda made: fmean(made.whole.joules)),
        "first_times": Quantity("x loaded", "modelled", lambda made: made.first_times),
    },
)


PROMPTS = Producer(
    prompt_of,
    {"ms": Quantity("ms", "modelled", lambda prompt: prompt.modelled_ms())},
    lambda prompt: f"{prompt.model}, {prompt.tokens} tokens",
)
"""Prompts of others' whole models."""


def _problem(fields: Fields) -> GemmProblem:
    M, K, N = (int(size) for size in fields["sizes"].split("x"))
    return GemmProblem(M, K, N)


def _normal(problem: GemmProblem, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Operands of so many rows and columns of a product, of normal numbers."""
    rng = np.random.default_rng(_SEED)
    return rng.standard_normal((rows, problem.K)), rng.standard_normal((problem.K, columns))


def _divergence_percent(problem: GemmProblem) -> float:
    """Operands rounded to bfloat16, sums exact."""
    a, b = _normal(problem, min(problem.M, _ROWS), problem.N)
    rounded = [matrix.astype(TYPES["bf16"].dtype).astype(np.float64) for matrix in (a, b)]
    return _percent(rounded[0] @ rounded[1], a @ b)


def _emulated_percent(problem: GemmProblem) -> float:
    """A tile of C in every core of Phoenix, by machine code: sums in f32, in the order of the kernel."""
    spec = load_spec(tree() / "designs" / f"{_ROUNDED_BY}.toml")
    plan = plan_gemm(spec, device_named("phoenix"))
    tiles = GemmProblem(spec.tile.m * spec.rows, problem.K, spec.tile.n * spec.columns)
    a, b = _normal(problem, tiles.M, tiles.N)
    inputs = {name: matrix.astype(TYPES["bf16"].dtype) for name, matrix in (("A", a), ("B", b))}
    text, sequence = render(plan, [tiles]), plan.sequence(tiles)
    buffers = arguments(sequence, placed(sequence, inputs))
    emulate(text, buffers, elfs=core_elfs(plan, text), sequence=tiles.sequence)
    return _percent(fetched(sequence, buffers)["C"].astype(np.float64), a @ b)


def _percent(found: np.ndarray, exact: np.ndarray) -> float:
    """Mean of |difference| over mean of |result|."""
    return 100 * float(np.abs(found - exact).mean() / np.abs(exact).mean())


ROUNDINGS = Producer(
    _problem,
    {"divergence_percent": Quantity("%", "counted", _divergence_percent, _emulated_percent)},
)
