"""Which forms sources tell of; operations of the multiplier, of shuffles and of widths against numpy."""

import numpy as np
import pytest

from bdforge.core.isa import GENERATIONS, load
from bdforge.core.isa.errors import OpenError
from bdforge.core.isa.meaning import meaning_of
from bdforge.core.isa.meaning.multiply import AIE2_SHAPES, SHAPES, TABLES, macs_of
from bdforge.core.isa.meaning.semantics import OPERATIONS, Meaning, joined, lanes
from support.differences import same

OPEN = {"aie2p": (816, 64), "aie2": (557, 50)}
"""Forms that sources tell of, and others."""


@pytest.mark.parametrize("generation", GENERATIONS)
def test_forms_of_which_no_source_tells_are_open(generation: str):
    reasons = {}
    for form in load(generation).forms.values():
        try:
            meaning_of(generation, form)
        except OpenError as error:
            reasons[form.name] = str(error)
    known = len(load(generation).forms) - len(reasons)
    assert (known, len(reasons)) == OPEN[generation]


def conf(modes: tuple[int, int, int], sign1: int = 1, sign2: int = 1, **bits: int) -> int:
    places = {"zero": 0, "shift16": 10, "product": 11, "acc1": 12, "acc2": 13}
    amode, bmode, variant = modes
    found = amode << 1 | bmode << 3 | variant << 5 | sign2 << 8 | sign1 << 9
    return found | sum(value << places[name] for name, value in bits.items())


def numbers(rng: np.random.Generator, count: int, bits: int, sign: int) -> np.ndarray:
    low, high = (-(1 << bits - 1), 1 << bits - 1) if sign else (0, 1 << bits)
    found = rng.integers(low, high, count)
    found[:2] = low, high - 1
    return found.astype(object)


def product(shape, a: np.ndarray, b: np.ndarray) -> list[int]:
    if not shape.depth:
        return list(a * b)
    return list((a.reshape(shape.rows, shape.depth) @ b.reshape(shape.depth, shape.columns)).ravel())


ALL = [(0, SHAPES, modes) for modes in SHAPES] + [(1, AIE2_SHAPES, modes) for modes in AIE2_SHAPES]
SIZES = {  # rows, depth, columns, bits of s1, s2 and of a lane, by hand from the AIE API's lists of shapes
    (0, (0, 1, 0)): (8, 8, 8, 8, 8, 32), (0, (0, 1, 1)): (64, 0, 1, 8, 8, 32), (0, (0, 2, 0)): (8, 4, 8, 16, 8, 32),
    (0, (0, 3, 0)): (8, 2, 8, 16, 16, 32), (0, (1, 0, 0)): (4, 2, 8, 32, 16, 64), (0, (1, 2, 0)): (4, 8, 8, 16, 8, 64),
    (0, (1, 3, 0)): (4, 4, 8, 16, 16, 64), (0, (1, 3, 2)): (32, 0, 1, 16, 16, 64), (1, (0, 0, 0)): (4, 16, 8, 8, 4, 32),
    (1, (0, 1, 0)): (4, 8, 8, 8, 8, 32), (1, (0, 2, 0)): (4, 4, 8, 16, 8, 32), (1, (0, 3, 0)): (4, 2, 8, 16, 16, 32),
    (1, (1, 2, 0)): (2, 8, 8, 16, 8, 64), (1, (1, 3, 0)): (2, 4, 8, 16, 16, 64), (1, (1, 0, 0)): (4, 2, 4, 32, 16, 64),
    (1, (1, 2, 1)): (4, 8, 4, 16, 8, 64), (1, (1, 3, 1)): (4, 4, 4, 16, 16, 64),
}  # fmt: skip


@pytest.mark.parametrize(("aie2", "shapes", "modes"), ALL, ids=[f"{'aie2' if a else 'aie2p'} {m}" for a, _, m in ALL])
def test_products_are_those_of_their_shape_and_signs(aie2, shapes, modes):
    shape, rng = shapes[modes], np.random.default_rng(3)
    assert (shape.rows, shape.depth, shape.columns, shape.bits1, shape.bits2, shape.lane) == SIZES[aie2, modes]
    counts = (shape.rows * (shape.depth or 1), (shape.depth or shape.rows) * shape.columns)
    for sign1, sign2 in ((0, 0), (0, 1), (1, 0), (1, 1)):
        a, b = (numbers(rng, n, bits, sign) for n, bits, sign in
                zip(counts, (shape.bits1, shape.bits2), (sign1, sign2), strict=True))  # fmt: skip
        word = conf(modes, sign1, sign2)
        found = OPERATIONS["multiply"](
            (aie2, 0, 0, 0), joined(list(a), shape.bits1), joined(list(b), shape.bits2), word
        )
        wanted = product(shape, a, b)
        same(np.array(lanes(found, shape.lane, len(wanted))), np.array([v % (1 << shape.lane) for v in wanted]))
    meaning = Meaning("multiply", ("s1", "s2", "acc"), (), (aie2, 0, 0, 0))
    assert macs_of(meaning, {"acc": word}) == shape.rows * shape.columns * max(1, shape.depth)


