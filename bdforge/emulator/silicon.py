"""What silicon punishes although registers can hold it: rules that were seen on real arrays (docs/emulator.md)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bdforge.devices import AIE2P, TileKind
from bdforge.devices.limits import HOST_BUFFERS
from bdforge.emulator.bd import DecodedBd, ShimAccess
from bdforge.emulator.errors import DesignError, DmaError
from bdforge.txn.operations import Patch, Sync

if TYPE_CHECKING:
    from bdforge.emulator.array import Array, TokenKey
    from bdforge.emulator.dma import Channel
    from bdforge.emulator.strictness import Strictness
    from bdforge.emulator.tile import Tile

WORKING_CACHE_CODES = (0, 2, 3)
SHORT_BURST_CODE = 0  # 64 bytes on every generation
UNREAD_TOKENS = 4
FIRMWARE_WORD = 0x00CD0CD0


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


def check_fresh(channel: "Channel", words: np.ndarray, places: np.ndarray | slice) -> None:
    """A caution for a read of DRAM that another shim has written in the same run."""
    stale = channel.array.host.writer(words, places, channel.tile.column)
    if stale is not None:
        name, column = stale
        channel.array.strictness.caution(
            "stale-dram",
            f"{channel.where()} reads argument {name} where the shim of column {column} wrote in the same run; on "
            "silicon it may read what was there before: write and read it through one shim, or in two runs",
        )


def check_lock_pair(tile: "Tile", direction: str, channel: int, bd: DecodedBd) -> None:
    """A caution for a join that AIE2P deadlocks: several S2MM of a memtile between the same two locks."""
    if tile.kind is not TileKind.MEMTILE or direction != "S2MM" or tile.array.device.generation is not AIE2P:
        return
    if bd.acquire is None or bd.release is None or bd.acquire[0] == bd.release[0]:
        return
    pair = bd.acquire[0], bd.release[0]
    users = tile.fills.setdefault(pair, set())
    users.add(channel)
    if len(users) > 1:
        first, *others = sorted(users)
        tile.array.strictness.caution(
            "shared-locks",
            f"{tile.name}: S2MM {first} and {', '.join(map(str, others))} acquire the same lock and release the same "
            "other one; such a join deadlocked on NPU2: give each contributor a pair of its own",
        )


def check_control_column(array: "Array", column: int) -> None:
    """A caution when control packets write to tiles of a second column."""
    array.controlled.add(column)
    if len(array.controlled) > 1:
        columns = ", ".join(map(str, sorted(array.controlled)))
        array.strictness.caution(
            "control-columns",
            f"control packets write to tiles of columns {columns}; over more than one column that hung on silicon",
        )


def check_enabled(channel: "Channel", enabled: bool, source: str) -> None:
    """DmaError for a push to a core tile's channel that instruction words never enabled."""
    if enabled or channel.tile.kind is not TileKind.CORE or not channel.array.by_words:
        return
    error = DmaError(
        f"{channel.name}: a task is pushed, but bit 0 (enable) of the channel's control register is 0{source}; "
        "hardware starts no task of a core tile then: write 1 to it first, or start the channel in the text"
    )
    channel.array.strictness.fault("channel-enable", error)


def spoil_word(array: "Array") -> None:
    """In poison mode: what the run of a context before this one leaves in word 0 of column 0's memtile (HS)."""
    tile = array.tiles.get((0, 1))
    if not array.poison or tile is None or tile.written is None or array.strictness.permits("memtile-word"):
        return
    if tile.kind is TileKind.MEMTILE:
        array.spoiled = tile.memory
        tile.memory[0] = FIRMWARE_WORD
        tile.written[:4] = False


def check_unread(array: "Array", tokens: Mapping["TokenKey", int], column: int) -> None:
    """A caution when a column's tokens pile up."""
    unread = sum(count for key, count in tokens.items() if key[0] == column)
    if unread > UNREAD_TOKENS:
        array.strictness.caution(
            "unread-tokens",
            f"more than {UNREAD_TOKENS} tokens of column {column} wait to be read: how many fit on their way to the "
            "controller is unknown; await earlier, or ask for fewer",
        )


def check_argument(strictness: "Strictness", patch: Patch, source: str) -> None:
    """DesignError for an argument whose address the firmware does not translate."""
    if patch.argument < HOST_BUFFERS:
        return
    error = DesignError(
        f"buffer argument {patch.argument} (counted from 0) is used, but NPUs translate the addresses of the first "
        f"{HOST_BUFFERS} arguments only; put several arrays into one argument, at offsets of it{source}"
    )
    strictness.fault("buffer-arguments", error)


def check_wide_wait(array: "Array", sync: Sync, keys: list["TokenKey"], source: str) -> None:
    """A caution when one wait for several tiles' tokens could take two of the same tile."""
    piled = [key for key in keys if array.tokens[key] > 1]
    if len(keys) > 1 and piled:
        column, row, direction, channel = piled[0]
        array.strictness.caution(
            "wide-wait",
            f"one wait is for tokens of {sync.columns} x {sync.rows} tiles while {direction} {channel} of tile "
            f"({column}, {row}) has sent {array.tokens[piled[0]]}: if the controller counts any of them, the wait ends "
            f"too early; wait for each tile by itself, or with one token of each on its way{source}",
        )
