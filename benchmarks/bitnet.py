"""BitNet-b1.58-2B-4T's size: a layer of 256 tokens on the emulated array, and the memory that loading a model takes.

    python benchmarks/bitnet.py layer [DESIGN]     host seconds of a layer's prefill (emulated, no NPU)
    python benchmarks/bitnet.py load [DESIGN]      peak memory of all 30 layers, read one by one

DESIGN is a built one, build/strix_halo/gemm_i8_i2_bf16 by default. Layers of `load` are all read from one layer's file.
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

from bdforge.models import Products
from bdforge.models.bitnet import BitNet, Checkpoint
from tools.bitnet.content import config, random_content
from tools.bitnet.write import write_gguf

TOKENS, LAYERS = 256, 30
VOCABULARY = 128_256


def products(folder: str) -> Products:
    """On the emulated array."""
    made = Products.of(folder, "emulated", "array")
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


def loading(folder: str, file: Path) -> None:
    """Peak memory beside the bytes of weights: after loading, and after a token whose head reads the embedding."""
    writer = Process(target=write, args=(file, VOCABULARY))  # its memory is not the loader's
    writer.start()
    writer.join()
    one = Checkpoint.open(file)
    whole = replace(one, config=one.config.model_copy(update={"num_hidden_layers": LAYERS}), layer="blk.0.")
    with patch.object(Checkpoint, "open", return_value=whole):
        start = time.perf_counter()
        model = BitNet.load(file, products(folder))
    packed = sum(b.nbytes for layer in model.layers for one in layer.linears for b in one.packed.buffers.values()) / 1e6
    embedding = model.embedding.nbytes / 1e6
    print(f"packed weights {packed:.0f} MB, embedding {embedding:.0f} MB; {time.perf_counter() - start:.0f} s")
    print(f"peak after loading {peak_mb():.0f} MB")
    model.logits(np.ones((1, 2560), np.float32))
    print(f"peak with logits of a token {peak_mb():.0f} MB: {peak_mb() / (packed + embedding) - 1:+.1%} of the weights")


if __name__ == "__main__":
    folder = sys.argv[2] if len(sys.argv) > 2 else "build/strix_halo/gemm_i8_i2_bf16"
    with tempfile.TemporaryDirectory() as place:
        {"layer": layer, "load": loading}[sys.argv[1]](folder, Path(place, "model.gguf"))
