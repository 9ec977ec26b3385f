"""How many words a stream holds between its source and a receiver that does not take them, by kind of path.

A design may live from them: what passes with a few words more hangs with a few less. So they are the least that is
known of silicon, and where nothing is known, an assumption that says so.
"""

from dataclasses import dataclass, fields
from typing import Literal, Self

KNOWN: Literal["known"] = "known"


@dataclass(frozen=True, slots=True)
class Capacity:
    """Words that one receiver holds; `source` is who saw it, "" where nobody did."""

    words: int
    source: str = ""

    @property
    def known(self) -> bool:
        """Whether somebody saw it."""
        return bool(self.source)


@dataclass(frozen=True, slots=True)
class StreamCapacities:
    """Of packet paths and of circuits: while the receiver's BD waits, for its lock say, and while it has no BD."""

    packet: Capacity
    packet_without_bd: Capacity
    circuit: Capacity
    circuit_without_bd: Capacity

    @property
    def most(self) -> int:
        """Words that any path holds at most."""
        return max(getattr(self, field.name).words for field in fields(self))

    @classmethod
    def uniform(cls, words: int) -> Self:
        """So many words everywhere; 0 is rendezvous: no word leaves its source before a BD takes it."""
        return cls(*[Capacity(words, "chosen")] * len(fields(cls)))


_PACKET = Capacity(
    8,
    "mlir-aie DeadlockModelPlan.md, shim to core on an NPU2: 8 words more than the BD takes pass and 9 hang, in rows 2 "
    "and 5 alike, so not for each switch; one source",
)
_PACKET_WITHOUT_BD = Capacity(
    5, "mlir-aie hw_verdicts ovr_5_arb and ovr_6_arb, memtile to core on an NPU2: 5 words pass and 6 hang; one source"
)
_PHOENIX = Capacity(16, "xdna-emu, input of an S2MM of a Phoenix: 15 to 16 words; one source")

AIE2_CAPACITIES = StreamCapacities(Capacity(16), Capacity(16), _PHOENIX, Capacity(16))
"""Nobody told packet paths, or receivers without a BD, from the circuit that was measured."""
AIE2P_CAPACITIES = StreamCapacities(
    _PACKET, _PACKET_WITHOUT_BD, Capacity(_PACKET.words), Capacity(_PACKET_WITHOUT_BD.words)
)
"""Of circuits nothing is known: no more is assumed than packet paths hold, for a design must not pass by a guess."""
