"""Contractions of numpy arrays on a built GEMM design, one loaded array for all of a type.

Strides of any array are walked as they are, where the shims can; the plan says which operands are staged.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path as Folder
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from bdforge.arrays import host_array
from bdforge.devices.types import TYPES
from bdforge.messages import tell_once, word
from bdforge.operators import plan_of
from bdforge.operators.contraction import ContractionError, ContractionPlan, contraction, parse, plan_contraction
from bdforge.operators.contraction.sides import Side
from bdforge.operators.gemm import Plan as GemmPlan
from bdforge.runtime import BuildError, BuiltDesign, Loaded, OperandError, load
from bdforge.sequences import PlannedSequence, fetch, place
from bdforge.sequences.buffers import empty
from bdforge.tensors.tree import Path, arranged, labels_of, path_of, tree_of

VARIABLE = "BDFORGE_EINSUM"
"""The folder of the built design that `einsum` runs on where none is given."""

Key = tuple[str, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...], str | None]


@dataclass(frozen=True, slots=True)
class Planned:
    """A contraction's plan and its sequence."""

    plan: ContractionPlan
    sequence: PlannedSequence


class Plans:
    """Plans of contractions on a design, kept by expression, shapes and strides."""

    def __init__(self, design: BuiltDesign):
        self._design = design
        self._plans: dict[Key, Planned] = {}

    @cached_property
    def gemm(self) -> GemmPlan:
        """The design's plan; BuildError where it is no GEMM."""
        found = plan_of(self._design.manifest)
        if not isinstance(found, GemmPlan):
            raise BuildError(f"design {self._design.name} is no GEMM; contractions need one")
        return found

    def plan(self, expression: str, *arrays: np.ndarray, staged: str | None = None) -> Planned:
        """How a contraction of such arrays runs; ContractionError where it cannot. `staged` as of `einsum`."""
        tensors = parse(expression)
        sizes = _sizes(tensors, arrays)
        strides = tuple(tuple(s // array.itemsize for s in array.strides) for array in arrays)
        key = expression, tuple(array.shape for array in arrays), strides, staged
        if key not in self._plans:
            plan = plan_contraction(contraction(expression, sizes, (*strides, None)), self.gemm, staged)
            self._plans[key] = Planned(plan, plan.sequence(plan.problem))
        return self._plans[key]


class Einsum:
    """Contractions on one loaded array."""

    def __init__(self, loaded: Loaded, plans: Plans | None = None):
        self.loaded, self.plans = loaded, plans or Plans(loaded.design)

    def tree(self, expression: str, *arrays: np.ndarray, path: Path | None = None) -> np.ndarray:
        """The contraction of any number of arrays, in pairs; `path` as opt_einsum and numpy.einsum_path give it.

        Results in between are rounded to the design's type of A. ContractionError where those are no floats.
        """
        spec, (*inputs, _) = self.plans.gemm.spec, labels_of(expression)
        if len(inputs) != len(arrays):
            raise OperandError(f"{len(arrays)} arrays for {len(inputs)} inputs of {word(expression)}")
        tensors = [_typed(array, spec.a, number) for number, array in enumerate(arrays)]
        sizes = _sizes(inputs, tensors)
        found = tree_of(expression, path_of(expression, tensors) if path is None else path)
        if len(found.steps) > 1 and (spec.a != spec.b or TYPES[spec.a].integer):
            raise ContractionError(
                f"design {spec.name}: a result of {spec.c} is no operand of {spec.a} x {spec.b} without scaling; "
                "contract several tensors on a design of bf16"
            )
        tree = arranged(found, sizes, self.plans.gemm)
        for step in tree.steps:
            pair = tree.expression(step)
            for number, labels in zip((step.x, step.y), parse(pair), strict=False):
                if (how := tree.summed(number, labels)) is not None:
                    tensors[number] = np.einsum(how, tensors[number].astype(np.float32))
                if how is not None or number >= len(arrays):
                    tensors[number] = tensors[number].astype(TYPES[spec.a].dtype)
            tensors.append(self(pair, tensors[step.x], tensors[step.y]))
        return tensors[-1]

    def __call__(self, expression: str, x: np.ndarray, y: np.ndarray, staged: str | None = None) -> np.ndarray:
        """The contraction in the design's type of C; OperandError for arrays of other types than it takes."""
        spec, tensors = self.plans.gemm.spec, parse(expression)
        arrays = [
            _typed(array, name, place) for place, (array, name) in enumerate(zip((x, y), (spec.a, spec.b), strict=True))
        ]
        found = self.plans.plan(expression, *arrays, staged=staged)
        sizes = _sizes(tensors, arrays)
        out = np.zeros([sizes[label] for label in tensors[2]], TYPES[spec.c].dtype)
        given = arrays[::-1] if found.plan.choice.contraction.swapped else arrays
        buffers = [_buffer(found, side, array) for side, array in zip(found.plan.sides, (*given, out), strict=True)]
        self.loaded.run(found.sequence, buffers)
        side, sequence = found.plan.sides[2], found.sequence
        if side.staged:
            values = fetch(sequence.program.operands[2], sequence.values, buffers[2].view(np.uint8), out.dtype)
            view = _view(side, out)
            view[...] = values.reshape(view.shape)
        return out


def _sizes(tensors: Sequence[str], arrays: Sequence[np.ndarray]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for labels, array in zip(tensors, arrays, strict=False):
        if len(labels) != array.ndim:
            raise OperandError(f"operand {word(labels)!r} has {len(labels)} labels; its array has {array.ndim} axes")
        for label, size in zip(labels, array.shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise OperandError(f"label {label} is {sizes[label]} in one operand, {size} in another")
    return sizes


def _typed(array: np.ndarray, name: str, number: int) -> np.ndarray:
    """The array, copied where its strides go backwards, nowhere, or through parts of elements."""
    dtype = TYPES[name].dtype
    given = np.asarray(array) if isinstance(array, np.generic) else array
    array = host_array(given, f"operand {number}", OperandError)
    if array.dtype != dtype:
        raise OperandError(
            f"operand {number} must be an array of {dtype.name}, which the design takes, got {array.dtype}"
        )
    odd = any(stride <= 0 or stride % array.itemsize for stride in array.strides)
    if odd:
        tell_once(
            f"operand {number} of einsum is copied with each call: its strides {array.strides} are no steps forward"
        )
    return np.ascontiguousarray(array) if odd else array


def _view(side: Side, array: np.ndarray) -> np.ndarray:
    """The user's memory with an axis for each member of the operand's dimensions."""
    members = [member for part in side.axes for member in part.dim.parts]
    strides = [(member.strides[side.tensor] or 0) * array.itemsize for member in members]
    return np.lib.stride_tricks.as_strided(array, [member.size for member in members], strides)


def _buffer(found: Planned, side: Side, array: np.ndarray) -> np.ndarray:
    """The host buffer of an operand: the user's memory, or what is staged."""
    if not side.staged:
        return np.lib.stride_tricks.as_strided(array, (side.elements,), (array.itemsize,))
    buffer = empty(found.sequence, side.tensor)
    if side.tensor != 2:
        operand = found.sequence.program.operands[side.tensor]
        view = _view(side, array).reshape([part.dim.size for part in side.axes])
        place(operand, found.sequence.values, view, buffer.view(np.uint8))
    return buffer


_KEPT: dict[tuple[Folder, str | None], Einsum] = {}
_OF: WeakKeyDictionary[Loaded, Plans] = WeakKeyDictionary()  # which hold no array: it goes with its last user
_LOADING = Lock()


def einsum(
    expression: str,
    *operands: np.ndarray,
    on: Loaded | Folder | str | None = None,
    device: str | None = None,
    staged: str | None = None,
    path: Path | None = None,
) -> np.ndarray:
    """`numpy.einsum` of arrays on a built GEMM design, which stays loaded for the next contraction.

    `on` is what `bdforge.load` gave, or the design's folder; without it the variable BDFORGE_EINSUM names the folder.
    The inputs have the design's types of A and B, the result has that of C. Of two operands, `staged` names those that
    the host copies into the order of access (of A, B, C, after an exchange of the inputs where there is one); they are
    chosen without. More are contracted in pairs, along `path` (as opt_einsum finds them) or numpy's.
    ContractionError says why an expression cannot be computed there and what would help, OperandError what an array
    lacks.
    """
    array = _on(on, device)
    if len(operands) == 2 and path is None:
        return array(expression, *operands, staged=staged)
    return array.tree(expression, *operands, path=path)


def _on(on: Loaded | Folder | str | None, device: str | None) -> Einsum:
    if isinstance(on, Loaded):
        with _LOADING:
            return Einsum(on, _OF.setdefault(on, Plans(on.design)))
    folder = on or os.environ.get(VARIABLE)
    if not folder:
        raise BuildError(f"einsum runs on a built GEMM design: give its folder as on=, or in the variable {VARIABLE}")
    key = Folder(folder).resolve(), device
    with _LOADING:
        if key not in _KEPT:
            _KEPT[key] = Einsum(load(folder, device))
        return _KEPT[key]
