"""Contractions of several tensors: paths, labels, the steps that follow from them, and the array that takes them."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bdforge.models.tensors import einsum
from bdforge.models.tensors.contraction_tree import TreeStep, path_of, tree_of
from bdforge.models.tensors.einsum_expression import expanded
from bdforge.models.tensors.tensor_operands import typed
from bdforge.operators.contraction import ContractionError
from bdforge.runtime import BuildError, OperandError


@pytest.mark.parametrize(
    ("expression", "path", "steps", "labels"),
    [
        ("ab,bc->ac", [(0, 1)], [(0, 1, 2)], ["ac"]),
        ("ab,bc->ca", [(1, 0)], [(0, 1, 2)], ["ca"]),
        ("ab,bc,cd->ad", [(0, 1), (0, 1)], [(0, 1, 3), (2, 3, 4)], ["ac", "ad"]),
        ("ab,bc,cd->ad", [(2, 1), (0, 1)], [(1, 2, 3), (0, 3, 4)], ["bd", "ad"]),
        ("ab,bc,cd->ad", [(0, 2), (0, 1)], [(0, 2, 3), (1, 3, 4)], ["abcd", "ad"]),
        ("ab,bc,cd,de->ae", [(2, 3), (0, 1), (0, 1)], [(2, 3, 4), (0, 1, 5), (4, 5, 6)], ["ce", "ac", "ae"]),
        ("abq,bc,cd->d", [(0, 1), (0, 1)], [(0, 1, 3), (2, 3, 4)], ["c", "d"]),
        ("ab,ab->", [(0, 1)], [(0, 1, 2)], [""]),
        ("ab->ab", [], [], []),
    ],
)
def test_a_path_gives_pairs_whose_results_go_behind_the_others(expression: str, path, steps, labels):
    """Of a result's labels those stay that another tensor or the output has, in the order in which they come."""
    found = tree_of(expression, path)
    assert found.steps == tuple(TreeStep(*step) for step in steps)
    inputs = expression.partition("->")[0].split(",")
    assert found.labels == (*inputs, *labels)


@pytest.mark.parametrize("path", [[(0,)], [(0, 1, 2)], [(0, 1), ()], [(0, 0)], [(0, 3)], [(-1, 0)], [], [(0, 1)]])
def test_paths_are_of_pairs_and_leave_one_tensor(path):
    with pytest.raises(ContractionError, match=r"^path: .*in pairs"):
        tree_of("ab,bc,cd->ad", path)


def test_labels_that_one_tensor_alone_has_are_summed_on_the_host():
    tree = tree_of("abq,rbc,cd->da", [(0, 1), (0, 1)])
    first, second = tree.steps
    assert (tree.expression(first), tree.expression(second)) == ("ab,bc->ac", "cd,ac->da")
    summed = [tree.summed(number, labels) for number, labels in ((0, "ab"), (1, "bc"), (2, "cd"), (3, "ac"))]
    assert summed == ["abq->ab", "rbc->bc", None, None]


@pytest.mark.parametrize(
    ("expression", "ranks", "found"),
    [
        (" ab , bc-> a c", (2, 2), "ab,bc->ac"), ("a->", (1,), "a->"), (",->", (0, 0), ",->"),
        ("aB->Ba", (2,), "aB->Ba"), ("ba,bC", (2, 2), "ba,bC->Ca"), ("ii", (2,), "ii->"), ("", (0,), "->"),
        ("...b,b...", (3, 2), "acb,bc->ac"), ("...b,bd->...d", (1, 2), "b,bd->d"), ("...", (2,), "ab->ab"),
        ("i...i->...", (4,), "iabi->ab"), ("ab->ab...", (2,), "ab->ab"),
        ("ab,bc->aa", (2, 2), "label a stands twice in the output"), ("a1,bc->c", (2, 2), "'a1' has more than letters"),
        ("ab->a.", (2,), "'a.' has more"), ("a->b->c", (1,), "'b->c' has"), ("a...b...", (2,), "one ellipsis"),
        ("ab,bc->acz", (2, 2), "label z: no input has it: broadcast the result afterwards"),
        ("ab->ay", (2,), "label y: no input"), ("a...->a", (2,), "output needs the ellipsis"), ("ä", (1,), "'ä' has"),
        ("ab", (1,), "'ab' has 2 labels; its array has 1 axes"), ("...ab", (1,), r"'\.\.\.ab' has 2 labels"),
        ("a,b", (1,), "1 arrays for 2 inputs"), ("a->a", (1, 1), "2 arrays for 1 inputs"),
        ("...", (53,), "more than 52 labels"),
    ],
)  # fmt: skip
def test_expressions_are_numpys_with_letters_for_what_it_implies(expression: str, ranks: tuple, found: str):
    try:
        said = str(expanded(expression, ranks))
    except (ContractionError, OperandError) as error:
        said = str(error)
    assert re.search(found, said) if " " in found else said == found


