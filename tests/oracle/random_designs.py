"""Grows random small designs that end by construction.

Streams start at the host or at initial values, pass through cells (memtile relays, splits and joins; cores) and end at
the host or in a drain. Per round every stream carries a fixed number of words, and every cell fires a whole number of
times, so that nothing is left over. Each buffer has one writer and one reader that alternate by a pair of locks:
results cannot depend on the schedule.
"""

from dataclasses import replace
from itertools import islice, pairwise
from math import gcd

from oracle.array_design import Bd, Chain, Core, Design, Flow, Port, Program, Tile, UseLock
from oracle.random_cores import CorePlan
from oracle.random_parts import Parts
from oracle.random_patterns import divisors, random_split
from oracle.random_resources import Cell, NoRoom, Part, Source, Stream
from oracle.random_sequences import HostStream, random_sequence
from oracle.random_tasks import with_runtime_tasks

WORDS = (8, 12, 16, 24, 30, 32, 36, 48, 60, 64, 96)  # of a stream per round

FRAME_WORDS_MAX = 60
STREAM_WORDS_MAX = 240


class Designer(Parts):
    """Draws a design from one seed."""

    def design(self) -> Design:
        for _ in range(self.random.randint(1, 3)):
            self.attempt(self.static_source if self.array_only or self.random.random() < 0.2 else self.host_source)
        for _ in range(self.random.randint(1, 4)):
            self.attempt(self.random.choice((self.grow_relay, self.grow_relay, self.grow_core, self.grow_core)))
        if not self.state.streams:
            raise NoRoom
        while self.state.streams:
            if self.array_only or not self.attempt(self.host_sink):
                self.drain(self.state.streams.pop())
        return self.finished()

    # Ends of streams.

    def add_stream(self, source: Source, words: int) -> None:
        if words > STREAM_WORDS_MAX:
            raise NoRoom
        self.state.streams.append(Stream(source, words))
        self.state.consumers[source] = []

    def connect(self, stream: Stream, sink: Port, cell: Cell | None) -> None:
        self.state.sinks.setdefault(stream.source, []).append(sink)
        self.state.consumers[stream.source].append(cell)

    def host_source(self) -> None:
        port = self.channel(self.random.choice(self.tiles("shim")), "MM2S")
        words = self.random.choice(WORDS)
        packet = self.packet() if self.chance(0.25) else None
        self.state.inputs.append(HostStream(port, words, packet))
        self.add_stream(Source(port, packet and packet[1]), words)

    def host_sink(self) -> None:
        stream = self.state.streams[-1]
        if stream.tile.kind == "shim":
            raise NoRoom
        port = self.channel(self.random.choice(self.tiles("shim")), "S2MM")
        self.state.outputs.append(HostStream(port, stream.words))
        self.connect(self.state.streams.pop(), port, None)

    def static_source(self) -> None:
        """Initial values, sent so often that their number fits all rounds."""
        tile = self.random.choice(self.tiles("memtile") + self.tiles("core"))
        port = self.channel(tile, "MM2S")
        words = self.random.choice(WORDS)
        total = words * self.state.rounds
        runs = self.random.choice(
            [d for d in divisors(total) if total // d <= FRAME_WORDS_MAX and d <= 60 and d % self.state.rounds == 0]
        )
        bds = [self.plain_bd(port, n) for n in random_split(self.random, total // runs, 3)]
        if self.chance(0.4):
            credit, spent = self.lock(tile, runs), self.lock(tile)
            bds[0] = replace(
                bds[0], acquire=UseLock(credit, "AcquireGreaterEqual", 1), release=UseLock(spent, "Release", 1)
            )
        self.take_bds(port, len(bds))
        source, bds, headers = self.maybe_packets(port, [bds])
        self.state.programs.append(Program(port, self.finite_tasks(port, bds, runs)))
        self.add_stream(source, words + headers * runs // self.state.rounds)

    def drain(self, stream: Stream) -> None:
        """Ends a stream in a tile's memory: a loop for ever, or as many runs as there are frames."""
        tiles = [t for t in self.tiles("memtile") + self.tiles("core") if t != stream.tile]
        self.random.shuffle(tiles)
        for tile in tiles:
            if self.attempt(lambda tile=tile: self.drain_at(stream, tile)):
                return
        raise NoRoom

    def drain_at(self, stream: Stream, tile: Tile) -> None:
        port = self.channel(tile, "S2MM")
        frame = self.random.choice([d for d in divisors(stream.words) if d <= FRAME_WORDS_MAX])
        bds = [self.plain_bd(port, n) for n in random_split(self.random, frame, 3)]
        self.take_bds(port, len(bds))
        tasks = (Chain(tuple(bds), loops=True),)
        runs = self.state.rounds * stream.words // frame
        if runs <= 256 and self.chance(0.5):
            tasks = self.finite_tasks(port, bds, runs)
        self.state.programs.append(Program(port, tasks))
        self.connect(stream, port, Cell())

    # Cells.

    def taken_streams(self, most: int) -> list[Stream]:
        """Streams that a cell takes: they are no longer open."""
        if not self.state.streams:
            raise NoRoom
        number = self.random.randint(1, min(most, len(self.state.streams)))
        self.random.shuffle(self.state.streams)
        taken, self.state.streams = self.state.streams[:number], self.state.streams[number:]
        return taken

    def grow_relay(self) -> None:
        """One cell for a few streams, or several cells that share a stream."""
        self.grow(self.relay)

    def grow_core(self) -> None:
        self.grow(self.core_cell)

    def grow(self, cell) -> None:
        if self.chance(0.4):
            [stream] = self.taken_streams(1)
            for _ in range(self.random.randint(2, 4)):
                self.attempt(lambda: cell([stream]))
            if not self.state.consumers[stream.source]:
                raise NoRoom
            return
        cell(self.taken_streams(2))

    def firings(self, streams: list[Stream], parts: int) -> int:
        """How often a cell fires per round: every stream then brings at least a word for each part."""
        words = 0
        for stream in streams:
            words = gcd(words, stream.words)
        small = max(s.words for s in streams)
        fits = [d for d in divisors(words) if small // d <= FRAME_WORDS_MAX and words // d >= parts]
        if not fits:
            raise NoRoom
        return self.random.choice(fits)

    def relay(self, streams: list[Stream]) -> None:
        """Buffers between fillers and senders: part (i, j) goes from stream i to output j."""
        outputs = self.random.choice((1, 1, 1, 2, 2, 3)) if len(streams) == 1 else 1
        kind = self.random.choice(("memtile", "memtile", "core"))
        firings = self.firings(streams, outputs)
        fill_tile, send_tile, memory_tile, lock_tile = self.relay_tiles(kind, streams)
        reach = 3 if len({fill_tile, send_tile, memory_tile, lock_tile}) > 1 else 99
        fillers = [self.channel(fill_tile, "S2MM", reach) for _ in streams]
        shared = outputs > 1 and self.chance(0.3)  # one channel, a packet id for each output
        channels = [self.channel(send_tile, "MM2S", reach) for _ in range(1 if shared else outputs)]
        slots = self.random.randint(1, 3 if kind == "memtile" else 2)
        fills: list[list[list[Bd]]] = [[[] for _ in range(slots)] for _ in fillers]
        sends: list[list[list[Bd]]] = [[[] for _ in range(slots)] for _ in range(outputs)]
        sent = [0] * outputs
        for i, stream in enumerate(streams):
            for j, amount in enumerate(self.exact_split(stream.words // firings, outputs)):
                part = self.part(lock_tile, slots)
                send = channels[j % len(channels)], self.random.randint(1, min(amount, 24))
                filled, read, words = self.exchange(part, memory_tile, (fillers[i], amount), send)
                sent[j] += words
                for slot in range(slots):
                    fills[i][slot] += filled[slot]
                    sends[j][slot] += read[slot]
        total = firings * self.state.rounds
        for filler, bds in zip(fillers, fills, strict=True):
            self.program(filler, [bd for slot in bds for bd in slot], total, slots)
        cell = Cell()
        for filler, stream in zip(fillers, streams, strict=True):
            self.connect(stream, filler, cell)
        if shared:
            self.send_packets(cell, channels[0], sends, sent, firings)
            return
        for sender, bds, words in zip(channels, sends, sent, strict=True):
            self.send(cell, sender, bds, words, firings)

    def send(self, cell: Cell, sender: Port, slots: list[list[Bd]], words: int, firings: int) -> None:
        """The program of a sender, and the stream that it makes: `words` per firing, and headers that are kept."""
        source, bds, headers = self.maybe_packets(sender, slots)
        self.program(sender, bds, firings * self.state.rounds, len(slots))
        cell.sources.append(source)
        self.add_stream(source, (words + headers) * firings)

    def send_packets(
        self, cell: Cell, sender: Port, sends: list[list[list[Bd]]], sent: list[int], firings: int
    ) -> None:
        """One sender for several streams: in each slot, the packets of one after those of the other."""
        chain: list[list[Bd]] = [[] for _ in sends[0]]
        for slots, words in zip(sends, sent, strict=True):
            source, bds, headers = self.maybe_packets(sender, slots, always=True)
            left = iter(bds)
            for whole, slot in zip(chain, slots, strict=True):
                whole += islice(left, len(slot))
            cell.sources.append(source)
            self.add_stream(source, (words + headers) * firings)
        self.program(sender, [bd for slot in chain for bd in slot], firings * self.state.rounds, len(chain))

    def relay_tiles(self, kind: str, streams: list[Stream]) -> tuple[Tile, Tile, Tile, Tile]:
        """Tiles of fillers, senders, buffers and locks; memtiles may use their neighbours'."""
        tiles = [t for t in self.tiles(kind) if all(t != s.tile for s in streams)]
        if not tiles:
            raise NoRoom
        fill = self.random.choice(tiles)
        if kind == "core" or self.chance(0.6):
            return fill, fill, fill, fill
        near = [t for t in self.tiles(kind) if abs(t.column - fill.column) <= 1]
        send = self.random.choice(near)
        common = [t for t in near if abs(t.column - send.column) <= 1]
        return fill, send, self.random.choice(common), self.random.choice(common)

    # Cores.

    def core_cell(self, streams: list[Stream]) -> None:
        """A core, or up to three that hand their results on through memory, between fillers and senders."""
        firings = self.firings(streams, 1)
        path = self.core_path()
        cell = Cell()
        plans = [CorePlan(tile, firings, self.state.rounds) for tile in path]
        in_place = len(plans) == 1 and len(streams) == 1 and self.chance(0.25)
        for stream in streams:
            tile = path[0] if in_place else self.random.choice(self.reach(path[0]))
            if tile == stream.tile:
                raise NoRoom
            filler = self.channel(tile, "S2MM")
            part = self.part(tile, self.random.randint(1, 2))
            if in_place:
                part.done = self.lock(tile)
                self.core_in_place(plans[0], part, filler, stream.words // firings, cell)
            else:
                self.core_input(plans[0], part, filler, stream.words // firings)
            self.connect(stream, filler, cell)
        for one, other in pairwise(plans):
            self.core_link(one, other)
        if not in_place:
            for _ in range(self.random.choice((1, 1, 2))):
                self.core_output(plans[-1], cell)
        for plan in plans:
            plan.finish(self)
            self.state.plans.append(plan)
            self.state.core_tiles.add(plan.tile)
        for plan in plans:
            plan.sources = cell.sources

    def core_path(self) -> list[Tile]:
        """Free core tiles, each next to the one before it so that they share reachable memory."""
        free = [t for t in self.tiles("core") if t not in self.state.core_tiles]
        if not free:
            raise NoRoom
        path = [self.random.choice(free)]
        for _ in range(self.random.choice((0, 0, 1, 2))):
            mine = set(self.reach(path[-1]))
            further = [t for t in free if t not in path and mine & set(self.reach(t))]
            if not further:
                break
            path.append(self.random.choice(further))
        return path

    def core_input(self, plan: CorePlan, part: Part, filler: Port, words: int) -> None:
        fills = self.patterns((filler, words), part)
        part.slots = [self.buffer(filler.tile, part.element, size) for size in part.sizes]
        split = self.chance(0.5)
        bds = [self.guarded(part, slot, p, "fill", split) for slot, p in enumerate(fills)]
        self.program(filler, [bd for slot in bds for bd in slot], plan.firings * plan.rounds, len(bds))
        plan.inputs.append(part)

    def core_output(self, plan: CorePlan, cell: Cell) -> None:
        tile = self.random.choice(self.reach(plan.tile))
        sender = self.channel(tile, "MM2S")
        part = self.part(tile, self.random.randint(1, 2))
        words = self.random.randint(1, 16)
        sends = self.patterns((sender, words), part)
        part.slots = [self.buffer(tile, part.element, size) for size in part.sizes]
        split = self.chance(0.5)
        bds = [self.guarded(part, slot, p, "send", split) for slot, p in enumerate(sends)]
        self.send(cell, sender, bds, words, plan.firings)
        plan.outputs.append(part)

    def core_in_place(self, plan: CorePlan, part: Part, filler: Port, words: int, cell: Cell) -> None:
        sender = self.channel(filler.tile, "MM2S")
        out = self.random.randint(1, 16)
        fills, sends, sent = self.exchange(part, filler.tile, (filler, words), (sender, out))
        self.program(filler, [bd for slot in fills for bd in slot], plan.firings * plan.rounds, len(fills))
        self.send(cell, sender, sends, sent, plan.firings)
        plan.in_place = part

    def core_link(self, one: CorePlan, other: CorePlan) -> None:
        """Memory that one core writes and the next one reads."""
        common = [t for t in self.reach(one.tile) if t in self.reach(other.tile)]
        tile = self.random.choice(common)
        part = self.part(tile, self.random.randint(1, 2))
        part.slots = [self.buffer(tile, part.element, self.random.randint(4, 40)) for _ in part.pairs]
        one.outputs.append(part)
        other.inputs.append(part)

    # The end.

    def observed(self, source: Source) -> bool:
        """Whether words of this source, or what becomes of them, reach the host."""
        cells = self.state.consumers.get(source, [])
        return any(c is None or any(self.observed(s) for s in c.sources) for c in cells)

    def is_routable(self) -> bool:
        """Whether so few flows cross each line between rows or columns that even one switch could carry them."""
        for axis, last in (("row", 5), ("column", 3)):
            for line in range(last):
                ends = [
                    (getattr(s.port.tile, axis) <= line, {getattr(p.tile, axis) <= line for p in sinks})
                    for s, sinks in self.state.sinks.items()
                ]
                up = sum(below and False in sinks for below, sinks in ends)
                down = sum(not below and True in sinks for below, sinks in ends)
                if up > (6 if axis == "row" else 4) or down > 4:
                    return False
        return True

    def finished(self) -> Design:
        state = self.state
        if not self.is_routable():
            raise NoRoom
        for plan in state.plans:
            plan.observed = any(self.observed(s) for s in plan.sources)
        cores = tuple(Core(p.tile, p.program(self.random, state.buffers)) for p in state.plans)
        flows = tuple(Flow(s.port, tuple(sinks), s.packet_id, s.keep_header) for s, sinks in state.sinks.items())
        array = Design(
            state.device, tuple(state.buffers.values()), tuple(state.locks), flows, tuple(state.programs), cores
        )
        if self.array_only:
            return array
        arguments, sequence = random_sequence(self.random, state.inputs, state.outputs, state.plans, state.rounds)
        design = array.with_changes(arguments=arguments, sequence=sequence)
        return with_runtime_tasks(self.random, design) if self.chance(0.3) else design


def random_design(seed: int) -> Design:
    """The design of a seed; some seeds need a few attempts."""
    for attempt in range(100):
        try:
            return Designer(seed * 1000 + attempt).design()
        except NoRoom:
            continue
    raise AssertionError(f"seed {seed} gives no design")
