"""A text in the other form of the dialect: the operations that differ are written anew, all else stays as it is."""

import re
from collections.abc import Iterator
from io import StringIO
from itertools import count
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.bd_ops import DmaBdOp, bd_of
from bdforge.array.mlir.device_ops import TileOp
from bdforge.array.mlir.dialect_forms import Era, era_of, require_march
from bdforge.array.mlir.dma_ops import BdChainOp, DmaOp, DmaProgramOp, PaddingOp
from bdforge.array.mlir.errors import SourceText
from bdforge.array.mlir.locations import error_at, keep_name, source_of, span_of, text_name
from bdforge.array.mlir.operation import AieOperation
from bdforge.array.mlir.printer import TextPrinter
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp, SetLockOp
from bdforge.array.mlir.spellings import current
from bdforge.array.mlir.stream_ops import PacketFlowOp
from bdforge.array.mlir.task_ops import ConfigureTaskOp
from bdforge.array.mlir.trace_ops import TraceOp
from bdforge.array.mlir.verify import read_module

_NAME = re.compile(r"%([\w$.-]+)", re.ASCII)
_COMMENT = re.compile(r"//[^\n]*")
_CLAUSE = re.compile(r"\)\s*attributes\s*\{[^{}]*\}(?=\s*\{)")
_BD_BLOCKS = (DmaOp, ConfigureTaskOp, BdChainOp)
_REGIONS = (DmaProgramOp, CoreOp, FuncOp, RuntimeSequenceOp)


class Edit(NamedTuple):
    """Text that takes the place of what stands from `start` to `end`."""

    start: int
    end: int
    text: str


def convert(context: Context, source: SourceText, era: Era) -> str:
    """The text of `source` in the form of `era`, comments and layout kept; as it is where it has that form.

    Spellings of 2023 to 2025 (`bdforge.array.mlir.spellings`) become those of 1.3.4 first. MlirError for a text that is
    no design then, and at an operation that the other form cannot say.
    """
    if (text := current(source.text)) != source.text:
        source = SourceText(text, source.file)
    module = read_module(context, source)
    if era_of(module) in (None, era):
        return source.text
    if era is Era.MARCH:
        require_march(module)
        return _edited(source.text, list(_march_edits(module, source)))
    return _edited(source.text, list(_modern_edits(module, source)))


def _edited(text: str, edits: list[Edit]) -> str:
    parts, end = [], 0
    for edit in sorted(edits, key=lambda edit: edit[:2]):
        parts += [text[end : edit.start], edit.text]
        end = edit.end
    return "".join([*parts, text[end:]])


def _differing(module: ModuleOp) -> Iterator[AieOperation]:
    """Operations whose numbers are spelled differently."""
    for op in module.walk():
        if isinstance(op, DmaBdOp) or (isinstance(op, AieOperation) and op.NUMBERS):
            yield op


def _printed(op: Operation) -> str:
    stream = StringIO()
    printer = _NamedPrinter(stream, generic=False)
    printer.print_string(op.name)
    op.print(printer)
    return stream.getvalue()


class _NamedPrinter(TextPrinter):
    """Writes values by the names that they have in their text."""

    def print_ssa_value(self, value: SSAValue) -> str:
        name = f"%{text_name(value)}"
        self.print_string(name)
        return name


def _rewritten(op: Operation, text: str) -> Edit:
    """The edit that replaces an operation, from its name on."""
    span = span_of(op)
    assert span is not None
    return Edit(_offset(op), span[1], text)


def _offset(op: Operation) -> int:
    found = source_of(op)
    return 0 if found is None else found[1]


# to the form up to 1.3.4


def _march_edits(module: ModuleOp, source: SourceText) -> Iterator[Edit]:
    flows: dict[int, list[PacketFlowOp]] = {}
    for op in module.walk():
        offset = _offset(op)
        if isinstance(op, PacketFlowOp):
            flows.setdefault(offset, []).append(op)
        elif isinstance(op, TileOp) and source.text.startswith("aie.logical_tile", offset):
            yield _rewritten(op, _printed(op))
        elif isinstance(op, RuntimeSequenceOp):
            if (clause := _CLAUSE.search(source.text, offset, _first_offset(op.body.block))) is not None:
                yield Edit(*clause.span(), ")")
        elif _names_size(op, "aie.trace.host_config"):
            raise error_at(op, f"{op.name}: up to mlir-aie 1.3.1 buffer_size stands behind aie.trace; move it")
    for op in _differing(module):
        yield _rewritten(op, _printed(op))
    for parts in flows.values():
        if len(parts) > 1:
            yield _flow_parts(parts, source)
    yield from (_without(source.text, *span) for span in source.folded)


def _first_offset(block: Block) -> int:
    """Where the first operation of a block that stands in the text begins; the text's end where none does."""
    return next((span[0] for op in block.ops if (span := span_of(op)) is not None), 1 << 62)


def _flow_parts(parts: list[PacketFlowOp], source: SourceText) -> Edit:
    whole = next(part for part in parts if span_of(part) is not None)
    edit = _rewritten(whole, "")
    indent = "\n" + _indent(source.text, edit.start)
    return edit._replace(text=indent.join(_printed(part).replace("\n", indent) for part in parts))


