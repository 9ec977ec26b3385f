"""Einsum expressions as numpy takes them, and their operands, in one form: each label once in a tensor, output told."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_letters

import numpy as np

from bdforge.common.messages import clip
from bdforge.operators.contraction import ContractionError, text_of
from bdforge.runtime import OperandError

_TERM = re.compile(r"([A-Za-z]*)(?:(\.\.\.)([A-Za-z]*))?")
Term = tuple[str, bool, str]
"""Labels before an ellipsis, whether there is one, and labels behind it."""


@dataclass(frozen=True, slots=True)
class Expression:
    """Labels of the inputs and of the output, one letter for each axis."""

    inputs: tuple[str, ...]
    out: str

    def __str__(self) -> str:
        return f"{','.join(self.inputs)}->{self.out}"


def expanded(expression: str, ranks: Sequence[int]) -> Expression:
    """An expression for arrays of so many axes, with letters for ellipses and the output that numpy implies.

    ContractionError for what is no expression, OperandError where an array has other axes than labels.
    """
    what = f"expression {clip(repr(expression))}"
    inputs, arrow, out = text_of(expression).partition("->")
    terms = [_term(text, what) for text in inputs.split(",")]
    if len(terms) != len(ranks):
        raise OperandError(f"{what}: {len(ranks)} arrays for {len(terms)} inputs")
    left = [_left(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    free = [letter for letter in ascii_letters if letter not in expression]
    if (most := max(left)) > len(free):
        raise ContractionError(f"{what}: has more than {len(ascii_letters)} labels; join some (numpy.reshape)")
    fresh = "".join(free[:most])
    labels = tuple(_filled(term, fresh[most - rank :]) for term, rank in zip(terms, left, strict=True))
    if not arrow:
        once = (label for label, times in Counter("".join(labels)).items() if times == 1 and label not in fresh)
        return Expression(labels, fresh + "".join(sorted(once)))
    result = _term(out, what)
    if fresh and not result[1]:
        raise ContractionError(f"{what}: its output needs the ellipsis of its inputs; sum the result afterwards")
    return Expression(labels, _checked(_filled(result, fresh), labels, what))


def _term(text: str, what: str) -> Term:
    found = _TERM.fullmatch(text)
    if found is None:
        raise ContractionError(f"{what}: {clip(repr(text))} has more than letters and one ellipsis")
    before, dots, behind = found.groups()
    return before, bool(dots), behind or ""


def _left(term: Term, rank: int) -> int:
    """Axes that an ellipsis stands for."""
    before, dots, behind = term
    left = rank - len(before + behind)
    if left < 0 or (left and not dots):
        shown = f"{before}{'...' * dots}{behind}"
        raise OperandError(f"operand {clip(shown)!r} has {len(before + behind)} labels; its array has {rank} axes")
    return left


def _filled(term: Term, fresh: str) -> str:
    return f"{term[0]}{fresh * term[1]}{term[2]}"


def _checked(out: str, inputs: Sequence[str], what: str) -> str:
    if twice := [label for label, times in Counter(out).items() if times > 1]:
        raise ContractionError(f"{what}: label {twice[0]} stands twice in the output; numpy.diagflat makes diagonals")
    if new := sorted(set(out).difference(*inputs)):
        raise ContractionError(f"label {new[0]}: no input has it: broadcast the result afterwards (numpy.broadcast_to)")
    return out


def joined(expression: Expression, arrays: Sequence[np.ndarray]) -> tuple[Expression, list[np.ndarray], dict[str, int]]:
    """The same with diagonals as views, and without axes of one position of labels that other operands have more of.

    The sizes of labels come with it. OperandError for sizes that contradict each other.
    """
    taken = [_diagonal(labels, array) for labels, array in zip(expression.inputs, arrays, strict=True)]
    sizes: dict[str, int] = {}
    for labels, array in taken:
        for label, size in zip(labels, array.shape, strict=True):
            before = sizes.setdefault(label, size)
            if 1 not in (before, size) and before != size:
                raise OperandError(f"label {label} is {before} in one operand, {size} in another")
            sizes[label] = before if size == 1 else size
    kept = [_without(labels, array, sizes) for labels, array in taken]
    return Expression(tuple(labels for labels, _ in kept), expression.out), [array for _, array in kept], sizes


def _diagonal(labels: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    while twice := next((label for label in labels if labels.count(label) > 1), ""):
        first = labels.index(twice)
        second = labels.index(twice, first + 1)
        if array.shape[first] != array.shape[second]:
            raise OperandError(
                f"label {twice} is {array.shape[first]} and {array.shape[second]} in one operand: it has no diagonal"
            )
        array = np.diagonal(array, 0, first, second)
        labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + twice
    return labels, array


def _without(labels: str, array: np.ndarray, sizes: dict[str, int]) -> tuple[str, np.ndarray]:
    kept = [array.shape[axis] == sizes[label] for axis, label in enumerate(labels)]
    places = tuple(slice(None) if stays else 0 for stays in kept)
    return "".join(label for label, stays in zip(labels, kept, strict=True) if stays), array[places]
