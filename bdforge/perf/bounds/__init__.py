"""Bounds of a design: cores, streams, DRAM; the one that is reached limits it."""
