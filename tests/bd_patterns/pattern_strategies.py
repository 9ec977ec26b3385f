"""Random patterns, and slow oracles that know nothing of the code under test."""

from itertools import product

from hypothesis import strategies as st

from bd_patterns import Pattern

WIDTHS = (2, 4, 8, 16, 24, 32, 48, 64)


@st.composite
def patterns(draw: st.DrawFn, max_rank: int = 4) -> Pattern:
    """Small patterns of any kind: overlapping, repeating, permuting."""
    rank = draw(st.integers(1, max_rank))
    sizes = draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank))
    strides = draw(st.lists(st.integers(0, 20), min_size=rank, max_size=rank))
    return Pattern(tuple(sizes), tuple(strides), draw(st.integers(0, 9)))


@st.composite
def permutations(draw: st.DrawFn, max_rank: int = 4) -> Pattern:
    """Patterns that visit each offset 0 to count - 1 once."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=max_rank))
    return Pattern.of_shape(sizes).permuted(draw(st.permutations(range(len(sizes)))))


@st.composite
def word_patterns(draw: st.DrawFn, element_bits: int, max_rank: int = 4) -> Pattern:
    """Patterns likely to consist of whole 32-bit words."""
    per_word = max(1, 32 // element_bits)
    rank = draw(st.integers(0, max_rank - 1))
    sizes = draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    strides = draw(st.lists(st.integers(0, 9), min_size=rank, max_size=rank))
    inner = draw(st.integers(1, 4)) * per_word
    inner_stride = draw(st.integers(1, 3)) if element_bits == 32 else 1
    offset = draw(st.integers(0, 3)) * per_word
    return Pattern((*sizes, inner), (*(s * per_word for s in strides), inner_stride), offset)


def loops(sizes: tuple[int, ...], strides: tuple[int, ...], offset: int) -> list[int]:
    """Offsets of a loop nest, spelled out."""
    return [
        offset + sum(i * t for i, t in zip(place, strides, strict=True))
        for place in product(*[range(s) for s in sizes])
    ]


def words_of(offsets: list[int], element_bits: int) -> list[int] | None:
    """The words that carry these elements, bit by bit; None if the stream does not consist of whole words."""
    bits = [offset * element_bits + bit for offset in offsets for bit in range(element_bits)]
    if len(bits) % 32:
        return None
    words = []
    for start in range(0, len(bits), 32):
        if bits[start] % 32 or bits[start : start + 32] != list(range(bits[start], bits[start] + 32)):
            return None
        words.append(bits[start] // 32)
    return words
