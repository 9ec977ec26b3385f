"""Damaged models: each is refused in a sentence, or is a model all the same; nothing else happens."""

import random
import warnings
from pathlib import Path

import pytest

from bdforge.common.messages import InputError
from bdforge.models import Products, Split
from bdforge.models.bitnet import BitNet
from bdforge.runtime import load
from tools.bitnet.content import config, random_content
from tools.bitnet.write import write_gguf, write_hugging_face

ROUNDS = 60
HEADER = 3000  # bytes at the beginning, where damage does most


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Bytes changed, taken out, or cut off."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(min(len(data), HEADER) or 1)
        kind = rng.random()
        if kind < 0.6:
            data[place : place + 1] = bytes([rng.choice((0, 255, 57, 45, rng.randrange(256)))])
        elif kind < 0.8:
            del data[rng.randrange(len(data) or 1) :]
        else:
            del data[place : place + rng.randrange(1, 9)]
    return bytes(data)


@pytest.mark.parametrize("name", ["model.gguf", "folder/config.json", "folder/model.safetensors"])
def test_damage_is_told_in_a_sentence(tmp_path: Path, summing, name):
    content, rng = random_content(config(128, 128, 1, 2, 1, 64, 20, 30), 1), random.Random(name)
    write_gguf(tmp_path / "model.gguf", content)
    write_hugging_face(tmp_path / "folder", content)
    products = Products(load(summing.folder), Split(summing.plan, "cpu"))
    file, refused = tmp_path / name, list[str]()
    whole = file.read_bytes()
    for _ in range(ROUNDS // 3):
        file.write_bytes(damaged(whole, rng))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                model = BitNet.load(tmp_path / name.partition("/")[0], products)
                model.logits(model.hidden([1, 2], model.cache()))
            except InputError as error:
                refused.append(str(error))
    assert len(refused) > ROUNDS // 6
    assert not [told for told in refused if "\n" in told]


@pytest.mark.parametrize("part", ["embedding", "final_norm", "attn_norm"])
def test_floats_that_are_no_numbers_are_refused(tmp_path: Path, summing, part):
    content = random_content(config(128, 128, 1, 2, 1, 64, 20, 30), 1)
    (content.norms[0][part] if part == "attn_norm" else getattr(content, part))[...] = float("nan")
    products = Products(load(summing.folder), Split(summing.plan, "cpu"))
    model = BitNet.load(write_gguf(tmp_path / "model.gguf", content), products)
    with pytest.raises(InputError, match="not all are finite numbers; the file's floats are damaged"):
        model.logits(model.hidden([1, 2], model.cache()))
