"""Contractions of several tensors: a path of pairs, each of which runs on the loaded array.

The order of an intermediate's labels is free: of those that suit its next contraction, the one with which both take
the least time, host copies included, is chosen. Intermediates are rounded to the type that the array takes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bdforge.operators.contraction import ContractionError, contraction, plan_contraction
from bdforge.operators.gemm import GemmPlan

Path = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class TreeStep:
    """Tensors `x` and `y` become tensor `out`; inputs are numbered first, then the results in order."""

    x: int
    y: int
    out: int


@dataclass(frozen=True, slots=True)
class Tree:
    """Steps, and the labels of every tensor; of an intermediate in the order in which it is kept."""

    steps: tuple[TreeStep, ...]
    labels: tuple[str, ...]

    def expression(self, step: TreeStep) -> str:
        """A step as einsum has it. Labels that only one of its tensors has are summed on the host before."""
        needed = self.labels[step.out]
        x, y = self.labels[step.x], self.labels[step.y]
        left = "".join(label for label in x if label in y or label in needed)
        right = "".join(label for label in y if label in x or label in needed)
        return f"{left},{right}->{needed}"

    def summed(self, number: int, labels: str) -> str | None:
        """The host's sum that a tensor needs before a step takes it with `labels`; None where there is none."""
        return None if self.labels[number] == labels else f"{self.labels[number]}->{labels}"


def path_of(expression: str, arrays: Sequence[np.ndarray]) -> Path:
    """Pairs in order, by numpy's own search."""
    left, pairs = len(arrays), []
    for step in np.einsum_path(expression, *arrays, optimize="greedy")[0][1:]:
        places = sorted(step)  # more than two where numpy finds nothing to sum over
        while len(places) > 1:
            x, y, *rest = places
            pairs.append((x, y))
            left -= 1
            places = [*(place - (place > x) - (place > y) for place in rest), left - 1]
    return pairs


def tree_of(expression: str, path: Path) -> Tree:
    """The steps of a path: at each pair, as opt_einsum and numpy number them, the result goes behind the others.

    ContractionError for paths of others than pairs, or that leave several tensors.
    """
    inputs, _, out = expression.partition("->")
    labels = inputs.split(",")
    here, steps = list(range(len(labels))), []
    for pair in path:
        if len(set(pair)) != 2 or not set(pair) <= set(range(len(here))):
            raise ContractionError(f"path: {tuple(pair)} are not two tensors of {len(here)}; contract them in pairs")
        y, x = (here.pop(place) for place in sorted(pair, reverse=True))
        others = "".join(labels[number] for number in here) + out
        both = dict.fromkeys(labels[x] + labels[y])
        labels.append("".join(label for label in both if label in others) if here else out)
        steps.append(TreeStep(x, y, len(labels) - 1))
        here.append(len(labels) - 1)
    if len(here) > 1:
        raise ContractionError(f"path: leaves {len(here)} tensors; contract them all, in pairs")
    return Tree(tuple(steps), tuple(labels))


def arranged(tree: Tree, sizes: Mapping[str, int], gemm: GemmPlan) -> Tree:
    """The tree with every intermediate in the order that takes the least time (modelled)."""
    for step in tree.steps:
        reader = next((other for other in tree.steps if step.out in (other.x, other.y)), None)
        if reader is None:
            continue
        both = (step, reader)
        found = [_relabelled(tree, step.out, order) for order in _orders(tree, step, reader)]
        tree = min(found, key=lambda one: sum(_us(one.expression(each), sizes, gemm) for each in both))
    return tree


def _orders(tree: Tree, step: TreeStep, reader: TreeStep) -> Iterator[str]:
    """Orders of an intermediate: as it comes, and with what the reader sums over last or first."""
    labels, needed = tree.labels[step.out], tree.labels[reader.out]
    summed = "".join(label for label in labels if label not in needed)
    kept = "".join(sorted((label for label in labels if label in needed), key=needed.index))
    yield from dict.fromkeys((labels, kept + summed, summed + kept))


def _relabelled(tree: Tree, number: int, labels: str) -> Tree:
    return replace(tree, labels=(*tree.labels[:number], labels, *tree.labels[number + 1 :]))


def _us(expression: str, sizes: Mapping[str, int], gemm: GemmPlan) -> float:
    own = {label: size for label, size in sizes.items() if label in expression}
    return plan_contraction(contraction(expression, own), gemm).choice.price.total_us()
