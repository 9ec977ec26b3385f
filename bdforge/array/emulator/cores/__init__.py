"""What cores of the emulated array run."""
