"""The trained example knows its text."""

from bdforge.models import Products, Sampler, Split, generate
from bdforge.models.bitnet import BitNet
from bdforge.runtime import load
from support.source_tree import ROOT

MODEL = ROOT / "examples" / "bitnet" / "licence.gguf"
PROMPT = "Subject to the terms"


def test_it_goes_on_as_the_licence_does(summing):
    text = " ".join((ROOT / "LICENSE").read_text().split())
    model = BitNet.load(MODEL, Products(load(summing.folder), Split(summing.plan, "cpu")))
    written = bytes(generate(model, list(PROMPT.encode()), Sampler(), 60)).decode()
    assert PROMPT + written in text
    assert MODEL.stat().st_size < 1_000_000
