"""BitNets in files: every format gives the same model, and what is none is refused in a sentence."""

import json
from pathlib import Path

import numpy as np
import pytest

from bdforge.common.messages import InputError
from bdforge.models import ModelError, Products, Split
from bdforge.models.bitnet import BitNet, Checkpoint
from bdforge.models.processor import Numpy
from bdforge.runtime import load
from support.differences import same
from support.weight_files import gguf_entry, gguf_file, gguf_string
from tools.bitnet.content import config, random_content
from tools.bitnet.write import KINDS, write_gguf, write_hugging_face

CONFIG = config(256, 512, 1, 4, 2, 64, 37, 32)
IDS = [5, 0, 36, 5]


@pytest.fixture(scope="module")
def content():
    return random_content(CONFIG, 3)


@pytest.fixture
def products(summing) -> Products:
    return Products(load(summing.folder), Split(summing.plan, "cpu"))


def logits(path: Path, products: Products) -> np.ndarray:
    model = BitNet.load(path, products)
    return model.logits(model.hidden(IDS, model.cache()))


@pytest.mark.parametrize("kind", KINDS)
def test_formats_hold_the_same_model(tmp_path, content, products, kind):
    path = write_gguf(tmp_path / "model.gguf", content, kind, "bitnet" if kind == "TQ2_0" else "bitnet-b1.58")
    wanted = logits(write_hugging_face(tmp_path / "folder", content), products)
    same(logits(path, products), wanted)
    assert wanted.shape == (4, 37)


def test_an_embedding_may_be_quantised(tmp_path, content, products):
    """Of Q8_0: the same model as with the numbers that its blocks hold, rows of the embedding and head alike."""
    file = write_gguf(tmp_path / "model.gguf", content, short=True)
    stored = random_content(CONFIG, 3)
    found = Checkpoint.open(file).table("embedding", (37, 256))
    stored.embedding = found[np.arange(37)]
    same(stored.embedding, content.embedding, rtol=0, atol=np.abs(content.embedding).max() / 250)
    same(
        logits(file, products), logits(write_hugging_face(tmp_path / "folder", stored), products), rtol=1e-5, atol=1e-4
    )
    with pytest.raises(ModelError, match=r"tensor token_embd.weight is quantised, expected floats"):
        Checkpoint.open(file).floats("embedding", (37, 256))


def changed(folder: Path, **members) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | members))
    return folder


def test_scales_may_divide(tmp_path, content, products):
    """`linear_class` bitlinear: y = acc / (s * weight_scale)."""
    one = logits(write_hugging_face(tmp_path / "multiplies", content), products)
    inverse = [{role: (w, 1 / scale) for role, (w, scale) in layer.items()} for layer in content.matrices]
    other = random_content(CONFIG, 3)
    other.matrices = inverse
    folder = write_hugging_face(tmp_path / "divides", other)
    changed(folder, quantization_config={"quant_method": "bitnet", "linear_class": "bitlinear"})
    same(logits(folder, products), one, rtol=1e-3, atol=1e-3)


def test_a_scale_of_zero_multiplies_and_divides_nothing(tmp_path, content):
    zero = random_content(CONFIG, 3)
    zero.matrices = [{role: (w, 0.0) for role, (w, _) in layer.items()} for layer in content.matrices]
    folder = write_hugging_face(tmp_path, zero)
    assert Checkpoint.open(folder).matrix(0, ["q"]).scales == (0.0,)
    changed(folder, quantization_config={"linear_class": "bitlinear"})
    with pytest.raises(ModelError, match=r"q_proj\.weight has scale 0, by which results would be divided"):
        Checkpoint.open(folder).matrix(0, ["q"])


