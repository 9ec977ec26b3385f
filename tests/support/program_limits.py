"""Every limit of the form of sequence programs and targets, with where it stands in one that has all parts."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bdforge.design.manifest import SequenceFacts
from bdforge.design.sequences.instruction_words import target_facts
from bdforge.devices import mlir_device_named

Content = dict[str, Any]
Path = tuple[str | int, ...]

LOOP: Path = ("program", "do", 0)
CHOICE: Path = (*LOOP, "do", 0)
STEP: Path = (*LOOP, "do", 1)
TASK: Path = (*STEP, "do", 0)
BD: Path = (*TASK, "bds", 0)
WAIT: Path = (*STEP, "awaits", 0)
CONFIGURE: Path = (*LOOP, "do", 2)
WRITE: Path = (*CHOICE, "otherwise", 0)
OPERAND: Path = ("program", "operands", 0)
ARGUMENT: Path = ("program", "arguments", 0)
ONE, N, COUNTER, ZERO, LAST = range(5)  # places of the values: the first and the last may stand anywhere


def whole() -> Content:
    """A sequence with every part that there is, of which nothing runs: its loop turns no time."""
    bd = {"argument": 0, "offset": ZERO, "sizes": [ONE], "strides": [ONE], "runs": [ONE, ZERO], "when": ONE, "bits": 32}
    task = {"kind": "task", "direction": "MM2S", "channel": 0, "column": ZERO, "runs": ONE, "token": True, "bds": [bd]}
    choice = {
        "kind": "if", "when": COUNTER, "do": [], "otherwise": [{"kind": "write", "address": N, "values": [N]}],
    }  # fmt: skip
    awaits = [{"direction": "MM2S", "channel": 0, "column": ZERO, "columns": ONE}]
    step = {"kind": "step", "do": [task], "awaits": awaits, "note": {"text": "{}", "values": [COUNTER]}}
    operand = {
        "name": "A", "argument": 0, "direction": "in", "type": "int32", "bits": 32, "values": [0, 1], "bias": 0,
        "blocked": "down", "order": "row", "staged": ONE, "offset": ZERO,
        "axes": [{"size": N, "walked": N, "tile": N, "once": False}] * 2,
        "dims": [{"axis": 0, "count": N, "step": ONE, "stride": ONE}],
    }  # fmt: skip
    program = {
        "parameters": ["n"],
        "values": [1, "n", ["index", 0], 0, 1],
        "arguments": [{"name": "X", "type": "i32", "bits": 32, "elements": N, "note": ""}],
        "operands": [operand],
        "requires": [{"when": ONE, "otherwise": {"text": "{}", "values": [N]}}],
        "do": [
            {"kind": "for", "loop": 0, "count": ZERO, "do": [choice, step, {"kind": "configure", "in_flight": 1}]},
        ],
        "in_flight": 1,
        "in_flight_max": 1,
        "configurations": 1,
    }
    return copy.deepcopy({"program": program, "target": target_facts(mlir_device_named("npu2")), "wide": False})


@dataclass(frozen=True, slots=True)
class Bound:
    """A number, or the length of a list, from `low` to `high`, at the first of `paths`; at the others it is the same.

    `last` is the largest that this program takes, where that is less than the form allows: of values, loops and
    arguments it has few. `refused` is what is said of one more.
    """

    low: int | None
    high: int | None
    paths: tuple[Path, ...]
    length: bool = False
    last: int | None = None
    refused: str = ""

    def changed(self, value: int) -> Content:
        """The whole program with so large a number, or so many entries."""
        content = whole()
        for *path, name in self.paths if value in self.accepted() else self.paths[:1]:
            part: Any = content
            for step in path:
                part = part[step]
            part[name] = [*part[name], *part[name][:1] * value][:value] if self.length else value
        return content

    @property
    def member(self) -> str:
        """The member's name, by which messages call it."""
        return next(str(step) for step in reversed(self.paths[0]) if isinstance(step, str))

    def accepted(self) -> list[int]:
        """The ends."""
        return [end for end in (self.low, self.high if self.last is None else self.last) if end is not None]

    def beyond(self) -> list[int]:
        """What is next to the ends; no list has less than no entries."""
        below = [] if self.low is None else [self.low - 1]
        ends = [end for end in (self.last, self.high) if end is not None]
        return [*below, *(end + 1 for end in ends)]


