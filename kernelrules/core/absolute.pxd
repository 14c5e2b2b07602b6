# Splits by absolute error. See absolute.pyx.

from libc.stdint cimport uint8_t

from kernelrules.core.criteria cimport Criterion
from kernelrules.core.scan cimport Found, Rules, Scratch, View


cdef void scan_absolute(const Criterion *criterion, const Rules *rules, const View *view, Py_ssize_t column,
                        Scratch *scratch, Found *found, uint8_t *left_of) noexcept nogil
