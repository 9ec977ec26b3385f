"""What the tasks of a tile's channels wait for: whether nothing disturbs a channel that is left, or started early."""

from collections.abc import Collection, Iterator

from bdforge.array.lower.array_state import ChannelKey, ChannelWait, TileState
from bdforge.devices import TileKind
from bdforge.devices.registers import MEMTILE_WINDOW_LOCKS

_OWN = 1  # of a memtile's three windows of locks: west, its own, east


def tasks_of(tile: TileState) -> set[ChannelKey]:
    """Channels that run tasks from the start."""
    return {(task.direction, task.channel) for task in tile.tasks}


def wait_of(tile: TileState, channel: ChannelKey) -> ChannelWait | None:
    """What the tasks go through that a channel runs from the start; None where that is not known, as where runs write
    its BDs, or where it takes or gives a neighbour's locks."""
    bds = frozenset(
        bd for task in tile.tasks if (task.direction, task.channel) == channel for bd in _chain(tile, task.bd)
    )
    if not bds <= tile.bds.keys() - tile.rewritten:
        return None
    locks = frozenset(lock for bd in bds for lock in _locks(tile, bd))
    return None if None in locks else ChannelWait(bds, frozenset(lock for lock in locks if lock is not None))


def sends_nothing(tile: TileState, channel: ChannelKey) -> bool:
    """Whether the first tasks of a channel that sends wait for a lock that does not start as they want it."""
    first = next(_first_bds(tile, channel))
    fields, lock = tile.fields(first), next(_locks(tile, first), None)
    if not fields["acquire_enable"] or lock is None:
        return False
    value, wanted = tile.locks.get(lock, 0), fields["acquire_value"]
    return value < -wanted if wanted < 0 else value != wanted


def disturbed(wait: ChannelWait, bds: Collection[int], locks: Collection[int]) -> bool:
    """Whether who writes these BDs and locks changes what is waited for."""
    return not (wait.bds.isdisjoint(bds) and wait.locks.isdisjoint(locks))


def _first_bds(tile: TileState, channel: ChannelKey) -> Iterator[int]:
    return (task.bd for task in tile.tasks if (task.direction, task.channel) == channel)


def _chain(tile: TileState, bd: int) -> set[int]:
    found: set[int] = set()
    while bd not in found:
        found.add(bd)
        if bd in tile.bds and tile.fields(bd)["use_next"]:
            bd = tile.fields(bd)["next"]
    return found


def _locks(tile: TileState, bd: int) -> Iterator[int | None]:
    """The locks that a BD acquires and releases, None for one of a neighbour."""
    fields = tile.fields(bd)
    for used, lock in (
        (fields["acquire_enable"], fields["acquire_id"]),
        (fields["release_value"], fields["release_id"]),
    ):
        if used and tile.kind is TileKind.MEMTILE:
            window, own = divmod(lock, MEMTILE_WINDOW_LOCKS)
            yield own if window == _OWN else None
        elif used:
            yield lock
