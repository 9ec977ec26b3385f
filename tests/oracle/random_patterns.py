"""Random access patterns of BDs, legal for a kind of tile and an element type."""

from dataclasses import dataclass
from random import Random

from bdforge.devices.limits import CORE, MEMTILE, SHIM
from oracle.array_design import ELEMENT_BYTES, WORD_BYTES, Dim

LIMITS = {"shim": SHIM, "memtile": MEMTILE, "core": CORE}
DIMS = {kind: limits.dims for kind, limits in LIMITS.items()}


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a BD visits; `elements` is the smallest memory that holds it."""

    offset: int
    length: int
    dims: tuple[Dim, ...]
    elements: int


def per_word(element: str) -> int:
    return WORD_BYTES // ELEMENT_BYTES[element]


def divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def random_factors(random: Random, number: int, parts: int) -> list[int]:
    """`parts` factors whose product is `number`."""
    factors = []
    for _ in range(parts - 1):
        factors.append(random.choice(divisors(number)))
        number //= factors[-1]
    factors.append(number)
    random.shuffle(factors)
    return factors


def random_split(random: Random, number: int, most: int) -> list[int]:
    """1 to `most` positive numbers whose sum is `number`."""
    parts = random.randint(1, min(most, number))
    cuts = sorted(random.sample(range(1, number), parts - 1))
    return [b - a for a, b in zip([0, *cuts], [*cuts, number], strict=True)]


def strides_in_words(random: Random, sizes: list[int], whole_inner: bool) -> list[int]:
    """A layout of the dimensions in memory in any order, with gaps; now and then overlapping."""
    order = list(range(len(sizes)))
    random.shuffle(order)
    strides = [1] * len(sizes)
    span = 1
    if whole_inner:
        order.remove(len(sizes) - 1)
        span = sizes[-1]
    if random.random() < 0.15:
        for dim in order:
            strides[dim] = random.randint(1, 4)
        return strides
    for dim in order:
        strides[dim] = span + random.choice((0, 0, 0, 1))
        span = strides[dim] * sizes[dim]
    return strides


def random_pattern(random: Random, kind: str, element: str, words: int, dims: int | None = None) -> Pattern:
    """A pattern of `words` words with up to the tile's number of dimensions, or exactly `dims`."""
    per = per_word(element)
    offset = per * random.choice((0, 0, 1, 3))
    if dims is None and random.random() < 0.25:
        return Pattern(offset, words * per, (), offset + words * per)
    sizes = random_factors(random, words, dims or random.randint(1, DIMS[kind]))
    return Pattern(offset, words * per, *placed(offset, in_elements(random, sizes, per)))


def in_elements(random: Random, sizes: list[int], per: int) -> list[Dim]:
    """Dimensions of so many words; below 32 bits the innermost is contiguous."""
    strides = strides_in_words(random, sizes, per > 1)
    dims = [Dim(size, stride * per) for size, stride in zip(sizes, strides, strict=True)]
    if per > 1:
        dims[-1] = Dim(sizes[-1] * per, 1)
    return dims


def placed(offset: int, dims: list[Dim]) -> tuple[tuple[Dim, ...], int]:
    """Dimensions and the elements that they need: no index outside, no stride beyond the memory."""
    last = offset + sum((d.size - 1) * d.stride for d in dims)
    return tuple(dims), max(last + 1, *(d.stride for d in dims))


def padded_pattern(random: Random, element: str, words: int) -> Pattern:
    """At most `words` words of data, widened by zeros; the length counts both. Innermost padding is whole words."""
    per = per_word(element)
    sizes = random_factors(random, words, random.randint(1, 3))
    dims = in_elements(random, sizes, per)
    pads = [(random.choice((0, 0, 1, 2)), random.choice((0, 0, 1, 2))) for _ in dims]
    pads[-1] = (pads[-1][0] * per, pads[-1][1] * per)
    wide = [Dim(d.size, d.stride, *pad) for d, pad in zip(dims, pads, strict=True)]
    length = 1
    for dim in wide:
        length *= dim.before + dim.size + dim.after
    offset = per * random.choice((0, 0, 2))
    return Pattern(offset, length, *placed(offset, wide))
