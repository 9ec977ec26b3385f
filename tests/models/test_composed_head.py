"""A head on the array: int8 rows, exact sums, float32 logits, against float64; machine code in every core."""

from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.models import ArrayParts, Ledger, ModelError, Products, Split
from bdforge.models.bitnet import BitNet, Checkpoint
from bdforge.models.bitnet.carried import Carried
from bdforge.models.bitnet.composed_head import ComposedHead, quantised_rows
from bdforge.models.bitnet.composed_layers import ComposedLayers
from bdforge.runtime import OperandError, load
from bdforge.runtime.loading import Emulated
from support.differences import same
from support.plain_bitnet import PlainBitNet
from support.tiny_layers import HEAD, PROMPT, TOKEN, TinyLayers
from tools.bitnet.content import Content, config, random_content
from tools.bitnet.write import write_gguf, write_hugging_face

pytestmark = pytest.mark.slow

TINY, LAYERS, VOCABULARY = TinyLayers(), 2, 192
CONFIG = config(TINY.hidden, TINY.ffn, LAYERS, TINY.heads, TINY.kv, TINY.dim, VOCABULARY, 64)


@pytest.fixture(scope="module")
def designs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: TINY.composed_once(tmp_path_factory, name) for name in (PROMPT, TOKEN, HEAD)}


def head_of(designs: dict[str, Path]) -> ComposedHead:
    head = ComposedLayers.among(ArrayParts.of([designs[HEAD]], None, "array", Ledger())).head
    assert head is not None
    return head


def test_the_tiny_model_has_the_examples_designs():
    assert {step["design"] for step in TINY.form(HEAD)["steps"]} == TINY.designs(HEAD).keys()


def test_rows_are_off_by_half_a_step_at_most():
    rows = np.random.default_rng(3).normal(size=(5, 70)) * 10.0 ** np.arange(-2, 3)[:, None]
    codes, scales = quantised_rows(np.concatenate([rows, np.zeros((1, 70))]).astype(np.float32))
    assert (codes.dtype, codes.shape, scales.shape) == (np.int8, (6, 70), (6,))
    assert (abs(codes).max(1) == [127, 127, 127, 127, 127, 0]).all()
    off = abs(codes[:5] * scales[:5, None].astype(float) - rows)
    assert (off <= scales[:5, None] * (0.5 + 2.0**-16)).all()


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_a_row_that_is_not_finite_is_refused(odd: float):
    rows = np.ones((3, 64), np.float32)
    rows[1, 5] = odd
    with pytest.raises(ModelError, match="head: not all are finite numbers"):
        quantised_rows(rows)


@pytest.mark.parametrize("seed", range(2))
def test_logits_are_within_half_a_step_of_codes_and_of_rows(tmp_path: Path, designs: dict[str, Path], seed: int):
    """|W^ x^ - W x| <= |W^| |x^ - x| + |W^ - W| |x|, a half step each; x is the norm of the sum that the array made."""
    rng, content, down = np.random.default_rng(seed), random_content(CONFIG, seed), 0.0625
    content.embedding *= np.float32(10.0) ** rng.integers(-3, 2, (VOCABULARY, 1))  # each row has a scale of its own
    head = head_of(designs)
    head.pack(Checkpoint.open(write_gguf(tmp_path / "model.gguf", content)), content.embedding, down)
    x, product = rng.normal(size=(2, 1, TINY.hidden)).astype(ml_dtypes.bfloat16).astype(np.float32) * [[[4]], [[64]]]
    scales = rng.uniform(0.5, 2, 1).astype(np.float32)
    logits = head(Carried(x.astype(np.float32), product.astype(np.float32), scales, down))
    assert (logits.dtype, logits.shape) == (np.float32, (VOCABULARY,))
    assert head.state
    states = head.state.arrays["y"].astype(np.float64)[0]
    total = x[0] + product[0] * (scales[0] * down)
    assert (abs(states - total) <= 2.0**-8 * abs(total) + 1e-6).all()
    h = states / np.sqrt((states**2).mean() + 1e-5) * content.final_norm
    table = content.embedding.astype(np.float64)
    step, steps = abs(h).max() / 127, abs(table).max(1) / 127
    bound = 0.5 * step * (abs(table).sum(1) + TINY.hidden * steps / 2) + 0.5 * steps * abs(h).sum()
    off = abs(logits - table @ h)
    assert (off <= 1.01 * bound).all()  # codes near halves, and a scale of 22 bits
    assert (off > 0).any()