def numbers(low: int, high: int | None, *paths: Path) -> Bound:
    """Limits of a number."""
    return Bound(low, high, paths)


def entries(low: int, high: int | None, *paths: Path) -> Bound:
    """Limits of a list's length."""
    return Bound(low, high, paths, length=True)


def place(*path: str | int) -> Bound:
    """The place of a value: one of those that there are."""
    return Bound(0, 65535, (path,), last=LAST, refused="names value 5; there are 5")


WORD, COUNT = 0xFFFFFFFF, 0x7FFFFFFF
TARGET_NUMBERS = {
    "columns": (1, 64), "column_stride": (1, WORD), "bds": (1, 64), "wraps[]": (1, WORD), "step_max": (1, WORD),
    "iteration_max": (1, WORD), "length_max": (1, WORD), "repeat_max": (1, WORD), "queue_entries": (1, WORD),
    "bd_address": (0, WORD), "bd_stride_bytes": (1, WORD), "patched_word": (0, 6), "control_value": (0, WORD),
    "control_mask": (0, WORD), "header[]": (0, WORD), "bd_constant[]": (0, WORD),
}  # fmt: skip
CHANNELS = (("target", "queues", "MM2S"), ("target", "controls", "MM2S"))

BOUNDS: dict[str, Bound] = {
    "Program.values": Bound(None, 65536, (("program", "values"),), length=True),
    "Program.in_flight": numbers(1, COUNT, ("program", "in_flight")),
    "Program.in_flight_max": numbers(1, COUNT, ("program", "in_flight_max")),
    "Program.configurations": numbers(0, COUNT, ("program", "configurations")),
    **{
        f"Configure.{number}": Bound(
            0, COUNT, ((*CONFIGURE, number),), last=0, refused="configuration 1 is wanted; there are 1"
        )
        for number in ("configuration", "ahead")
    },
    "Configure.in_flight": numbers(1, COUNT, (*CONFIGURE, "in_flight")),
    "ProgramArgument.bits": numbers(1, 64, (*ARGUMENT, "bits")),
    "ProgramArgument.elements": place(*ARGUMENT, "elements"),
    "Operand.argument": Bound(0, None, ((*OPERAND, "argument"),), last=0, refused="has argument 1; there are 1"),
    "Operand.bits": numbers(1, 1024, (*OPERAND, "bits")),
    "Operand.values": entries(2, 2, (*OPERAND, "values")),
    "Operand.axes": entries(1, 8, (*OPERAND, "axes")),
    "Operand.dims": entries(1, 48, (*OPERAND, "dims")),
    "Operand.staged": place(*OPERAND, "staged"),
    "Operand.offset": place(*OPERAND, "offset"),
    "PlacedAxis.size": place(*OPERAND, "axes", 1, "size"),
    "PlacedAxis.walked": place(*OPERAND, "axes", 1, "walked"),
    "PlacedAxis.tile": place(*OPERAND, "axes", 1, "tile"),
    "PlacedDim.axis": Bound(0, 7, ((*OPERAND, "dims", 0, "axis"),), last=1, refused="has a loop over axis 2 of 2"),
    "PlacedDim.count": place(*OPERAND, "dims", 0, "count"),
    "PlacedDim.step": place(*OPERAND, "dims", 0, "step"),
    "PlacedDim.stride": place(*OPERAND, "dims", 0, "stride"),
    "Requirement.when": place("program", "requires", 0, "when"),
    "Note.values[]": place(*STEP, "note", "values", 0),
    "For.loop": numbers(0, COUNT, (*LOOP, "loop"), ("program", "values", COUNTER, 1)),
    "For.count": place(*LOOP, "count"),
    "If.when": place(*CHOICE, "when"),
    "ProgramWrite.address": place(*WRITE, "address"),
    "ProgramWrite.values": entries(1, 1024, (*WRITE, "values")),
    "ProgramWrite.values[]": place(*WRITE, "values", 0),
    "ProgramTask.channel": numbers(0, None, (*TASK, "channel")),
    "ProgramTask.column": place(*TASK, "column"),
    "ProgramTask.runs": place(*TASK, "runs"),
    "ProgramTask.bds": entries(1, None, (*TASK, "bds")),
    "Tokens.channel": numbers(0, None, (*WAIT, "channel")),
    "Tokens.column": place(*WAIT, "column"),
    "Tokens.columns": place(*WAIT, "columns"),
    "ProgramBd.argument": Bound(0, None, ((*BD, "argument"),), last=0, refused="argument is 1; there are 1"),
    "ProgramBd.offset": place(*BD, "offset"),
    "ProgramBd.sizes": entries(1, 4, (*BD, "sizes"), (*BD, "strides")),
    "ProgramBd.sizes[]": place(*BD, "sizes", 0),
    "ProgramBd.strides": entries(1, 4, (*BD, "strides"), (*BD, "sizes")),
    "ProgramBd.strides[]": place(*BD, "strides", 0),
    "ProgramBd.runs": entries(2, 2, (*BD, "runs")),
    "ProgramBd.runs[]": place(*BD, "runs", 1),
    "ProgramBd.when": place(*BD, "when"),
    "ProgramBd.bits": numbers(1, 64, (*BD, "bits")),
    "Target.header": entries(2, 2, ("target", "header")),
    "Target.wraps": entries(2, 2, ("target", "wraps")),
    "Target.bd_constant": entries(8, 8, ("target", "bd_constant")),
    "Target.bd_fields{}": entries(2, 2, ("target", "bd_fields", "length")),
    "Target.bd_fields{}[0]": numbers(0, 7, ("target", "bd_fields", "length", 0)),
    "Target.bd_fields{}[1]": numbers(0, 31, ("target", "bd_fields", "length", 1)),
    "Target.queues{}": entries(1, 16, *CHANNELS),
    "Target.queues{}[]": numbers(0, WORD, ("target", "queues", "MM2S", 0)),
    "Target.queue_fields{}": numbers(0, 31, ("target", "queue_fields", "bd")),
    "Target.controls{}": entries(1, 16, *reversed(CHANNELS)),
    "Target.controls{}[]": numbers(0, WORD, ("target", "controls", "S2MM", 1)),
    **{
        f"Target.{name}": numbers(*ends, ("target", name.removesuffix("[]"), *([0] if name.endswith("[]") else [])))
        for name, ends in TARGET_NUMBERS.items()
    },
}  # fmt: skip
"""By name: the model, the member, and [] or {} for what is in its list or table."""