@pytest.mark.parametrize("shape", [(256, 37), (37 * 256,), (37, 256, 1), (37, 255), (36, 256)])
def test_floats_have_the_shape_that_is_wanted_and_no_other_of_its_size(tmp_path, content, shape):
    found = Checkpoint.open(write_hugging_face(tmp_path, content))
    assert found.floats("embedding", (37, 256)).shape == (37, 256)
    with pytest.raises(ModelError, match=r"embed_tokens\.weight has shape \(37, 256\), expected \("):
        found.floats("embedding", shape)


def test_a_head_of_many_rows_is_made_in_parts(tmp_path, content, products, monkeypatch):
    told = []
    whole = logits(write_hugging_face(tmp_path, content), products)
    monkeypatch.setattr("bdforge.models.processor._PANEL", 10)
    products.split.processor = Numpy()
    model = BitNet.load(tmp_path, products, lambda layer, of: told.append((layer, of)))
    states = model.hidden(IDS, model.cache())
    monkeypatch.setattr(np, "empty", lambda shape, dtype: np.full(shape, np.nan, dtype))  # no logit of an earlier run
    same(model.logits(states), whole, rtol=1e-5, atol=1e-4)
    assert told == [(1, 1)]


def test_tensors_may_lie_in_several_files_and_the_head_be_another(tmp_path, content, products):
    from safetensors.numpy import load_file, save_file

    folder = write_hugging_face(tmp_path / "model", content)
    whole = logits(folder, products)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    for number in range(2):
        save_file({name: tensors[name] for name in names[number::2]}, folder / f"model-{number}.safetensors")
    same(logits(folder, products), whole)
    save_file({"lm_head.weight": -content.embedding}, folder / "model-2.safetensors")
    same(logits(folder, products), -whole, rtol=1e-6)


def test_silu_is_another_model(tmp_path, content, products):
    folder = write_hugging_face(tmp_path, content)
    relu2 = logits(folder, products)
    silu = logits(changed(folder, hidden_act="silu"), products)
    assert not np.allclose(silu, relu2, rtol=0.1)
    model = BitNet.load(folder, products, override={"hidden_act": "relu2"})
    same(model.logits(model.hidden(IDS, model.cache())), relu2)


def with_tensors(folder: Path, **tensors: np.ndarray | None) -> Path:
    """Tensors of a folder's file put in, or taken out."""
    from safetensors.numpy import load_file, save_file

    whole = load_file(folder / "model.safetensors") | tensors
    save_file({name: value for name, value in whole.items() if value is not None}, folder / "model.safetensors")
    return folder


SCALE = "model.layers.0.mlp.up_proj.weight_scale"
ONE = np.ones(1, np.float32)


@pytest.mark.parametrize(
    ("members", "tensors", "said"),
    [
        ({"tie_word_embeddings": False}, {}, "has no tensor lm_head.weight; this is no whole BitNet"),
        ({}, {SCALE: None}, "has no tensor model.layers.0.mlp.up_proj.weight_scale; this is no whole"),
        ({}, {SCALE: np.ones(2, np.float32)}, "weight_scale is F32 of shape .2., expected one"),
        ({}, {SCALE: ONE * np.inf}, "weight_scale is inf, expected a finite number"),
        ({"attention_bias": True}, {"model.layers.0.self_attn.q_proj.bias": ONE}, "attention_bias is True; only False"),
    ],
)
def test_tensors_that_change_the_function_are_there_or_the_model_is_refused(
    tmp_path, content, products, members, tensors, said
):
    folder = with_tensors(changed(write_hugging_face(tmp_path, content), **members), **tensors)
    with pytest.raises(InputError, match=said):
        BitNet.load(folder, products)


def test_what_nobody_knows_is_told_once(tmp_path, content, products, caplog):
    """By one line for settings and tensors of a folder, which `transformers` passes over too; silent for the rest."""
    folder = write_hugging_face(tmp_path, content)
    BitNet.load(folder, products)
    assert not caplog.messages
    with_tensors(changed(folder, depth=3, odd=None), **{"model.layers.0.self_attn.q_proj.bias": ONE})
    BitNet.load(folder, products)
    (told,) = caplog.messages
    assert "depth, model.layers.0.self_attn.q_proj.bias: not known here" in told


