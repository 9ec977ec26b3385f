"""What `bdforge generate` and `bdforge bench` share: a model on a built design, and the table of what ran where."""

import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from bdforge.cli.progress import counting
from bdforge.cli.ranges import number
from bdforge.common.messages import clip
from bdforge.common.screen import new_table, screen
from bdforge.common.watched import part
from bdforge.models import RULES, Ledger, Products
from bdforge.models.accuracy import Accuracy
from bdforge.models.bitnet import BitNet
from bdforge.runtime.loading import EMULATED, NPU

DESIGN = Path("build/strix_halo/gemm_i8_i2_bf16")
DEVICES = (EMULATED, NPU)

ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="BitNet b1.58: a folder with config.json and .safetensors, or a .gguf.")
]
DesignFolder = Annotated[
    Path, typer.Option("--design", help="Built design for the linear layers: GEMM of int8 x int2 to bf16 or int32.")
]
Most = Annotated[str, typer.Option("-n", help="Tokens to generate at most; of a bench also several numbers, or 0.")]
DeviceName = Annotated[str, typer.Option("--device", help=f"Of the array: {', '.join(DEVICES)}.")]
Rule = Annotated[
    str, typer.Option("--split", help="Where linear layers run: as the `estimate` says, all on the `array`, or `cpu`.")
]
Override = Annotated[
    list[str] | None,
    typer.Option(
        "--override", metavar="NAME=VALUE",
        help="A member of the model's configuration that its file does not say, or says wrong: hidden_act=relu2.",
    ),
]  # fmt: skip
MicroBatch = Annotated[
    int,
    number(
        "Tokens of a prompt at a time: the array works on one such part, the CPU on another. 0: all at once.",
        "--micro-batch", "-ub",
    ),
]  # fmt: skip


def opened(path: Path, design: Path, device: str, rule: str, override: list[str] | None) -> BitNet:
    """The model, its linear layers on the design in a folder. BadParameter for an unknown device or rule."""
    pairs = [text.partition("=") for text in override or []]
    if odd := ["".join(pair) for pair in pairs if not all(pair)]:
        raise typer.BadParameter(f"--override {clip(repr(odd[0]))}: give NAME=VALUE, such as hidden_act=relu2")
    if device not in DEVICES:
        raise typer.BadParameter(f"--device {clip(repr(device))}: choose {' or '.join(DEVICES)}")
    if rule not in RULES:
        raise typer.BadParameter(f"--split {clip(repr(rule))}: choose {', '.join(RULES)}")
    part()
    products = Products.of(design, device, rule)
    if rule == "array":
        products.loaded.ready()
    with counting(screen(stderr=True)) as bar:
        task = bar.add_task("packing layers")
        members = {name: value for name, _, value in pairs}
        return BitNet.load(path, products, lambda done, of: bar.update(task, completed=done, total=of), members)


def summary(model: BitNet) -> str:
    """Sizes of what was loaded."""
    packed, embedding = packed_bytes(model) / 1e6, model.embedding.nbytes / 1e6
    return (
        f"{model.config}; {packed:.2f} MB of packed weights, embedding {embedding:.2f} MB; "
        f"linear layers on {model.products.loaded.design.summary}"
    )


def peak_memory() -> str:
    """Of this process so far, with pages of the files that are mapped."""
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, bytes
    return f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6:,.0f} MB (measured)"


def accuracy_table(found: Sequence[Accuracy]) -> Table:
    """How near logits are to those in float64, by the type of the linear layers' results."""
    table = new_table("accuracy against float64", "linear layers give", ">NMSE of logits", ">likeliest tokens agree")
    for one in found:
        table.add_row(one.results, f"{one.nmse:.1e}", f"{one.agreeing} of {one.tokens}")
    return table


def packed_bytes(model: BitNet) -> int:
    """Of all matrices, with their scales."""
    return sum(linear.nbytes for layer in model.layers for linear in layer.linears)


def ledger_table(ledger: Ledger) -> Table:
    """Which part ran where, why, and how long."""
    table = new_table("what ran where", "part", "where", "why", ">calls", ">host s", ">NPU ms (modelled)")
    for entry in ledger:
        npu = "" if entry.npu_us is None else f"{entry.npu_us / 1e3:.2f}"
        table.add_row(entry.part, entry.where, entry.why, str(entry.calls), f"{entry.host_seconds:.3f}", npu)
    return table
