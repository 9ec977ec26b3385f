"""BitNet-b1.58-2B-4T's size: a layer of 256 tokens on the emulated array, memory of a whole model, tokens on the CPU.

    python benchmarks/bitnet.py layer [DESIGN]     host seconds of a layer's prefill (emulated, no NPU)
    python benchmarks/bitnet.py load [DESIGN [RULE]]   peak memory of all 30 layers, read one by one, and of generating
    python benchmarks/bitnet.py decode [DESIGN]    tokens per second of all 30 layers on this machine's CPU, by part
    python benchmarks/bitnet.py accuracy [DESIGN]  30 narrower layers of random weights against float64, over 48 tokens
    python benchmarks/bitnet.py products           ternary products on the CPU, by each kernel that it has and by numpy

DESIGN is a built one, build/strix_halo/gemm_i8_i2_bf16 by default; RULE that of `--split`, estimate by default. Layers
of whole models are all read from one layer's file, each into memory of its own.
"""

import resource
import sys
import tempfile
import time
from dataclasses import replace
from multiprocessing import Process
from pathlib import Path
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bdforge.models import Entry, Products, Sampler, generate
from bdforge.models.bitnet import BitNet, Checkpoint
from bdforge.models.processor import Numpy, natives
from bdforge.models.rounding import accuracy
from tools.bitnet.content import config, random_content
from tools.bitnet.write import write_gguf

TOKENS, LAYERS = 256, 30
VOCABULARY = 128_256
SHAPES = ((2560, 3840), (2560, 2560), (2560, 13_824), (6912, 2560))


def products(folder: str, rule: str = "array") -> Products:
    """On the emulated array, or on the CPU."""
    made = Products.of(folder, "emulated", rule)
    if rule == "array":
        made.loaded.ready()
    return made


def peak_mb() -> float:
    """Of this process so far, mapped pages of files included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def write(file: Path, vocabulary: int) -> None:
    """A layer of random weights, with a large embedding."""
    content = random_content(config(2560, 6912, 1, 20, 5, 128, 2, 4096), 1)
    content.embedding = np.random.default_rng(1).standard_normal((vocabulary, 2560), np.float32) / 50
    content.config["vocab_size"] = vocabulary
    write_gguf(file, content)


def layer(folder: str, file: Path) -> None:
    """Host seconds of one layer, by part."""
    write(file, 300)
    model = BitNet.load(file, products(folder))
    start = time.perf_counter()
    model.hidden(np.random.default_rng(1).integers(0, 300, TOKENS).tolist(), model.cache())
    print(f"a layer of {TOKENS} tokens: {time.perf_counter() - start:.1f} s of this host (emulated)")
    for entry in model.products.ledger:
        print(f"  {entry.part} on {entry.where}: {entry.host_seconds:.2f} s")


def whole(file: Path, made: Products) -> BitNet:
    """All layers, read from a file of one."""
    writer = Process(target=write, args=(file, VOCABULARY))  # its memory is not the loader's
    writer.start()
    writer.join()
    one = Checkpoint.open(file)
    all_ = replace(one, config=one.config.model_copy(update={"num_hidden_layers": LAYERS}), layer="blk.0.")
    with patch.object(Checkpoint, "open", return_value=all_):
        return BitNet.load(file, made)


def decode(folder: str, file: Path) -> None:
    """Tokens one after the other, the least time of each part."""
    model = whole(file, products(folder, "cpu"))
    cache, best, ledger, parts = model.cache(), float("inf"), model.products.ledger, list[Entry]()
    print(f"ternary products by {model.products.split.processor.name}")
    for token in range(TOKENS // 8):
        ledger.entries.clear()
        start = time.perf_counter()
        model.next_logits([token], cache)
        if (taken := time.perf_counter() - start) < best:
            best, parts = taken, list(ledger)
    print(f"a token in {1e3 * best:.1f} ms, the least of {TOKENS // 8}: {1 / best:.1f} tokens/s (measured here)")
    for entry in parts:
        print(f"  {entry.part}: {1e3 * entry.host_seconds:.1f} ms, {entry.calls} calls")


def accurate(folder: str, file: Path) -> None:
    """Of two texts, by the type of the linear layers' results."""
    write_gguf(file, random_content(config(512, 1280, LAYERS, 8, 2, 64, 2000, 256), 1))
    model = BitNet.load(file, products(folder, "cpu"))
    for text in range(2):
        for one in accuracy(model, np.random.default_rng(text).integers(0, 2000, 48).tolist()):
            print(f"{one.results}: NMSE {one.nmse:.1e}, {one.agreeing} of {one.tokens} most likely tokens agree")


def rates(*_: object) -> None:
    """The products of a layer, a token at a time and 16."""
    for kernel in (*natives(), Numpy()):
        for rows in (1, 16):
            us = sum(kernel.us(rows, K, N) for K, N in SHAPES)
            macs = rows * sum(K * N for K, N in SHAPES)
            print(
                f"{kernel.name}: {rows} rows, a layer in {us:,.0f} us, {macs / us / 1e3:.1f} GMAC/s (by rates measured)"
            )


def loading(folder: str, file: Path, rule: str = "estimate") -> None:
    """Peak memory beside the bytes of weights: after loading, and after tokens whose heads read the embedding."""
    start = time.perf_counter()
    model = whole(file, products(folder, rule))
    packed = sum(linear.nbytes for layer in model.layers for linear in layer.linears) / 1e6
    embedding = model.embedding.nbytes / 1e6
    print(f"packed weights {packed:.0f} MB, embedding {embedding:.0f} MB; {time.perf_counter() - start:.0f} s")
    print(f"peak after loading {peak_mb():.0f} MB")
    for _ in generate(model, [1], Sampler(), TOKENS // 8):
        pass
    print(f"peak while generating {peak_mb():.0f} MB: {peak_mb() / (packed + embedding) - 1:+.1%} of the weights")


if __name__ == "__main__":
    folder = sys.argv[2] if len(sys.argv) > 2 else "build/strix_halo/gemm_i8_i2_bf16"
    runs = {"layer": layer, "load": loading, "decode": decode, "accuracy": accurate, "products": rates}
    with tempfile.TemporaryDirectory() as place:
        runs[sys.argv[1]](folder, Path(place, "model.gguf"), *sys.argv[3:])