SUMS = [  # bits of conf, form's minus of product and of acc2: the signs of product, acc1 and acc2, and acc1's shift
    ({}, 0, 0, (1, 1, 1), 0), ({"product": 1}, 0, 0, (-1, 1, 1), 0), ({"acc1": 1}, 0, 0, (1, -1, 1), 0),
    ({"acc2": 1}, 0, 0, (1, 1, -1), 0), ({}, 1, 0, (-1, 1, 1), 0), ({}, 0, 1, (1, 1, -1), 0),
    ({"product": 1}, 1, 0, (1, 1, 1), 0), ({"acc2": 1}, 0, 1, (1, 1, 1), 0), ({"zero": 1}, 0, 0, (1, 0, 1), 0),
    ({"shift16": 1}, 0, 0, (1, 1, 1), 16), ({"zero": 1, "acc2": 1}, 1, 0, (-1, 0, -1), 0),
]  # fmt: skip


@pytest.mark.parametrize(("bits", "minus", "minus2", "signs", "shift"), SUMS, ids=str)
@pytest.mark.parametrize("accumulators", [1, 2])
def test_sums_take_their_signs_from_the_form_and_from_conf(accumulators, bits, minus, minus2, signs, shift):
    modes, rng = (0, 1, 1), np.random.default_rng(4)
    a, b = numbers(rng, 64, 8, 1), numbers(rng, 64, 8, 1)
    held = [numbers(rng, 64, 32, 1) for _ in range(accumulators)]
    given = [joined(list(one), 32) for one in held]
    found = OPERATIONS["multiply"](
        (0, accumulators, minus, minus2), *given, joined(list(a), 8), joined(list(b), 8), conf(modes, **bits)
    )
    wanted = signs[0] * a * b + signs[1] * held[0] * (1 << shift)
    if accumulators == 2:
        wanted = wanted + signs[2] * held[1]
    same(np.array(lanes(found, 32, 64)), np.array([v % (1 << 32) for v in wanted]))


