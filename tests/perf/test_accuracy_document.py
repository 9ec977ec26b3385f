"""The fit, what the models are held to, and the document that says so."""

from dataclasses import astuple

import numpy as np
import pytest

from bdforge.devices.timing import KRACKAN, PHOENIX, STRIX, STRIX_HALO
from bdforge.perf.accuracy import DOCUMENT, accuracy
from bdforge.perf.estimate import OVERLAP_EXPONENT
from bdforge.perf.evaluation import fitted_parameters, goals, mean_error, results, short_run_ratios
from bdforge.perf.fit import FITTED_SOURCES, least_squares


def test_the_document_is_current():
    assert DOCUMENT.read_text(encoding="utf-8") == accuracy(), "run python -m bdforge.perf.accuracy"


def test_the_timing_table_holds_the_fitted_parameters():
    found = fitted_parameters()
    page_ns = found.page_cycles / 8 / 1.8
    assert KRACKAN.dram_read_gb_s == STRIX.dram_read_gb_s == pytest.approx(found.npu2_gb_s, rel=0.005)
    assert KRACKAN.dram_read_page_ns == STRIX.dram_read_page_ns == pytest.approx(page_ns, rel=0.005)
    assert STRIX_HALO.dram_read_page_ns == pytest.approx(page_ns * found.strix_halo_share, rel=0.005)
    assert PHOENIX.dram_read_page_ns == pytest.approx(found.page_cycles / 4 / 1.0, rel=0.005)
    assert pytest.approx(found.overlap_exponent, rel=0.02) == OVERLAP_EXPONENT


def test_the_models_keep_what_they_are_held_to():
    found = goals()
    missed = [f"{goal.text}: {goal.reached:.1%} of at most {goal.limit:.0%}" for goal in found if not goal.holds]
    assert missed == []
    assert len(found) == 10


def test_every_fitted_source_has_rows():
    for source in FITTED_SOURCES:
        assert mean_error(results(source)) < 0.2, source


def test_short_runs_cost_about_what_was_published_and_never_fitted():
    assert all(2.0 < ratio < 4.5 for ratio in short_run_ratios().values())  # Taka et al.: 3.6


def test_least_squares_finds_the_parameters_of_a_curve():
    x = np.linspace(0.1, 3, 20)
    target = 2.5 * np.exp(-0.7 * x)
    found = least_squares(lambda p: p[0] * np.exp(-p[1] * x) - target, np.array([1.0, 0.1]))
    np.testing.assert_allclose(found, (2.5, 0.7), rtol=1e-5)


def test_least_squares_leaves_a_parameter_that_nothing_depends_on():
    found = least_squares(lambda p: np.array([p[0] - 3.0, 2 * p[0] - 6.0]), np.array([1.0, 5.0]))
    np.testing.assert_allclose(found, (3.0, 5.0), rtol=1e-6)
    assert len(astuple(fitted_parameters())) == 4
