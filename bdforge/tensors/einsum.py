"""Contractions of numpy arrays on a built GEMM design, one loaded array for all of a type.

Strides of any array are walked as they are, where the shims can; the plan says which operands are staged.
"""

import os
from collections.abc import Mapping, Sequence
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
from bdforge.tensors.expression import Expression, expanded, joined
from bdforge.tensors.tree import Path, arranged, path_of, tree_of

VARIABLE = "BDFORGE_EINSUM"
"""The folder of the built design that `einsum` runs on where none is given."""

PLANS_MAX = 256
"""Plans of a design that are kept; one has some hundred KB where its sequence is long."""
LOADED_MAX = 8
"""Folders whose designs stay loaded."""

Key = tuple[str, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...], str | None]


@dataclass(frozen=True, slots=True)
class Planned:
    """A contraction's plan and its sequence."""

    plan: ContractionPlan
    sequence: PlannedSequence


class Plans:
    """Plans of contractions on a design, those used last kept by expression, shapes and strides; for any thread."""

    def __init__(self, design: BuiltDesign):
        self._design = design
        self._plans: dict[Key, Planned] = {}
        self._lock = Lock()

    @cached_property
    def gemm(self) -> GemmPlan:
        """The design's plan; BuildError where it is no GEMM."""
        found = plan_of(self._design.manifest)
        if not isinstance(found, GemmPlan):
            raise BuildError(f"design {self._design.name} is no GEMM; contractions need one")
        return found

    def plan(self, expression: str, *arrays: np.ndarray, staged: str | None = None) -> Planned:
        """How a contraction of such arrays runs; ContractionError where it cannot. `staged` as of `einsum`."""
        sizes = _sizes(parse(expression), arrays)
        strides = tuple(tuple(s // array.itemsize for s in array.strides) for array in arrays)
        key = expression, tuple(array.shape for array in arrays), strides, staged
        with self._lock:
            if (known := self._plans.pop(key, None)) is not None:
                self._plans[key] = known
                return known
        plan = plan_contraction(contraction(expression, sizes, (*strides, None)), self.gemm, staged)
        found = Planned(plan, plan.sequence(plan.problem))
        with self._lock:
            while len(self._plans) >= PLANS_MAX:
                del self._plans[next(iter(self._plans))]
            return self._plans.setdefault(key, found)


class Einsum:
    """Contractions on one loaded array."""

    def __init__(self, loaded: Loaded, plans: Plans | None = None):
        self.loaded, self.plans = loaded, plans or Plans(loaded.design)

    def __call__(
        self,
        expression: str,
        *arrays: np.ndarray,
        staged: str | None = None,
        path: Path | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """As `einsum`, in the design's type of C; OperandError for arrays of other types than it takes."""
        spec = self.plans.gemm.spec
        names = [spec.a] * len(arrays) if len(arrays) > 2 else [spec.a, spec.b]
        typed = [_typed(array, name, i) for i, (array, name) in enumerate(zip(arrays, names, strict=False))]
        given, tensors, sizes = joined(expanded(expression, [array.ndim for array in typed]), typed)
        result = _result(out, [sizes[label] for label in given.out], TYPES[spec.c].dtype)
        if staged is not None and len(tensors) != 2:
            raise ContractionError("staged names operands of a contraction of two inputs; leave it out")
        if 0 in sizes.values():
            found = np.zeros([sizes[label] for label in given.out], TYPES[spec.c].dtype)
        elif len(tensors) > 2:
            found = self._tree(given, tensors, sizes, path)
        else:
            found = self._pair(*self._both(given, tensors, sizes), staged)
        if result is None:
            return found[()]
        result[...] = found
        return result

    def _both(
        self, given: Expression, tensors: Sequence[np.ndarray], sizes: Mapping[str, int]
    ) -> tuple[str, np.ndarray, np.ndarray]:
        """One or two inputs as two, each label of which the other one or the output has: what else is summed.

        One input is multiplied by ones. Integers are, too, along what only the other input has, since their sums are
        no numbers of their type; floats are summed on the host.
        """
        spec, out = self.plans.gemm.spec, given.out
        if len(tensors) == 1:
            ((x,), (a,)) = given.inputs, tensors
            y = "".join(label for label in x if label not in out)
            return f"{x},{y}->{out}", a, np.ones([sizes[label] for label in y], TYPES[spec.b].dtype)
        (x, y), (a, b) = given.inputs, tensors
        only = ["".join(n for n in one if n not in other + out) for one, other in ((x, y), (y, x))]
        if TYPES[spec.a].integer:
            x, a = _repeated(x, a, only[1], sizes)
            y, b = _repeated(y, b, only[0], sizes)
        else:
            x, a = _summed(x, a, only[0])
            y, b = _summed(y, b, only[1])
        return f"{x},{y}->{out}", a, b

    def _tree(
        self, given: Expression, inputs: Sequence[np.ndarray], sizes: Mapping[str, int], path: Path | None
    ) -> np.ndarray:
        """The contraction of more than two tensors, in pairs; results in between are rounded to the type of A."""
        spec, tensors, expression = self.plans.gemm.spec, [*inputs], str(given)
        found = tree_of(expression, path_of(expression, tensors) if path is None else path)
        if spec.a != spec.b or TYPES[spec.a].integer:
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
                if how is not None or number >= len(inputs):
                    tensors[number] = tensors[number].astype(TYPES[spec.a].dtype)
            tensors.append(self._pair(pair, tensors[step.x], tensors[step.y]))
        return tensors[-1]

    def _pair(self, expression: str, x: np.ndarray, y: np.ndarray, staged: str | None = None) -> np.ndarray:
        """The contraction of two tensors in its plain form."""
        tensors, arrays = parse(expression), [_walkable(x, 0), _walkable(y, 1)]
        found = self.plans.plan(expression, *arrays, staged=staged)
        sizes = _sizes(tensors, arrays)
        out = np.zeros([sizes[label] for label in tensors[2]], TYPES[self.plans.gemm.spec.c].dtype)
        given = arrays[::-1] if found.plan.choice.contraction.swapped else arrays
        buffers = [_buffer(found, side, array) for side, array in zip(found.plan.sides, (*given, out), strict=True)]
        self.loaded.run(found.sequence, buffers)
        side, sequence = found.plan.sides[2], found.sequence
        if side.staged:
            values = fetch(sequence.program.operands[2], sequence.values, buffers[2].view(np.uint8), out.dtype)
            view = _view(side, out)
            view[...] = values.reshape(view.shape)
        return out


def _repeated(labels: str, array: np.ndarray, more: str, sizes: Mapping[str, int]) -> tuple[str, np.ndarray]:
    """The tensor again and again along `more` labels."""
    shape = [sizes[label] for label in more]
    return more + labels, np.broadcast_to(array, (*shape, *array.shape))


def _summed(labels: str, array: np.ndarray, over: str) -> tuple[str, np.ndarray]:
    """The tensor summed over labels, and rounded to its type."""
    axes = tuple(labels.index(label) for label in over)
    left = "".join(label for label in labels if label not in over)
    return left, array.sum(axes, np.float32).astype(array.dtype) if axes else array


def _result(out: object, shape: Sequence[int], dtype: np.dtype) -> np.ndarray | None:
    """Where the result goes; OperandError for an array that does not hold it."""
    if out is None:
        return None
    array = host_array(out, "out", OperandError, in_place=True)
    if list(array.shape) != [*shape] or array.dtype != dtype or not array.flags.writeable:
        raise OperandError(
            f"out is {array.dtype} of shape {array.shape}{'' if array.flags.writeable else ', read-only'}; "
            f"the result is {dtype} of shape {tuple(shape)}"
        )
    return array


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
    """The array in a type of the design's; OperandError for another one."""
    dtype = TYPES[name].dtype
    given = np.asarray(array) if isinstance(array, np.generic) else array
    array = host_array(given, f"operand {number}", OperandError)
    if array.dtype != dtype:
        raise OperandError(
            f"operand {number} must be an array of {dtype.name}, which the design takes, got {array.dtype}"
        )
    return array


def _walkable(array: np.ndarray, number: int) -> np.ndarray:
    """The array, copied where its strides go backwards, nowhere, or through parts of elements."""
    strides = [step if size > 1 else array.itemsize for size, step in zip(array.shape, array.strides, strict=True)]
    if all(step > 0 and step % array.itemsize == 0 for step in strides):
        return np.lib.stride_tricks.as_strided(array, strides=strides)  # a step that nobody takes is any
    tell_once(f"operand {number} of einsum is copied with each call: its strides {array.strides} are no steps forward")
    return np.ascontiguousarray(array)


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
    out: np.ndarray | None = None,
) -> np.ndarray:
    """`numpy.einsum` of arrays on a built GEMM design, which stays loaded for the next contraction.

    `on` is what `bdforge.load` gave, or the design's folder; without it the variable BDFORGE_EINSUM names the folder.
    The inputs have the design's types of A and B, the result has that of C, and is written into `out` where that is
    given. Expressions are numpy's: diagonals, ellipses, outputs that are implied, and axes of one position that stand
    for any. Of two operands, `staged` names those that the host copies into the order of access (of A, B, C, after an
    exchange of the inputs where there is one); they are chosen without. More are contracted in pairs, along `path` (as
    opt_einsum finds them) or numpy's. ContractionError says why an expression cannot be computed there and what would
    help, OperandError what an array lacks.
    """
    return _on(on, device)(expression, *operands, staged=staged, path=path, out=out)


def _on(on: Loaded | Folder | str | None, device: str | None) -> Einsum:
    if isinstance(on, Loaded):
        with _LOADING:
            return Einsum(on, _OF.setdefault(on, Plans(on.design)))
    folder = on or os.environ.get(VARIABLE)
    if not folder:
        raise BuildError(f"einsum runs on a built GEMM design: give its folder as on=, or in the variable {VARIABLE}")
    key = Folder(folder).resolve(), device
    with _LOADING:
        found = _KEPT.pop(key, None) or Einsum(load(folder, device))
        while len(_KEPT) >= LOADED_MAX:
            del _KEPT[next(iter(_KEPT))]
        _KEPT[key] = found
        return found
