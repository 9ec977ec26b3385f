"""Time of a whole model: its GEMMs on one loaded design, its other operators on the CPU, or by designs of their own on
the array, too. Everything is modelled.

GEMMs and CPU operators follow one another, or overlap as micro-batches of `bdforge.models` do: the array and the CPU
each do one thing at a time, in turn for one micro-batch and the next. A design serves all sizes of a model, so no
configuration is switched between GEMMs; between operators of different designs one is (`Layers.changes`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bdforge.common.files import csv_text
from bdforge.devices.hosts import Host, host_named
from bdforge.devices.types import TYPES
from bdforge.operators.gemm import GemmProblem
from bdforge.perf.bounds.array_operators import OperatorTime
from bdforge.perf.bounds.copies import Modelled, run_as
from bdforge.perf.bounds.estimate import INTERVAL
from bdforge.perf.bounds.models import ATTENTION, SCALING, SYNCHRONISING, Linear, Model
from bdforge.perf.bounds.part_times import OperatorSplit, split_parts


@dataclass(frozen=True, slots=True)
class Layers:
    """A model's parts, and what each fusion that was not made would save (milliseconds).

    `overlapped_ms`: with two micro-batches, None where it is not known what follows what. `changes` of the array's
    configuration between operators, and what they are counted with.
    """

    model: Model
    tokens: int
    parts: tuple[OperatorTime, ...]
    savings: dict[str, float]
    host: Host
    overlapped_ms: float | None = None
    changes: int = 0
    switch_ms: float = 0.0

    def ms(self, where: str | None = None) -> float:
        """Milliseconds of all parts, or of those on the NPU or the CPU; changes of configuration are the NPU's."""
        changes = self.changes * self.switch_ms if where != "CPU" else 0.0
        return sum(part.ms for part in self.parts if where in (None, part.where)) + changes

    @property
    def joules(self) -> tuple[float, float]:
        """Energy of the whole package in that time, at the lowest and the highest published power under load."""
        low, high = self.host.watts
        return low * self.ms() / 1e3, high * self.ms() / 1e3

    @property
    def submissions(self) -> int:
        """How often the array is handed work."""
        return sum(part.submissions for part in self.parts)

    @property
    def range_ms(self) -> tuple[float, float]:
        """Milliseconds between which four in five such estimates lie: the NPU's range, the CPU as measured."""
        npu, cpu = self.ms("NPU"), self.ms("CPU")
        return cpu + npu * INTERVAL[0], cpu + npu * INTERVAL[1]


