# One pass over data before all else. See finite.pyx.

from kernelrules.core.base.types cimport real_t

cdef bint all_finite(const real_t *values, Py_ssize_t n) noexcept nogil
