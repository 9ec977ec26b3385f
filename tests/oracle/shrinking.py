"""Makes a design that shows a disagreement smaller, by leaving things out one at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from oracle.array_design import Alternate, Bd, Chain, Core, Design, Program, Statement, Times

PARTS = ("cores", "programs", "flows", "sequence", "buffers", "locks", "arguments")


@dataclass(slots=True)
class Effort:
    """What shrinking may still spend: designs tried, and turns of the slow interpreter over all of them."""

    attempts: int = 400
    turns: int = 5_000_000

    def left(self) -> bool:
        """Whether another design may be tried."""
        return self.attempts > 0 and self.turns > 0


def shrunk(design: Design, still_fails: Callable[[Design, Effort], bool], effort: Effort | None = None) -> Design:
    """The smallest design found before `effort` is spent, of whose turns `still_fails` takes off what it uses."""
    effort = effort or Effort()
    while (smaller := _next(design, still_fails, effort)) is not None:
        design = smaller
    return design


def _next(design: Design, still_fails: Callable[[Design, Effort], bool], effort: Effort) -> Design | None:
    for smaller in smaller_designs(design):
        if not effort.left():
            return None
        effort.attempts -= 1
        if still_fails(smaller, effort):
            return smaller
    return None


def smaller_designs(design: Design) -> Iterator[Design]:
    """Designs with one thing less: what brings most comes first."""
    for part in PARTS:
        things = getattr(design, part)
        for index in range(len(things)):
            yield design.with_changes(**{part: without(things, index)})
    for index, core in enumerate(design.cores):
        for body in smaller_bodies(core.body):
            yield design.with_changes(cores=exchanged(design.cores, index, Core(core.tile, body)))
    for index, program in enumerate(design.programs):
        for tasks in smaller_tasks(program.tasks):
            yield design.with_changes(programs=exchanged(design.programs, index, Program(program.port, tasks)))


def without(things: tuple, index: int) -> tuple:
    return things[:index] + things[index + 1 :]


def exchanged(things: tuple, index: int, thing) -> tuple:
    return (*things[:index], thing, *things[index + 1 :])


def smaller_bodies(body: tuple[Statement, ...]) -> Iterator[tuple[Statement, ...]]:
    for index, statement in enumerate(body):
        yield without(body, index)
        match statement:
            case Times(count, inner):
                for smaller in smaller_bodies(inner):
                    yield exchanged(body, index, Times(count, smaller))
            case Alternate(bodies):
                for turn, inner in enumerate(bodies):
                    for smaller in smaller_bodies(inner):
                        yield exchanged(body, index, Alternate(exchanged(bodies, turn, smaller)))


def smaller_tasks(tasks: tuple[Chain, ...]) -> Iterator[tuple[Chain, ...]]:
    for index, chain in enumerate(tasks):
        for position, bd in enumerate(chain.bds):
            if len(chain.bds) > 1:
                yield exchanged(tasks, index, replace(chain, bds=without(chain.bds, position)))
            for smaller in smaller_bds(bd):
                yield exchanged(tasks, index, replace(chain, bds=exchanged(chain.bds, position, smaller)))


def smaller_bds(bd: Bd) -> Iterator[Bd]:
    if bd.dims:
        yield replace(bd, dims=())
    if bd.acquire and bd.release:
        yield replace(bd, acquire=None, release=None)
