"""What a manifest holds, member by member: the check when one is read, and the JSON schema for editors.

A manifest tells a host what it must know of a built design, of whatever operator. A member that this file does not know
is passed over when a manifest is read, so that older hosts read newer ones of the same schema version.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from bdforge.common.messages import clip
from bdforge.design.sequences import Program, ProgramError
from bdforge.design.sequences.program_check import checked

SCHEMA_VERSION = 3
SCHEMA_FILE = "manifest.schema.json"
OWN_TOOLCHAIN = "bdforge"  # makes images without a compiler
XCLBIN_KERNEL = "MLIR_AIE"  # aiecc's default for --xclbin-kernel-name
ELF_KERNEL = "main"  # a full ELF's kernels are its MLIR's devices, their instances the runtime sequences
COMPOSITION = "composition"  # of built designs
REFERENCE = "reference"  # role of the file with what outputs must be
CONFIGURATIONS = "configurations"  # role of the file with what changes the array's configuration between its steps
WRITTEN = ("design", "template", COMPOSITION)
"""Kinds of designs that are no operator's."""
_OF_RUNS = ("problems", "sequence", "operand", "runtime_sequence", "reference", "roles")
DIALECT = "https://json-schema.org/draft/2020-12/schema"

# What C++ takes as well (sequence_program.cpp and manifest.cpp in host/src): what is no hardware's is far above any.
Word = Annotated[int, Field(ge=0, le=0xFFFFFFFF)]
Count = Annotated[int, Field(ge=1, le=0xFFFFFFFF)]
Channels = Annotated[list[Word], Field(min_length=1, max_length=16)]
Bit = Annotated[int, Field(ge=0, le=31)]
BitPlace = Annotated[tuple[Annotated[int, Field(ge=0, le=7)], Bit], Field(strict=False)]  # JSON's lists
SIZE_MAX = 1 << 40
Size = Annotated[int, Field(ge=1, le=SIZE_MAX)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="allow")


