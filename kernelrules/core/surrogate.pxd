# Surrogate splits. See surrogate.pyx.

from libc.stdint cimport uint8_t

from kernelrules.core.scan cimport Scratch, View


cdef struct StandIn:
    Py_ssize_t feature
    double threshold
    bint below_left
    Py_ssize_t subset               # where its flags start, -1: a threshold
    double agreement


cdef struct Flags:                  # of subsets, one after the other
    uint8_t *list
    Py_ssize_t n
    Py_ssize_t room


cdef struct StandIns:
    StandIn *list
    Py_ssize_t n
    Py_ssize_t room


cdef Py_ssize_t keep_flags(Flags *flags, const uint8_t *marks, Py_ssize_t n) noexcept nogil
cdef Py_ssize_t find_stand_ins(const View *view, Py_ssize_t column, Scratch *scratch, StandIns *found, Flags *flags,
                               bint *majority_left) noexcept nogil
