"""What silicon punishes although registers can hold it: rules that were seen on real arrays (docs/emulator.md)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bdforge.emulator.bd import ShimAccess
from bdforge.emulator.errors import DmaError

if TYPE_CHECKING:
    from bdforge.emulator.array import Array, TokenKey
    from bdforge.emulator.dma import Channel

WORKING_CACHE_CODES = (0, 2, 3)
SHORT_BURST_CODE = 0  # 64 bytes on every generation
UNREAD_TOKENS = 4


def check_shim_access(channel: "Channel", access: ShimAccess) -> None:
    """DmaError for a quality of service; a caution for what is slow or was never seen."""
    strictness = channel.array.strictness
    if access.qos:
        error = DmaError(
            f"{channel.where()}: AXI quality of service is {access.qos}; a shim BD with other than 0 has wedged the "
            "whole array until a reboot: write 0 to bits 23:20 of word 5"
        )
        strictness.fault("shim-qos", error)
    if access.cache not in WORKING_CACHE_CODES:
        known = ", ".join(map(str, WORKING_CACHE_CODES))
        strictness.caution(
            "shim-cache", f"{channel.where()}: AXI cache code is {access.cache}; only {known} were seen to work"
        )
    if access.burst == SHORT_BURST_CODE:
        best = channel.array.device.generation.bursts[-1]
        strictness.caution(
            "shim-burst",
            f"{channel.where()}: bursts of 64 bytes move a fifth to a half less than longer ones; use {best}",
        )


def check_unread(array: "Array", tokens: Mapping["TokenKey", int], column: int) -> None:
    """A caution when a column's tokens pile up."""
    unread = sum(count for key, count in tokens.items() if key[0] == column)
    if unread > UNREAD_TOKENS:
        array.strictness.caution(
            "unread-tokens",
            f"more than {UNREAD_TOKENS} tokens of column {column} wait to be read: how many fit on their way to the "
            "controller is unknown; await earlier, or ask for fewer",
        )
