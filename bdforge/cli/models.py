"""`bdforge generate`: tokens of a model; `bdforge bench`: its tokens per second, in the manner of llama-bench."""

import math
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich import box
from rich.table import Table

from bdforge.cli.options import Seed, completing, number, whole_numbers
from bdforge.cli.progress import counting
from bdforge.common.messages import clip
from bdforge.common.screen import new_table, put, say, screen
from bdforge.common.watched import part
from bdforge.models import RULES, ArrayParts, Ledger, Products, Sampler, generate
from bdforge.models.bitnet import BitNet
from bdforge.models.bitnet.composed_layers import ComposedLayers
from bdforge.models.rounding import Accuracy, accuracy
from bdforge.runtime.loading import EMULATED, NPU

app = typer.Typer()
DESIGN = Path("build/strix_halo/gemm_i8_i2_bf16")
DEVICES = (EMULATED, NPU)

ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="BitNet b1.58: a folder with config.json and .safetensors, or a .gguf.")
]
DesignFolders = Annotated[
    list[Path],
    typer.Option(
        "--design",
        help="Built designs: first that of the linear layers, a GEMM of int8 x int2 to bf16 or int32, then any of "
        "operators that the model has too (norms, gate, attention, rotary embedding, gated products, q, k and v), or "
        "compositions of a whole layer, by which prompts run, and tokens, or of the model's end with its head.",
    ),
]
Most = Annotated[str, typer.Option("-n", help="Tokens to generate at most; of a bench also several numbers, or 0.")]
DeviceName = Annotated[
    str, typer.Option("--device", help=f"Of the array: {', '.join(DEVICES)}.", autocompletion=completing(DEVICES))
]
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


def opened(path: Path, designs: Sequence[Path], device: str, rule: str, override: list[str] | None) -> BitNet:
    """The model, its linear layers on the first design, others for other parts. BadParameter for an unknown device or
    rule."""
    pairs = [text.partition("=") for text in override or []]
    if odd := ["".join(pair) for pair in pairs if not all(pair)]:
        raise typer.BadParameter(f"--override {clip(repr(odd[0]))}: give NAME=VALUE, such as hidden_act=relu2")
    if device not in DEVICES:
        raise typer.BadParameter(f"--device {clip(repr(device))}: choose {' or '.join(DEVICES)}")
    if rule not in RULES:
        raise typer.BadParameter(f"--split {clip(repr(rule))}: choose {', '.join(RULES)}")
    part()
    products = Products.of(designs[0], device, rule)
    parts = ArrayParts.of(designs[1:], device, rule, products.ledger)
    if rule == "array":
        products.loaded.ready()
    with counting(screen(stderr=True)) as bar:
        task = bar.add_task("packing layers")
        members = {name: value for name, _, value in pairs}
        progress = lambda done, of: bar.update(task, completed=done, total=of)  # noqa: E731
        return BitNet.load(path, products, progress, members, parts, ComposedLayers.among(parts))


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


_CHARACTERS = 256  # a vocabulary no larger is of bytes


@app.command(name="generate")
def generate_command(
    model: ModelPath,
    prompt_ids: Annotated[str | None, typer.Option(help="The prompt's tokens, such as 128000,791,1938.")] = None,
    prompt: Annotated[
        str | None, typer.Option(help=f"A text instead, for models of at most {_CHARACTERS} tokens: its bytes.")
    ] = None,
    most: Most = "32",
    temperature: Annotated[float, number("0 takes the most likely token.")] = 0.0,
    top_k: Annotated[int, number("Draw from so many of the most likely; 0: from all.")] = 0,
    top_p: Annotated[float, number("Draw from the fewest that are so likely together.", most=1)] = 1.0,
    seed: Seed = 0,
    designs: DesignFolders = [DESIGN],  # noqa: B006
    device: DeviceName = "emulated",
    split: Rule = "estimate",
    micro_batch: MicroBatch = 0,
    override: Override = None,
) -> None:
    """Generate tokens with a BitNet b1.58, its linear layers on the array where that is faster."""
    count, *more = whole_numbers(most, "-n", 1)
    if more:
        raise typer.BadParameter(f"-n {clip(repr(most))}: give one number")
    sampler = Sampler(temperature, top_k, top_p, seed)
    ids = _ids(prompt_ids, prompt)
    loaded = opened(model, designs, device, split, override)
    loaded.check(ids)
    text = prompt is not None
    if text and loaded.config.vocab_size > _CHARACTERS:
        raise typer.BadParameter(f"--prompt is for {_CHARACTERS} tokens at most; give --prompt-ids of your tokeniser's")
    say(summary(loaded))
    say(_shown(ids, text), nl=False)
    for token in generate(loaded, ids, sampler, count, micro_batch):
        say(_shown([token], text), nl=False)
    say("")
    put(screen(), ledger_table(loaded.products.ledger), peak_memory())


