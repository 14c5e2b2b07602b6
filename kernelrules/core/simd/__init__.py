"""Vectorised kernels: one source for every instruction-set level and both float types, chosen at run time.

    targets     compiling a function for AVX2 or AVX-512 whatever the compiler's default (targets.h)
    levels      compiling one source for every level and both float types (levels.h, types.h)
    vectors     the vectors that such a source is written with, exp, tanh and powers (vectors.h)
    body        sums over features, packing, transposing, passes of the SMO solver (body.h, solver.h)
    tables      one table of function pointers per level and float type (tables.h)
    dispatch    the module that compiles body.h and hands out the tables
    cpu         the level in use: that of the processor, or of KERNELRULES_SIMD
    finite      one pass over data before anything else: whether all of it is finite, and how large

The generic vectors of GCC and Clang are used, so one source serves x86-64 and AArch64.
"""