def test_numpy_contracts_several_at_once_where_nothing_is_summed_over():
    arrays = [np.ones(size) for size in (2, 3, 4)]
    assert path_of("a,b,c->abc", arrays) == [(0, 1), (0, 1)]


def test_numpy_finds_the_path_of_the_fewest_products():
    arrays = [np.ones(shape, np.int8) for shape in ((2, 50), (50, 50), (50, 3))]
    assert [tuple(pair) for pair in path_of("ab,bc,cd->ad", arrays)] == [(0, 1), (0, 1)]
    assert [tuple(pair) for pair in path_of("dc,cb,ba->da", [one.T for one in arrays[::-1]])] == [(1, 2), (0, 1)]


@pytest.mark.parametrize("kind", [np.int8(3), np.array(3, np.int8)])
def test_a_number_is_an_array_without_axes(kind):
    found = typed(kind, "int8", 0)
    assert (found.shape, found.dtype, found.item()) == ((), np.int8, 3)


class Loadings:
    """What is loaded, and what runs on it."""

    def __init__(self) -> None:
        self.folders: list[tuple[str, str | None]] = []
        self.calls: list[tuple] = []

    def load(self, folder: Any, device: str | None) -> Any:
        self.folders.append((str(folder), device))
        return SimpleNamespace(design=None)

    def einsum(self, loaded: Any, plans: Any = None) -> Any:
        return lambda expression, *arrays, **options: self.calls.append((expression, *arrays, options))


@pytest.fixture
def loadings(monkeypatch) -> Loadings:
    made, module = Loadings(), sys.modules[einsum.__module__]
    monkeypatch.setattr(module, "load", made.load)
    monkeypatch.setattr(module, "Einsum", made.einsum)
    monkeypatch.setattr(module, "_KEPT", {})
    return made


def test_a_design_is_loaded_once_for_each_folder_and_device(loadings, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("BDFORGE_EINSUM", "")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BuildError, match="give its folder as on=, or in BDFORGE_EINSUM"):
        einsum("ab,bc->ac", 1, 2, device="xrt")  # type: ignore[arg-type]
    ones: Any = 1
    for on, device in (
        ("a", None),
        (Path("a"), None),
        (tmp_path / "a", None),
        ("b/../a", None),
        ("a", "xrt"),
        ("b", None),
    ):
        einsum("ab,bc->ac", ones, ones, on=on, device=device)
    assert loadings.folders == [("a", None), ("a", "xrt"), ("b", None)]
    monkeypatch.setenv("BDFORGE_EINSUM", "c")
    einsum("ab,bc->ac", ones, ones)
    einsum("ab,bc->ac", ones, ones, on="a")
    assert loadings.folders[3:] == [("c", None)]
    monkeypatch.setattr(sys.modules[einsum.__module__], "LOADED_MAX", 2)
    for on in ("d", "a", "d", "e", "d", "a"):
        einsum("ab,bc->ac", ones, ones, on=on)
    assert loadings.folders[4:] == [("d", None), ("e", None), ("a", None)]
