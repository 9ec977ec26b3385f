"""What cores cost whose kernels this project assembles: counted on the exact core model, nothing modelled."""
