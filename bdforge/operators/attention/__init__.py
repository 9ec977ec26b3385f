"""Attention, Y = softmax(Q K^T scale) V head by head: what a spec says, its plan for a product, reference and cost."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from bdforge.design import Design
from bdforge.design.check_memory import stack_room
from bdforge.design.sequences import PlannedSequence, Program
from bdforge.design.sequences.interpret import StartedTask
from bdforge.devices import AIE2P, Device
from bdforge.devices.limits import CORE
from bdforge.operators.attention.core_memory import BLOCKS, HAS_MASK, HEADER
from bdforge.operators.attention.few_mapping import map_few
from bdforge.operators.attention.mapping import map_attention
from bdforge.operators.attention.program import AXES, AttentionProgram, K, Q
from bdforge.operators.attention.reference import Attended
from bdforge.operators.attention.tiling import SYMBOLS, AttentionTiling
from bdforge.operators.operator_api import Cost, Expected, Kernels, Operator, Plan
from bdforge.operators.specs import (
    STACK_BYTES,
    WHOLE,
    Count,
    FormSpec,
    PlacedArray,
    Problem,
    ProblemForm,
    Section,
    Size,
    SpecForm,
    design_reasons,
    for_array,
    refuse,
    stack_reasons,
)

KIND = "attention"
_TILE = 8  # lines and columns
_SCORES, _VALUES = {1: (8, 22, 42), 2: (14, 30, 56)}, {1: (10, 18, 44), 2: (15, 21, 80)}
_QUERIES = {1: (18, 33), 2: (26, 46)}
"""Of machine code, by digits: cycles of a depth of 2 x 2 tiles, between these, and of a call beside them; of two tiles
of queries, and of a call beside them."""


class AttentionProblem(ProblemForm):
    """Queries, and keys with those of the queries: query i stands where key keys - queries + i does."""

    queries: Size
    keys: Size


class AttentionTile(Section):
    """Queries of a core at a time, and keys of a block; none: what its memory holds of the head's dimension."""

    queries: Annotated[int, Field(ge=16, le=256, multiple_of=16, strict=True)]
    keys: Annotated[int, Field(ge=16, le=256, multiple_of=16, strict=True)]


class AttentionForm(SpecForm[AttentionProblem]):
    """An attention design. Scores times `scale`, none: 1 / sqrt(head_dim); a `window` of 0 are all keys.

    With a `soft_cap` scores x become soft_cap * tanh(x / soft_cap). For `few_queries` each core has keys of its own,
    those of a KV head in `kv_splits` ranges; none: as many as leave no column idle.
    """

    kind: Literal["attention"]
    heads: Annotated[int, Field(ge=1, le=1024, strict=True)]
    kv_heads: Annotated[int, Field(ge=1, le=1024, strict=True)]
    head_dim: Annotated[Literal[64, 128, 256], WHOLE]
    causal: bool = True
    window: Count = 0
    scale: Annotated[float, Field(ge=1e-4, le=16)] | None = None
    soft_cap: Annotated[float, Field(ge=1, le=60)] | None = None
    digits: Annotated[Literal[1, 2], WHOLE] = 2
    few_queries: bool = False
    kv_splits: Annotated[int, Field(ge=1, le=16, strict=True)] | None = None
    tile: AttentionTile | None = None
    array: PlacedArray = PlacedArray()
    stack_bytes: Size | None = None


class AttentionSpec(FormSpec[AttentionForm]):
    """An attention design's spec."""

    kind: ClassVar[str] = KIND
    FORM = AttentionForm

    @property
    def attended(self) -> Attended:
        """What is computed."""
        form = self.form
        scale = form.scale or form.head_dim**-0.5
        return Attended(scale, form.causal, form.window, form.digits, form.soft_cap or 0)


