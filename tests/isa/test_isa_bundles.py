"""Decoding and encoding: recorded bundles, every form and format, and what is refused."""

import json
import random
from itertools import pairwise
from pathlib import Path

import pytest

from bdforge.core import isa
from bdforge.core.isa import Bundle, DecodeError, EncodeError
from bdforge.core.isa.core_registers import width
from bdforge.core.isa.elf import CoreProgram, CoreSegment, generation_of
from bdforge.core.isa.isa_tables import rows
from support.instructions import draw

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "data" / "bundles.jsonl").read_text().splitlines()]
"""147 bundles, 97 of AIE2P, from vendor listings and real programs."""


def texts(bundle: Bundle) -> dict[str, dict[str, str]]:
    """Forms and operands as the recorded bundles write them."""
    return {
        i.form.name: {name: value if isinstance(value, str) else f"#{value}" for name, value in i.operands.items()}
        for i in bundle.slots
    }


@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_recorded_bundles_decode_to_their_operands_and_encode_again(generation):
    isa_ = isa.load(generation)
    mine = [row for row in RECORDED if row[0] == generation]
    assert len(mine) == {"aie2p": 97, "aie2": 50}[generation]
    for _, text, fmt, slots, _ in mine:
        bundle = isa_.decode(bytes.fromhex(text))
        assert bundle.format.name == fmt
        assert texts(bundle) == slots
        assert bytes(bundle).hex() == text
        assert isa_.encode(bundle.slots).hex() == text


@pytest.mark.parametrize(("generation", "forms", "formats"), [("aie2p", 880, 77), ("aie2", 607, 78)])
def test_random_operands_of_every_form_round_trip(generation, forms, formats):
    isa_ = isa.load(generation)
    assert (len(isa_.forms), len(isa_.formats)) == (forms, formats)
    rng = random.Random(5)
    for form in isa_.forms.values():
        for _ in range(4):
            drawn = draw(form, rng)
            assert drawn in isa_.decode(isa_.encode([drawn])).slots


@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_every_format_round_trips_with_instructions_in_all_slots(generation):
    isa_ = isa.load(generation)
    rng = random.Random(6)
    by_slot = {slot: [f for f in isa_.forms.values() if f.slot == slot] for slot in isa_.nops}
    for fmt in isa_.formats.values():
        for _ in range(8):
            drawn = [draw(rng.choice(by_slot[slot]), rng) for slot, _, _ in fmt.lanes]
            raw = isa_.encode(drawn)
            assert len(raw) == fmt.size == isa_.size(raw[0])
            bundle = isa_.decode(b"\0\0" + raw, 2)
            assert (bundle.format, list(bundle.slots)) == (fmt, drawn)
            assert bytes(bundle) == raw


@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_formats_hold_different_slots_and_do_not_overlap(generation):
    """What `encode` relies on: the slots name the format, and a word belongs to one format at most."""
    formats = list(isa.load(generation).formats.values())
    assert len({fmt.slots for fmt in formats}) == len(formats)
    for i, a in enumerate(formats):
        for b in formats[:i]:
            assert a.size != b.size or (a.value ^ b.value) & a.mask & b.mask


@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_fields_and_fixed_bits_are_disjoint(generation):
    for form in isa.load(generation).forms.values():
        used = [form.mask, *(f.mask for f in form.fields)]
        assert sum(used) == sum(1 << bit for bit in range(form.width) if any(m >> bit & 1 for m in used)), form.name
        assert sum(used) + form.free_bits == (1 << form.width) - 1, f"{form.name}: all other bits are free"


def test_every_timing_row_belongs_to_a_form_and_names_its_operands():
    isa_ = isa.load("aie2p")
    assert {row["name"] for row in rows("aie2p_timing")} == set(isa_.forms)
    for form in isa_.forms.values():
        timing = form.timing
        assert set(form.names) <= {*timing.defs, *timing.uses}, form.name


@pytest.mark.parametrize(
    ("generation", "code", "bits", "reason"),
    [
        ("aie2p", "00f0", (12, 14), "no format of 2 bytes"),
        ("aie2p", "1800007f", (30, 30), "no format of 4 bytes"),
        ("aie2p", "18", (0, 7), "a bundle of 4 bytes starts here, but the code ends at 0x1"),
        ("aie2p", "", (0, 7), "the code ends at 0x0"),
        ("aie2", "0bff", (0, 15), "the code ends at 0x2"),
    ],
)
def test_unknown_bits_are_refused_with_their_position(generation, code, bits, reason):
    with pytest.raises(DecodeError) as caught:
        isa.load(generation).decode(bytes.fromhex(code))
    assert reason in str(caught.value)
    assert caught.value.bits == bits


def test_an_unassigned_register_code_is_refused_at_its_field():
    isa_ = isa.load("aie2p")
    good = isa_.encode([isa_.instruction("VCLR", dst="dm0")])
    vec_lsb = next(lsb for slot, lsb, _ in isa_.decode(good).format.lanes if slot == "vec")
    raw = (int.from_bytes(good, "little") | 7 << (vec_lsb + 18)).to_bytes(len(good), "little")
    with pytest.raises(
        DecodeError, match=r"slot vec, VCLR: operand dst has code 7, which eDM does not assign"
    ) as caught:
        isa_.decode(raw)
    assert caught.value.bits == (vec_lsb + 18, vec_lsb + 20)


