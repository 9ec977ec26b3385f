"""The generated page of kernel costs."""

from pathlib import Path

from bdforge.perf.kernels.loops import MATRIX_KERNELS
from bdforge.perf.kernels.page import page
from bdforge.perf.kernels.published import comparisons

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kernel_costs.md"


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m bdforge.perf.kernels.page"


def test_the_page_has_every_kernel_and_every_published_tile():
    text = page()
    assert all(f"| {kernel.symbol} |" in text for kernel in MATRIX_KERNELS)
    for row in comparisons():
        p = row.published
        assert f"| {p.device} | {'-'.join(p.types)} | {p.m} × {p.k} × {p.n} | {p.rho} | {p.macs_per_cycle} |" in text
