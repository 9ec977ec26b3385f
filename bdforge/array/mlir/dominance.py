"""Which blocks of a region come before which on every way through it."""

from xdsl.ir import Block, Region


class Dominance:
    """Immediate dominators by Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001)."""

    def __init__(self, region: Region):
        self._order = _reverse_postorder(region)
        self._parent: dict[Block, Block] = {}
        if not self._order:
            return
        blocks = list(self._order)
        before = _predecessors(blocks)
        self._parent[blocks[0]] = blocks[0]
        changed = True
        while changed:
            changed = False
            for block in blocks[1:]:
                nearest = self._nearest([b for b in before[block] if b in self._parent])
                changed |= self._parent.get(block) is not nearest
                self._parent[block] = nearest
        self._spans = _spans(blocks, self._parent)

    def _nearest(self, blocks: list[Block]) -> Block:
        nearest = blocks[0]
        for block in blocks[1:]:
            other = block
            while other is not nearest:
                if self._order[other] > self._order[nearest]:
                    other = self._parent[other]
                else:
                    nearest = self._parent[nearest]
        return nearest

    def dominates(self, block: Block, other: Block) -> bool:
        """Whether every way to `other` passes `block`; true for blocks that nothing leads to, as in MLIR."""
        if other not in self._order:
            return True
        if block not in self._order:
            return False
        first, last = self._spans[block]
        return first <= self._spans[other][0] <= last


def _spans(blocks: list[Block], parent: dict[Block, Block]) -> dict[Block, tuple[int, int]]:
    """For each block its number in a walk of the tree of dominators, and the last one of the blocks below it."""
    children: dict[Block, list[Block]] = {block: [] for block in blocks}
    for block in blocks[1:]:
        children[parent[block]].append(block)
    order, stack = [], blocks[:1]
    while stack:
        block = stack.pop()
        order.append(block)
        stack += children[block]
    last = {block: number for number, block in enumerate(order)}
    numbers = dict(last)
    for block in reversed(order[1:]):
        last[parent[block]] = max(last[parent[block]], last[block])
    return {block: (numbers[block], last[block]) for block in blocks}


def _successors(block: Block) -> tuple[Block, ...]:
    return () if block.last_op is None else tuple(block.last_op.successors)


def _predecessors(blocks: list[Block]) -> dict[Block, list[Block]]:
    before: dict[Block, list[Block]] = {block: [] for block in blocks}
    for block in blocks:
        for successor in _successors(block):
            before[successor].append(block)
    return before


def _reverse_postorder(region: Region) -> dict[Block, int]:
    first = region.blocks.first
    if first is None:
        return {}
    seen, finished = {first}, list[Block]()
    stack = [(first, iter(_successors(first)))]
    while stack:
        block, successors = stack[-1]
        following = next((b for b in successors if b not in seen), None)
        if following is None:
            finished.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(_successors(following))))
    return {block: index for index, block in enumerate(reversed(finished))}
