"""What an image holds, gathered: for the tables, the picture and JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from bdforge.array.emulator.boot import enabled_cores
from bdforge.array.explain.buffer_rings import BufferRing, rings_of
from bdforge.array.explain.folded_routes import RouteFold, folded_routes
from bdforge.array.explain.instruction_steps import ArgumentUse, SequenceStep, arguments_of, steps_of
from bdforge.array.explain.zeros_run import STEPS, RunVerdict, tried, without_run
from bdforge.array.images.programs import DistinctProgram, distinct, is_core_elf, read_programs
from bdforge.array.images.read import ImageContent, read_image
from bdforge.array.lower.array_state import ArrayState
from bdforge.core.isa import load
from bdforge.core.isa.constants import KnownConstants
from bdforge.core.isa.disassembler import control_flow, pieces
from bdforge.core.isa.elf import generation_of
from bdforge.core.isa.program_work import BundleWork, ProgramFunction, ProgramWork
from bdforge.devices import MLIR_DEVICES, Device
from bdforge.devices.txn_format.codec import InstructionStream, decode

Place = tuple[int, int]


@dataclass(frozen=True, eq=False)
class ProgramSummary:
    """A program and the cores that run it; `unknown` are bytes that are no bundle and not 0, by address."""

    found: DistinctProgram
    generation: str

    @cached_property
    def work(self) -> ProgramWork:
        """Its loops and functions."""
        return ProgramWork(KnownConstants(control_flow(self.found.program, self.generation)))

    @property
    def code_bytes(self) -> int:
        """Bytes of program memory that it takes."""
        return sum(len(segment.data) for segment in self.found.program.code)

    @cached_property
    def unknown(self) -> Mapping[int, str]:
        """Why bytes are no bundle."""
        all_pieces = (piece for part in pieces(load(self.generation), self.found.program) for piece in part)
        return {p.address: p.reason for p in all_pieces if p.bundle is None and any(p.data)}

    def name_of(self, function: ProgramFunction) -> str:
        """Its symbol, else its address."""
        return self.found.program.symbols.get(function.start, f"{function.start:#x}")


@dataclass(frozen=True, slots=True)
class ConfigurationSummary:
    """One configuration of an image: what its register writes leave, and the programs of its cores."""

    writes: int
    state: ArrayState
    programs: tuple[ProgramSummary, ...]
    rings: Mapping[Place, Sequence[BufferRing]]
    routes: tuple[RouteFold, ...]

    @property
    def idle(self) -> list[Place]:
        """Cores that are enabled without a program."""
        there = {tile for program in self.programs for tile in program.found.tiles}
        return [place for place in enabled_cores(self.state) if place not in there]


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is told of a file; `run` is how its run on zeros ended, or `missing` says why none was tried."""

    kind: str
    device: Device | None
    configurations: tuple[ConfigurationSummary, ...]
    steps: tuple[SequenceStep, ...]
    arguments: tuple[ArgumentUse, ...]
    run: RunVerdict | None
    missing: str


def explain(data: bytes, instructions: bytes | None = None, budget: int = STEPS) -> Explanation:
    """An image of any kind, and the instruction words that it is run with.

    `budget` bounds a run on zeros, which 0 leaves out. ImageError, StateError and TxnError for what cannot be read.
    """
    image = ImageContent("core ELF", ((),)) if is_core_elf(data) else read_image(data)
    stream = None if instructions is None else decode(instructions)
    generation = _generation(data, stream)
    configurations = tuple(_configurations(data, image, generation))
    device = _device(image, configurations, generation, stream)
    host_kernels = image.container.host_kernels if image.container else {}
    missing = without_run(host_kernels, instructions, len(configurations))
    missing = missing or ("a run is left out by --budget 0" if not budget else "")
    steps, arguments, run = (), (), None
    if stream is not None:
        steps = tuple(steps_of(stream.operations))
        arguments = tuple(arguments_of(stream.operations, device or MLIR_DEVICES["npu2"]))
    if instructions is not None and not missing:
        run = tried(data, instructions, arguments, device.mlir if device else None, budget)
    return Explanation(image.kind, device, configurations, steps, arguments, run, missing)


