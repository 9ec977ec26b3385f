"""Where the values of a core program live: the busiest in registers, the rest on the stack, constants nowhere."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from bdforge.array.mlir.locations import location
from bdforge.array.mlir.memory_ops import BufferOp
from bdforge.core.codegen.errors import CodegenError


def refused(op: Operation, reason: str) -> CodegenError:
    """The error about an operation of a core's program."""
    return CodegenError(f"{location(op)}: {reason}")


LOOP_WEIGHT = 8  # how often a loop is taken to go round
_WIDTHS = (1, 8, 16, 32)

Home = str | int
"""A register, or the number of a word on the stack."""


def constant_of(value: SSAValue) -> int | None:
    """The number that a value always is, wrapped to 32 bits unless it is an index; None for others."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        number = op.value.value.data
        return abs(number) if value.type == IntegerType(1) else number
    if isinstance(op, Operation) and op.name in ("arith.index_cast", "arith.extsi"):
        number = constant_of(op.operands[0])
        return -number if number and op.operands[0].type == IntegerType(1) else number
    return None


def is_number(kind: Attribute) -> bool:
    """Whether values of a type are integers that a register holds."""
    return isinstance(kind, IntegerType | IndexType)


def check_type(value: SSAValue, op: Operation) -> None:
    """CodegenError for a value that no register of 32 bits holds."""
    kind = value.type
    fits = isinstance(kind, IndexType | MemRefType) or (isinstance(kind, IntegerType) and kind.width.data in _WIDTHS)
    if not fits:
        raise refused(
            op, f"values of {kind} have no machine code here; there are integers up to 32 bits, index and memref"
        )


class Homes:
    """Homes of all values of a program that are no constants; `slots` words of stack are used, `free` registers not."""

    def __init__(self, body: Block, registers: Sequence[str]) -> None:
        self._same: dict[SSAValue, SSAValue] = {}
        weights: dict[SSAValue, int] = {}
        self._weigh(body, 1, weights)
        ordered = sorted(weights, key=lambda value: -weights[value])
        self._homes: dict[SSAValue, Home] = dict(zip(ordered, registers, strict=False))
        self._homes |= {value: slot for slot, value in enumerate(ordered[len(registers) :])}
        self.free = tuple(registers[len(ordered) :])
        self.slots = max(0, len(ordered) - len(registers))

    def __getitem__(self, value: SSAValue) -> Home:
        return self._homes[self._root(value)]

    def _root(self, value: SSAValue) -> SSAValue:
        while value in self._same:
            value = self._same[value]
        return value

    def word(self) -> int:
        """One more word of the stack."""
        self.slots += 1
        return self.slots - 1

    def _weigh(self, block: Block, weight: int, weights: dict[SSAValue, int]) -> None:
        for op in block.ops:
            inner = weight * (LOOP_WEIGHT if isinstance(op, scf.ForOp | scf.WhileOp) else 1)
            for result, same in _shared(op).items():
                self._same[result] = same
            for value in (*op.results, *(arg for region in op.regions for b in region.blocks for arg in b.args)):
                fixed = constant_of(value) is not None or op.name.startswith("aie.") or fixed_view(value) is not None
                if value not in self._same and not fixed:
                    weights.setdefault(value, 0)
            for value in map(self._root, op.operands):
                if value in weights:
                    weights[value] += weight
            for region in op.regions:
                for inside in region.blocks:
                    self._weigh(inside, inner, weights)


def _shared(op: Operation) -> Mapping[SSAValue, SSAValue]:
    """Values that live where another does: results of loops, what goes round, and casts that change nothing."""
    if isinstance(op, scf.ForOp):
        block = op.body.block
        carried = block.args[1:]
        last = block.last_op
        following = zip(last.operands if isinstance(last, scf.YieldOp) else (), carried, strict=False)
        first = zip(op.iter_args, carried, strict=True)
        return (
            dict(zip(op.results, carried, strict=True))
            | {n: c for n, c in following if _replaces(n, c, block)}
            | {c: f for f, c in first if _hands_over(f, op)}
        )
    if isinstance(op, scf.WhileOp):
        return dict(zip(op.results, op.after_region.block.args, strict=True))
    if is_same(op):
        return {op.results[0]: op.operands[0]} if constant_of(op.operands[0]) is None else {}
    return {}


def is_same(op: Operation) -> bool:
    """Whether the result is the operand, in a register: an index and its 32 bits."""
    return op.name == "arith.index_cast" and IntegerType(32) in (op.operands[0].type, op.results[0].type)


def fixed_view(value: SSAValue) -> memref.ViewOp | None:
    """The view of a buffer from a byte on that the text tells, which a value is: an address."""
    op = value.owner
    if not isinstance(op, memref.ViewOp) or constant_of(op.byte_shift) is None:
        return None
    return op if isinstance(op.source.owner, BufferOp) or fixed_view(op.source) else None


def _hands_over(first: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a loop's first value is read by nobody else, has a home of its own, and is made when the loop begins."""
    made = first.owner
    alone = not (isinstance(made, Operation) and is_same(made)) and len(list(first.uses)) == 1
    block = made if isinstance(made, Block) else made.parent_block()
    return alone and constant_of(first) is None and block is loop.parent_block()


def _replaces(following: SSAValue, carried: SSAValue, block: Block) -> bool:
    """Whether the next pass's value is made when nobody reads this pass's any more, and only for the next pass.

    A loop inside that begins with this pass's value goes on with it (`_hands_over`), so its readers are not all known.
    """
    made = following.owner
    if not isinstance(made, Operation) or made.parent_block() is not block or made.regions:
        return False
    if constant_of(following) is not None or len(list(following.uses)) != 1:
        return False
    if any(isinstance(use.operation, scf.ForOp) for use in carried.uses):
        return False
    last = block.get_operation_index(made)
    readers = [block.find_ancestor_op_in_block(use.operation) for use in carried.uses]
    return all(reader is not None and block.get_operation_index(reader) <= last for reader in readers)


class Constants:
    """Counts how often constants are read, by their texts; `kept` are those that have a register."""

    def __init__(self, kept: Mapping[str, str]) -> None:
        self.kept = kept
        self._weight = 1
        self._reads: Counter[str] = Counter()

    @contextmanager
    def loop(self) -> Iterator[None]:
        """What is read inside is read often."""
        self._weight *= LOOP_WEIGHT
        yield
        self._weight //= LOOP_WEIGHT

    def read(self, text: str) -> str | None:
        """The register of a constant, None for one that must be loaded."""
        self._reads[text] += self._weight
        return self.kept.get(text)

    def best(self, registers: Sequence[str]) -> dict[str, str]:
        """Registers for what loops have read most; a program without loops keeps nothing."""
        often = [text for text, reads in self._reads.most_common() if reads >= LOOP_WEIGHT]
        return dict(zip(often, registers, strict=False))
