# The best subset of a categorical column's levels. See levels.pyx.

from libc.stdint cimport uint8_t

from kernelrules.core.criteria cimport Criterion
from kernelrules.core.judge cimport Bins
from kernelrules.core.scan cimport Found, Rules, Scratch, View


cdef enum:
    SUBSETS = 12            # levels up to which every subset is tried

cdef int ascending(const void *a, const void *b) noexcept nogil
cdef void scan_subsets(const Criterion *criterion, const Rules *rules, const View *view, Py_ssize_t column,
                       const Bins *bins, Scratch *scratch, Found *found, uint8_t *left_of) noexcept nogil
