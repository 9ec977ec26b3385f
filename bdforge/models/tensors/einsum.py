"""Contractions of numpy arrays on a built GEMM design, one loaded array for all of a type.

Strides of any array are walked as they are, where the shims can; the plan says which operands are staged.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path as Folder
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from bdforge.design.sequences import fetch
from bdforge.devices.types import TYPES
from bdforge.models.tensors.contraction_tree import Path, arranged, path_of, tree_of
from bdforge.models.tensors.default import VARIABLE, default_design
from bdforge.models.tensors.einsum_expression import Expression, expanded, joined
from bdforge.models.tensors.plans import Plans, sizes_of
from bdforge.models.tensors.tensor_operands import buffer_of, repeated, result_in, summed_over, typed, view_of, walkable
from bdforge.operators.contraction import ContractionError, parse
from bdforge.runtime import BuildError, Loaded, load
from bdforge.runtime.loading import EMULATED, chosen

LOADED_MAX = 8
"""Folders whose designs stay loaded."""


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
        taken = [typed(array, name, i) for i, (array, name) in enumerate(zip(arrays, names, strict=False))]
        given, tensors, sizes = joined(expanded(expression, [array.ndim for array in taken]), taken)
        result = result_in(out, [sizes[label] for label in given.out], TYPES[spec.c].dtype)
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
            x, a = repeated(x, a, only[1], sizes)
            y, b = repeated(y, b, only[0], sizes)
        else:
            x, a = summed_over(x, a, only[0])
            y, b = summed_over(y, b, only[1])
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
        tensors, arrays = parse(expression), [walkable(x, 0), walkable(y, 1)]
        found = self.plans.plan(expression, *arrays, staged=staged)
        sizes = sizes_of(tensors, [array.shape for array in arrays])
        out = np.zeros([sizes[label] for label in tensors[2]], TYPES[self.plans.gemm.spec.c].dtype)
        given = arrays[::-1] if found.plan.choice.contraction.swapped else arrays
        buffers = [buffer_of(found, side, array) for side, array in zip(found.plan.sides, (*given, out), strict=True)]
        self.loaded.run(found.sequence, buffers)
        side, sequence = found.plan.sides[2], found.sequence
        if side.staged:
            values = fetch(sequence.program.operands[2], sequence.values, buffers[2].view(np.uint8), out.dtype)
            view = view_of(side, out)
            view[...] = values.reshape(view.shape)
        return out


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

    `on` is what `bdforge.load` gave, or the design's folder; without it the variable BDFORGE_EINSUM names the folder,
    and without that a design for integers, or for floats, is taken from `build/`, or built once for the emulated array.
    The inputs have the design's types of A and B, the result has that of C, and is written into `out` where that is
    given. Expressions are numpy's: diagonals, ellipses, outputs that are implied, and axes of one position that stand
    for any. Of two operands, `staged` names those that the host copies into the order of access (of A, B, C, after an
    exchange of the inputs where there is one); they are chosen without. More are contracted in pairs, along `path` (as
    opt_einsum finds them) or numpy's. ContractionError says why an expression cannot be computed there and what would
    help, OperandError what an array lacks.
    """
    array = _on(on or os.environ.get(VARIABLE), device, operands)
    return array(expression, *operands, staged=staged, path=path, out=out)


def _on(on: Loaded | Folder | str | None, device: str | None, operands: Sequence[object]) -> Einsum:
    if isinstance(on, Loaded):
        with _LOADING:
            return Einsum(on, _OF.setdefault(on, Plans(on.design)))
    with _LOADING:
        folder = on or _default(device, operands)
        key = Folder(folder).resolve(), device
        found = _KEPT.pop(key, None) or Einsum(load(folder, device))
        while len(_KEPT) >= LOADED_MAX:
            del _KEPT[next(iter(_KEPT))]
        _KEPT[key] = found
        return found


def _default(device: str | None, operands: Sequence[object]) -> Folder:
    if chosen(device) != EMULATED:
        raise BuildError(
            f"einsum on an NPU runs on a GEMM that is built for it: give its folder as on=, or in {VARIABLE}"
        )
    return default_design(operands[0] if operands else None)
