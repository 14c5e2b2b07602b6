"""One pass over data before anything is computed: the largest magnitude, and the first number that is not finite.

One thread is enough: a single core takes numbers as fast as memory gives them.
"""

from libc.math cimport isfinite, isnan

from kernelrules.core.machine cimport simd_level
from kernelrules.core.simd cimport largest, pick
from kernelrules.core.types cimport real_t


def magnitude(const real_t[:, :] x):
    """The largest |x_ij| and None; or NaN and the place (i, j) of the first number, by rows, that is not finite.

    Rows have no gaps. 0 for no numbers.
    """
    cdef Py_ssize_t n = x.shape[0], p = x.shape[1], stride, i = 0, j = 0
    cdef double most = 0, here = 0
    cdef const real_t *data
    cdef const void *simd
    if n == 0 or p == 0:
        return 0.0, None
    data, stride = &x[0, 0], max(p, x.strides[0] // <Py_ssize_t> sizeof(real_t))
    simd = pick(simd_level(), data)
    with nogil:
        while i < n:
            here = largest(simd, data + i * stride, p)
            if isnan(here):
                break
            most = max(most, here)
            i += 1
        while i < n and isfinite(<double> data[i * stride + j]):
            j += 1
    return (most, None) if i == n else (here, (i, j))