WORDS: dict[str, tuple[Path, tuple[str, ...]]] = {
    "ProgramTask.direction": ((*TASK, "direction"), ("S2MM", "MM2S")),
    "Tokens.direction": ((*WAIT, "direction"), ("S2MM", "MM2S")),
    "Operand.direction": ((*OPERAND, "direction"), ("in", "out", "between")),
    "Operand.blocked": ((*OPERAND, "blocked"), ("across", "down")),
    "Operand.order": ((*OPERAND, "order"), ("row", "column")),
}
"""Members that hold one of a few words."""


def limits_of_the_form() -> dict[str, tuple[int | None, int | None]]:
    """The ends of every number and list of the form, as the schema of manifests has them."""
    return {name: ends for name, ends in _members() if isinstance(ends, tuple)}


def words_of_the_form() -> dict[str, list[str]]:
    """The words of every member that has a few."""
    return {name: words for name, words in _members() if isinstance(words, list)}


def _members() -> Iterator[tuple[str, Any]]:
    for model, content in SequenceFacts.model_json_schema()["$defs"].items():
        for name, member in content["properties"].items():
            yield from _facts(f"{model}.{name}", member)


def _facts(name: str, schema: Content) -> Iterator[tuple[str, Any]]:
    for kind in schema.get("anyOf", ()):
        yield from _facts(name, kind)
    if "enum" in schema:
        yield name, schema["enum"]
    high = (
        schema["exclusiveMaximum"] - 1
        if "exclusiveMaximum" in schema
        else schema.get("maximum", schema.get("maxItems"))
    )
    low = schema.get("minimum", schema.get("minItems"))
    if low is not None or high is not None:
        yield name, (low, high)
    for number, inner in enumerate(schema.get("prefixItems", ())):
        yield from _facts(f"{name}[{number}]", inner)
    for inner, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(inner), dict):
            yield from _facts(name + mark, schema[inner])


def changed_word(name: str, word: str) -> Content:
    """The whole program with this word."""
    return Bound(None, None, (WORDS[name][0],)).changed(word)  # type: ignore[arg-type]
