"""Machine code without a compiler: kernels, and what programs of cores are made of.

`scheduled` makes bundles of straight code, `bdforge.core.codegen.abi` says how functions call. Programs of cores from
their bodies in MLIR are `bdforge.array.core_bodies`.
"""
