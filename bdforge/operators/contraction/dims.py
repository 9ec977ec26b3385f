"""Binary tensor contractions: dimensions with their strides in both inputs and the output.

A dimension's type follows from the tensors that have it: C (batch) from all three, M from the first input and the
output, N from the second input and the output, K from both inputs, which is summed over. Sizes and strides are in
elements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from bdforge.common.messages import clip
from bdforge.operators.specs import SpecError

Kind = Literal["C", "M", "N", "K"]
Strides = tuple[int | None, int | None, int | None]
"""Of a dimension in the first input, the second one and the output; None where a tensor does not have it."""

TENSORS: Mapping[Kind, tuple[int, ...]] = {"C": (0, 1, 2), "M": (0, 2), "N": (1, 2), "K": (0, 1)}
"""Tensors that have dimensions of a kind: the first input, the second one, the output."""
EXPRESSION_MAX = 4096
"""Characters of an expression."""
_ALONE: Mapping[tuple[int, ...], str] = {
    (0,): "only the first input has it: sum the input over it before (numpy.sum)",
    (1,): "only the second input has it: sum the input over it before (numpy.sum)",
    (2,): "no input has it: broadcast the result afterwards (numpy.broadcast_to)",
}


class ContractionError(SpecError):
    """An expression, sizes or strides that are no contraction of two tensors, or that no plan can compute."""


@dataclass(frozen=True, slots=True)
class TensorDim:
    """A dimension, of one label or of several that were fused, its `members`, outermost first.

    A fused one has strides where it is one walk; elsewhere they are those of the innermost member.
    """

    name: str
    size: int
    strides: Strides
    members: tuple["TensorDim", ...] = ()

    @property
    def parts(self) -> tuple["TensorDim", ...]:
        """Its members, or itself."""
        return self.members or (self,)

    def joined(self, inner: "TensorDim") -> "TensorDim":
        """This one fused with the one inside of it."""
        members = (*self.parts, *inner.parts)
        return TensorDim(self.name + inner.name, self.size * inner.size, inner.strides, members)

    def exchanged(self) -> "TensorDim":
        """The same with the inputs exchanged."""
        a, b, c = self.strides
        return replace(self, strides=(b, a, c), members=tuple(member.exchanged() for member in self.members))

    @property
    def kind(self) -> Kind:
        """C, M, N or K."""
        return next(kind for kind, tensors in TENSORS.items() if tensors == self.tensors)

    @property
    def tensors(self) -> tuple[int, ...]:
        """Those that have it."""
        return tuple(tensor for tensor, stride in enumerate(self.strides) if stride is not None)

    def __str__(self) -> str:
        shown = ", ".join("-" if stride is None else str(stride) for stride in self.strides)
        return f"{self.kind} {self.name} = {self.size}, strides {shown}"


@dataclass(frozen=True, slots=True)
class Contraction:
    """Dimensions in any order; `swapped` tells that the user's first input is the second one here."""

    dims: tuple[TensorDim, ...]
    swapped: bool = False

    def of(self, kind: Kind) -> tuple[TensorDim, ...]:
        """Dimensions of a kind."""
        return tuple(dim for dim in self.dims if dim.kind == kind)

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the answer needs."""
        return prod(dim.size for dim in self.dims)

    def exchanged(self) -> "Contraction":
        """The same with the inputs exchanged: M and N change names."""
        return Contraction(tuple(dim.exchanged() for dim in self.dims), not self.swapped)

    def fused(self, tensors: Sequence[int] = (0, 1, 2)) -> "Contraction":
        """Neighbours of a kind joined that are one walk, one's stride the size times the stride of the other.

        That must hold in each of `tensors` that has them; others are copied, and may have them anyhow.
        """
        dims = sorted(self.dims, key=lambda dim: tuple(-(stride or 0) for stride in reversed(dim.strides)))
        while (pair := _neighbours(dims, tensors)) is not None:
            outer, inner = pair
            dims[dims.index(outer)] = outer.joined(inner)
            dims.remove(inner)
        return replace(self, dims=tuple(dims))


def _neighbours(dims: Sequence[TensorDim], tensors: Sequence[int]) -> tuple[TensorDim, TensorDim] | None:
    for place, outer in enumerate(dims):
        for inner in (*dims[place + 1 :], *dims[:place]):
            if outer.kind == inner.kind and _joins(outer, inner, tensors):
                return outer, inner
    return None


def _joins(outer: TensorDim, inner: TensorDim, tensors: Sequence[int]) -> bool:
    pairs = ((outer.strides[tensor], inner.strides[tensor]) for tensor in tensors)
    return all(a is None or b is None or a == inner.size * b for a, b in pairs)


def text_of(expression: object) -> str:
    """An expression without its blanks; ContractionError for what is no text, or a very long one."""
    if not isinstance(expression, str) or len(expression) > EXPRESSION_MAX:
        got = f"{len(expression)} characters" if isinstance(expression, str) else type(expression).__name__
        raise ContractionError(f"an expression is a text of at most {EXPRESSION_MAX} characters, got {got}")
    return expression.replace(" ", "")


def parse(expression: str) -> tuple[str, str, str]:
    """Labels of two inputs and the output of an einsum expression such as "acd,db->abc"; ContractionError."""
    inputs, arrow, out = text_of(expression).partition("->")
    tensors = inputs.split(",")
    if not arrow or len(tensors) != 2:
        raise ContractionError(
            f"expression {clip(repr(expression))}: must be two inputs and an output, as in ab,bc->ac"
        )
    for labels in (*tensors, out):
        if not labels.isalpha() and labels:
            raise ContractionError(f"expression {clip(repr(expression))}: {clip(repr(labels))} has more than letters")
        if twice := {label for label in labels if labels.count(label) > 1}:
            raise ContractionError(
                f"expression {clip(repr(expression))}: {min(twice)} stands twice in {clip(labels)}; take the diagonal "
                "before (numpy.einsum)"
            )
    return tensors[0], tensors[1], out


def contraction(
    expression: str, sizes: Mapping[str, int], strides: Sequence[Sequence[int] | None] = (None, None, None)
) -> Contraction:
    """The contraction of an expression; `strides` of each tensor by its labels, row-major where None.

    ContractionError names the label that has no size, no partner, or a stride below 1.
    """
    tensors = parse(expression)
    labels = list(dict.fromkeys("".join((tensors[2], *tensors[:2]))))
    for label in labels:
        if sizes.get(label, 0) < 1:
            raise ContractionError(f"label {label}: has no size of 1 or more; give one, as in {label}=64")
    if unknown := sizes.keys() - set(labels):
        raise ContractionError(f"label {clip(min(unknown))}: has a size, but is not in {clip(expression)}")
    given = [_by_label(named, sizes, own) for named, own in zip(tensors, strides, strict=True)]
    dims = tuple(TensorDim(label, sizes[label], tuple(g.get(label) for g in given)) for label in labels)  # type: ignore[arg-type]
    for dim in dims:
        if dim.tensors in _ALONE:
            raise ContractionError(f"label {dim.name}: {_ALONE[dim.tensors]}")
    return Contraction(dims)


def _by_label(labels: str, sizes: Mapping[str, int], given: Sequence[int] | None) -> dict[str, int]:
    if given is None:
        strides, step = [], 1
        for label in reversed(labels):
            strides.append(step)
            step *= sizes[label]
        given = strides[::-1]
    if len(given) != len(labels) or min(given, default=1) < 1:
        raise ContractionError(f"strides {tuple(given)} of {labels}: must be {len(labels)} numbers of 1 or more")
    return dict(zip(labels, given, strict=True))
