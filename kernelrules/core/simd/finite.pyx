"""One pass over the data before anything is computed: the largest magnitude, and the first number that is not finite;
or, if NaN means a missing value, which columns have any.

One thread is enough: a single core reads numbers as fast as memory delivers them.
"""

from libc.math cimport INFINITY, fabs, isfinite, isnan

from kernelrules.core.simd.cpu cimport simd_level
from kernelrules.core.simd.dispatch cimport largest_magnitude, simd_table
from kernelrules.core.base.types cimport real_t


def magnitude(const real_t[:, :] x):
    """Return the largest |x_ij| and None; or NaN and the place (i, j) of the first number, by rows, that is not finite.

    Rows have no gaps. 0 for no numbers.
    """
    cdef Py_ssize_t n = x.shape[0], p = x.shape[1], stride, i = 0, j = 0
    cdef double most = 0, here = 0
    cdef const real_t *data
    cdef const void *simd
    if n == 0 or p == 0:
        return 0.0, None
    data, stride = &x[0, 0], max(p, x.strides[0] // <Py_ssize_t> sizeof(real_t))
    simd = simd_table(simd_level(), real_t is float)
    with nogil:
        while i < n:
            here = largest_magnitude(simd, data + i * stride, p)
            if isnan(here):
                break
            most = max(most, here)
            i += 1
        while i < n and isfinite(<double> data[i * stride + j]):
            j += 1
    return (most, None) if i == n else (here, (i, j))


cdef enum:
    LANES = 16          # independent sums, which the compiler vectorises
    RUN_NUMBERS = 4096  # numbers that are checked together, and one by one only if some are not finite


cdef bint all_finite(const real_t *values, Py_ssize_t n) noexcept nogil:
    """Return whether all numbers are finite: x - x is 0 for these, and NaN for others."""
    cdef real_t sums[LANES]
    cdef real_t rest = 0
    cdef Py_ssize_t i = 0
    cdef int k
    for k in range(LANES):
        sums[k] = 0
    while i + LANES <= n:
        for k in range(LANES):
            sums[k] += values[i + k] - values[i + k]
        i += LANES
    while i < n:
        rest += values[i] - values[i]
        i += 1
    for k in range(LANES):
        rest += sums[k]
    return rest == 0


cdef bint any_infinite(const real_t *values, Py_ssize_t n) noexcept nogil:
    """Return whether some number is infinite; NaN compares false, and is ignored."""
    cdef real_t most[LANES]
    cdef real_t least[LANES]
    cdef real_t value
    cdef Py_ssize_t i = 0
    cdef int k
    for k in range(LANES):
        most[k] = least[k] = 0
    while i + LANES <= n:
        for k in range(LANES):
            value = values[i + k]
            most[k] = value if value > most[k] else most[k]
            least[k] = value if value < least[k] else least[k]
        i += LANES
    while i < n:
        value = values[i]
        most[0] = value if value > most[0] else most[0]
        least[0] = value if value < least[0] else least[0]
        i += 1
    for k in range(LANES):
        if most[k] == <real_t> INFINITY or least[k] == -<real_t> INFINITY:
            return True
    return False


def survey(const real_t[:, :] x, unsigned char[::1] missing):
    """The place (i, j) of the first infinite number, by rows, or None, and that of the first NaN, or None.

    missing[j] becomes 1 where column j has a NaN, up to the row of an infinite number. Any strides will do; rows
    or columns without gaps are fastest.
    """
    cdef Py_ssize_t n = x.shape[0], p = x.shape[1], itemsize = sizeof(real_t), i = 0, j, last, batch = 1
    cdef Py_ssize_t infinite_row = -1, infinite_column = 0, missing_row = -1, missing_column = 0
    cdef bint packed = x.strides[1] == itemsize or p == 1, merged = packed and x.strides[0] == p * itemsize
    cdef bint infinite_here, all_missing = False    # all_missing: every column is known to have a NaN
    if n == 0 or p == 0:
        return None, None
    if merged:
        batch = max(RUN_NUMBERS // p, <Py_ssize_t> 1)
    with nogil:
        if x.strides[0] == itemsize and not packed:     # columns without gaps: only if all is well they are enough
            j = 0
            while j < p and all_finite(&x[0, j], n):
                j += 1
            i = n if j == p else 0
        while i < n and infinite_row < 0:
            last = min(i + batch, n)
            if packed and (all_finite(&x[i, 0], (last - i) * p)
                           or (all_missing and not any_infinite(&x[i, 0], (last - i) * p))):
                i = last
                continue
            while i < last and infinite_row < 0:
                infinite_here = False
                for j in range(p):
                    infinite_here |= fabs(<double> x[i, j]) == INFINITY
                    missing[j] |= x[i, j] != x[i, j]
                if infinite_here:
                    infinite_row = i
                    while fabs(<double> x[i, infinite_column]) != INFINITY:
                        infinite_column += 1
                if missing_row < 0:
                    for j in range(p):
                        if x[i, j] != x[i, j]:
                            missing_row, missing_column = i, j
                            break
                i += 1
            all_missing = True
            for j in range(p):
                all_missing &= missing[j]
    return ((infinite_row, infinite_column) if infinite_row >= 0 else None,
            (missing_row, missing_column) if missing_row >= 0 else None)
