"""One core: its instruction set, kernels made for it, and the exact model that runs machine code."""
