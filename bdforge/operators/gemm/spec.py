"""Design specs: TOML in `designs/`, checked at the edge, plain dataclasses inside."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bdforge.devices.limits import TASK_QUEUE_ENTRIES
from bdforge.files import read_toml
from bdforge.messages import InputError, listed, word


class SpecError(InputError):
    """A design spec that cannot be read or cannot be built; the message lists every reason."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One GEMM: C (M x N) = A (M x K) · B (K x N)."""

    M: int
    K: int
    N: int
    name: str = field(default="", compare=False)

    @property
    def sequence(self) -> str:
        """Name of its runtime sequence."""
        return f"gemm_{self.M}x{self.K}x{self.N}"

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the answer needs."""
        return self.M * self.K * self.N

    def __str__(self) -> str:
        return f"{self.M}x{self.K}x{self.N}"


@dataclass(frozen=True, slots=True)
class TileSizes:
    """A core's tile: C m x n, A m x k, B k x n.

    With `m_used` only so many of the m rows hold data, for problems with few rows: memtiles pad A with zeros and send
    only these rows of C, so that no host has to. 0 stands for all.
    """

    m: int
    k: int
    n: int
    m_used: int = 0

    @property
    def rows(self) -> int:
        """Rows that hold data."""
        return self.m_used or self.m


@dataclass(frozen=True, slots=True)
class Layouts:
    """The order of each operand in host memory."""

    a: str = "row"
    b: str = "packed"
    c: str = "row"


STACK_BYTES = 4096
"""Of a core where a spec does not say. Peano's frames of kernels like ours were seen to take 960 to 1216 bytes, which
varies with its version (mlir-air 1980); upstream's matmul asks for 3328."""


@dataclass(frozen=True, slots=True)
class Buffers:
    """Depths and counts of buffers.

    `k_mt`: depth of A's slab in a memtile (and of B's where B is not packed), elements, a multiple of k. `c_buffers`
    and `c_memtile_buffers`: tiles of C in a core, and for each core in a memtile, 1 or 2. `rho`: parts in which a
    core's A tile arrives, m/rho rows each (asymmetric tile buffering). `a_shims`: 2 where both shims of a pair of
    columns, and both memtiles, bring one core row's A. `stack_bytes`: of each core; its overflow is silent and lands in
    the buffers above.
    """

    k_mt: int
    c_buffers: int = 1
    c_memtile_buffers: int = 2
    rho: int = 1
    a_shims: int = 1
    stack_bytes: int = STACK_BYTES


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What happens to a tile of C after the last step of K, in this order.

    `shift`: sums are divided by 2^shift, with `rounding` and saturation, on their way into narrower integers. `scale`:
    times one float32 for each row of A and one for each column of B. `bias`: plus one float32 for each column.
    """

    shift: int = 0
    rounding: str = "conv_even"
    scale: bool = False
    bias: bool = False
    relu: bool = False

    @property
    def fed(self) -> bool:
        """Whether numbers of the host's take part."""
        return self.scale or self.bias


@dataclass(frozen=True, slots=True)
class SequenceOptions:
    """How runtime sequences wait; no matter of the array's configuration, so that hosts may choose others.

    `wait`: "column" waits for each column's token by an operation of its own, "wide" for those of all columns by one.
    `in_flight`: steps that run at a time, at most as many as a task queue holds; so many tokens of a column may be on
    their way at once. With wide waits that is one: nobody has shown whether the controller counts a wide wait's tokens
    column by column or takes any of them (several are what one wait would then confuse). 0: as many as are allowed.
    SpecError for anything else.
    """

    wait: str = "column"
    in_flight: int = 0

    def __post_init__(self) -> None:
        if self.wait not in WAITS:
            raise SpecError(f"sequence.wait = {self.wait!r} is unknown; choose {' or '.join(WAITS)}")
        most = WAITS[self.wait]
        if not 0 <= self.in_flight <= most:
            raise SpecError(
                f"sequence.in_flight = {self.in_flight} is outside 0 to {most}, the steps that sequence.wait = "
                f"{self.wait} allows at a time; 0 takes the most"
            )

    @classmethod
    def given(cls, wait: str | None, in_flight: int | None) -> "SequenceOptions | None":
        """Options of which some may be left out; None when all are."""
        if wait is None and in_flight is None:
            return None
        return cls("column" if wait is None else wait, in_flight or 0)

    @property
    def steps(self) -> int:
        """Steps that run at a time."""
        return self.in_flight or WAITS[self.wait]

    def wait_columns(self, columns: int) -> int:
        """Columns of one wait, of `columns` in use."""
        return columns if self.wait == "wide" else 1


WAITS = {"column": TASK_QUEUE_ENTRIES, "wide": 1}
"""Forms of waiting, and how many steps may be in flight with each."""


@dataclass(frozen=True, slots=True)
class GemmSpec:
    """A GEMM design: types, layouts, array, tiles, buffering, epilogue and the problems that are built in.

    `accumulator` is the type in which cores keep C from step to step of K. Layouts are "row" or "column" for A and C,
    for B also "packed". `array` is the array that the tiles are made for, as MLIR names it; None for any.
    """

    name: str
    a: str
    b: str
    c: str
    accumulator: str
    layouts: Layouts
    rows: int
    columns: int
    tile: TileSizes
    buffers: Buffers
    epilogue: Epilogue
    problems: tuple[Problem, ...]
    array: str | None = None
    sequence: SequenceOptions = SequenceOptions()

    @property
    def content(self) -> dict[str, Any]:
        """The spec as its TOML file would hold it; `spec_from` reads it back."""
        made_for = {"device": self.array} if self.array else {}
        return {
            "kind": "gemm",
            "types": {"a": self.a, "b": self.b, "c": self.c, "accumulator": self.accumulator},
            "layouts": asdict(self.layouts),
            "array": {**made_for, "rows": self.rows, "columns": self.columns},
            "tile": asdict(self.tile),
            "buffers": asdict(self.buffers),
            "epilogue": asdict(self.epilogue),
            "sequence": asdict(self.sequence),
            "problems": [asdict(problem) for problem in self.problems],
        }

    @property
    def hash(self) -> str:
        """Identity of everything that decides the array configuration (not problems and sequences)."""
        facts = {key: value for key, value in self.content.items() if key not in ("problems", "sequence")}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


