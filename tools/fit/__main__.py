"""Fit the models to publications: `python -m tools.fit` writes the tables that the product ships.

The parameters themselves stand in `bdforge.devices.timing` and `estimate.OVERLAP_EXPONENT`, rounded; they are printed.
"""

from dataclasses import asdict

from bdforge.perf.goals import GOALS_FILE
from bdforge.perf.kernels.rates import FORMS_FILE
from tools.fit.evaluation import fitted_parameters, goals_csv
from tools.fit.kernel_rates import forms_csv


def main() -> None:
    """Fit, and write both tables."""
    FORMS_FILE.write_text(forms_csv(), encoding="utf-8")
    for name, value in asdict(fitted_parameters()).items():
        print(f"{name} = {value:.4g}")
    GOALS_FILE.write_text(goals_csv(), encoding="utf-8")


if __name__ == "__main__":
    main()
