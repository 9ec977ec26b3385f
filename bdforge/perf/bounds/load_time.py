"""What it takes to bring a whole configuration to an array, modelled from its bytes. Low confidence throughout.

- As a PDI: what a fresh context takes, and each byte of the CDO. S0 states 3.4 ms on Phoenix and 4.9 ms on Krackan for
  GEMMs of 16 and 32 cores; bytes are those of our designs of the same tiles (int8 to int16), 53.5 and 92.3 KB, since
  theirs are not published. The slope is the geometric mean of both rows (2 % off either); from one of them alone the
  other comes out 4 % low and 3 % high. Longer ones are extrapolated: others state 1.0 to 2.6 ms where loaded contexts
  take turns, for designs of several hundred KB too, so that the slope is an upper bound there.
- By register writes of an instruction stream: the controller's rates, without any fit.
- By control packets: their words at a stream's rate from one shim, without any fit and without the transfers that
  bring them. iree-amd-aie 1187 (Strix) states runs of 106 us with all, 101 with programs and 79 with one packet. Its
  bytes are not published; with those of an int8 GEMM of ours on 32 cores, 70 KB of programs and 40 KB besides, and the
  dispatch of a full ELF that others measured on Strix (78.6 us), the three come out 11 and 12 % low and 1 % off
  (`bdforge reproduce iree-1187`). At this rate 22 us carry 106 KB, 3.3 KB for each of 32 cores.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bdforge.array.images.read import configurations, read_image
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.registers import CONTROL_PACKET
from bdforge.devices.timing import CONTEXT_NS, PDI_BYTE_NS, Timing
from bdforge.devices.txn_format.operations import BlockWrite, Operation
from bdforge.perf.bounds.composition_time import change_us

_PACKET_WORDS = CONTROL_PACKET.fields["words"].bounds[1] + 1  # of data
_HEADERS = 2  # words: a stream's and the packet's own
FITTED_BYTES = range(53_000, 93_000)
"""CDOs that the price of a PDI is fitted to."""


@dataclass(frozen=True, slots=True)
class LoadTimes:
    """Bytes of a configuration's CDO and of its control packets, and the times of the three ways."""

    cdo_bytes: int
    packet_bytes: int
    pdi_us: float
    writes_us: float
    packets_us: float


def load_times(image: bytes, timing: Timing) -> LoadTimes:
    """Of the first configuration of an image; ImageError where it is none."""
    operations = read_image(image).configurations[0]
    cdo = sum(map(len, configurations(image)[1][0]))
    pdi_us, writes_us = (CONTEXT_NS + PDI_BYTE_NS * cdo) / 1e3, change_us(operations, timing)
    return LoadTimes(cdo, packet_bytes(operations), pdi_us, writes_us, packets_us(operations, timing))


def packets_us(operations: Iterable[Operation], timing: Timing) -> float:
    """What control packets take that write what register writes do, through one stream."""
    return timing.cycles_ns(packet_bytes(operations) / timing.control_bytes_per_cycle) / 1e3


def packet_bytes(operations: Iterable[Operation]) -> int:
    """Of control packets that write what register writes do, up to four words each; a masked write is one of a word."""
    counts = [len(op.words) if isinstance(op, BlockWrite) else 1 for op in operations]
    return GRANULE_BYTES * sum(words + _HEADERS * -(-words // _PACKET_WORDS) for words in counts)
