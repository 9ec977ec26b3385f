"""Core bodies in MLIR, translated to Python."""
