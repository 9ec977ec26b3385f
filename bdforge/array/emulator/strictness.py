"""What the emulated array refuses or warns about by default, by name, and what happens when a name is switched off.

Sources: hardware facts 1.3 to 1.7, the traps that others met (design rules of this project), and what was seen on
silicon, as docs/emulator.md names it.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from bdforge.array.emulator.errors import ArgumentError

CHECKS = {
    "queue-overflow": "a push to a full task queue; off: the entry is lost, as on silicon",
    "bd-rewrite": "a BD written while a task that uses it is queued or running; off: the words change",
    "program-writes": "program memory written while its core runs, which nobody has seen work; off: the core goes on "
    "with what was there when it started",
    "dram-order": "a task that reads DRAM which another task of the run writes, started before the writer's token was "
    "awaited; off: it reads what is there, new or old",
    "bd-half": "a memtile channel that uses a BD of the other half; off: it runs",
    "bd-locks": "a static BD that only acquires or only releases, which mlir-aie cannot write; off: it runs",
    "dma-bounds": "a transfer outside of its memory; off: tile addresses wrap at the memory's size, and behind a host "
    "array come 512 KiB that are read as 0 and then forgotten",
    "unpatched-address": "words moved by a shim BD whose address was never patched (one that moves none only gets a "
    "warning); off: it reads 0 and writes nowhere, without warning",
    "argument-size": "an array that is not as large as its argument's type; off: transfers reach what the array has",
    "neighbour-channel": "memtile channel 4 or 5 that reaches a neighbour (by registers: text that does is no valid "
    "MLIR); off: it does",
    "lock-range": "a lock that leaves 0 to 63; off: it saturates at -64 and 63",
    "acquire-zero": "AcquireGreaterEqual 0; off: the hardware's reading, wait for exactly 0",
    "field-width": "a value too wide for its register field; off: the upper bits are lost",
    "memory-overflow": "buffers and stack beyond a tile's memory; off: the tile's memory grows",
    "routing": "words on a circuit that switches lead nowhere; off: they stay where they are",
    "missing-token": "awaiting a token that nobody will issue; off: the wait is skipped",
    "channel-enable": "instruction words that push a task to a core tile's channel whose enable bit is 0, which "
    "hardware ignores; off: it starts all the same",
    "float-edges": "machine code of AIE2P whose result rests on the rounding of a sum of three floats; off: it is "
    "rounded once, to nearest even",
    "stack": "a kernel whose frame, where it is known, does not fit its core's stack; off: it runs",
    "shim-qos": "a shim BD with an AXI quality of service other than 0, which wedged the fabric; off: it runs",
    "buffer-arguments": "more than 5 buffer arguments of a sequence: NPUs translate no others; off: they are used",
}
"""Every check that can be switched off, with what happens then. Each leaves a warning when it lets something pass.

Program memory is not checked: how long a core's program becomes only its compiler knows.
"""

CAUTIONS = {
    "early-release": "machine code that gives a lock while stores before it have not written yet",
    "subnormal-floats": "machine code of AIE2P that sums subnormal floats, which are taken as AIE2 has them",
    "machine-code": "machine code in which the checker of `bdforge disasm --check` finds hazards",
    "blocked-cores": "cores of a design without a runtime sequence that are blocked when nothing moves any more",
    "buffer-bounds": "a BD that leaves its buffer, and perhaps runs into others of the tile",
    "core-twice": "a second aie.core of one tile, which mlir-aie up to 1.3.4 takes; the last one runs",
    "duplicate-flow": "an aie.flow that says the same as one before",
    "packet-headers": "packet flows to one port of which some keep headers: mlir-aie takes the last one's word for all",
    "open-flow": "a flow with an end between two switches, or out of the array: nothing here feeds or reads it",
    "npu1-window": "a memtile's BD of npu1 that points into the western neighbour's memory, as mlir-aie writes those "
    "of the runtime sequence; west of column 0 lies the memtile of a column without a shim",
    "lock-windows": "a BD with its two locks in different memtiles, of which mlir-aie takes another lock than named",
    "dropped-bd": "a BD of a task that nothing leads to, which mlir-aie drops",
    "dropped-stride": "a task's BD whose innermost stride mlir-aie drops, so that contiguous elements are moved",
    "view-offset": "a reinterpret_cast of a view that starts later than its argument: MLIR itself counts its offset "
    "from the argument's start, mlir-aie and bdforge from the view's",
    "control-columns": "control packets that write to tiles of more than one column",
    "shared-locks": "several S2MM of a memtile of AIE2P between the same two locks, a join",
    "reset-locks": "a channel that goes on after a reset with a lock that the dropped task had acquired and nobody has "
    "set since",
    "open-address": "a sequence that writes to buffers whose addresses the text leaves to aiecc",
    "shim-burst": "a shim BD with bursts of 64 bytes, which moves less",
    "shim-cache": "a shim BD whose AXI cache code nobody has seen work (0, 2 and 3 do)",
    "buffer-overlap": "addresses of a text by which buffers, or a core's stack, overlap",
    "pad-value": "a BD's own pad_value, which mlir-aie drops: it pads with 0",
    "unaligned-data": "first values, or data of a core's ELF, at no multiple of 4, which aie-rt misplaces",
    "token-route": "switches that a text sets itself and that lead no completion tokens of a shim to the controller",
    "unread-tokens": "more than 4 tokens of one column that wait to be read: how many the way back holds is unknown",
    "wide-wait": "one wait for tokens of several tiles while one of them has sent two",
}
"""What passes with a warning that ends with its name in brackets; off: without one."""

HABITS = {
    "start-modes": "bf16 results of core programs in MLIR are rounded towards minus infinity, and each NaN is 0x7F81, "
    "by the modes that a core starts in; off: to nearest with ties to even, NaN 0x7FC0",
    "memtile-word": "with poison, word 0 of column 0's memtile does not survive from one run to the next, so nobody "
    "wrote it when a run starts; off: it keeps what the configuration put there",
}
"""What the emulated array does as silicon was seen to, though no text says so; off: as the text reads."""

EDGES = "float-edges"
"""What sources tell of sums of three floats only where their order does not matter."""

NAMES = CHECKS | CAUTIONS | HABITS
"""Everything that has a switch."""


class StrictnessError(ArgumentError):
    """A name that has no switch."""


@dataclass
class Strictness:
    """The checks in force and what the switched-off ones let pass."""

    permitted: frozenset[str] = frozenset()
    messages: dict[str, None] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """What was let pass, in order, each once."""
        return list(self.messages)

    @classmethod
    def without(cls, names: Collection[str]) -> "Strictness":
        """All of NAMES but `names`; StrictnessError lists the known ones."""
        if unknown := sorted(set(names) - NAMES.keys()):
            raise StrictnessError(f"no check is called {', '.join(unknown)}; there is {', '.join(NAMES)}")
        return cls(frozenset(names))

    def fault(self, name: str, error: Exception) -> None:
        """Raise `error`, noting its check, or remember it as a warning where the check is off or but a caution."""
        if name in CAUTIONS:
            self.caution(name, str(error))
            return
        assert name in CHECKS
        if name not in self.permitted:
            error.add_note(f"[{name}]")
            raise error
        self.warn(f"{name} (permitted): {error}")

    def caution(self, name: str, warning: str) -> None:
        assert name in CAUTIONS
        if name not in self.permitted:
            self.warn(f"{warning} [{name}]")

    def warn(self, warning: str) -> None:
        self.messages[warning] = None

    def permits(self, name: str) -> bool:
        assert name in NAMES
        return name in self.permitted
