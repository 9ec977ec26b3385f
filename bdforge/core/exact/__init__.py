"""Cores that run machine code: a plain interpreter, and a fast executor that must agree with it on every bit."""
