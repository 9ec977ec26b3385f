"""How ours come about: of each kind of row what it is, and its quantities by name."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bdforge.common.messages import Fault
from bdforge.common.tasks import HERE, Told, Workers, untold
from bdforge.perf.reproduce.array_figures import COMPILED, CONFIGURATIONS, CONTRACTIONS, OPERATORS
from bdforge.perf.reproduce.core_figures import FORMS, KERNELS, TILES
from bdforge.perf.reproduce.entries import Fields, PaperEntry
from bdforge.perf.reproduce.figures import PROCESSORS, Figure, Kind, Published
from bdforge.perf.reproduce.gemm_figures import GEMMS
from bdforge.perf.reproduce.model_figures import PRODUCTS, PROMPTS, ROUNDINGS
from bdforge.perf.reproduce.quantity import Producer, Quantity
from bdforge.perf.reproduce.size_figures import SIZES

PRODUCERS: Mapping[str, Producer] = {
    "gemm": GEMMS, "operator": OPERATORS, "contraction": CONTRACTIONS, "configuration": CONFIGURATIONS,
    "compiled operator": COMPILED, "kernel": KERNELS, "tile": TILES, "form": FORMS, "products": PRODUCTS,
    "prompt": PROMPTS, "rounding": ROUNDINGS, "sizes": SIZES,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A task: the row of an entry that has but one; `full` runs the array as well, which takes minutes."""

    entry: PaperEntry
    full: bool


def figures_of(entry: PaperEntry, *, full: bool = False) -> list[Figure]:
    """Every figure of an entry. A row that cannot be expressed here keeps its published figure and says why."""
    return figures_by_entry([entry], full=full)[entry.name]


def figures_by_entry(
    entries: Sequence[PaperEntry], *, full: bool = False, workers: Workers = HERE, ended: Told = untold
) -> dict[str, list[Figure]]:
    """Figures of entries by their names, as `figures_of`; `ended` hears of rows."""
    tasks = [PaperRow(replace(entry, rows=(row,)), full) for entry in entries for row in entry.rows]
    found: dict[str, list[Figure]] = {entry.name: [] for entry in entries}
    for task, figures in zip(tasks, workers.results(row_figures, tasks, ended), strict=True):
        found[task.entry.name] += figures
    return found


def row_figures(task: PaperRow) -> list[Figure]:
    """Those of a row."""
    entry = task.entry
    return list(_figures(entry, PRODUCERS[entry.producer], entry.rows[0], task.full))


def _figures(entry: PaperEntry, producer: Producer, fields: Fields, full: bool) -> Iterator[Figure]:
    wanted = [name for name in entry.quantities if fields.get(name) or fields.get("quantity") == name]
    subject, fault = None, ""
    try:
        subject = producer.subject(fields)
    except Fault as error:
        fault = _reason(error)
    row = fields.get("row") or (producer.label(subject) if subject is not None else "")
    for name in wanted:
        quantity = producer.quantities[name]
        ours, reasons = ({}, [fault]) if subject is None else _ours(quantity, subject, full)
        note = "; ".join(filter(None, (*reasons, producer.note(subject) if subject is not None else "")))
        published = Published.of(fields[name]) if fields.get(name) else None
        elsewhere = {key: Published.of(fields[key]) for key in PROCESSORS if fields.get(key)}
        yield Figure(entry.name, row, name, quantity.unit, published, ours, note, elsewhere)


def _ours(quantity: Quantity, subject: object, full: bool) -> tuple[dict[Kind, float], list[str]]:
    """Our figures by kind, and why there are others not."""
    made: Iterable[tuple[Kind, Callable]] = [(quantity.kind, quantity.of)]
    if full and quantity.emulated is not None:
        made = [*made, ("emulated", quantity.emulated)]
    ours: dict[Kind, float] = {}
    reasons: list[str] = []
    for kind, make in made:
        try:
            ours[kind] = float(make(subject))
        except Fault as error:
            reasons.append(f"not {kind}: {_reason(error)}")
    return ours, reasons


def _reason(error: Fault) -> str:
    return str(error).splitlines()[0]
