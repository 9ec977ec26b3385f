"""`bdforge.models.torch` in PyTorch and `transformers`, where they are installed (the extra `torch`)."""

import numpy as np
import pytest

from bdforge.models import ModelError, Products, Split
from bdforge.models.weights import TernaryMatrix
from bdforge.runtime import load
from support.differences import same
from support.transformers_bitnet import IDS, RECORDED, tiny
from tools.bitnet.write import write_hugging_face

torch = pytest.importorskip("torch", reason="PyTorch is not installed (the extra torch)")


@pytest.fixture
def products(summing) -> Products:
    return Products(load(summing.folder), Split(summing.plan, "array"))


def layer(products, K=70, N=52, scale=0.25, **more):
    from bdforge.models.torch import BitLinear

    weights = np.random.default_rng(K).integers(-1, 2, (K, N), np.int8)
    return BitLinear(products, TernaryMatrix(weights, ("w",), (N,), (scale,)), **more), weights


def expected(x, weights, scale):
    """In float64, codes of each row by the formula of `transformers`."""
    x = x.astype(np.float64)
    steps = 127 / np.maximum(np.abs(x).max(-1, keepdims=True), 1e-5)
    return np.rint(x * steps) @ weights.astype(np.float64) / steps * scale


@pytest.mark.parametrize("shape", [(70,), (3, 70), (2, 5, 70), (0, 70)])
def test_a_layer_computes_codes_times_weights_of_any_leading_sizes(products, shape):
    ours, weights = layer(products)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    y = ours(torch.from_numpy(x))
    assert y.dtype == torch.float32
    same(y.numpy(), expected(x, weights, 0.25), rtol=1e-5, atol=1e-5)


def test_the_result_has_the_type_of_x_and_the_bias_is_added(products):
    ours, weights = layer(products, bias=torch.arange(52, dtype=torch.bfloat16))
    x = torch.randn(4, 70, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    y = ours(x)
    assert y.dtype == torch.bfloat16
    right = expected(x.float().numpy(), weights, 0.25) + np.arange(52)
    same(y.float().numpy(), right, rtol=2e-2, atol=2e-1)


def test_the_operator_passes_pytorchs_own_check(products):
    ours, _ = layer(products)
    for shape in [(3, 70), (2, 1, 70)]:
        torch.library.opcheck(torch.ops.bdforge.bit_linear, (torch.randn(shape), ours.number, 52))


def test_layers_export_with_fake_tensors(products):
    ours, _ = layer(products)
    x = torch.randn(3, 70)
    program = torch.export.export(ours, (x,), dynamic_shapes=({0: torch.export.Dim("rows", min=2, max=64)},))
    assert "bdforge.bit_linear" in str(program.graph)
    torch.testing.assert_close(program.module()(x), ours(x))


@pytest.fixture
def theirs():
    return pytest.importorskip("transformers.integrations.bitnet", reason="transformers is not installed")


@pytest.mark.parametrize("kind", ["packed", "ternary", "online"])
@pytest.mark.parametrize("bias", [False, True])
def test_each_kind_of_transformers_layer_is_taken(products, theirs, kind, bias):
    from bdforge.models.torch import swap

    generator = torch.Generator().manual_seed(3)
    if kind == "packed":
        one = theirs.BitLinear(70, 52, bias, dtype=torch.float32)
        codes = torch.randint(0, 3, (4, 13, 70), generator=generator, dtype=torch.uint8)
        one.weight.copy_(codes[0] | codes[1] << 2 | codes[2] << 4 | codes[3] << 6)
    else:
        one = theirs.AutoBitLinear(70, 52, bias, online_quant=kind == "online", use_rms_norm=True)
        drawn = torch.randn(52, 70, generator=generator)
        one.weight.data.copy_(drawn if kind == "online" else drawn.round().clamp(-1, 1))
    if kind != "online":
        one.weight_scale.fill_(1.75)
    if bias:
        one.bias.data.copy_(torch.arange(52) / 8)
    model, x = torch.nn.Sequential(one), torch.randn(5, 70, generator=generator)
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):  # else their functions start a C++ compiler
        right = model(x)
        assert swap(model, products) == ("0",)
        torch.testing.assert_close(model(x), right, rtol=1e-4, atol=1e-4)
    with pytest.raises(ModelError, match="or ours already"):
        swap(model, products)


def test_a_model_of_transformers_gives_its_own_logits(products, tmp_path):
    from bdforge.models.torch import swap

    pytest.importorskip("accelerate", reason="accelerate is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    model = transformers.BitNetForCausalLM.from_pretrained(
        write_hugging_face(tmp_path, tiny()), dtype=torch.float32, attn_implementation="eager"
    )
    names = swap(model, products)
    assert len(names) == 14
    with torch.no_grad():
        logits = model(torch.tensor([IDS])).logits[0].numpy()
    right = np.load(RECORDED)["logits"]
    assert np.square(logits - right).mean() < 1e-8 * np.square(right).mean()
    assert {entry.where for entry in products.ledger} == {"emulated array"}
