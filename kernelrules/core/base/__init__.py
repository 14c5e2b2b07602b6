"""The base of every other folder of the core, independent of kernels, solvers and trees.

types       the fused float types
status      the codes of `kernelrules/api.h`, and the Python exception of each
team        loops on several threads, without OpenMP (team.h)
interrupts  how much work is done between two checks for signals
memory      large arrays in memory that is kept for the next one of that size (memory.h)
growable    arrays that grow by doubling
bits        sets as words of 64 bits
prefetch    hints that memory is needed soon (prefetch.h)
"""
