"""How long lowered whole-array designs take to load: `python benchmarks/mlir_loading.py [LINES ...]`.

Prints seconds (measured on this host) and lines per second of parsing and verifying; the aim is 10 s for 10,000 lines.
"""

import sys
import time

from lowered_design import design

from bdforge.array.mlir import parse

LINES = (2_500, 5_000, 10_000)


def main() -> None:
    """Load one design of each length."""
    for lines in [int(argument) for argument in sys.argv[1:]] or LINES:
        text = design(lines)
        count = text.count("\n") + 1
        start = time.perf_counter()
        parse(text, "design.mlir")
        seconds = time.perf_counter() - start
        print(f"{count} lines: {seconds:.2f} s (measured), {count / seconds:.0f} lines/s")


if __name__ == "__main__":
    main()
