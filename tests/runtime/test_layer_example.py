"""examples/layer: a layer as Llama has it, in one command, against numpy in float64; and how BitNet's fits together."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from bdforge.array.emulator import emulate
from bdforge.design.sequences import Program
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.design.sequences.composed_tensors import ComposedStep, View
from bdforge.design.sequences.composer import Composer
from bdforge.design.sequences.interpret import values_of
from bdforge.devices import device_named
from bdforge.operators import load_spec, plan, plan_of
from bdforge.runtime import BuiltDesign, load, run
from bdforge.runtime.composition import compose, load_composition
from support.built_designs import ROOT
from support.coded_folders import coded_plan
from support.differences import same

FILES = ROOT / "examples" / "layer"
HIDDEN, KV, FFN, HEADS, DIM = 128, 64, 256, 2, 64
BF16 = ml_dtypes.bfloat16
SHAPES = {
    "w_norm": (HIDDEN,), "w_q": (HIDDEN, HIDDEN), "w_k": (HIDDEN, KV), "w_v": (HIDDEN, KV), "w_o": (HIDDEN, HIDDEN),
    "w_ffn": (HIDDEN,), "w_gate": (HIDDEN, FFN), "w_up": (HIDDEN, FFN), "w_down": (FFN, HIDDEN),
}  # fmt: skip


def rms(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return x * w / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def rotated(x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Pairs half a head apart, tokens x heads x 64; `angles` are cosines, then sines."""
    half = DIM // 2
    cos, sin = angles[:, None, :half], angles[:, None, half:]
    one, other = x[..., :half], x[..., half:]
    return np.concatenate([one * cos - other * sin, other * cos + one * sin], -1)