def _indent(text: str, offset: int) -> str:
    """White space before `offset` in its line; "" where something else stands there."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line if not line.strip() else ""


def _without(text: str, start: int, end: int) -> Edit:
    """The removal of an operation, of its whole line where nothing else stands in it."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last + 1
    alone = not text[first:start].strip() and not text[end:last].strip()
    return Edit(first, last, "") if alone else Edit(start, end, "")


# to the form from 1.4 on


def _modern_edits(module: ModuleOp, source: SourceText) -> Iterator[Edit]:
    yield from _pad_values(module, source)
    constants = _Constants(source)
    for op in _differing(module):
        if not isinstance(op, SetLockOp):  # every version takes a literal there
            yield _rewritten(op, _printed(op.unfolded(lambda number, op=op: constants.value(op, number))))
    yield from constants.edits()
    for op in module.walk():
        if _names_size(op, "aie.trace"):
            where = "from mlir-aie 1.3.2 on buffer_size stands in aie.trace.host_config; write it there"
            raise error_at(op, f"aie.trace: {where}")


def _names_size(op: Operation, name: str) -> bool:
    return isinstance(op, TraceOp) and op.name == name and "buffer_size" in (op.text("text") or "")


def _pad_values(module: ModuleOp, source: SourceText) -> Iterator[Edit]:
    """Values that BDs name go to their channel, where mlir-aie wants them from 1.4.1 on."""
    moved: set[DmaBdOp] = set()
    for op in module.walk():
        if not isinstance(op, PaddingOp):
            continue
        bds = {bd for block in op.blocks if (bd := bd_of(block)) is not None and (bd.pad_value or _pads(bd))}
        moved |= bds
        if len(values := {bd.pad_value for bd in bds}) > 1:
            raise error_at(op, f"{op.name}: its BDs pad with {', '.join(map(str, sorted(values)))}; a channel has one")
        for value in values - {0}:
            yield _with_attribute(op, source.text, f"pad_value = {value} : i32")
    for op in module.walk():
        if isinstance(op, DmaBdOp) and op.pad_value and op not in moved:
            raise error_at(op, f"aie.dma_bd: from mlir-aie 1.4.1 on no task has a place for pad_value = {op.pad_value}")


def _pads(bd: DmaBdOp) -> bool:
    return any(pad.before or pad.after for pad in bd.padding)


def _with_attribute(op: PaddingOp, text: str, attribute: str) -> Edit:
    """An attribute more in the braces of a dma_start or dma, with braces where there are none."""
    edit = _rewritten(op, "")
    end = text.index(")", edit.start) + 1
    brace = re.compile(r"\s*\{").match(text, end, edit.end)
    return Edit(end, end, f" {{{attribute}}}") if brace is None else Edit(brace.end(), brace.end(), f"{attribute}, ")


class _Constants:
    """Constants that take the place of numbers, each once where mlir-aie looks for it.

    A DMA program, core, function or sequence has them at its head; BDs of a task, a chain or the region form in their
    block, since a lock's value has to be found from the BD.
    """

    def __init__(self, source: SourceText):
        self.source = source
        self.taken = set(_NAME.findall(source.text))
        self.made: dict[Block, dict[int, str]] = {}
        self.used: dict[Region | None, set[str]] = {}  # names are those of a region, not of a block

    def value(self, op: Operation, number: int) -> SSAValue:
        """What `number` is called where `op` sees it."""
        made = ConstantOp(IntegerAttr(number, i32)).result
        keep_name(made, self._called(op, number))
        return made

    def _called(self, op: Operation, value: int) -> str:
        home, in_bd = _home(op)
        known = self.made.setdefault(home, {})
        if value not in known:
            stem = name = f"c{value}_i32{'_bd' if in_bd else ''}"
            used = self.used.setdefault(home.parent, set())
            numbers = count(1)
            while name in self.taken or name in used:
                name = f"{stem}_{next(numbers)}"
            used.add(name)
            known[value] = name
        return known[value]

    def edits(self) -> Iterator[Edit]:
        """Definitions, at the head of each home."""
        text = self.source.text
        for home, known in self.made.items():
            lines = [f"%{name} = arith.constant {value} : i32" for value, name in known.items()]
            begin = _first_offset(home)
            holder = home.parent_op()
            assert holder is not None
            head = _COMMENT.sub(lambda found: " " * len(found[0]), text[_offset(holder) : begin])
            indent = "\n" + _indent(text, begin)
            brace = head.rfind("{") + 1
            if indent == "\n" or "^" in head[brace:]:
                yield Edit(begin, begin, "".join(f"{line}{indent if indent != chr(10) else ' '}" for line in lines))
            else:
                place = _offset(holder) + brace
                yield Edit(place, place, "".join(indent + line for line in lines))


def _home(op: Operation) -> tuple[Block, bool]:
    """The block whose head defines an operation's constants, and whether it is a BD's."""
    block = op.parent_block()
    while block is not None:
        holder = block.parent_op()
        if isinstance(holder, _BD_BLOCKS):
            return block, True
        if isinstance(holder, _REGIONS):
            first = holder.regions[0].blocks.first
            assert first is not None
            return first, False
        block = None if holder is None else holder.parent_block()
    raise error_at(op, f"{op.name} stands where no constants can")
