# Surrogate splits. See surrogate.pyx.

from libc.stdint cimport uint8_t

from kernelrules.core.tree.scan cimport NodeView, ScanBuffers, SplitRules


cdef struct Surrogate:
    Py_ssize_t feature
    double threshold
    bint below_left
    Py_ssize_t subset               # where its flags start, -1: a threshold
    double agreement


cdef struct SubsetFlags:                  # of subsets, one after the other
    uint8_t *list
    Py_ssize_t n
    Py_ssize_t room


cdef struct SurrogateList:
    Surrogate *list
    Py_ssize_t n
    Py_ssize_t room


cdef Py_ssize_t append_flags(SubsetFlags *flags, const uint8_t *marks, Py_ssize_t n) noexcept nogil
cdef Py_ssize_t find_surrogates(const SplitRules *rules, const NodeView *view, Py_ssize_t column, ScanBuffers *scratch,
                                SurrogateList *found, SubsetFlags *flags, bint *majority_left) noexcept nogil
