"""One design over many sizes that its array takes whole, by layout of B."""

from dataclasses import dataclass
from functools import cache
from statistics import fmean

from bdforge.common.tree import tree
from bdforge.devices import device_named
from bdforge.devices.types import order_named
from bdforge.operators.gemm import load_spec
from bdforge.perf.reproduce.entries import Fields
from bdforge.perf.reproduce.quantity import Producer, Quantity
from bdforge.perf.size_sweep import Swept, native_problems, sweep


@dataclass(frozen=True, slots=True)
class ModelledSizes:
    """A design with one layout of B, modelled for each size."""

    name: str
    swept: tuple[Swept, ...]

    @property
    def tops(self) -> list[float]:
        return [one.found.tops for one in self.swept]


@cache
def _swept(design: str, device: str, layout: str, lengths: str) -> ModelledSizes:
    spec, array = load_spec(tree() / "designs" / f"{design}.toml"), device_named(device)
    problems = native_problems(spec, map(int, lengths.split(",")))
    return ModelledSizes(f"{design} {layout}", tuple(sweep(spec, array, (order_named(layout),), problems, "fitted")))


def _modelled(fields: Fields) -> ModelledSizes:
    """`design` on `device` with B's `layout`, M, K and N each of about these `lengths`."""
    return _swept(fields["design"], fields["device"], fields["layout"], fields["lengths"])


SIZES = Producer(
    _modelled,
    {
        "sizes": Quantity("sizes", "counted", lambda made: len(made.swept)),
        "mean_tops": Quantity("TOPS", "modelled", lambda made: fmean(made.tops)),
        "best_tops": Quantity("TOPS", "modelled", lambda made: max(made.tops)),
        "least_tops": Quantity("TOPS", "modelled", lambda made: min(made.tops)),
    },
)
