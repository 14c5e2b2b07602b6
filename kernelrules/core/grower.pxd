# The loops of growing. See grower.pyx.

from libc.stdint cimport uint32_t

from kernelrules.core.criteria cimport Criterion
from kernelrules.core.node cimport Grower, Limits
from kernelrules.core.presort cimport Arena, Table
from kernelrules.core.scan cimport Rules, Scratch

cdef enum:
    CLOSE = 2048            # rows whose arena fits the first-level cache


cdef int grow_some(Grower *grower, Py_ssize_t budget) noexcept nogil
cdef int grow_best(Grower *grower, Py_ssize_t *n_leaves) noexcept nogil
cdef int grow_tasks(Grower *top, Grower **subtrees, Py_ssize_t first, Py_ssize_t end, Scratch **scratch,
                    uint32_t **numbers, int n_threads, Py_ssize_t budget) noexcept nogil
cdef int start_root(Grower *grower) noexcept nogil
cdef Grower *new_grower(const Table *table, const Criterion *criterion, const Rules *rules, const Limits *limits,
                        Arena *arena, bint own, Scratch **scratch, int n_threads) noexcept nogil
cdef void free_grower(Grower *grower) noexcept nogil
