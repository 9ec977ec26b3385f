"""Designs that take the end of their tiles' locks, BDs and program memory: all else is as without."""

from typing import Any

import pytest

from bdforge.array.images.read import read_image
from bdforge.array.lower.array_state import ArrayState
from bdforge.design import render
from bdforge.design.document import design_of, document
from bdforge.devices import TileKind, device_named
from bdforge.devices.limits import PROGRAM_LINE_BYTES, PROGRAM_MEMORY_BYTES
from bdforge.operators import Plan, SpecError, plan, spec_from
from bdforge.operators import render as text_of
from bdforge.runtime.toolchain.assembled import built_image
from support.built_designs import spec_content

SPECS: dict[str, dict[str, Any]] = {
    "norm": {"kind": "rows", "function": "rmsnorm", "width": 64, "codes": True},
    "sum": {"kind": "elementwise", "function": "add", "type": "bf16", "tile": 64},
    "attention": {"kind": "attention", "heads": 2, "kv_heads": 1, "head_dim": 64},
    "gemv": {"kind": "gemv", "types": {"a": "bf16", "w": "bf16", "c": "f32"}, "tile": {"k": 64, "n": 16}},
}


def made(name: str, **array: Any) -> Plan:
    size = {"rows": 1 if name == "attention" else 2, "columns": 2}
    return plan(spec_from(SPECS[name] | {"array": size | array}, name), device_named("strix_halo"))


@pytest.mark.parametrize("name", SPECS)
def test_it_has_the_last_locks_and_bds_of_each_tile(name: str):
    first, last = made(name).design, made(name, from_end=True).design
    for one, other in zip(first.tiles, last.tiles, strict=True):
        limits = first.array.generation.limits(one.kind)
        assert [lock.id + turned.id for lock, turned in zip(one.locks, other.locks, strict=True)] == (
            [limits.locks - 1] * len(one.locks)
        )
        for channel, turned in zip(one.channels, other.channels, strict=True):
            share = limits.bds_of_channel(turned.index)
            sends = one.kind is TileKind.CORE and channel.direction == "MM2S"
            assert turned.index == (limits.channels - 1 - channel.index if sends else channel.index)
            assert all(bd.bd_id in share for bd in turned.bds if bd.bd_id is not None)
            assert len({bd.bd_id for bd in turned.bds}) == len({bd.bd_id for bd in channel.bds})
        assert other.buffers == one.buffers
    again = design_of(document(last), "this")
    assert render(again) == render(last)
    assert again.code_at_end


@pytest.mark.slow
def test_it_lies_beside_the_same_design():
    """No lock, no BD and no line of program memory but the first ones, where cores start, is of both."""
    states = []
    for array in ({}, {"from_end": True}):
        found = made("norm", **array)
        image = built_image(
            text_of(found, []), "norm.mlir", found.kernels.defines, [], code_at_end=found.design.code_at_end
        )
        states.append(ArrayState(read_image(image.xclbin).configurations[0]).tiles[0, 2])
    one, other = states
    assert not one.bds.keys() & other.bds.keys()
    used = [{at for start, data in tile.program.spans() for at in range(start, start + len(data))} for tile in states]
    assert max(used[0] & used[1]) < 2 * PROGRAM_LINE_BYTES
    assert PROGRAM_MEMORY_BYTES - PROGRAM_LINE_BYTES <= max(used[1]) < PROGRAM_MEMORY_BYTES


def test_a_gemm_has_no_such_place():
    """Its sequence writes BDs of memtiles by number."""
    content = spec_content(16, 64, 32, rows=1, columns=1)
    content["array"]["from_end"] = True
    with pytest.raises(SpecError, match=r"array\.from_end"):
        spec_from(content, "product")
