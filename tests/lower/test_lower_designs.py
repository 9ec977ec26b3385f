"""Every named design, and members of the family, in registers: nothing unknown, and what the emulated array loads."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from bdforge.array.lower import configuration
from bdforge.devices import DEVICES
from bdforge.devices.txn_format.operations import Write
from bdforge.operators import SpecError, load_spec, plan, render
from support.cdo_vectors import VECTORS
from support.decoded import device_of
from support.family import GROUPS, PRODUCTS, SEED, SIZE, group
from support.loaded import check_same_state

ROOT = Path(__file__).parents[2]
DESIGNS = sorted(path.stem for path in (ROOT / "designs").glob("*.toml"))
EXAMPLES = ["pass_through.mlir", "chain/chain.mlir", "add_one/add_one.mlir"]
SAMPLE = (0, 3)
"""Groups of the family of which one member is tried in every run; the sweep takes all."""
TOKEN = 0xC0000045


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_loaded_as_they_are_lowered(name):
    assert check_same_state(device_of((ROOT / "examples" / name).read_text())) > 10


@pytest.mark.parametrize("name", ["npu2_locks", "npu2_memtile_dma", "npu1_core_dma", "npu2_whole", "npu2_packets_out"])
def test_small_designs_are_loaded_as_they_are_lowered(name):
    assert check_same_state(device_of(re.sub(r' \{elf_file = "[^"]*"\}', "", VECTORS[name].mlir)))


def text_of(name: str) -> str:
    """The design for the first product that it is legal for."""
    spec = load_spec(ROOT / "designs" / f"{name}.toml")
    for product in PRODUCTS.values():
        with suppress(SpecError):
            return render(plan(spec, DEVICES[product]), spec.problems)
    raise AssertionError(f"{name} is for no product")


def test_the_smallest_named_design_is_loaded_as_it_is_lowered():
    assert check_same_state(device_of(text_of("gemm_i8_i8_i32_one_core"))) > 50


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_named_designs_are_loaded_as_they_are_lowered(name):
    assert check_same_state(device_of(text_of(name))) > 50


def check_member(index: int, number: int) -> None:
    member = group(index, SIZE, SEED)[number]
    assert check_same_state(device_of(render(member.plan, [member.problem]))) > 50


@pytest.mark.parametrize("index", SAMPLE)
def test_members_of_the_family_are_loaded_as_they_are_lowered(index):
    check_member(index, 0)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(GROUPS))
def test_all_groups_of_the_family_are_loaded_as_they_are_lowered(index):
    for number in range(SIZE):
        check_member(index, number)


def test_every_declared_shim_has_its_token_route():
    found = configuration(device_of((ROOT / "examples/pass_through_8_columns.mlir").read_text()), lambda *_: [])
    tokens = {op.address >> 25 for op in found.init if isinstance(op, Write) and op.value == TOKEN}
    assert tokens == set(range(8))