@dataclass(frozen=True, repr=False)
class AttentionPlan(Plan):
    """Every number of an attention design."""

    spec: AttentionSpec
    device: Device
    design: Design
    tiling: AttentionTiling

    @cached_property
    def program(self) -> Program:  # type: ignore[override]
        """The runtime sequence of any queries and keys."""
        form, steps, cores = self.spec.form, self.spec.sequence.steps, self.spec.form.array.cores(self.design)
        way = form.causal, form.window, steps, form.array.first_column
        return AttentionProgram(self.tiling, cores, *way).program()

    @property
    def kernels(self) -> Kernels:
        """One for each part of a core's work."""
        form, tiling = self.spec.form, self.tiling
        facts = {
            "DIM_M": tiling.queries, "DIM_K": tiling.head_dim, "DIM_N": tiling.keys, "GROUP": tiling.group,
            "HEADS": tiling.heads_of_item, "KV_HEADS": tiling.kv_heads, "ROWS": tiling.streams,
            "COLUMNS": tiling.sharing, "KV_SPLITS": tiling.splits, "DIGITS": form.digits,
            "SCORE_SCALE": self.spec.attended.scale, "CAUSAL": int(form.causal), "WINDOW": form.window,
            "SOFT_CAP": form.soft_cap or 0, "QUERIES_FROM": 0 if tiling.few else tiling.pair_elements,
        }  # fmt: skip
        defines = tuple(f"{name}={value!r}" for name, value in facts.items())
        cycles = {SYMBOLS[part]: count for part, count in self._cycles.items()}
        return Kernels.ours(tiling.symbols, defines, {symbol: cycles[symbol] for symbol in tiling.symbols})

    @property
    def _cycles(self) -> dict[str, int]:
        """Of a call, as assembled kernels have them, within a few percent; `rescale` and `align` are rare.

        `begin` takes up to 50 more where it divides by numbers that are no powers of two, such as 5 KV heads.
        """
        tiling, digits = self.tiling, self.spec.form.digits
        rows, keys, dims = (size // _TILE for size in (tiling.queries, tiling.keys, tiling.head_dim))
        (depth, block, call), (key, tiles, calls), (two, kept) = _SCORES[digits], _VALUES[digits], _QUERIES[digits]
        return {
            "begin": 8 * rows + 80, "queries": two * dims + kept,
            "scores": rows * keys // 4 * (depth * dims + block) + call,
            "mask": rows * (15 * keys + 33) * (2 if self.spec.form.window else 1) + 51,
            "cap": rows * keys * 186 + 142, "weights": rows * (35 * keys + 4) + 111,
            "rescale": rows * (1220 + 24 * keys + 28 * dims) + 40,
            "values": rows * dims // 4 * (key * keys + tiles) + calls, "end": 14 * dims + 258,
            "meet": rows * 3 // 2 + 21, "align": rows * (56 * dims + 379) + 40, "join": rows * (dims + 1) * 8 + 39,
        }  # fmt: skip

    def control(self, sequence: PlannedSequence) -> dict[str, Callable[..., None]]:
        """Blocks of each round as K's tasks bring them, the last two of a causal pass with a mask."""
        tiling = self.tiling
        blocks: dict[int, list[int]] = {}
        for task in sequence.tasks():
            counts, held = blocks.setdefault(task.column, []), {bd.argument for bd in task.bds}
            if Q in held if tiling.few else K in held:
                counts.append(0)
            if K in held:
                counts[-1] += self._blocks_of(task)

        def begin(state: np.ndarray, _words: Any, number: int, row: int, column: int) -> None:
            part = column if tiling.few else 0
            state[BLOCKS] = blocks[tiling.stream_column(row) + part][number]
            state[HEADER - 1] = state[BLOCKS] + 2 * (part < tiling.splits - 1)

        def scores(_q: Any, _k: Any, _s: Any, state: np.ndarray) -> None:
            state[HEADER - 1] -= 1
            state[HAS_MASK] = self.spec.form.causal and state[HEADER - 1] < 2

        return {SYMBOLS["begin"]: begin, SYMBOLS["scores"]: scores}

    def _blocks_of(self, task: StartedTask) -> int:
        """Blocks of keys that a task brings."""
        return sum(prod(bd.pattern.sizes) for bd in task.bds if bd.argument == K) // self.tiling.block_elements

    def reference(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
        """Y in float64, and how far it may be off. Q, K and V are finite."""
        return {"Y": self.spec.attended.expected(inputs["Q"], inputs["K"], inputs["V"])}

    def cost(self, problem: Problem) -> Cost:
        """What a run moves, and the cycles of a core that has a pass in every round, the longest first."""
        sequence, cycles, tiling = self.sequence(problem), self._cycles, self.tiling
        queries, keys = problem.sizes.values()
        blocks = sum(map(self._blocks_of, sequence.tasks()))
        items = -(-queries // tiling.item_queries) * (tiling.group // tiling.heads_of_item)
        rounds = -(-(-(-items // tiling.sharing) * tiling.kv_heads) // tiling.streams)
        block = sum(cycles[part] for part in ("scores", "weights", "values", *(("cap",) if tiling.capped else ())))
        item = cycles["begin"] + tiling.pairs * (cycles["queries"] + cycles["end"]) + 2 * cycles["mask"]
        spent = blocks / tiling.readers * block + rounds * item
        spent += rounds * (tiling.splits - 1) * (cycles["meet"] + cycles["join"])
        return Cost.of(sequence, self._operations(queries, keys), spent)

    def _operations(self, queries: int, keys: int) -> int:
        """MACs of both products, of the keys that queries see."""
        seen = np.full(queries, keys)
        if self.spec.form.causal:
            seen = np.arange(keys - queries, keys) + 1
        if window := self.spec.form.window:
            seen = np.minimum(seen, window)
        return int(seen.sum()) * 2 * self.tiling.heads * self.tiling.head_dim


_TILES = {64: (64, 32), 128: (32, 32), 256: (16, 16)}
"""Queries and keys of a tile by dimension, two digits or one."""
_FEW_TILES = {64: (16, 32), 128: (16, 32), 256: (16, 16)}
"""Those for few queries; all heads of a group that are more than 16 take more lines."""


def plan_attention(spec: AttentionSpec, device: Device) -> AttentionPlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    form, tiling = spec.form, _tiling(spec, device)
    refuse(spec, _reasons(spec, tiling, device))
    comment = (
        f"{spec.name}: attention of {form.heads} heads to {form.kv_heads} of K and V, {form.head_dim} dimensions, "
        f"{tiling.queries} queries and {tiling.keys} keys at a time, {tiling.rows} x {tiling.columns} cores "
        "(rows x columns)."
    )
    design = form.array.arranged(_mapped(spec, tiling, device, comment))
    refuse(spec, design_reasons(design, {"memory": "a smaller tile or stack_bytes"}))
    return AttentionPlan(spec, device, design, tiling)


_LEAST_STACK = 2048
"""What a spec that leaves the stack open has at least: Peano's frames take up to 1,216 bytes (Xilinx/mlir-air 1980)."""


def _mapped(spec: AttentionSpec, tiling: AttentionTiling, device: Device, comment: str) -> Design:
    """The design; where a spec leaves the stack open, and buffers leave less than is usual, with what they leave."""
    form, mapping = spec.form, map_few if tiling.few else map_attention
    array = form.array.part(tiling.columns, device)
    design = mapping(spec.name, array, tiling, form.stack_bytes or STACK_BYTES, comment)
    room = min(stack_room(tile, CORE) for tile in design.tiles if tile.core)
    if form.stack_bytes or not _LEAST_STACK <= room < STACK_BYTES:
        return design
    return mapping(spec.name, array, tiling, room, comment)


def _tiling(spec: AttentionSpec, device: Device) -> AttentionTiling:
    """As a spec says; where it leaves columns open, for few queries as many as take the KV heads in equal rounds.

    Where it leaves splits open, as many as there are columns for. Machine code that caps or windows scores and joins
    sums fits a core with blocks of 16 keys.
    """
    form, few = spec.form, spec.form.few_queries
    queries, keys = (_FEW_TILES if few else _TILES)[form.head_dim]
    free = max(1, device.columns - form.array.first_column)
    splits = form.kv_splits or (_splits(form.kv_heads, form.array.columns, free) if few else 1)
    if splits > 1 and (form.soft_cap or form.window):
        keys = 16
    if form.tile:
        queries, keys = form.tile.queries, form.tile.keys
    rounds = -(-form.kv_heads // max(1, free // splits))
    columns = form.array.columns or (-(-form.kv_heads // rounds) * splits if few else device.columns)
    sizes = (form.heads, form.kv_heads, form.head_dim, queries, keys, form.array.rows, columns)
    return AttentionTiling(*sizes, capped=form.soft_cap is not None, few=few, splits=splits)


def _splits(kv_heads: int, columns: int | None, most: int) -> int:
    """The largest number of ranges for which each KV head has columns: of `columns`, a part of them."""
    fitting = (n for n in range((columns or most) // kv_heads, 1, -1) if not columns or columns % n == 0)
    return next(fitting, 1)


def _reasons(spec: AttentionSpec, tiling: AttentionTiling, device: Device) -> Iterator[str]:
    form = spec.form
    yield from form.array.reasons(tiling.rows, tiling.columns, device)
    yield from stack_reasons("stack_bytes", form.stack_bytes or STACK_BYTES, device)
    if device.generation.name != AIE2P.name:
        yield f"{device.name} is {device.generation.name}, which has no block floats, in which attention's products are"
    if form.heads % form.kv_heads:
        yield f"heads = {form.heads} are no multiple of kv_heads = {form.kv_heads}, which share them"
    if form.window and not form.causal:
        yield "a window ends with the query's own key; it needs causal = true"
    if tiling.few:
        yield from _few_reasons(tiling)
    elif tiling.splits > 1:
        yield f"kv_splits = {tiling.splits}: rows of cores share their keys; split them with few_queries = true"
    elif tiling.columns < 2 * tiling.rows:
        yield (
            f"{tiling.rows} x {tiling.columns} cores: K and V of a row come by two columns; use array.columns >= "
            f"{2 * tiling.rows}, or fewer array.rows"
        )


def _few_reasons(tiling: AttentionTiling) -> Iterator[str]:
    if tiling.columns % tiling.splits:
        yield (
            f"array.columns = {tiling.columns} are no multiple of kv_splits = {tiling.splits}, the columns that have a "
            "KV head; leave out one of them"
        )
    if tiling.rows > 1:
        yield f"array.rows = {tiling.rows}: few_queries takes one core of each column; use array.rows = 1"
    if tiling.group > tiling.queries:
        yield (
            f"{tiling.group} heads share a KV head, more than the tile.queries = {tiling.queries} lines in which "
            "few_queries has them side by side; use more"
        )
    if tiling.keys % tiling.queries:
        yield (
            f"tile.keys = {tiling.keys} are no multiple of tile.queries = {tiling.queries}; with few_queries a block "
            "of keys holds the queries, too"
        )


def fits(spec: AttentionSpec, device: Device) -> bool:
    """Whether a product multiplies block floats, and has the cores."""
    return device.generation.name == AIE2P.name and for_array(spec, device)


OPERATOR = Operator(KIND, AXES, AttentionSpec.load, plan_attention, fits)
