"""Which blocks of a region come before which on every way through it."""

from collections import defaultdict

from xdsl.ir import Block, Region


class Dominance:
    """Ways are gone backwards from the later block, which is near as a rule, up to what is known already."""

    def __init__(self, region: Region):
        self._first = region.blocks.first
        self._before: dict[Block, list[Block]] = defaultdict(list)
        self._behind: dict[Block, set[Block]] = defaultdict(set)  # by block, what it is known to dominate
        for block in region.blocks:
            for successor in () if block.last_op is None else block.last_op.successors:
                self._before[successor].append(block)

    def dominates(self, block: Block, other: Block) -> bool:
        """Whether every way to `other` passes `block`; true for blocks that nothing leads to, as in MLIR."""
        if block is self._first:
            return True
        behind, passed, waiting = self._behind[block], set[Block](), [other]
        while waiting:
            current = waiting.pop()
            if current is self._first:
                return False
            if current is not block and current not in behind and current not in passed:
                passed.add(current)
                waiting += self._before[current]
        behind |= passed
        return True
