"""Core models against figures that the publications print."""

from bdforge.devices.timing import timing_of
from bdforge.perf.bounds.core_bound import core_cycles, stream_in_cycles


def test_the_published_kernel_sits_exactly_on_the_stream_bound():
    # Taka et al. chose 48x280x48 so that the kernel takes as long as its A: 1680 cycles at 384 MACs, 3360 at 192.
    for device, rate in (("krackan", 384), ("phoenix", 192)):
        stream = timing_of(device).stream_bytes_per_cycle
        assert stream_in_cycles(48, 280, 48, 1, 1, stream) == 48 * 280 * 48 / rate


def test_a_compute_bound_core_waits_only_for_c():
    core = core_cycles(64, 64, 64, 1, 1, 4, depth=1280, kernel=1000, overhead=51, stream_bytes=8, resume=15)
    assert (core.steps, core.step, core.drain) == (20, 1051, 2048 + 15)
    assert core.tile == 20 * 1051 + 2063
    assert core.bound == "compute"


def test_a_second_buffer_of_c_hides_the_drain():
    core = core_cycles(64, 64, 64, 1, 1, 4, depth=1280, kernel=1000, overhead=51, stream_bytes=8, c_buffers=2)
    assert core.tile == 20 * 1051


def test_c_binds_even_a_double_buffer_when_k_is_short():
    core = core_cycles(64, 64, 64, 1, 1, 4, depth=64, kernel=500, overhead=0, stream_bytes=8, c_buffers=2)
    assert core.tile == 2048
    assert core.bound == "L1 stream"


def test_a_fast_kernel_is_bound_by_the_stream():
    core = core_cycles(64, 64, 64, 1, 1, 4, depth=1280, kernel=300, overhead=51, stream_bytes=8)
    assert core.step == 64 * 64 / 8
    assert core.bound == "L1 stream"