def test_every_flipped_bit_of_recorded_bundles_decodes_to_itself_or_is_refused():
    """A decoder that ignores a bit would encode it away."""
    for generation, text, *_ in RECORDED[::9]:
        isa_ = isa.load(generation)
        raw = int.from_bytes(bytes.fromhex(text), "little")
        for bit in range(4 * len(text)):
            flipped = (raw ^ 1 << bit).to_bytes(len(text) // 2, "little")
            try:
                bundle = isa_.decode(flipped)
            except DecodeError:
                continue
            assert bytes(bundle) == flipped[: bundle.size]


@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_random_bytes_decode_to_themselves_or_are_refused(generation):
    isa_ = isa.load(generation)
    rng = random.Random(7)
    known = 0
    for _ in range(2000):
        raw = rng.randbytes(16)
        try:
            bundle = isa_.decode(raw)
        except DecodeError:
            continue
        known += 1
        assert bytes(bundle) == raw[: bundle.size]
    assert known


def test_what_cannot_be_encoded_says_why():
    isa_ = isa.load("aie2p")
    with pytest.raises(EncodeError, match=r"VLDA_dmx_lda_x_idx_imm, operand imm: #60 is not a multiple of 64"):
        isa_.encode([isa_.instruction("VLDA_dmx_lda_x_idx_imm", dst="x0", ptr="p0", imm=60)])
    with pytest.raises(EncodeError, match=r"#512 is outside -512 to 448 in steps of 64"):
        isa_.encode([isa_.instruction("VLDA_dmx_lda_x_idx_imm", dst="x0", ptr="p0", imm=512)])
    with pytest.raises(EncodeError, match=r"operand dst: r0 is not in register class X"):
        isa_.encode([isa_.instruction("VLDA_dmx_lda_x_idx_imm", dst="r0", ptr="p0", imm=0)])
    move = isa_.instruction("MOVXM", dst="p0", i=0)
    with pytest.raises(EncodeError, match=r"MOVXM and NOPXM both need slot lng"):
        isa_.encode([move, isa_.instruction("NOPXM")])
    with pytest.raises(EncodeError, match=r"no bundle format of aie2p holds slots alu, lng together"):
        isa_.encode([move, isa_.instruction("NOPX")])
    with pytest.raises(isa.IsaError, match=r"MOVXM takes operands \(dst, i\), not \(dst\)"):
        isa_.instruction("MOVXM", dst="p0")
    with pytest.raises(isa.IsaError, match=r"aie2p has no instruction form 'ADDX'"):
        isa_.form("ADDX")


def test_generations_by_name_or_device():
    from bdforge.devices import DEVICES

    assert isa.load(DEVICES["strix_halo"].generation) is isa.load("AIE2P")
    with pytest.raises(isa.IsaError, match="unknown generation 'aie3'; there are aie2p and aie2"):
        isa.load("aie3")


LEAVES = {
    "aie2": {
        "x11": "wl11 wh11", "y2": "wl4 wh4 wl5 wh5", "y5": "wl10 wh10 wl11 wh11", "cm8": "amll8 amlh8 amhl8 amhh8",
        "bml3": "amll3 amlh3", "bmh3": "amhl3 amhh3", "q3": "ql3 qh3", "qx3": "wl3 wh3 ql3 qh3", "qwl2": "wl2 ql2",
        "qwh2": "wh2 qh2", "l0": "r16 r17", "l7": "r30 r31", "d7": "m7 dn7 dj7 dc7",
        "d3_3d": "m3 dn3 dj3 dc3 m7 dn7 dj7 dc7", "r5": "r5", "p7": "p7",
    },
    "aie2p": {
        "x11": "wl11 wh11", "y5": "wl10 wh10 wl11 wh11", "dm4": "bmll4 bmlh4 bmhl4 bmhh4", "cml4": "bmll4 bmlh4",
        "cmh4": "bmhl4 bmhh4", "ex3": "wl3 wh3 el3 eh3", "d1_3d": "m1 dn1 dj1 dc1 m5 dn5 dj5 dc5", "r31": "r31",
        "plfr1": "p1 lfl1 lfh1 r25", "l8": "r16 r17", "qex1": "ql1 el1 wl1 qh1 eh1 wh1",
    },
}  # fmt: skip
WIDTHS = {
    "aie2": {
        "x0": 512, "y2": 1024, "cm0": 1024, "bml0": 512, "q0": 128, "qx0": 640, "qwl0": 320, "l0": 64, "d0": 80,
        "d0_3d": 160, "crRnd": 4, "crSat": 2, "crSRSMode": 1, "srCarry": 1, "lr": 20, "s0": 32, "lc": 32,
    },
    "aie2p": {"x0": 512, "y0": 1024, "dm0": 2048, "cml0": 1024, "ex0": 576, "d0": 80, "d0_3d": 160, "r0": 32, "p0": 20},
}  # fmt: skip


@pytest.mark.parametrize("generation", LEAVES)
def test_every_kind_of_register_is_made_of_its_parts(generation):
    """Low parts first, without gaps; with the bits that they have together."""
    for register in isa.load(generation).registers:
        parts = isa.leaves(generation, register)
        assert all(a.lsb + a.bits == b.lsb for a, b in pairwise(parts)), register
    with pytest.raises(isa.IsaError, match="unknown register 'banana'"):
        isa.leaves(generation, "banana")
    for register, names in LEAVES[generation].items():
        assert [leaf.name for leaf in isa.leaves(generation, register)] == names.split(), register
    assert {register: width(generation, register) for register in WIDTHS[generation]} == WIDTHS[generation]


def test_a_program_of_which_nothing_tells_is_taken_for_aie2p():
    assert generation_of(CoreProgram("", (CoreSegment(0, b""),))) == "aie2p"
    for generation in isa.GENERATIONS:
        assert generation_of(CoreProgram("", (CoreSegment(0, b""),), generation)) == generation
