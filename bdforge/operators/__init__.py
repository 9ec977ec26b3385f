"""Operators, a package each: spec, mapping to a design, reference, cost."""
