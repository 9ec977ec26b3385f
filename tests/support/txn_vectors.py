"""Runtime sequences with the words that the real compiler made of them, on both generations."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bdforge.array.mlir import parse
from bdforge.array.txn.insts import encode_module
from bdforge.array.txn.target import ControllerIds

_FILE = Path(__file__).parents[1] / "txn" / "data" / "streams.jsonl"


class StreamVector(NamedTuple):
    """A sequence of a device, and its words as recorded without aiecc's pass for controller ids."""

    name: str
    device: str
    mlir: str
    words: np.ndarray


def _read(line: str) -> list[StreamVector]:
    """Both generations' vectors: the words of npu1 stand there by their place where they are others."""
    data = json.loads(line)
    words, others = data["words"], {int(place): word for place, word in data["npu1"].items()}
    of_npu1 = [others.get(place, word) for place, word in enumerate(words)]
    return [
        StreamVector(f"{device}_{data['name']}", device, data["mlir"].replace("npu2", device), _numbers(given))
        for device, given in (("npu1", of_npu1), ("npu2", words))
    ]


def _numbers(words: list[str]) -> np.ndarray:
    return np.array([int(word, 16) for word in words], np.uint32)


STREAM_VECTORS = {vector.name: vector for line in _FILE.read_text().splitlines() for vector in _read(line)}


def encode_mlir(
    text: str,
    file: str = "<string>",
    sequence: str | None = None,
    controller_ids: ControllerIds = ControllerIds.AIECC,
) -> np.ndarray:
    """Words of a runtime sequence in MLIR text."""
    return encode_module(parse(text, file), sequence, controller_ids=controller_ids)
