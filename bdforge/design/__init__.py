"""The neutral design: tiles, buffers, locks, BDs, flows, and where they stand."""