@pytest.mark.parametrize(("amode", "lane"), [(0, 32), (1, 64)])
@pytest.mark.parametrize("minus", [(0, 0), (0, 1), (1, 0), (1,)])
def test_accumulators_are_added_lane_by_lane(amode, lane, minus):
    rng = np.random.default_rng(5)
    held = [numbers(rng, 1024 // lane, min(lane, 62), 1) for _ in minus]
    found = OPERATIONS["accumulate"]((1024, *minus), *(joined(list(one), lane) for one in held), amode << 1)
    wanted = np.zeros(1024 // lane, object)
    for negated, one in zip(minus, held, strict=True):
        wanted = wanted - one if negated else wanted + one
    same(np.array(lanes(found, lane, 1024 // lane), object), np.array([v % (1 << lane) for v in wanted], object))
    for word in (2 << 1, 1, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 16):
        with pytest.raises(OpenError):
            OPERATIONS["accumulate"]((1024, *minus), *[0] * len(minus), word)


TRANSPOSES = {  # bits, rows, columns of one register; or of a pair, whose halves are the modes n and n + 1
    0: (8, 64, 2), 2: (16, 32, 2), 4: (32, 16, 2), 6: (64, 8, 2), 8: (128, 4, 2), 10: (256, 2, 2), 12: (128, 2, 4),
    14: (64, 2, 8), 16: (32, 2, 16), 18: (16, 2, 32), 20: (8, 2, 64), 22: (512, 1, 2), 24: (16, 16, 4),
    26: (16, 4, 16), 30: (32, 8, 4), 32: (32, 4, 8), 52: (16, 8, 8),
}  # fmt: skip
ALONE = {
    28: (16, 8, 4), 29: (16, 4, 8), 34: (32, 4, 4), 35: (8, 8, 8), 36: (8, 16, 4), 37: (8, 4, 16), 39: (16, 4, 4),
    40: (16, 4, 2), 41: (16, 2, 4), 42: (16, 8, 2), 43: (16, 2, 8), 44: (16, 16, 2), 45: (16, 2, 16), 46: (8, 8, 4),
    47: (8, 4, 8), 48: (32, 8, 2), 49: (32, 2, 8), 50: (64, 4, 2), 51: (64, 2, 4),
}  # fmt: skip
FLIPS = {38: (16, 2), 54: (32, 16), 55: (8, 4)}


@pytest.mark.parametrize("mode", range(56))
def test_shuffles_are_transposes_of_their_matrices(mode: int):
    """Pairs of modes give the halves of a transpose of both registers; three reverse elements in groups."""
    pair = np.arange(128, dtype=np.uint8) + 64
    s1, s2 = (int.from_bytes(pair[half : half + 64].tobytes(), "little") for half in (0, 64))
    first = pair[:64]
    if mode in FLIPS:
        bits, count = FLIPS[mode]
        wanted = first.reshape(-1, count, bits // 8)[:, ::-1]
    elif mode in ALONE:
        bits, rows, columns = ALONE[mode]
        wanted = first.reshape(-1, rows, columns, bits // 8).swapaxes(1, 2)
    else:
        bits, rows, columns = TRANSPOSES[mode - mode % 2]
        whole = pair.reshape(rows, columns, bits // 8).swapaxes(0, 1).ravel()
        wanted = whole[64:] if mode % 2 else whole[:64]
    for modes in (48, 56):
        if mode >= modes:
            with pytest.raises(OpenError, match=f"shuffle mode {mode} is unassigned: there are 0 to 47"):
                OPERATIONS["vshuffle"]((modes,), s1, s2, mode)
            continue
        found = OPERATIONS["vshuffle"]((modes,), s1, s2, mode).to_bytes(64, "little")
        assert found == wanted.tobytes(), f"mode {mode}: {list(found[:8])}..., wanted {list(wanted.tobytes()[:8])}..."


SPARSE = {  # table, modes: rows, depth, columns, bits of s1, s2 and of a lane
    (2, (0, 1, 0)): (8, 16, 8, 8, 8, 32), (3, (0, 1, 5)): (4, 16, 8, 8, 8, 32), (3, (1, 2, 2)): (2, 16, 8, 16, 8, 64),
    (3, (1, 3, 5)): (2, 8, 8, 16, 16, 64),
}  # fmt: skip
STORED = {  # four bits of a mask, the first row's lowest: which of the two stored elements each row has
    0b0001: "0...", 0b0010: ".0..", 0b0100: "..1.", 0b1000: "...1", 0b0011: "01..", 0b0101: "0.1.", 0b1001: "0..1",
    0b0110: ".01.", 0b1010: ".0.1", 0b1100: "..01",
}  # fmt: skip


def pruned(rng: np.random.Generator, shape, stored: np.ndarray) -> tuple[np.ndarray, int]:
    """(the matrix that is multiplied, the mask) of random masks and the two stored rows of each four."""
    whole, mask, groups = np.zeros((shape.depth, shape.columns), object), 0, shape.depth // 4
    for column in range(shape.columns):
        for r in range(groups):
            chosen = int(rng.integers(16))
            mask |= chosen << 4 * (r + groups * column)
            for row, slot in enumerate(STORED.get(chosen, "....")):
                if slot != ".":
                    whole[4 * r + row, column] = stored[2 * r + int(slot), column]
    return whole, mask


@pytest.mark.parametrize(("table", "modes"), SPARSE)
def test_sparse_products_take_two_of_four_elements_of_each_column(table, modes):
    shape, rng = TABLES[table][modes], np.random.default_rng(6)
    assert set(TABLES[table]) == {found for where, found in SPARSE if where == table}
    assert (shape.rows, shape.depth, shape.columns, shape.bits1, shape.bits2, shape.lane) == SPARSE[table, modes]
    for sign1, sign2 in ((0, 1), (1, 0), (1, 1)):
        a = numbers(rng, shape.rows * shape.depth, shape.bits1, sign1)
        b = numbers(rng, shape.depth * shape.columns // 2, shape.bits2, sign2)
        whole, mask = pruned(rng, shape, b.reshape(-1, shape.columns))
        source = joined(list(b), shape.bits2) | mask << 512
        word = conf(modes, sign1, sign2)
        found = OPERATIONS["multiply"]((table, 0, 0, 0), joined(list(a), shape.bits1), source, word)
        wanted = (a.reshape(shape.rows, shape.depth) @ whole).ravel()
        same(np.array(lanes(found, shape.lane, len(wanted))), np.array([v % (1 << shape.lane) for v in wanted]))
    meaning = Meaning("multiply", ("s1", "s2", "acc"), (), (table, 0, 0, 0))
    assert macs_of(meaning, {"acc": word}) == shape.rows * shape.columns * shape.depth // 2
