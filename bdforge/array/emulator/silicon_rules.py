"""What silicon punishes although registers can hold it: rules that were seen on real arrays (docs/emulator.md)."""

from collections.abc import Callable, Mapping, Sequence

from bdforge.array.emulator.bd_access import ShimAccess
from bdforge.array.emulator.errors import DmaError, LoadError
from bdforge.array.emulator.strictness import Strictness
from bdforge.devices.limits import HOST_BUFFERS
from bdforge.devices.txn_format.operations import Patch, Sync

TokenKey = tuple[int, int, str, int]
"""Column, row, direction, channel."""

WORKING_CACHE_CODES = (0, 2, 3)
SHORT_BURST_CODE = 0  # 64 bytes on every generation
UNREAD_TOKENS = 4


def check_shim_access(access: ShimAccess, where: Callable[[], str], strictness: Strictness, longest: int) -> None:
    """DmaError for a quality of service; a caution for what is slow (bursts below the `longest`) or was never seen."""
    if access.qos:
        error = DmaError(
            f"{where()}: AXI quality of service is {access.qos}; a shim BD with other than 0 has wedged the "
            "whole array until a reboot: write 0 to bits 23:20 of word 5"
        )
        strictness.fault("shim-qos", error)
    if access.cache not in WORKING_CACHE_CODES:
        known = ", ".join(map(str, WORKING_CACHE_CODES))
        strictness.caution("shim-cache", f"{where()}: AXI cache code is {access.cache}; only {known} were seen to work")
    if access.burst == SHORT_BURST_CODE:
        strictness.caution(
            "shim-burst",
            f"{where()}: bursts of 64 bytes move a fifth to a half less than longer ones; use {longest}",
        )


def check_lock_pair(tile: str, users: set[int], strictness: Strictness) -> None:
    """A caution for a join that AIE2P deadlocks: several S2MM of a memtile between the same two locks."""
    if len(users) > 1:
        first, *others = sorted(users)
        strictness.caution(
            "shared-locks",
            f"{tile}: S2MM {first} and {', '.join(map(str, others))} acquire the same lock and release the same "
            "other one; such a join deadlocked on NPU2: give each contributor a pair of its own",
        )


def check_reset_lock(channel: str, lock: str, value: int, source: str, strictness: Strictness) -> None:
    """A caution for a channel that goes on with a lock which is lower by what a task dropped by a reset had taken."""
    strictness.caution(
        "reset-locks",
        f"{channel} was reset while a task of it had acquired lock {lock} and released none yet; nobody has set the "
        f"lock since, so it stays lower by that (it is {value}): set a channel's locks between its reset and its next "
        f"task (aiex.set_lock){source}",
    )


def check_control_columns(controlled: set[int], strictness: Strictness) -> None:
    """A caution when control packets write to tiles of a second column."""
    if len(controlled) > 1:
        columns = ", ".join(map(str, sorted(controlled)))
        strictness.caution(
            "control-columns",
            f"control packets write to tiles of columns {columns}; over more than one column that hung on silicon",
        )


def check_enabled(channel: str, source: str, strictness: Strictness) -> None:
    """DmaError for a push to a core tile's channel that instruction words never enabled."""
    error = DmaError(
        f"{channel}: a task is pushed, but bit 0 (enable) of the channel's control register is 0{source}; "
        "hardware starts no task of a core tile then: write 1 to it first, or start the channel in the text"
    )
    strictness.fault("channel-enable", error)


def check_unread(tokens: Mapping[TokenKey, int], column: int, strictness: Strictness) -> None:
    """A caution when a column's tokens pile up."""
    unread = sum(count for key, count in tokens.items() if key[0] == column)
    if unread > UNREAD_TOKENS:
        strictness.caution(
            "unread-tokens",
            f"more than {UNREAD_TOKENS} tokens of column {column} wait to be read: how many fit on their way to the "
            "controller is unknown; await earlier, or ask for fewer",
        )


def check_argument(strictness: Strictness, patch: Patch, source: str) -> None:
    """LoadError for an argument whose address the firmware does not translate."""
    if patch.argument < HOST_BUFFERS:
        return
    error = LoadError(
        f"buffer argument {patch.argument} (counted from 0) is used, but NPUs translate the addresses of the first "
        f"{HOST_BUFFERS} arguments only; put several arrays into one argument, at offsets of it{source}"
    )
    strictness.fault("buffer-arguments", error)


def check_wide_wait(
    sync: Sync, keys: Sequence[TokenKey], tokens: Mapping[TokenKey, int], source: str, strictness: Strictness
) -> None:
    """A caution when one wait for several tiles' tokens could take two of the same tile."""
    piled = [key for key in keys if tokens[key] > 1]
    if len(keys) > 1 and piled:
        column, row, direction, channel = piled[0]
        strictness.caution(
            "wide-wait",
            f"one wait is for tokens of {sync.columns} x {sync.rows} tiles while {direction} {channel} of tile "
            f"({column}, {row}) has sent {tokens[piled[0]]}: if the controller counts any of them, the wait ends "
            f"too early; wait for each tile by itself, or with one token of each on its way{source}",
        )