def layer(x: np.ndarray, w: dict[str, np.ndarray], angles: np.ndarray) -> np.ndarray:
    """transformers' LlamaDecoderLayer in float64."""
    tokens = len(x)
    h = rms(x, w["w_norm"])
    q = rotated((h @ w["w_q"]).reshape(tokens, HEADS, DIM), angles)
    k = rotated((h @ w["w_k"]).reshape(tokens, 1, DIM), angles)
    v = (h @ w["w_v"]).reshape(tokens, 1, DIM)
    scores = np.einsum("qhd,kd->hqk", q, k[:, 0]) / np.sqrt(DIM)
    scores = np.where(np.tril(np.ones((tokens, tokens), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    x = x + np.einsum("hqk,kd->qhd", weights, v[:, 0]).reshape(tokens, HIDDEN) @ w["w_o"]
    h = rms(x, w["w_ffn"])
    gate = h @ w["w_gate"]
    return x + (gate / (1 + np.exp(-gate)) * (h @ w["w_up"])) @ w["w_down"]


def designs() -> list[str]:
    return sorted({step.design for step in load_composition(FILES / "llama.toml").steps})


def test_the_steps_are_designs_beside_the_composition():
    for name in designs():
        plan(load_spec(FILES / f"{name}.toml"), device_named("strix_halo"))


def program_of(file: str) -> Program:
    """That of a composition of the planned designs."""
    form, own = load_composition(FILES / file), {file.stem: file for file in FILES.glob("*.toml")}
    files = {step.design: own.get(step.design, ROOT / "designs" / f"{step.design}.toml") for step in form.steps}
    programs = {name: plan(load_spec(file), device_named("strix_halo")).program for name, file in files.items()}
    steps = [ComposedStep(step.name or "", programs[step.design], step.sizes, step.tensors) for step in form.steps]
    views = {name: View(view.of, view.first) for name, view in form.views.items()}
    return Composer(form.parameters, form.buffers, form.outputs, form.in_place, views).program(steps)


def shapes_of(file: str, sizes: dict[str, int]) -> dict[str, tuple[int, ...]]:
    """What a composition of the planned designs takes from the host, and gives it."""
    program = program_of(file)
    values = values_of(program, sizes)
    return {
        operand.name: tuple(values[axis.size] for axis in operand.axes)
        for operand in program.operands
        if operand.direction != "between"
    }


@pytest.mark.slow
def test_a_token_takes_what_a_prompt_leaves():
    """Weights of one token's layer are those of a prompt's, but for tensors that are the other's alone."""
    token, prompt = shapes_of("bitnet_token.toml", {"keys": 33}), shapes_of("bitnet.toml", {"tokens": 1, "keys": 33})
    own = {"w_gate_up": (2560, 13824)}
    apart = {name: prompt.pop(name) for name in ("w_gate", "w_up")}
    assert token == prompt | own
    assert set(apart.values()) == {(2560, 6912)}


@pytest.mark.slow
def test_bitnets_steps_fit_together():
    """One array holds each of its designs, and every step finds what the ones before it made, as it takes it."""
    shapes = shapes_of("bitnet.toml", {"tokens": 1024, "keys": 2048})
    matrices = {"w_qkv": (2560, 3840), "w_o": (2560, 2560), "w_gate": (2560, 6912), "w_up": (2560, 6912)}
    norms = {"w_norm": (2560,), "w_sub": (2560,), "w_ffn": (2560,), "w_ffn_sub": (6912,)}
    scales = {"c_qkv": (3,), "c_o": (1,), "c_before": (1,)}
    state = dict.fromkeys(("x", "sums", "y", "down_sums"), (1024, 2560))
    assert shapes == matrices | norms | scales | state | {
        "w_down": (6912, 2560), "angles": (1024, 128), "scales": (1024,), "h1_scales": (1024,), "f_scales": (1024,),
        "k": (1024, 5, 128), "v": (1024, 5, 128), "k_cache": (2048, 5, 128), "v_cache": (2048, 5, 128),
    }  # fmt: skip


@pytest.mark.slow
def test_a_head_takes_what_a_tokens_layer_leaves():
    """And its first design is that which is loaded."""
    head, token = (
        shapes_of("bitnet_head.toml", {"tokens": 1, "vocabulary": 128256}),
        shapes_of("bitnet_token.toml", {"keys": 33}),
    )
    assert {name: shape for name, shape in head.items() if name in token} == {
        "x": (1, 2560), "sums": (1, 2560), "scales": (1,), "c_before": (1,), "w_norm": (2560,), "y": (1, 2560),
    }  # fmt: skip
    own = {"w_head": (2560, 128256), "c_head": (167, 768), "logits": (167, 768)}
    assert {name: shape for name, shape in head.items() if name not in token} == own
    one, other = (load_composition(FILES / f"{name}.toml") for name in ("bitnet_head", "bitnet_token"))
    assert (one.loaded, one.steps[0].design) == ("bitnet_token", other.steps[0].design)


def places_of(file: str, sizes: dict[str, int], *tensors: str) -> list[tuple[str, int]]:
    """Buffers of tensors, and their first bytes there."""
    program = program_of(file)
    values, operands = values_of(program, sizes), {operand.name: operand for operand in program.operands}
    found = [operands[name] for name in tensors]
    return [(program.arguments[one.argument].name, values[one.offset] * one.bits // 8) for one in found]


def test_a_head_finds_that_where_the_layer_left_it():
    """With caches of any length: so both are one list, without a copy."""
    taken = places_of("bitnet_head.toml", {"tokens": 1, "vocabulary": 128256}, "x", "sums", "scales")
    assert taken == [("state", 0), ("state", 5120), ("state", 10240)]
    for keys in (33, 4096):
        assert places_of("bitnet_token.toml", {"keys": keys}, "y", "down_sums", "f_scales") == taken


@pytest.fixture(scope="module")
def token_layer(tmp_path_factory: pytest.TempPathFactory) -> BuiltDesign:
    """bitnet_token.toml, built."""
    folder, form = tmp_path_factory.mktemp("built"), load_composition(FILES / "bitnet_token.toml")
    for name in {step.design for step in form.steps}:
        coded_plan(folder / name, plan(load_spec(FILES / f"{name}.toml"), device_named("strix_halo")))
    compose(form, "layer", lambda name: BuiltDesign.load(folder / name)).write(folder / "layer")
    return BuiltDesign.load(folder / "layer")


@pytest.mark.slow
@pytest.mark.parametrize("keys", [32, 77])
def test_a_token_is_within_its_bounds_in_any_order_of_the_array(token_layer: BuiltDesign, keys: int):
    """Machine code on 32 cores, resident designs, stale memory."""
    planned = plan_of(token_layer.manifest)
    inputs = planned.random(planned.spec.operator.problem([keys]), 3)
    made = run(token_layer, inputs)
    arrays = made.outputs | made.between
    for name, expected in planned.expected(inputs, arrays).items():
        off = np.abs(arrays[name].astype(np.float64) - expected.values.astype(np.float64))
        assert (off <= (0 if expected.bound is None else expected.bound)).all(), name
    sequence = token_layer.sequence({"keys": keys})
    for seed in range(2):
        buffers = arguments(sequence, placed(sequence, inputs))
        emulate(
            "", buffers, instructions=sequence.words(), image=token_layer.booted, schedule="random", seed=seed,
            device=token_layer.manifest.mlir_device, dram="stale",
        )  # fmt: skip
        for name, array in fetched(sequence, buffers).items():
            same(array, arrays[name], name)


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [19, 37])
def test_two_layers_are_llamas(tmp_path: Path, tokens: int):
    for name in designs():
        coded_plan(tmp_path / name, plan(load_spec(FILES / f"{name}.toml"), device_named("strix_halo")))
    made = compose(load_composition(FILES / "llama.toml"), "llama", lambda name: BuiltDesign.load(tmp_path / name))
    made.write(tmp_path / "llama")
    rng = np.random.default_rng(5)
    weights = [
        {n: (rng.normal(size=s) / (np.sqrt(s[0]) if len(s) > 1 else 2)).astype(BF16) for n, s in SHAPES.items()}
        for _ in range(2)
    ]
    turns = np.arange(tokens)[:, None] / 10000 ** (np.arange(DIM // 2) / (DIM // 2))
    angles = np.concatenate([np.cos(turns), np.sin(turns)], -1).astype(BF16)
    x = rng.normal(size=(tokens, HIDDEN)).astype(BF16)
    loaded = load(tmp_path / "llama")
    state = loaded.prepared(tokens=tokens)
    state.arrays["x"][...] = x
    state.arrays["angles"][...] = angles
    exact = x.astype(np.float64)
    packed = [loaded.pack(**one) for one in weights]
    assert loaded.run_batch([(state, {"weights": one}) for one in packed]) == 1
    listed = state.arrays["y"].copy()
    state.arrays["x"][...] = x
    for one, given in zip(weights, packed, strict=True):
        state(weights=given)
        exact = layer(exact, {n: w.astype(np.float64) for n, w in one.items()}, angles.astype(np.float64))
    same(listed, state.arrays["y"], "one list, and a call for each layer")
    off = state.arrays["y"].reshape(exact.shape).astype(np.float64) - exact
    assert (off**2).sum() / (exact**2).sum() < 2e-4  # bfloat16 between all steps
