"""A BitNet's layers by the C API, over compositions of a layer: Python's bits."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

import ml_dtypes
import numpy as np
import pytest
from library_builds import c_program, run, small_design, unit_cases

from bdforge.models import ArrayParts, Ledger
from bdforge.models.bitnet import Checkpoint
from bdforge.models.bitnet.cache import Cache
from bdforge.models.bitnet.carried import Carried
from bdforge.models.bitnet.composed_layers import ComposedLayers
from support.differences import same
from support.plain_bitnet import PlainBitNet
from support.tiny_layers import HEAD, PROMPT, TOKEN, TinyLayers
from tools.bitnet.content import ROLES, Content, config, random_content
from tools.bitnet.write import write_gguf

pytestmark = pytest.mark.slow

TINY, LAYERS, THETA, BF16 = TinyLayers(), 2, 500000.0, ml_dtypes.bfloat16
SIZES, VOCABULARY = (TINY.hidden, TINY.ffn, LAYERS, TINY.heads, TINY.kv, TINY.dim), 192
BDFORGE_FILE, BDFORGE_ARGUMENT, BDFORGE_WEIGHTS = 1, 4, 5


@dataclass(frozen=True)
class Built:
    """A C program, the compositions by name, and a model."""

    program: Path
    designs: dict[str, Path]
    model: Path
    content: Content


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("layers")
    content = random_content(config(*SIZES, VOCABULARY, 64), 5)
    return Built(
        c_program(tmp_path_factory.mktemp("program"), Path(__file__).parent / "c_text.c"),
        {name: TINY.composed_once(tmp_path_factory, name) for name in (PROMPT, TOKEN, HEAD)},
        write_gguf(folder / "model.gguf", content),
        content,
    )


def write_files(
    folder: Path, content: Content, gate: str = "relu2", eps: float = 1e-5, heads: Sequence[int] = SIZES[3:]
) -> None:
    """What c_text reads of a model."""
    told = (*SIZES[:3], *heads, eps, THETA, gate)
    (folder / "model").write_text(" ".join(map(str, told)))
    for layer, (matrices, norms) in enumerate(zip(content.matrices, content.norms, strict=True)):
        for role, (weights, _) in matrices.items():
            (folder / f"{layer}.{role}").write_bytes(weights.tobytes())
        for role, norm in norms.items():
            (folder / f"{layer}.{role}").write_bytes(norm.astype(np.float32).tobytes())
        scales = np.array([matrices[role][1] for role in ROLES], np.float32)
        (folder / f"{layer}.scales").write_bytes(scales.tobytes())
    for name in ("embedding", "final_norm"):
        array = getattr(content, name).astype(np.float32)
        (folder / name.replace("embedding", "head")).write_bytes(array.tobytes())


def by_python(built: Built, designs: Sequence[str], x: np.ndarray, kept: np.ndarray, pieces: Sequence[str]):
    """States behind the last layer, zeros of tokens that ran elsewhere, logits behind each piece, and the cache."""
    parts = ArrayParts.of([built.designs[name] for name in designs], None, "array", Ledger())
    composed, source = ComposedLayers.among(parts), Checkpoint.open(built.model)
    for layer in range(LAYERS):
        for one in composed:
            one.pack(source, layer)
    if composed.head:
        composed.head.pack(source, built.content.embedding, next(one.packed[-1].scales["down"] for one in composed))
    cache, y, logits = Cache(LAYERS, TINY.kv, TINY.dim), np.zeros_like(x), []
    for piece in pieces:
        first, count = cache.length, int(piece)
        new = slice(first, first + count)
        carried = Carried.whole(y[new])
        if piece[0] == "+":
            for layer in range(LAYERS):
                cache.appended(layer, *kept[layer, :, new])
        else:
            runs = [one for one in (composed.single, composed.several) if one and one.sizes(count, first)]
            carried = runs[0](x[new], cache, THETA)
        y[new] = carried.summed()
        logits += [composed.head(carried.last)] if composed.head else []
    return y, logits, cache


def floats(file: Path, *shape: int) -> np.ndarray:
    return np.frombuffer(file.read_bytes(), np.float32).reshape(shape)


@pytest.mark.parametrize(
    ("designs", "room", "pieces"),
    [
        pytest.param((PROMPT, TOKEN), 16, ["3", "12", "1", "1", "14", "1", "1"], id="memory is full twice"),
        pytest.param((HEAD, TOKEN, PROMPT), 64, ["17", "1", "2"], id="with a head"),
        pytest.param((TOKEN, PROMPT), 1024, ["37", "1", "5", "1", "2"], id="with room"),
        pytest.param((PROMPT,), 5, ["1", "7", "1", "30"], id="prompts alone"),
        pytest.param((TOKEN, HEAD), 1, ["+20", "1", "1", "+2"], id="begun elsewhere"),
    ],
)
def test_a_text_in_pieces_has_pythons_bits(
    built: Built, tmp_path: Path, designs: Sequence[str], room: int, pieces: Sequence[str]
):
    rng, tokens = np.random.default_rng(3), sum(map(int, pieces))
    x = rng.normal(size=(tokens, TINY.hidden)).astype(np.float32)
    kept = rng.normal(size=(LAYERS, 2, tokens, TINY.kv, TINY.dim)).astype(BF16).astype(np.float32)
    write_files(tmp_path, built.content)
    (tmp_path / "x").write_bytes(x.tobytes())
    for layer in range(LAYERS):
        for name, array in zip("kv", kept[layer], strict=True):
            (tmp_path / f"{layer}.{name}_before").write_bytes(array.tobytes())
    folders = ",".join(str(built.designs[name]) for name in designs)
    done = run(built.program, "emulated", tmp_path, folders, str(room), *pieces)
    assert (done.returncode, done.stderr) == (0, "")
    y, logits, cache = by_python(built, designs, x, kept, pieces)
    if HEAD in designs:
        same(floats(tmp_path / "logits", len(pieces), VOCABULARY), np.array(logits), "logits")
    same(floats(tmp_path / "y", tokens, TINY.hidden), y, "y")
    for layer in range(LAYERS):
        for name, array in zip(("keys", "values"), cache.kept(layer), strict=True):
            made = floats(tmp_path / f"{layer}.{name}", tokens, TINY.kv, TINY.dim)
            same(made, array, name)


def test_logits_are_near_those_in_float64(built: Built, tmp_path: Path):
    """A prompt, then tokens over caches that grow."""
    ids = np.random.default_rng(1).integers(0, 40, 35)
    write_files(tmp_path, built.content)
    (tmp_path / "x").write_bytes(built.content.embedding[ids].tobytes())
    for layer in range(LAYERS):
        for name in "kv":
            (tmp_path / f"{layer}.{name}_before").write_bytes(b"")
    folders = ",".join(str(built.designs[name]) for name in (PROMPT, TOKEN))
    done = run(built.program, "emulated", tmp_path, folders, "16", "30", *["1"] * 5)
    assert (done.returncode, done.stderr) == (0, "")
    y = floats(tmp_path / "y", len(ids), TINY.hidden).astype(np.float64)
    normal = y / np.sqrt((y * y).mean(1, keepdims=True) + 1e-5) * built.content.final_norm
    plain = PlainBitNet(built.content)
    expected = np.array([plain.step(token) for token in ids])
    assert ((normal @ built.content.embedding.T - expected) ** 2).sum() < 3e-3 * (expected**2).sum()


@pytest.mark.parametrize("group", ["layers", "long texts"])
def test_texts_on_memory_that_is_apart(built: Built, tmp_path: Path, group: str):
    """What one side writes the other one sees when it is told to, and not before: no cache goes to and fro unseen."""
    for design in built.designs.values():
        (tmp_path / design.name).symlink_to(design.parent)
    done = run(unit_cases(), tmp_path, group)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def refused(built: Built, folder: Path, designs: Sequence[Path], status: int, reason: str) -> None:
    """c_text says why it takes no layers."""
    for layer in range(LAYERS):
        for name in "kv":
            (folder / f"{layer}.{name}_before").write_bytes(b"")
    done = run(built.program, "emulated", folder, ",".join(map(str, designs)), "16")
    assert done.returncode == status
    assert reason in done.stderr


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"gate": "silu"}, "design bitnet: none of its products has the gate silu of this model"),
        ({"eps": 1e-6}, "has epsilon = 1e-05, this model 1e-06"),
        ({"heads": (2, 2, 64)}, "design attention_bf16_bitnet has heads = 4, this model 2"),
        ({"heads": (4, 1, 64)}, "has kv_heads = 2, this model 1"),
        ({"heads": (4, 2, 32)}, "has head_dim = 64, this model 32"),
    ],
)
def test_compositions_of_another_model_are_refused(built: Built, tmp_path: Path, changed: dict, reason: str):
    write_files(tmp_path, built.content, **changed)
    refused(built, tmp_path, [built.designs[PROMPT]], BDFORGE_ARGUMENT, reason)


def test_designs_that_are_no_layer_are_refused(built: Built, tmp_path: Path):
    write_files(tmp_path, built.content)
    prompt = built.designs[PROMPT]
    refused(built, tmp_path, [prompt, prompt], BDFORGE_ARGUMENT, "bitnet, bitnet are compositions of a layer; give one")
    head, two = built.designs[HEAD], "bitnet_head, bitnet_head are compositions of a head; give one"
    refused(built, tmp_path, [prompt, head, head], BDFORGE_ARGUMENT, two)
    refused(built, tmp_path, [head], BDFORGE_ARGUMENT, "no composition of a layer was given")
    other = "design small is no layer of BitNet: A, B, q, k, v, o, gate, up, down, states"
    refused(built, tmp_path, [small_design(tmp_path / "small")], BDFORGE_ARGUMENT, other)
    refused(built, tmp_path, [prompt.parent], BDFORGE_FILE, "build the design")


@pytest.mark.parametrize(
    ("role", "odd"),
    [
        ("gate+up", "gate"), ("q scales", "up"), ("down scale", "w_up, up"), ("o", "w_up, up"),
        ("key_cache", "w_up, up"), (None, "w_up, up"),
    ],
)  # fmt: skip
def test_roles_that_do_not_fit_are_named(built: Built, tmp_path: Path, role: str | None, odd: str):
    copy = copytree(built.designs[PROMPT], tmp_path / "bitnet")
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["document"]["roles"]["w_up"] = role
    if role is None:
        del manifest["document"]["roles"]["w_up"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    write_files(tmp_path, built.content)
    refused(built, tmp_path, [copy], BDFORGE_ARGUMENT, f"design bitnet is no layer of BitNet: {odd};")


def test_weights_that_do_not_fit_are_refused(built: Built, tmp_path: Path):
    content, designs = built.content, [built.designs[name] for name in (PROMPT, TOKEN)]
    write_files(tmp_path, content)
    spoilt = content.matrices[1]["down"][0].copy()
    spoilt[3, 4] = 2
    (tmp_path / "1.down").write_bytes(spoilt.tobytes())
    refused(
        built, tmp_path, designs, BDFORGE_WEIGHTS, "operand w_down: the value at row 3, column 4 is 2, expected -1 to 1"
    )
    write_files(tmp_path, content)
    (tmp_path / "model").write_text((tmp_path / "model").read_text().replace(f" {TINY.ffn} ", " 192 "))
    refused(built, tmp_path, designs, BDFORGE_ARGUMENT, "gate: 256 x 192 elements, where w_gate has 256 x 512")