Rounding = Literal[
    "floor", "ceil", "symmetric_floor", "symmetric_ceil", "negative_inf", "positive_inf", "symmetric_zero",
    "symmetric_inf", "conv_even", "conv_odd",
]  # fmt: skip
"""Rounding modes of shifts, as the AIE API names them."""

LARGEST_SIZE = 1 << 20  # of a tile, a buffer or a problem, in elements
_Size = Annotated[int, Field(ge=1, le=LARGEST_SIZE, strict=True)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Types(_Section):
    a: Literal["int8", "bf16", "bfp16"]
    b: Literal["int8", "int4", "int2", "bf16", "bfp16"]
    c: Literal["int8", "int16", "int32", "bf16", "f32", "bfp16"]
    accumulator: Literal["int8", "int16", "int32", "bf16", "f32", "bfp16"] | None = None


class _LayoutsFile(_Section):
    a: Literal["row", "column"] = "row"
    b: Literal["packed", "row", "column"] = "packed"
    c: Literal["row", "column"] = "row"


class _ArrayFile(_Section):
    device: Literal["npu1", "npu2"] | None = None
    rows: Annotated[int, Field(ge=1, le=4, strict=True)] = 4
    columns: Annotated[int, Field(ge=1, le=8, strict=True)] = 8


class _TileFile(_Section):
    m: _Size
    k: _Size
    n: _Size
    m_used: Annotated[int, Field(ge=0, le=LARGEST_SIZE, strict=True)] = 0


class _BuffersFile(_Section):
    k_mt: _Size | None = None
    c_buffers: Literal[1, 2] = 1
    c_memtile_buffers: Literal[1, 2] = 2
    rho: _Size = 1
    a_shims: Literal[1, 2] = 1
    stack_bytes: _Size = STACK_BYTES


class _EpilogueFile(_Section):
    shift: Annotated[int, Field(ge=0, le=31, strict=True)] = 0
    rounding: Rounding = "conv_even"
    scale: bool = False
    bias: bool = False
    relu: bool = False


class _SequenceFile(_Section):
    wait: str = "column"
    in_flight: Annotated[int, Field(strict=True)] = 0


class _ProblemFile(_Section):
    name: str = ""
    M: _Size
    K: _Size
    N: _Size


class _GemmFile(_Section):
    kind: Literal["gemm"]
    types: _Types
    layouts: _LayoutsFile = _LayoutsFile()
    array: _ArrayFile = _ArrayFile()
    tile: _TileFile
    buffers: _BuffersFile = _BuffersFile()
    epilogue: _EpilogueFile = _EpilogueFile()
    sequence: _SequenceFile = _SequenceFile()
    problems: list[_ProblemFile] = Field(default_factory=list)


def load_spec(path: Path | str) -> GemmSpec:
    """Read a design spec; SpecError says which file and lists every problem, one to a line."""
    path = Path(path)
    return spec_from(read_toml(path, SpecError), path.stem, str(path))


def spec_from(content: dict[str, Any], name: str, where: str = "design") -> GemmSpec:
    """A spec from TOML content; `where` heads every message."""
    try:
        file = _GemmFile.model_validate(content)
    except ValidationError as error:
        raise SpecError(listed((f"{where}: {_sentence(e)}" for e in error.errors()), "\n")) from None
    types, buffers = file.types, file.buffers.model_dump()
    try:
        options = SequenceOptions(**file.sequence.model_dump())
    except SpecError as error:
        raise SpecError(f"{where}: {error}") from None
    return GemmSpec(
        name=name,
        a=types.a,
        b=types.b,
        c=types.c,
        accumulator=types.accumulator or _default_accumulator(types),
        layouts=Layouts(**file.layouts.model_dump()),
        rows=file.array.rows,
        columns=file.array.columns,
        tile=TileSizes(**file.tile.model_dump()),
        buffers=Buffers(**buffers | {"k_mt": file.buffers.k_mt or file.tile.k}),
        epilogue=Epilogue(**file.epilogue.model_dump()),
        problems=tuple(Problem(p.M, p.K, p.N, p.name) for p in file.problems),
        array=file.array.device,
        sequence=options,
    )


def _default_accumulator(types: _Types) -> str:
    """C's own type, as published designs have it, unless sums would not survive it."""
    if types.b == "int2" or (types.a == "int8" and types.c == "bf16"):
        return "int32"
    return types.c


def _sentence(error) -> str:
    place = ".".join(word(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{place}: unexpected key; remove it or check its spelling"
    if error["type"] == "missing":
        return f"{place}: missing; add it"
    if error["type"] == "model_type":
        return f"{place}: input should be a table (a section of its own), got {word(repr(error['input']))}"
    return f"{place}: {error['msg'][0].lower()}{error['msg'][1:]}, got {word(repr(error['input']))}"
