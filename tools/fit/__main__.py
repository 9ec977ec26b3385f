"""Fit the models to publications: `python -m tools.fit` writes the tables that the product ships.

The parameters themselves stand in `bdforge.devices.timing` and `estimate.OVERLAP_EXPONENT`, rounded; they are printed.
"""

from bdforge.perf.bounds.compiled_operator import OPERATORS_FILE
from bdforge.perf.goals import GOALS_FILE
from bdforge.perf.kernels.rates import COMPILED_FILE, FORMS_FILE, compiled_kernels
from bdforge.perf.prompts import PARTS_FILE
from tools.fit.evaluation import compiled_csv, fitted_parameters, goals_csv
from tools.fit.kernel_rates import forms_csv
from tools.fit.operators import operators_csv
from tools.fit.parameters import MEMORY
from tools.fit.prompts import parts_csv


def main() -> None:
    """Fit, and write the tables."""
    FORMS_FILE.write_text(forms_csv(), encoding="utf-8")
    COMPILED_FILE.write_text(compiled_csv(), encoding="utf-8")
    OPERATORS_FILE.write_text(operators_csv(), encoding="utf-8")
    PARTS_FILE.write_text(parts_csv(), encoding="utf-8")
    compiled_kernels.cache_clear()
    for name in MEMORY:
        print(f"{name} = {fitted_parameters()[name]:.4g}")
    GOALS_FILE.write_text(goals_csv(), encoding="utf-8")


if __name__ == "__main__":
    main()
