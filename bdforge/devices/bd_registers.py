"""Registers of buffer descriptors as named bit fields, in the datasheet's `[high:low]` notation.

Source of every layout: RT (`xaie2pgbl_params.h`, `xaiemlgbl_params.h`), the same on AIE2 and AIE2P. The limits of BDs
follow from them (`limits`), all other registers stand in `registers`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


class RegisterError(ValueError):
    """A value that its register field cannot hold."""


@dataclass(frozen=True, slots=True)
class Bits:
    """Bits `[high:low]` of word `word` of a register group; signed fields are two's complement."""

    word: int
    high: int
    low: int
    signed: bool = False

    @property
    def mask(self) -> int:
        """The field's bits within its word."""
        return ((1 << (self.high - self.low + 1)) - 1) << self.low

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value that fits."""
        width = self.high - self.low + 1
        return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if self.signed else (0, (1 << width) - 1)

    def extract(self, words: Sequence[int]) -> int:
        width = self.high - self.low + 1
        value = (int(words[self.word]) >> self.low) & ((1 << width) - 1)
        return value - (1 << width) if self.signed and value >> (width - 1) else value


class RegisterGroup:
    """A group of words and the fields in it."""

    def __init__(self, name: str, words: int, fields: Mapping[str, Bits]):
        self.name, self.words, self.fields = name, words, fields

    def encode(self, values: Mapping[str, int], too_wide: Callable[["RegisterError"], None] | None = None) -> list[int]:
        """Words that hold `values`, every other field 0; RegisterError names field, value and limit.

        Where `too_wide` is given, it gets the error (and may raise it), and the value's upper bits are lost.
        """
        words = [0] * self.words
        for name, value in values.items():
            field = self.fields[name]
            lowest, highest = field.bounds
            if not lowest <= value <= highest:
                bits = f"word {field.word} [{field.high}:{field.low}]"
                error = RegisterError(
                    f"{self.name}: {name} = {value} does not fit {bits}, which holds {lowest} to {highest}"
                )
                if too_wide is None:
                    raise error
                too_wide(error)
            words[field.word] |= (value & ((1 << (field.high - field.low + 1)) - 1)) << field.low
        return words

    def decode(self, words: Sequence[int]) -> dict[str, int]:
        return {name: field.extract(words) for name, field in self.fields.items()}


SHIM_BD = RegisterGroup("shim BD", 8, {
    "length": Bits(0, 31, 0),
    "address_low": Bits(1, 31, 0), "address_high": Bits(2, 15, 0),  # bytes; bits 1:0 are zero
    "packet_enable": Bits(2, 30, 30), "out_of_order_id": Bits(2, 29, 24),
    "packet_id": Bits(2, 23, 19), "packet_type": Bits(2, 18, 16),
    "d0_wrap": Bits(3, 29, 20), "d0_step": Bits(3, 19, 0),
    "burst": Bits(4, 31, 30), "d1_wrap": Bits(4, 29, 20), "d1_step": Bits(4, 19, 0),
    "axi_cache": Bits(5, 27, 24), "axi_qos": Bits(5, 23, 20), "d2_step": Bits(5, 19, 0),
    "iteration_current": Bits(6, 31, 26), "iteration_wrap": Bits(6, 25, 20), "iteration_step": Bits(6, 19, 0),
    "suppress_tlast": Bits(7, 31, 31), "next": Bits(7, 30, 27),
    "use_next": Bits(7, 26, 26), "valid": Bits(7, 25, 25),
    "release_value": Bits(7, 24, 18, signed=True), "release_id": Bits(7, 16, 13),
    "acquire_enable": Bits(7, 12, 12), "acquire_value": Bits(7, 11, 5, signed=True), "acquire_id": Bits(7, 3, 0),
})  # fmt: skip

MEMTILE_BD = RegisterGroup("memtile BD", 8, {
    "packet_enable": Bits(0, 31, 31), "packet_type": Bits(0, 30, 28), "packet_id": Bits(0, 27, 23),
    "out_of_order_id": Bits(0, 22, 17), "length": Bits(0, 16, 0),
    "d0_pad_before": Bits(1, 31, 26), "next": Bits(1, 25, 20), "use_next": Bits(1, 19, 19),
    "address": Bits(1, 18, 0),  # words, in the DMA's window: west 0, own 0x20000, east 0x40000
    "suppress_tlast": Bits(2, 31, 31), "d0_wrap": Bits(2, 26, 17), "d0_step": Bits(2, 16, 0),
    "d1_pad_before": Bits(3, 31, 27), "d1_wrap": Bits(3, 26, 17), "d1_step": Bits(3, 16, 0),
    "compress": Bits(4, 31, 31), "d2_pad_before": Bits(4, 30, 27),
    "d2_wrap": Bits(4, 26, 17), "d2_step": Bits(4, 16, 0),
    "d2_pad_after": Bits(5, 31, 28), "d1_pad_after": Bits(5, 27, 23), "d0_pad_after": Bits(5, 22, 17),
    "d3_step": Bits(5, 16, 0),
    "iteration_current": Bits(6, 28, 23), "iteration_wrap": Bits(6, 22, 17), "iteration_step": Bits(6, 16, 0),
    "valid": Bits(7, 31, 31), "release_value": Bits(7, 30, 24, signed=True), "release_id": Bits(7, 23, 16),
    "acquire_enable": Bits(7, 15, 15), "acquire_value": Bits(7, 14, 8, signed=True), "acquire_id": Bits(7, 7, 0),
})  # fmt: skip

CORE_BD = RegisterGroup("core tile BD", 6, {
    "address": Bits(0, 27, 14), "length": Bits(0, 13, 0),  # words
    "compress": Bits(1, 31, 31), "packet_enable": Bits(1, 30, 30), "out_of_order_id": Bits(1, 29, 24),
    "packet_id": Bits(1, 23, 19), "packet_type": Bits(1, 18, 16),
    "d1_step": Bits(2, 25, 13), "d0_step": Bits(2, 12, 0),
    "d1_wrap": Bits(3, 28, 21), "d0_wrap": Bits(3, 20, 13), "d2_step": Bits(3, 12, 0),
    "iteration_current": Bits(4, 24, 19), "iteration_wrap": Bits(4, 18, 13), "iteration_step": Bits(4, 12, 0),
    "suppress_tlast": Bits(5, 31, 31), "next": Bits(5, 30, 27),
    "use_next": Bits(5, 26, 26), "valid": Bits(5, 25, 25),
    "release_value": Bits(5, 24, 18, signed=True), "release_id": Bits(5, 16, 13),
    "acquire_enable": Bits(5, 12, 12), "acquire_value": Bits(5, 11, 5, signed=True), "acquire_id": Bits(5, 3, 0),
})  # fmt: skip
