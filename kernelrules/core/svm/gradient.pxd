# The change of K·beta when some coefficients change.

from kernelrules.core.svm.rows cimport RowStore, Segment

cdef int add_change(RowStore *store, Py_ssize_t *points, double *coefficients, Py_ssize_t n, const void **rows,
                    const Segment *segments, int n_segments, double *gradient) noexcept nogil