def _below(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise ValueError(f"{clip(repr(path))} is no place below the manifest's folder")
    return path


class BuiltFile(_Part):
    """A file of the build."""

    path: Annotated[str, AfterValidator(_below)] = Field(description="Relative to the manifest's folder, and below it.")
    sha256: str = Field("", pattern="^([0-9a-f]{64})?$", description="Of its content; empty: not recorded.")


class Argument(_Part):
    """A host buffer, in the order of the kernel's arguments."""

    name: str
    dtype: str = Field(description="Type of the operands in it.")
    layout: str = Field(description="Order of the elements.")


class Target(_Part):
    """Limits and registers of shims, with which events of a sequence become words (`sequences.instruction_words`)."""

    header: list[Word] = Field(
        min_length=2, max_length=2, description="The first words of a stream: version, device, columns."
    )
    columns: int = Field(ge=1, le=64, description="Of the array.")
    column_stride: Count = Field(description="What the same register of the next column adds to an address.")
    bds: int = Field(ge=1, le=64, description="Of a shim.")
    wraps: list[Count] = Field(min_length=2, max_length=2, description="Largest sizes of dimensions 0 and 1, in words.")
    step_max: Count = Field(description="Longest step of a dimension or iteration, in words.")
    iteration_max: Count = Field(description="Most runs with an iteration.")
    length_max: Count = Field(description="Most words of one run.")
    repeat_max: Count = Field(description="Most runs of a task.")
    queue_entries: Count = Field(description="Tasks that a channel's queue holds, the running one counted.")
    bd_address: Word = Field(description="Of BD 0 of column 0.")
    bd_stride_bytes: Count = Field(description="From a BD to the next.")
    bd_constant: list[Word] = Field(min_length=8, max_length=8, description="What every BD holds beside its fields.")
    bd_fields: dict[str, BitPlace] = Field(description="Word and lowest bit; wraps count from 1, steps from 0.")
    patched_word: int = Field(ge=0, le=6, description="The low half of a BD's host address; the high half follows.")
    queues: dict[str, Channels] = Field(description="Addresses of task queues in column 0, by direction and channel.")
    queue_fields: dict[str, Bit] = Field(description="Lowest bits of a queue word's fields.")
    controls: dict[str, Channels] = Field(description="Addresses of channels' control registers, likewise.")
    control_value: Word = Field(description="What a control register gets before its channel sends a token.")
    control_mask: Word = Field(description="The bits of it that count.")


class SequenceFacts(_Part):
    """The sequence program, and what it runs on."""

    program: Program
    target: Target
    wide: bool = Field(description="Whether one operation awaits the tokens of several columns.")


class ToolFacts(_Part):
    """A program that took part in making an image."""

    name: str
    version: str
    sha256: str = Field("", pattern="^([0-9a-f]{64})?$", description="Of its file, or of all of bdforge's code.")


class Toolchain(_Part):
    """What made the xclbin."""

    name: str = Field(description="aiecc, or bdforge: without a compiler.")
    tools: list[ToolFacts]
    host_cores: list[list[int]] = Field(
        [], description="Column and row of cores without machine code; the emulated array runs host kernels there."
    )


class Placement(_Part):
    """Where the buffers of the array are."""

    read_back: str = Field(description="Kind of aiecc's files that were found to agree; empty: none was read.")
    buffers: dict[str, int] = Field(description="Byte address in its tile's memory, by name.")


class BuiltProblem(_Part):
    """Sizes that the design names, whose runtime sequence is in the MLIR."""

    name: str
    sequence: str = Field(
        description="Name of the runtime sequence in the MLIR, and of the full ELF's kernel instance; empty: none is."
    )
    sizes: dict[str, Size] = Field(description="By parameter of the sequence program, in the order of shapes.")


class Manifest(_Part):
    """What a host must know of a built design."""

    version: int = Field(
        alias="schema", description="Version of this schema.", json_schema_extra={"const": SCHEMA_VERSION}
    )
    design: str = Field(description="Name of the spec in designs/.")
    kind: str = Field(description="The operator; design or template where there is none.")
    spec_hash: str = Field(description="Of the spec; a program can ask for one.")
    device: str = Field(description="Product it was built for, such as strix_halo.")
    mlir_device: str = Field(description="Its array in MLIR, such as npu2.")
    kernel: str = Field(description="Name of the xclbin's kernel.")
    elf_kernel: str = Field(description="Name of the full ELF's kernel.")
    kernels: list[str] = Field(description="Functions that the cores call.")
    arguments: list[Argument]
    sequence: SequenceFacts = Field(description="From which a host makes the instruction stream of any problem.")
    placement: Placement | None = Field(None, description="Absent from manifests of older builds.")
    toolchain: Toolchain | None = Field(None, description="Absent where no image was built.")
    document: dict[str, Any] = Field(
        description="The design's document: its tables as TOML has them, with the spec that it was made from, if there "
        "is one; of a template those of its file."
    )
    files: dict[str, BuiltFile] = Field(
        description="What the build made: mlir, host_kernels, xclbin (emulated: one that is not for silicon), elf, "
        "placement, toolchain, reference (what outputs must be, copied; reference_<design> of a composition's), "
        "insts_<sequence>, configurations (of a composition: instruction streams, one behind the other, that change "
        "the array's configuration)."
    )
    problems: list[BuiltProblem]


def spec_hash(content: Mapping[str, Any]) -> str:
    """Identity of all in a spec or document that decides the array configuration: not its problems and sequences."""
    facts = {key: value for key, value in content.items() if key not in _OF_RUNS}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def manifest_fault(content: Any) -> str | None:
    """The first thing that is missing or wrong in a manifest, by its place; None when there is nothing."""
    if not isinstance(content, dict) or content.get("schema") != SCHEMA_VERSION:
        return f"its schema is not {SCHEMA_VERSION}"
    try:
        checked(Manifest.model_validate(content).sequence.program)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        reason = first["msg"].removeprefix("Value error, ")
        return f"{place} is missing" if first["type"] == "missing" else f"{place}: {reason[:1].lower()}{reason[1:]}"
    except ProgramError as error:
        return f"sequence.program: {error}"
    document = content["document"]
    if content["spec_hash"] != spec_hash(document if content["kind"] in WRITTEN else document.get("made_from", {})):
        return f"the manifest was built from another spec ({content['spec_hash']})"
    return None


def json_schema() -> str:
    """The schema of manifests as JSON text."""
    return json.dumps({"$schema": DIALECT} | Manifest.model_json_schema(), indent=2) + "\n"
