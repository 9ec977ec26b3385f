"""Kernels that are software pipelined: small dataflow descriptions become modulo schedules, registers and loops.

A block of a kernel is operations on named values (`dataflow`, `block_dataflow`). Its schedule repeats
(`bdforge.core.isa.modulo`, `steady_block`), its values get registers that they leave in time for the next block's
(`register_colouring`), and its blocks, written one after the other (`cycle_trace`), are folded into a loop again
(`loop_folding`).
"""
