"""Dominators of random graphs of blocks, against networkx."""

from random import Random

import networkx as nx
import pytest

from bdforge.array.mlir import parse
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.dominance import Dominance


def region_of(ends: list[list[int]]):
    """A core's region whose block i goes on to `ends[i]` (none, one or two of them)."""
    blocks = "".join(f"^b{i}:\n{_end(i, ends)}\n" for i, ends in enumerate(ends))
    text = f"module {{ aie.device(npu2) {{ %t = aie.tile(0, 2)\n%c = aie.core(%t) {{\ncf.br ^b0\n{blocks}}} }} }}"
    (core,) = (op for op in parse(text).walk() if isinstance(op, CoreOp))
    return core.body


def _end(block: int, ends: list[int]) -> str:
    if len(ends) == 2:
        return f"%c{block} = arith.constant true\ncf.cond_br %c{block}, ^b{ends[0]}, ^b{ends[1]}"
    return f"cf.br ^b{ends[0]}" if ends else "aie.end"


@pytest.mark.parametrize("seed", range(30))
def test_dominators_are_those_of_networkx(seed):
    random = Random(seed)
    count = random.randrange(2, 12)
    ends = [[random.randrange(count) for _ in range(random.randrange(3))] for _ in range(count)]
    region = region_of(ends)
    blocks = list(region.blocks)[1:]
    graph = nx.DiGraph((i, end) for i, many in enumerate(ends) for end in many)
    graph.add_nodes_from(range(count))
    immediate = nx.immediate_dominators(graph, 0) | {0: None}
    dominance = Dominance(region)
    for i in range(count):
        above, current = set(), i if i in immediate else None
        while current is not None:
            above.add(current)
            current = immediate[current]
        for j in range(count):
            assert dominance.dominates(blocks[j], blocks[i]) == (i not in immediate or j in above)