def layers(
    model: Model, tokens: int, fusions: Iterable[str], modelled: Modelled, split: OperatorSplit | None = None
) -> Layers:
    """The parts of `model` for so many tokens on a design; without `split` all but GEMMs is the CPU's.

    Errors as of `fused`, and of `split.timed`.
    """
    made = tuple(fusions)
    npu = _npu(model, tokens, made, modelled)
    case = modelled(_problem(model.linears[0], tokens)).case
    c, host = case.c, host_named(case.device)
    cpu = [OperatorTime(name, "CPU", 1, model.cpu_ms(name, tokens) * _of_results(name, c)) for name in model.cpu]
    copied = _copied(model, tokens, modelled, host)
    total = sum(part.ms for part in npu)
    savings = {
        name: total - sum(part.ms for part in _npu(model, tokens, (*made, name), modelled))
        for name in model.fusions
        if name not in made
    }
    if split is not None and model.stages:
        parts, changes = split_parts(model, tokens, npu, cpu, split)
        return Layers(model, tokens, (*parts, *copied), savings, host, None, changes, split.switch_ms)
    overlapped = None
    if model.stages and tokens > 1:
        halves = _npu(model, -(-tokens // 2), made, modelled)
        overlapped = overlapped_ms(model, halves, [*cpu, *copied], 2)
    return Layers(model, tokens, (*npu, *cpu, *copied), savings, host, overlapped)


def _copied(model: Model, tokens: int, modelled: Modelled, host: Host) -> list[OperatorTime]:
    """What the host copies in and out, by kind."""
    made: dict[str, list[float]] = {}
    for linear in model.linears:
        for copy in run_as(linear, _problem(linear, tokens), modelled)[1]:
            made.setdefault(copy.what, []).extend([copy.ms(host)] * linear.count)
    return [OperatorTime(what, "CPU", len(times), sum(times)) for what, times in sorted(made.items())]


def overlapped_ms(model: Model, npu: Sequence[OperatorTime], cpu: Sequence[OperatorTime], micro_batches: int) -> float:
    """Milliseconds of all layers for micro-batches in turn: `npu` are the products of one, `cpu` is of all tokens.

    Each waits for the results of its products, does the CPU's work of a stage and hands over the next products; the
    array takes products in that order. Of attention, which looks back, later ones have more.
    """
    layers = max(linear.count for linear in model.linears)
    work = {part.operator: part.ms / layers for part in cpu}
    products = {part.operator: part.ms / layers for part in npu}
    whole = {name: fused for fused, names in model.fusions.items() for name in names if fused in products}
    cpu_free, npu_free, ready = 0.0, 0.0, [0.0] * micro_batches
    for stage in model.stages * layers:
        product = sum(products[name] for name in {whole.get(linear, linear): None for linear in stage.linears})
        for batch in range(micro_batches):
            back = {ATTENTION: (2 * batch + 1) / micro_batches}
            own = sum(share * work[name] * back.get(name, 1) for name, share in stage.shares.items()) / micro_batches
            cpu_free = max(cpu_free, ready[batch]) + own
            npu_free = ready[batch] = max(cpu_free, npu_free) + product
    once = {part.operator for part in cpu} - {name for stage in model.stages for name in stage.shares}
    return max(cpu_free, npu_free) + layers * sum(work[name] for name in once)


def _of_results(operator: str, c: str) -> float:
    """How much of an operator on int32 results is left where C has another type."""
    if operator == SCALING and not TYPES[c].integer:
        return 0.0
    return TYPES[c].bits / TYPES["int32"].bits if operator == SYNCHRONISING else 1.0


def _npu(model: Model, tokens: int, fusions: tuple[str, ...], modelled: Modelled) -> list[OperatorTime]:
    return [_part(linear, tokens, modelled) for linear in model.fused(fusions)]


def _problem(linear: Linear, tokens: int) -> GemmProblem:
    return GemmProblem(linear.M or tokens, linear.K, linear.N, linear.name)


def _part(linear: Linear, tokens: int, modelled: Modelled) -> OperatorTime:
    problem = _problem(linear, tokens)
    found, _ = run_as(linear, problem, modelled)
    dispatch_us = found.serial["dispatch"]
    if linear.joined:  # one more command of a submission
        dispatch_us = min(dispatch_us, found.case.timing.runlist_dispatch_ns / 1e3)
    time_us = found.time_us - found.serial["dispatch"] + dispatch_us
    return OperatorTime(
        linear.name, "NPU", linear.count, linear.count * time_us / 1e3, linear.count * dispatch_us / 1e3, found.bound,
        str(problem), 0 if linear.joined else linear.count,
    )  # fmt: skip


def crossover(linear: Linear, cpu_tops: float, modelled: Modelled, most: int = 8192) -> int | None:
    """The smallest M, up to `most`, from which on the array takes less time than a CPU at `cpu_tops`; None if none."""
    first = None
    for M in reversed(range(8, most + 1, 8)):
        found = modelled(GemmProblem(M, linear.K, linear.N))
        if found.time_us >= 2 * found.case.macs / cpu_tops / 1e6:
            return first
        first = M
    return first


def write_csv(found: Layers) -> str:
    head = (
        "model",
        "tokens",
        "operator",
        "where",
        "count",
        "problem",
        "ms_modelled",
        "dispatch_ms",
        "bound",
        "instead",
    )
    rows = (
        (found.model.name, found.tokens, part.operator, part.where, part.count, part.problem, f"{part.ms:.4g}",
         f"{part.dispatch_ms:.4g}", part.bound, part.instead)
        for part in found.parts
    )  # fmt: skip
    return csv_text([head, *rows])
