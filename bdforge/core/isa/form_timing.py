"""When an instruction reads its operands, when its results appear and which units it takes.

Stages count from 1, the issue cycle: an instruction issued at cycle t reads an operand of stage r in cycle t + r - 1
and its result of stage w is there for reads in cycle t + w at the latest. A read sees a write issued d cycles before
if w < d + r, or if w == d + r and both ends carry the same bypass class. Otherwise it sees the **old** value: nothing
interlocks (source: llvm-aie's itineraries; 29 real GEMM programs are exact only with it).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Resource:
    """A unit that is taken for `cycles` cycles from `cycle` on (0 is the issue cycle).

    Two that are `reserved` may share a unit; a reserved and a required one, or two required ones, may not.
    """

    name: str
    cycle: int
    cycles: int = 1
    reserved: bool = False


@dataclass(frozen=True, slots=True)
class Timing:
    """Stages of a form's operands by operand name.

    `defs` are results and `uses` operands that are read. Names that are no fields of the encoding are either in
    `fixed` (operand -> the register that it always is), in `ties` (result -> the operand that it updates in place:
    `ptr_out` -> `ptr`), or follow from another operand: `dc`, `dcl`, `dch` are counters of the address walk `mod`.
    `implicit_defs` and `implicit_uses` are control and status registers by name. `bypass` names forwarding classes of
    operands, `ports` units that depend on an operand's register: (operand, cycle, {register prefix: units}).
    `memory_stages` are the stages at which memory is read or written.
    """

    defs: Mapping[str, int] = field(default_factory=dict)
    uses: Mapping[str, int] = field(default_factory=dict)
    implicit_defs: Mapping[str, int] = field(default_factory=dict)
    implicit_uses: Mapping[str, int] = field(default_factory=dict)
    bypass: Mapping[str, str] = field(default_factory=dict)
    ties: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    resources: tuple[Resource, ...] = ()
    ports: tuple[tuple[str, int, Mapping[str, tuple[str, ...]]], ...] = ()
    memory_stages: tuple[int, ...] = ()

    @property
    def last_stage(self) -> int:
        """The last stage of any of it but memory."""
        stages = (self.defs, self.uses, self.implicit_defs, self.implicit_uses)
        units = [resource.cycle + resource.cycles for resource in self.resources]
        return max([0, *units, *(stage for found in stages for stage in found.values())])