def _generation(data: bytes, stream: InstructionStream | None) -> str | None:
    """Of the instruction words, else of the code that fits one best."""
    for device in MLIR_DEVICES.values() if stream is not None else ():
        if stream and device.generation.instruction_generation == stream.header.generation:
            return device.generation.name.lower()
    programs = read_programs(data, sparse=True)
    return generation_of(programs[0]) if programs else None


def _configurations(data: bytes, image: ImageContent, generation: str | None) -> Iterator[ConfigurationSummary]:
    programs = read_programs(data, sparse=True)
    for number, operations in enumerate(image.configurations):
        prefix = f"PDI {number}, " if len(image.configurations) > 1 else ""
        mine = [program for program in programs if program.tile is None or program.name.startswith(f"{prefix}tile")]
        summaries = tuple(ProgramSummary(one, generation or generation_of(one.program)) for one in distinct(mine))
        state = ArrayState(operations)
        yield ConfigurationSummary(len(operations), state, summaries, rings_of(state), tuple(folded_routes(state)))


def _device(
    image: ImageContent, configurations: Sequence[ConfigurationSummary], generation: str | None,
    stream: InstructionStream | None,
) -> Device | None:  # fmt: skip
    """The array that the words are for, else the smallest of the generation with all columns."""
    devices = [d for d in MLIR_DEVICES.values() if d.generation.name.lower() == generation]
    if stream is not None and stream.header.knows_device:
        return next((d for d in devices if d.columns == stream.header.columns), None)
    used = [1 + column for configuration in configurations for column, _ in configuration.state.tiles]
    columns = max([*(image.container.columns if image.container else ()), *used], default=0)
    return min((d for d in devices if d.columns >= columns), key=lambda device: device.columns, default=None)


def as_values(found: Explanation) -> dict[str, Any]:
    """All of it as values that `json.dumps` takes."""
    run = None if found.run is None else asdict(found.run) | {"binding": found.run.binding}
    return {
        "kind": found.kind, "device": found.device.mlir if found.device else None,
        "configurations": [_configuration(one) for one in found.configurations],
        "steps": [asdict(step) for step in found.steps], "arguments": [asdict(use) for use in found.arguments],
        "run": run, "missing": found.missing,
    }  # fmt: skip


def _configuration(found: ConfigurationSummary) -> dict[str, Any]:
    tiles = [{"tile": [*place], "kind": str(tile.kind)} for place, tile in sorted(found.state.tiles.items())]
    return {
        "register_writes": found.writes, "tiles": tiles, "programs": [_program(one) for one in found.programs],
        "idle_cores": [[*place] for place in found.idle],
        "tasks": [{"tile": [*place], **asdict(ring)} for place, rings in found.rings.items() for ring in rings],
        "routes": [asdict(route) for route in found.routes],
    }  # fmt: skip


def _program(found: ProgramSummary) -> dict[str, Any]:
    work = found.work
    return {
        "cores": [[*tile] for tile in found.found.tiles], "generation": found.generation,
        "code_bytes": found.code_bytes, "functions": [_function(found, one) for one in work.functions()],
        "loops": [
            {"start": loop.start, "last": loop.last, "hardware": loop.hardware, "trips": loop.trips,
             **_work(work.own[loop])} for loop in work.loops
        ],
        "open_forms": work.open_forms(), "unknown": {f"{at:#x}": why for at, why in found.unknown.items()},
    }  # fmt: skip


def _function(found: ProgramSummary, function: ProgramFunction) -> dict[str, Any]:
    call = None if function.work is None else _work(function.work)
    return {
        "name": found.name_of(function), "start": function.start, "bundles": function.bundles,
        "code_bytes": function.code_bytes, "call": call, "missing": function.missing,
    }  # fmt: skip


def _work(work: BundleWork) -> dict[str, Any]:
    return asdict(work) | {"macs_per_bundle": work.macs_per_bundle}