def opened(folder: Path, summing: Any, *given: Path, rule: str = "array") -> BitNet:
    products = Products(load(summing.folder), Split(summing.plan, rule))
    parts = ArrayParts.of(given, None, rule, products.ledger)
    return BitNet.load(folder, products, parts=parts, composed=ComposedLayers.among(parts))


HEADS = ("head", "layers and head")


def heads_of(model: BitNet) -> dict[str, int]:
    """Calls by what made logits, and where."""
    ends = [entry for entry in model.products.ledger if entry.part in HEADS]
    return {entry.part + " " + entry.where.removesuffix(" array"): entry.calls for entry in ends}


def nmse(found: np.ndarray, right: np.ndarray) -> float:
    return float(np.square(found - right).sum() / np.square(right).sum())


@pytest.mark.parametrize(
    ("names", "lists"),
    [
        ((PROMPT, TOKEN), {"head emulated": 1, "layers and head emulated": 3}),
        ((PROMPT,), {"head emulated": 4}), ((), {"head emulated": 4}),
    ],
)  # fmt: skip
def test_a_prompt_and_tokens_have_their_logits_from_the_array(
    tmp_path: Path, summing: Any, designs: dict[str, Path], names: tuple[str, ...], lists: dict[str, int]
):
    """Behind layers by compositions, a token's in one list with them, and behind products one by one."""
    content: Content = random_content(CONFIG, 5)
    model = opened(write_hugging_face(tmp_path, content), summing, *(designs[name] for name in (*names, HEAD)))
    plain, cache = PlainBitNet(content), model.cache()
    ids = np.random.default_rng(1).integers(0, VOCABULARY, 20).tolist()
    right = np.array([plain.step(token) for token in ids])[16:]
    found = np.array([model.next_logits(part, cache) for part in (ids[:17], *([one] for one in ids[17:]))])
    assert nmse(found, right) < 3e-3
    assert heads_of(model) == lists
    assert {entry.part for entry in model.products.ledger if names} <= {
        "embedding",
        "layers",
        "head",
        "layers and head",
    }


def test_one_list_makes_what_two_make(tmp_path: Path, summing: Any, designs: dict[str, Path]):
    """Logits bit by bit, as of a head behind the list of layers; the ledger tells its modelled time."""
    model = opened(write_hugging_face(tmp_path, random_content(CONFIG, 5)), summing, *designs.values())
    layer, head = model.composed.single, model.composed.head
    assert layer
    assert head
    x = np.random.default_rng(2).normal(size=(21, TINY.hidden)).astype(np.float32)
    caches = [model.cache(), model.cache()]
    for cache in caches:
        model.composed(x[:18], cache, 1e4)
    for one in x[18:, None]:
        alone, together = (layer(one, cache, 1e4, *ends) for cache, ends in zip(caches, ((), (head,)), strict=True))
        assert alone.logits is None
        assert together.logits is not None
        same(together.logits, head(alone), "logits")
        for name in ("states", "product", "scales"):
            same(getattr(together, name), getattr(alone, name), name)
    for layers in range(LAYERS):
        for one, other in zip(*(cache.kept(layers) for cache in caches), strict=True):
            same(one, other, "keys and values")
    (entry,) = (entry for entry in model.products.ledger if entry.part == "layers and head")
    assert (entry.why, entry.calls) == (f"{LAYERS + 1} in one list", 3)
    apart = sum(layer.us(keys=keys) + head.us for keys in (19, 20, 21))
    timing = timing_of(device_named("strix_halo"))
    assert apart - (entry.npu_us or 0) == pytest.approx(3e-3 * (timing.dispatch_ns - timing.runlist_dispatch_ns))


def test_no_cache_goes_to_and_fro(
    tmp_path: Path, summing: Any, designs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
):
    """A token's list is sent states, product, scales and angles (1,216 bytes), and fetched what it leaves of these, and
    logits; keys and values of both layers once, when somebody asks."""
    model = opened(write_hugging_face(tmp_path, random_content(CONFIG, 5)), summing, *designs.values())
    moved: list[tuple[str, int]] = []
    for way in ("send", "receive"):
        monkeypatch.setattr(Emulated, way, lambda self, buffer, way=way: moved.append((way, buffer.nbytes)))
    cache, state = model.cache(), 2 * 2 * 256 + 64 + 128
    for ids in ([*range(17)], [3], [4]):
        moved.clear()
        model.next_logits(ids, cache)
    assert moved == [("send", state), ("receive", state), ("receive", 4 * VOCABULARY)]
    moved.clear()
    rows = [cache.kept(layer) for layer in (*range(LAYERS), *range(LAYERS))]
    capacity = 2 * TINY.kv * TINY.dim * 1024
    assert moved == [("receive", capacity)] * 2 * LAYERS
    assert {array.shape for pair in rows for array in pair} == {(19, TINY.kv, TINY.dim)}