def _ids(numbers: str | None, text: str | None) -> list[int]:
    if (numbers is None) == (text is None):
        raise typer.BadParameter("give either --prompt-ids or --prompt")
    if numbers is None:
        return list((text or "").encode())
    return whole_numbers(",".join(numbers.replace(",", " ").split()), "--prompt-ids", 0)


def _shown(tokens: list[int], text: bool) -> str:
    if text:
        return bytes(tokens).decode(errors="backslashreplace")
    return "".join(f"{token} " for token in tokens)


@app.command(name="bench")
def bench_command(
    model: ModelPath,
    prompts: Annotated[
        str, typer.Option("-p", help="Lengths of prompts, such as 512,1024 (pp512, pp1024); 0: none.")
    ] = "512",
    most: Most = "32",
    repetitions: Annotated[int, number("Times that each test is repeated, after a first.", "-r", least=1)] = 5,
    tokens: Annotated[
        int,
        number("Compare logits of so many tokens with float64, for each type of layers; 0: do not.", "--nmse"),
    ] = 0,
    seed: Seed = 0,
    designs: DesignFolders = [DESIGN],  # noqa: B006
    device: DeviceName = "emulated",
    split: Rule = "estimate",
    micro_batch: MicroBatch = 0,
    override: Override = None,
) -> None:
    """Time prompts (pp) and generated tokens (tg) of a BitNet b1.58; times of the emulated array are not an NPU's."""
    lengths, counts = _numbers("-p", prompts), _numbers("-n", most)
    loaded = opened(model, designs, device, split, override)
    for count in (*lengths, *counts, tokens):
        loaded.check_length(count)
    size = loaded.embedding.nbytes + packed_bytes(loaded)
    speed = ">t/s (measured)" if device == "xrt" else ">t/s (emulated, no NPU)"
    table = new_table(None, "model", ">size", ">params", "backend", "split", ">ub", ">test", speed)
    table.box = box.MARKDOWN
    facts = (f"bitnet {loaded.config.num_hidden_layers}L", f"{size / 2**20:.2f} MiB", _params(loaded))
    ids = np.random.default_rng(seed).integers(0, loaded.config.vocab_size, max(*lengths, tokens, 1)).tolist()
    for test, made, count in [*(("pp", n, n) for n in lengths), *(("tg", n, 1) for n in counts)]:
        rates = [_rate(loaded, ids, made, count, micro_batch) for _ in range(repetitions + 1)][1:]
        spread = statistics.stdev(rates) if len(rates) > 1 else 0.0
        backend = f"bdforge {device}"
        row = (*facts, backend, split, str(micro_batch or "all"), f"{test}{made}")
        table.add_row(*row, f"{statistics.mean(rates):.2f} ± {spread:.2f}")
    accurate = [accuracy_table(accuracy(loaded, ids[:tokens]))] if tokens else []
    put(screen(), table, ledger_table(loaded.products.ledger), *accurate, peak_memory())


def _numbers(option: str, text: str) -> list[int]:
    """Numbers above 0 of a list with commas."""
    return [found for found in whole_numbers(text, option, 0) if found]


def _rate(model: BitNet, ids: list[int], tokens: int, at_once: int, micro_batch: int) -> float:
    """Tokens per second, `at_once` to a step, each step with the logits of its last token."""
    cache, start = model.cache(), time.perf_counter()
    for _ in range(0, tokens, at_once):
        model.next_logits(ids[:at_once], cache, micro_batch)
    return tokens / (time.perf_counter() - start)


def _params(model: BitNet) -> str:
    matrices = sum(math.prod(linear.shape) for layer in model.layers for linear in layer.linears)
    count = matrices + model.embedding.size
    return f"{count / 1e9:.2f} B" if count >= 1e9 else f"{count / 1e6:.2f} M"
