"""Parts: buffers with one writer and one reader that alternate by locks, as BDs of both sides."""

from dataclasses import replace

from oracle.array_design import Bd, Port, Tile, UseLock
from oracle.random_patterns import padded_pattern, per_word, random_pattern, random_split
from oracle.random_resources import Part, Resources

ELEMENTS = ("i8", "i16", "i32", "i32")


class Parts(Resources):
    """Draws parts and the BDs that fill and send them."""

    def plain_bd(self, port: Port, words: int) -> Bd:
        """A BD without locks in a buffer of its own."""
        element = self.random.choice(ELEMENTS)
        pattern = random_pattern(self.random, port.tile.kind, element, words)
        name = self.buffer(port.tile, element, pattern.elements)
        return Bd(name, element, pattern.offset, pattern.length, pattern.dims)

    def exact_split(self, number: int, parts: int) -> list[int]:
        cuts = sorted(self.random.sample(range(1, number), parts - 1))
        return [b - a for a, b in zip([0, *cuts], [*cuts, number], strict=True)]

    def part(self, tile: Tile, slots: int) -> Part:
        """Locks that one pair shares among all slots, or a pair for each."""
        free, full = self.random.randint(1, 3), self.random.randint(1, 3)
        if self.chance(0.5):
            pairs = [(self.lock(tile, free * slots), self.lock(tile))] * slots
        else:
            pairs = [(self.lock(tile, free), self.lock(tile)) for _ in range(slots)]
        return Part(self.random.choice(ELEMENTS), [], pairs, free, full, sizes=[0] * slots)

    def exchange(self, part: Part, memory: Tile, fill: tuple[Port, int], send: tuple[Port, int]):
        """BDs per slot of both sides of a part, and the words that a firing sends."""
        fills, sends = self.patterns(fill, part), self.sent_patterns(send, part)
        part.slots = [self.buffer(memory, part.element, size) for size in part.sizes]
        one_by_one = self.random.choice(("fill", "send"))  # the other side takes and gives all at once
        fill_bds = [self.guarded(part, slot, p, "fill", one_by_one == "fill") for slot, p in enumerate(fills)]
        send_bds = [self.guarded(part, slot, p, "send", one_by_one == "send") for slot, p in enumerate(sends)]
        return fill_bds, send_bds, sum(p.length for p in sends[0]) // per_word(part.element)

    def patterns(self, side: tuple[Port, int], part: Part) -> list[list]:
        """Patterns of a frame of so many words for each slot; each may be several BDs."""
        port, words = side
        most = 2 if port.tile.kind == "memtile" else self.random.choice((1, 1, 2))
        found = []
        for slot in range(len(part.pairs)):
            amounts = random_split(self.random, words, most)
            found.append([random_pattern(self.random, port.tile.kind, part.element, n) for n in amounts])
            part.sizes[slot] = max(part.sizes[slot], *(p.elements for p in found[-1]))
        return found

    def sent_patterns(self, side: tuple[Port, int], part: Part) -> list[list]:
        """As `patterns`; a memtile may widen its frame by padding, which every slot then shares."""
        port, words = side
        if port.tile.kind != "memtile" or self.chance(0.7):
            return self.patterns(side, part)
        padded = padded_pattern(self.random, part.element, words)
        part.sizes = [max(size, padded.elements) for size in part.sizes]
        return [[padded] for _ in part.pairs]

    def guarded(self, part: Part, slot: int, patterns: list, side: str, one_by_one: bool) -> list[Bd]:
        """BDs of one slot with their locks: each takes its share, or the first takes all and the last gives all."""
        free, full = part.pairs[slot]
        taken, given = (free, full) if side == "fill" else (part.done or full, free)
        credits = part.free_credits, part.full_credits
        take, give = credits if side == "fill" else (1 if part.done else credits[1], credits[0])
        bds = [Bd(part.slots[slot], part.element, p.offset, p.length, p.dims) for p in patterns]
        number = len(bds)
        if one_by_one and number <= min(take, give):
            takes, gives = self.exact_split(take, number), self.exact_split(give, number)
            uses = [(taken, t, given, g) for t, g in zip(takes, gives, strict=True)]
        elif number > 1:
            turn = self.lock(next(lock.tile for lock in self.state.locks if lock.name == free))
            uses = [(taken, take, turn, 1), *[(turn, 1, turn, 1)] * (number - 2), (turn, 1, given, give)]
        else:
            uses = [(taken, take, given, give)]
        return [
            replace(bd, acquire=UseLock(a, self.acquire(part, v), v), release=UseLock(r, "Release", w))
            for bd, (a, v, r, w) in zip(bds, uses, strict=True)
        ]

    def acquire(self, part: Part, value: int) -> str:
        """Equality works where a lock never holds more than what its one taker takes."""
        exact = len(part.pairs) == 1 and part.free_credits == part.full_credits == value
        return "Acquire" if exact and self.chance(0.15) else "AcquireGreaterEqual"