def of_tensors(path: Path, **tensors: tuple[int, tuple[int, ...], bytes]) -> Path:
    """A GGUF of a BitNet of one layer that has an embedding and these tensors."""
    numbers = {"embedding_length": 256, "feed_forward_length": 512, "block_count": 1, "attention.head_count": 4}
    entries = [gguf_entry("general.architecture", 8, gguf_string("bitnet"))]
    entries += [gguf_entry(f"bitnet.{key}", 4, value.to_bytes(4, "little")) for key, value in numbers.items()]
    whole = {"token_embd.weight": (0, (256, 2), bytes(2048))} | tensors
    path.write_bytes(gguf_file(whole, metadata=tuple(entries)))
    return path


@pytest.mark.parametrize(
    "name", ["blk.0.attn_q.bias", "rope_freqs.weight", "blk.0.attn_q_norm.weight", "blk.1.ffn_up.weight"]
)
def test_tensors_of_other_models_in_a_gguf_are_refused(tmp_path, name):
    file = of_tensors(tmp_path / "model.gguf", **{name: (0, (1,), bytes(4))})
    with pytest.raises(ModelError, match=f"has no tensors called {name}: another model"):
        Checkpoint.open(file)


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"vocab_size": 38}, r"tensor model.embed_tokens.weight has shape \(37, 256\), expected \(38, 256\)"),
        ({"intermediate_size": 516}, r"mlp.ffn_sub_norm.weight has shape \(512,\), expected \(516,\)"),
        ({"num_hidden_layers": 2}, "has no tensor model.layers.1.input_layernorm.weight; this is no whole BitNet"),
    ],
)
def test_configurations_that_are_none_are_refused(tmp_path, content, products, members, reason):
    folder = changed(write_hugging_face(tmp_path, content), **members)
    with pytest.raises(InputError, match=reason):
        BitNet.load(folder, products)


def test_files_that_are_no_model_are_refused(tmp_path, content, products):
    def refused(path: Path, reason: str) -> None:
        with pytest.raises(InputError, match=reason) as caught:
            BitNet.load(path, products)
        assert "\n" not in str(caught.value)

    folder = write_hugging_face(tmp_path / "model", content)
    refused(folder / "model.safetensors", "safetensors alone do not say a model's sizes; give the folder")
    refused(tmp_path, "a folder without config.json; give one as Hugging Face has it, or a .gguf")
    refused(tmp_path / "nothing.gguf", "No such file")
    (folder / "config.json").write_text("{")
    refused(folder, "config.json")
    (folder / "model.safetensors").unlink()
    refused(folder, r"a folder without \*.safetensors")
    file = write_gguf(tmp_path / "model.gguf", content)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    refused(file, "cut off")
    llama = gguf_entry("general.architecture", 8, gguf_string("llama"))
    file.write_bytes(gguf_file({}, metadata=(llama,)))
    refused(file, "general.architecture is 'llama', expected one of bitnet")
    ours = gguf_entry("general.architecture", 8, gguf_string("bitnet"))
    file.write_bytes(gguf_file({}, metadata=(ours,)))
    refused(file, "num_attention_heads|hidden_size|vocab_size")


def test_scales_beside_the_matrices_multiply(tmp_path, content):
    """ggml's `blk.N.attn_q.scale`."""
    weights, scale = content.matrices[0]["q"]
    codes = KINDS["TQ2_0"][1](weights, 1.0)
    scaled = {
        "blk.0.attn_q.weight": (35, (256, 256), codes),
        "blk.0.attn_q.scale": (0, (1,), np.float32(scale).tobytes()),
    }
    file = of_tensors(tmp_path / "model.gguf", **scaled)
    matrix = Checkpoint.open(file).matrix(0, ["q"])
    same(matrix.weights, weights)
    assert matrix.scales == (scale,)
