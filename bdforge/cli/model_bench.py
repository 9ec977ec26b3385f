"""`bdforge bench`: tokens per second of a model, in the manner of llama-bench."""

import math
import statistics
import time
from typing import Annotated

import numpy as np
import typer
from rich import box

from bdforge.cli.models import (
    DESIGN,
    DesignFolder,
    DeviceName,
    MicroBatch,
    ModelPath,
    Most,
    Override,
    Rule,
    accuracy_table,
    ledger_table,
    opened,
    packed_bytes,
    peak_memory,
)
from bdforge.cli.options import Seed
from bdforge.cli.ranges import number, whole_numbers
from bdforge.common.screen import new_table, put, screen
from bdforge.models.accuracy import accuracy
from bdforge.models.bitnet import BitNet

app = typer.Typer()


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
    design: DesignFolder = DESIGN,
    device: DeviceName = "emulated",
    split: Rule = "estimate",
    micro_batch: MicroBatch = 0,
    override: Override = None,
) -> None:
    """Time prompts (pp) and generated tokens (tg) of a BitNet b1.58; times of the emulated array are not an NPU's."""
    lengths, counts = _numbers("-p", prompts), _numbers("-n", most)
    loaded = opened(model, design, device, split, override)
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
        model.logits(model.hidden(ids[:at_once], cache, micro_batch)[-1:])
    return tokens / (time.perf_counter() - start)


def _params(model: BitNet) -> str:
    matrices = sum(math.prod(linear.shape) for layer in model.layers for linear in layer.linears)
    count = matrices + model.embedding.size
    return f"{count / 1e9:.2f} B" if count >= 1e9 else f"{count / 1e6:.2f} M"