@pytest.mark.slow  # daily tests/runtime/test_batches.py has it of small designs
def test_a_head_that_looks_elsewhere_is_refused(tmp_path: Path, summing: Any, designs: dict[str, Path]):
    """Which has the product in a buffer of its own."""
    home = copytree(designs[HEAD].parent, tmp_path / "built")
    odd = TINY.composed(home, HEAD, buffers=TINY.form(HEAD)["buffers"] | {"state": ["x"], "sums": ["sums", "scales"]})
    model = opened(write_hugging_face(tmp_path, random_content(CONFIG, 5)), summing, designs[PROMPT], home / TOKEN, odd)
    cache = model.cache()
    model.next_logits([*range(17)], cache)
    says = r"operand sums of 1x192 of bitnet_head does not lie where 18 of bitnet_token has down_sums: it is "
    says += r"bf16\[256\] from byte 0 on, that one bf16\[256\] from byte 512 on; give them"
    with pytest.raises(OperandError, match=says):
        model.next_logits([3], cache)


def test_the_faster_one_makes_logits(tmp_path: Path, summing: Any, designs: dict[str, Path]):
    """With the rule "estimate" a token's are made by the CPU first, whose time decides; "cpu" never takes it."""
    folder = write_hugging_face(tmp_path, random_content(CONFIG, 5))
    model = opened(folder, summing, designs[HEAD], rule="estimate")
    head, cache = model.composed.head, model.cache()
    assert head is not None
    first = model.next_logits([3, 1], cache)
    assert heads_of(model) == {"head CPU": 1}
    assert head.decision is not None
    head.compare(0)
    model.next_logits([4], cache)
    assert heads_of(model) == {"head CPU": 2}
    head.compare(1e9)
    model.next_logits([4], cache)
    assert heads_of(model) == {"head CPU": 2, "head emulated": 1}
    other = opened(folder, summing, designs[HEAD], rule="cpu")
    assert (other.composed.head, nmse(other.next_logits([3, 1], other.cache()), first) < 1e-6) == (None, True)


def told(**changes: str | None) -> Any:
    """A plan as the example's manifest tells it, with other roles where they are given; None: no role."""
    form = TINY.form(HEAD)
    roles = {name: role for name, role in (form["roles"] | changes).items() if role}
    ways = dict.fromkeys(("x", "sums", "scales", "c_before", "w_norm", "w_head", "c_head"), "in") | {"logits": "out"}
    operands = [SimpleNamespace(name=name, direction=way) for name, way in ways.items()]
    return SimpleNamespace(
        program=SimpleNamespace(operands=operands), spec=SimpleNamespace(name=HEAD, content={"roles": roles})
    )


@pytest.mark.parametrize(
    ("roles", "lacks"),
    [
        ({"w_head": "heads"}, "w_head, head"), ({"c_head": None}, "c_head, head scales"),
        ({"w_norm": "attn_norm"}, "w_norm, final_norm"), ({"c_before": "down scales"}, "c_before, down scales before"),
        ({"sums": "states"}, "x, product"), ({"logits": "states"}, "logits"),
    ],
)  # fmt: skip
def test_other_compositions_are_no_head(roles: dict[str, str | None], lacks: str):
    with pytest.raises(ModelError, match=f"design bitnet_head is no head of BitNet: {lacks};"):
        ComposedHead(cast("Any", None), told(**roles))


def test_a_head_of_another_model_and_two_are_refused(tmp_path: Path, summing: Any, designs: dict[str, Path]):
    with pytest.raises(ModelError, match="bitnet_head, bitnet_head are compositions of a head; give one"):
        opened(tmp_path, summing, designs[HEAD], designs[HEAD])
    for number, (changes, reason) in enumerate(
        (
            ({"rms_norm_eps": 1e-6}, "has epsilon = 1e-05, this model 1e-06"),
            ({"vocab_size": 100}, "head: .*their sizes differ .tokens = 1, vocabulary = 100"),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(ModelError, match=reason):
            opened(write_hugging_face(folder, random_content(CONFIG | changes, 5)), summing, designs[HEAD])
