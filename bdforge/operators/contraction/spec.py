"""Specs of contractions: an einsum expression with its sizes, on the array of a GEMM design."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from bdforge.devices import Device
from bdforge.operators.contraction.dims import Contraction, contraction
from bdforge.operators.gemm.spec import GemmSpec, spec_from
from bdforge.operators.gemm.spec_check import fits as gemm_fits
from bdforge.operators.specs import FormSpec, ProblemForm, Size, SpecForm

KIND = "contraction"


class ContractionForm(SpecForm[ProblemForm]):
    """A contraction. Its sequence program follows from its sizes, so it has no other problems.

    `strides` of the first input, the second and the output, by axis; an empty list, or none: row-major. `staged` names
    the operands (of A, B, C) that the host stages, chosen without; those in `once` are staged before, at no cost.
    `design` holds the tables of a GEMM design, whose array computes it.
    """

    kind: Literal["contraction"]
    expression: str
    sizes: dict[str, Size]
    strides: Annotated[list[list[int]], Field(min_length=3, max_length=3)] | None = None
    staged: str | None = None
    once: str = ""
    design: dict[str, Any]
    problems: Annotated[tuple[ProblemForm, ...], Field(max_length=0)] = ()


class ContractionSpec(FormSpec[ContractionForm]):
    """A contraction's spec."""

    kind: ClassVar[str] = KIND
    FORM = ContractionForm

    @classmethod
    def load(cls, content: dict[str, Any], name: str, where: str = "design") -> Self:
        """A spec from TOML content; SpecError lists every fault of it, then of its expression and its GEMM."""
        spec = super().load(content, name, where)
        _ = spec.contraction
        spec_from(spec.gemm_content, name, f"{where}: design")
        return spec

    @property
    def gemm_content(self) -> dict[str, Any]:
        """The GEMM design on whose array it runs, as TOML would hold it."""
        return {**self.form.design, "kind": "gemm", "sequence": self.form.sequence.model_dump()}

    @property
    def gemm(self) -> GemmSpec:
        """The GEMM design on whose array it runs."""
        return spec_from(self.gemm_content, self.name)

    @property
    def contraction(self) -> Contraction:
        """Its dimensions; ContractionError for what is no contraction."""
        form = self.form
        strides = [own or None for own in form.strides] if form.strides else (None, None, None)
        return contraction(form.expression, form.sizes, strides)


def fits(spec: ContractionSpec, device: Device) -> bool:
    """Whether the GEMM design is meant for the product."""
    return gemm_fits(spec.gemm, device)
