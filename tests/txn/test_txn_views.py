"""Views of a sequence's arguments: their offsets add up to the argument, as mlir-aie traces them."""

from itertools import product

import pytest

from bdforge.array.emulator.strictness import Strictness
from bdforge.array.mlir import parse
from bdforge.array.txn.lower import lower, select_sequence
from bdforge.devices.txn_format.operations import Patch

TEXT = """module {{
  aie.device(npu2_1col) {{
    %s = aie.tile(0, 0)
    aie.shim_dma_allocation @in (%s, MM2S, 0)
    aie.runtime_sequence(%other: memref<4xi32>, %v0: memref<64xi32>) {{
{views}
      %t = aiex.dma_configure_task_for @in {{
        aie.dma_bd(%v{last} : {type}, 2, 8)
        aie.end
      }}
    }}
  }}
}}
"""


def strided(size: int, offset: int) -> str:
    return f"memref<{size}xi32, strided<[1], offset: {offset}>>" if offset else f"memref<{size}xi32>"


class Chain:
    """A chain of views, the element of the argument that it starts at, and the offset that its type says."""

    def __init__(self, kinds: tuple[str, ...]):
        self.start, self.offset, self.size, self.lines, self.type = 0, 0, 64, [], "memref<64xi32>"
        for number, kind in enumerate(kinds):
            getattr(self, kind)(f"%v{number + 1} = memref.", f"%v{number}")

    def line(self, text: str, type_: str) -> None:
        self.lines.append(f"      {text} : {self.type} to {type_}")
        self.type = type_

    def subview(self, result: str, source: str) -> None:
        self.start, self.offset, self.size = self.start + 4, self.offset + 4, self.size - 8
        self.line(f"{result}subview {source}[4] [{self.size}] [1]", strided(self.size, self.offset))

    def reinterpret(self, result: str, source: str, offset: int = 0) -> None:
        self.start, self.offset, self.size = self.start + offset, offset, self.size - 2 * offset
        text = f"{result}reinterpret_cast {source} to offset: [{offset}], sizes: [{self.size}], strides: [1]"
        self.line(text, strided(self.size, self.offset))

    def shifted(self, result: str, source: str) -> None:
        self.reinterpret(result, source, 8)

    def cast(self, result: str, source: str) -> None:
        self.line(f"{result}cast {source}", f"memref<{self.size}xi32, strided<[?], offset: ?>>")

    def aligned(self, result: str, source: str) -> None:
        self.lines.append(f"      {result}assume_alignment {source}, 4 : {self.type}")


def patched(kinds: tuple[str, ...]) -> tuple[int, int, list[str]]:
    chain, strictness = Chain(kinds), Strictness()
    text = TEXT.format(views="\n".join(chain.lines), last=len(kinds), type=chain.type)
    operations = lower(select_sequence(parse(text, "design.mlir")), policy=strictness)
    (patch,) = [op for op in operations if isinstance(op, Patch)]
    assert patch.argument == 1
    return patch.plus, 4 * (chain.start + 2), strictness.warnings


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_offsets_of_every_chain_of_views_add_up(length):
    kinds = ("reinterpret", "shifted", "aligned", "subview", "cast")
    for chain in product(kinds, repeat=length):
        if "cast" in chain and "subview" in chain[chain.index("cast") :]:
            continue  # strides that are not known have no subview
        found, wanted, _ = patched(chain)
        assert found == wanted, chain


def test_where_mlir_itself_would_count_otherwise_is_said():
    (warning,) = patched(("subview", "reinterpret"))[2]
    assert warning.startswith(
        "design.mlir:7:13: memref.reinterpret_cast: its offset is counted from its source, 16 bytes"
    )
    assert not patched(("reinterpret", "subview"))[2]
