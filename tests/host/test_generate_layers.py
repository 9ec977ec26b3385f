"""bdforge-generate by compositions of a layer: Python's tokens, on the emulated array, of the same designs."""

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from library_builds import FOREIGN, Done, run
from library_builds import small_design as no_layer
from stock_ggml import HOST, ours, small_design, stock_ggml

from bdforge.models import ArrayParts, Products, Sampler, Split, generate
from bdforge.models.bitnet import BitNet
from bdforge.models.bitnet.composed_layers import ComposedLayers
from bdforge.runtime import load
from support.built_designs import PlannedDesign
from support.tiny_layers import HEAD, PROMPT, TOKEN, TinyLayers
from tools.bitnet.content import config, random_content
from tools.bitnet.write import write_gguf

pytestmark = pytest.mark.slow

TINY, LAYERS, VOCABULARY, POSITIONS = TinyLayers(), 2, 320, 1100
KEYS = 16  # of a tile of the composition's attention
SIZES = (TINY.hidden, TINY.ffn, LAYERS, TINY.heads, TINY.kv, TINY.dim, VOCABULARY, POSITIONS)
Folders = dict[str, Path]


@pytest.fixture(scope="module")
def designs(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return {name: TINY.composed_once(tmp_path_factory, name) for name in (PROMPT, TOKEN, HEAD)}


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> PlannedDesign:
    return small_design(tmp_path_factory.mktemp("summing"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("model") / "model.gguf", random_content(config(*SIZES), 5), "TQ2_0")


def generated(model: Path, prompt: Sequence[int], count: int, designs: Sequence[Path], **more: str) -> Done:
    words = [word for design in designs for word in ("--design", str(design))]
    ids = ",".join(map(str, prompt))
    program = stock_ggml().command(
        HOST / "bin" / "bdforge-generate", model, "--prompt-ids", ids, "-n", str(count), *words
    )
    environ = FOREIGN | {"OMP_NUM_THREADS": "1", "GGML_BACKEND_PATH": "", "BDFORGE_GGML_DEVICE": "emulated"}
    return run(*program, environ=environ | more)


def in_python(
    model: Path, products: PlannedDesign, designs: Sequence[Path], prompt: Sequence[int], count: int
) -> list[int]:
    """The prompt with what comes behind it."""
    linear = Products(load(products.folder), Split(products.plan, "cpu"))
    parts = ArrayParts.of(designs, None, "array", linear.ledger)
    bitnet = BitNet.load(model, linear, parts=parts, composed=ComposedLayers.among(parts))
    return [*prompt, *generate(bitnet, list(prompt), Sampler(), count)]


@pytest.mark.parametrize(
    ("names", "length", "count", "seed"),
    [
        # fewer tokens at first than attention's tile has keys
        pytest.param((PROMPT, TOKEN), 14, 4, 1, marks=pytest.mark.slow),
        pytest.param((TOKEN, PROMPT), 37, 5, 2, marks=pytest.mark.slow),
        pytest.param((PROMPT,), 21, 4, 3, marks=pytest.mark.slow),
        pytest.param((TOKEN, HEAD), 12, 7, 4, marks=pytest.mark.slow),
        ((PROMPT, TOKEN, HEAD), 17, 4, 6),
        pytest.param((PROMPT, TOKEN), 1020, 8, 5, marks=pytest.mark.slow),  # the array's memory is full behind 1024
    ],
)
def test_tokens_are_pythons(
    model: Path, products: PlannedDesign, designs: Folders, names: Sequence[str], length: int, count: int, seed: int
):
    """What compositions do not take runs on ggml's CPU, in Python in numpy: a prompt, tokens that come too early."""
    prompt, chosen = np.random.default_rng(seed).integers(0, VOCABULARY, length), [designs[name] for name in names]
    done = generated(model, prompt.tolist(), count, chosen)
    expected = in_python(model, products, chosen, prompt.tolist(), count)
    assert [int(token) for token in done.stdout.split()] == expected, done.stderr
    prompts = int(PROMPT in names)
    lists = sum(prompts or length + made >= KEYS for made in range(1, count))
    heads = count * (HEAD in names)
    assert f"lists of all layers: {prompts} of prompts, {lists} of tokens; {heads} heads" in done.stderr
    assert f"ternary products: 0 by bdforge, {7 * LAYERS * (count - prompts - lists)} by others" in done.stderr


def test_what_compositions_do_not_take_runs_by_the_backend(model: Path, products: PlannedDesign, designs: Folders):
    prompt, chosen = [5, 9, 200], [designs[TOKEN]]
    expected = in_python(model, products, chosen, prompt, 3)
    done = generated(model, prompt, 3, chosen, **ours(products.folder))
    assert [int(token) for token in done.stdout.split()] == expected, done.stderr
    assert f"ternary products: {7 * LAYERS * 3} by bdforge, 0 by others" in done.stderr


def refused(model: Path, reason: str, *designs: Path, **more: str) -> None:
    done = generated(model, [1, 2], 1, designs, **more)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr.splitlines()[-1]


def test_designs_that_do_not_fit_are_refused(model: Path, designs: Folders, tmp_path: Path):
    prompt = designs[PROMPT]
    refused(model, "bitnet, bitnet are compositions of a layer; give one", prompt, prompt)
    no_layer(tmp_path / "small")
    refused(model, "design small is no layer of BitNet: A, B, q,", tmp_path / "small")
    refused(model, "build the design", tmp_path / "nowhere")
    refused(model, "device 0: ", prompt, BDFORGE_GGML_DEVICE="0")


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ((256, 512, 1, 8, 2, 32, 260, 64), "design attention_bf16_bitnet has head_dim = 64, this model 32"),
        ((256, 256, 1, 4, 2, 64, 260, 64), "gate: 256 x 256 elements, where w_gate has 256 x 512"),
    ],
)
def test_models_of_other_sizes_are_refused(designs: Folders, tmp_path: Path, sizes: tuple[int, ...], reason: str):
    other = write_gguf(tmp_path / "other.gguf", random_content(config(*sizes), 5), "TQ2_0")
    refused(other, reason, designs[PROMPT])


def test_a_matrix_of_several_scales_is_refused(model: Path, designs: Folders, tmp_path: Path):
    """The last block of the file is of `ffn_down`: 64 bytes of codes, then its scale."""
    content = bytearray(model.read_bytes())
    (scale,) = struct.unpack("<e", content[-2:])
    content[-2:] = struct.pack("<e", 2 * scale)
    (tmp_path / "model.gguf").write_bytes(content)
    refused(tmp_path / "model.gguf", "tensor blk.1.ffn_down.weight: its blocks have several scales", designs[TOKEN])
