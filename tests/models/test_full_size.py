"""A layer of BitNet-b1.58-2B-4T's size on the whole emulated array; and the trained example, which knows its text."""

import numpy as np
import pytest

from bdforge.models import Products, Sampler, Split, generate
from bdforge.models.bitnet import BitNet
from bdforge.operators import load_spec
from bdforge.runtime import load
from support.built_designs import ROOT, build
from support.exact_products import Exact
from tools.bitnet.content import config, random_content
from tools.bitnet.write import write_gguf

MODEL = ROOT / "examples" / "bitnet" / "licence.gguf"
PROMPT = "Subject to the terms"


def test_it_goes_on_as_the_licence_does(summing):
    text = " ".join((ROOT / "LICENSE").read_text().split())
    model = BitNet.load(MODEL, Products(load(summing.folder), Split(summing.plan, "cpu")))
    written = bytes(generate(model, list(PROMPT.encode()), Sampler(), 60)).decode()
    assert PROMPT + written in text
    assert MODEL.stat().st_size < 1_000_000


TOKENS = 256


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemm_i8_i2_bf16", "gemm_i8_i2_tuned"])
def test_a_layer_of_256_tokens_is_exact(tmp_path, name):
    content = random_content(config(2560, 6912, 1, 20, 5, 128, 300, 4096), 1)
    design = build(tmp_path / name, load_spec(ROOT / "designs" / f"{name}.toml").content, name)
    products = Exact(load(design.folder), Split(design.plan, "array")).watch(content)
    model = BitNet.load(write_gguf(tmp_path / "model.gguf", content), products)
    ids = np.random.default_rng(1).integers(0, 300, TOKENS).tolist()
    hidden = model.hidden(ids, model.cache())
    products.split = Split(design.plan, "cpu")
    again = model.hidden(ids, model.cache())
    assert np.square(hidden - again).mean() < 1e-5 * np.square(again).mean()
    assert sum(entry.calls for entry in products.ledger if entry.where == "emulated array") == 4
