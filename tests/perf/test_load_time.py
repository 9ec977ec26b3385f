"""What a whole configuration takes to load, from its bytes."""

import pytest

from bdforge.array.images.cdo import cdo
from bdforge.common.tree import PACKAGE
from bdforge.devices import device_named
from bdforge.devices.timing import CONTEXT_NS, timing_of
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Operation, Write
from bdforge.operators import load_spec, plan, render
from bdforge.perf.bounds.load_time import load_times, packet_bytes
from bdforge.runtime.toolchain.assembled import built_image

MEMTILE = 0x100000
WRITES: dict[str, tuple[list[Operation], int]] = {
    "a word": ([Write(MEMTILE, 1)], 12),
    "a masked word": ([MaskWrite(MEMTILE, 1, 1)], 12),
    "four words": ([BlockWrite(MEMTILE, (1, 2, 3, 4))], 24),
    "five words": ([BlockWrite(MEMTILE, (1, 2, 3, 4, 5))], 36),
    "several": ([BlockWrite(MEMTILE, tuple(range(1, 10))), Write(MEMTILE + 64, 1)], 36 + 24 + 12),
}


@pytest.mark.parametrize("case", WRITES)
def test_control_packets_have_two_headers_for_four_words(case: str):
    operations, expected = WRITES[case]
    assert packet_bytes(operations) == expected


def test_each_way_has_its_rate():
    """Strix Halo: a write of 86 ns, a word of a block 1.75 ns; packets 4 B a cycle of 1.8 GHz."""
    operations = [Write(MEMTILE, 1), BlockWrite(MEMTILE + 4, tuple(range(1, 9)))]
    image = cdo(operations)
    found = load_times(image, timing_of("strix_halo"))
    assert found.cdo_bytes == len(image)
    assert found.writes_us == pytest.approx((2 * 86 + 8 * 1.75) / 1e3)
    assert found.packets_us == pytest.approx((12 + 2 * 24) / 7.2e3)
    assert found.pdi_us == pytest.approx(1600 + 34.7e-3 * len(image))


MEASURED_MS = {("phoenix", "gemm_i8_i8_i16_96x112x96"): 3.4, ("krackan", "gemm_i8_i8_i16_128x72x112"): 4.9}


@pytest.mark.slow
def test_published_loads_are_met_from_bytes_also_by_a_fit_to_the_other_one():
    found = {}
    for (device, name), measured in MEASURED_MS.items():
        planned = plan(load_spec(PACKAGE.parent / "designs" / f"{name}.toml"), device_named(device))
        made = built_image(render(planned, []), f"{name}.mlir", planned.kernels.defines, [])
        assert not made.without
        times = load_times(made.xclbin, timing_of(device))
        assert times.pdi_us / 1e3 == pytest.approx(measured, rel=0.03)
        found[device] = times.cdo_bytes, measured * 1e6
    for one, other in (("phoenix", "krackan"), ("krackan", "phoenix")):
        (size, ns), (others, expected) = found[one], found[other]
        assert CONTEXT_NS + (ns - CONTEXT_NS) / size * others == pytest.approx(expected, rel=0.05)
