"""What rules ask of a form: its operands by role, its addressing, its register widths."""

import re
from dataclasses import dataclass
from functools import cached_property

from bdforge.core.isa.core_registers import SIGN, width
from bdforge.core.isa.forms import Form
from bdforge.core.isa.meaning.semantics import AddressWalk
from bdforge.core.isa.operand_kinds import Immediate

_ADDRESS = {"ptr", "dj", "imm", "mod", "su", "sp", "dc", "dcl", "dch", "ptr_out", "tlast", "c", "r", "r_out"}
_MODES = re.compile(r"_(ag_)?(idx|pstm_nrm|spill)(_imm)?(?=_|$)|_[23]D(?=_|$)|_ag(?=_|$)")
_WALKS = {"eD": AddressWalk.WALK_2D, "eDS": AddressWalk.WALK_3D}


@dataclass(frozen=True, eq=False)
class View:
    """A form of a generation, as rules see it."""

    generation: str
    form: Form

    @cached_property
    def bare(self) -> str:
        """The form's name without its addressing mode."""
        return _MODES.sub("", self.form.name)

    @cached_property
    def operands(self) -> frozenset[str]:
        """All names that the form's timing or encoding has."""
        timing = self.form.timing
        return frozenset({*self.form.names, *timing.defs, *timing.uses, *timing.implicit_defs, *timing.implicit_uses})

    def role(self, name: str, roles: list[str]) -> str:
        """The operand with a role: by its name, or by its place in assembly order, as AIE2's are named."""
        if name in self.operands:
            return name
        if name in roles and (placed := f"op{roles.index(name)}") in self.operands:
            return placed
        return "imm"

    @cached_property
    def result(self) -> str:
        """The operand that a load or move writes."""
        return next(name for name in self.form.timing.defs if name not in _ADDRESS)

    @cached_property
    def source(self) -> str:
        """The register that a store or move reads; of several the first."""
        return next(name for name in self.form.timing.uses if name not in _ADDRESS)

    def bits(self, operand: str) -> int:
        """Bits of the registers that an operand may be; they are all of one width."""
        kind = self.form.field(operand).kind
        assert not isinstance(kind, Immediate)
        return width(self.generation, next(iter(kind.codes)))

    @cached_property
    def offset(self) -> str:
        """The operand by which an address is stepped or indexed, "" without."""
        return next((name for name in ("dj", "imm", "mod") if name in self.form.names), "")

    @cached_property
    def walk(self) -> AddressWalk:
        """How the form makes and steps its address."""
        form = self.form
        if "ptr" in form.names:
            if self.offset == "mod" and (walk := _WALKS.get(form.field("mod").kind.name)):
                return walk
            return AddressWalk.POST if "ptr_out" in form.timing.defs else AddressWalk.INDEX
        if "sp" in form.timing.implicit_defs:
            return AddressWalk.STACK_STEP
        return AddressWalk.STACK if "sp" in form.timing.implicit_uses else AddressWalk.NONE

    def sign(self) -> str | int:
        """Signedness: the control register that the form reads - AIE2's D forms, all of AIE2P's - or signed."""
        return next((name for name in self.form.timing.implicit_uses if SIGN.search(name)), 1)

    def control(self, name: str, fixed: int = 0) -> str | int:
        """A control register if the form reads it, else what the form fixes."""
        return name if name in self.form.timing.implicit_uses else fixed
