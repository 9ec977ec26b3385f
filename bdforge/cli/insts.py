"""`bdforge insts`: instruction streams to and from words."""

import json
from pathlib import Path
from typing import Annotated

import typer

from bdforge.array.emulator.strictness import Strictness
from bdforge.array.mlir.trace_ops import trace_warnings
from bdforge.array.txn import insts as streams
from bdforge.array.txn.target import ControllerIds
from bdforge.cli.design_texts import DesignFile, SpecProduct, module_of
from bdforge.cli.options import AsJson, Force, OutFile, Permissive, SequenceName, Shapes, print_warnings, write
from bdforge.cli.progress import working
from bdforge.common.screen import say
from bdforge.devices.txn_format import describe
from bdforge.devices.txn_format.codec import InstructionStream

insts = typer.Typer(
    name="insts", no_args_is_help=True, help="Instruction streams: the words of a runtime sequence, and what they mean."
)
app = typer.Typer()
app.add_typer(insts)

File = Annotated[Path, typer.Argument(help="Instruction stream: insts.bin, hexadecimal text, or an ELF of aiebu.")]
SectionName = Annotated[
    str | None, typer.Option("--section", help="Section or sequence of an ELF that holds several streams.")
]


@insts.command()
def encode(
    design: DesignFile,
    out: OutFile,
    sequence: SequenceName = None,
    shape: Shapes = None,
    device: SpecProduct = None,
    controller_ids: Annotated[
        ControllerIds,
        typer.Option(help="Tiles without a controller_id: aiecc gives them one, aie-opt leaves the text as it is."),
    ] = ControllerIds.AIECC,
    permissive: Permissive = None,
    force: Force = False,
) -> None:
    """Write the words of a runtime sequence, as mlir-aie encodes them."""
    strictness = Strictness.without(permissive or [])
    with working(design):
        module = module_of(design, device, shape, runs=True)
        words = streams.encode_module(module, sequence, strictness, controller_ids)
    print_warnings([*trace_warnings(module), *strictness.warnings])
    write(out, words.astype("<u4").tobytes(), force, f": {len(words)} words")


@insts.command()
def decode(
    file: File,
    as_json: AsJson = False,
    section: SectionName = None,
) -> None:
    """Print a stream: one operation a line, registers and fields by name."""
    stream = _stream(file, section)
    say(json.dumps(describe.as_json(stream), indent=1) if as_json else describe.describe(stream))


@insts.command()
def extract(
    file: File,
    out: OutFile,
    section: SectionName = None,
    force: Force = False,
) -> None:
    """Write the words of a stream in text or in an ELF to a file, as XRT takes them."""
    words = streams.read_words(file, section)
    write(out, words, force, f": {len(words) // 4} words")


@insts.command()
def diff(first: File, second: File) -> None:
    """Print where two streams differ; the exit code is 1 if they do."""
    lines = describe.diff(_stream(first), _stream(second), (str(first), str(second)))
    for line in lines:
        say(line)
    raise typer.Exit(1 if lines else 0)


def _stream(path: Path, section: str | None = None) -> InstructionStream:
    stream = streams.read(path, section)
    print_warnings(f"{path}: {note}" for note in stream.notes)
    return stream
