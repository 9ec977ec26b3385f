"""Kernels' cycles: rates that were measured or published, and schedules of our own kernels."""
