# The numeric types of the compiled core.

ctypedef fused real_t:      # data and results: one body serves both widths
    float
    double

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

# Counts and positions are Py_ssize_t everywhere, so that nothing overflows past 2**31 elements. The column indices of
# CSR data are int: check/matrices.py narrows 64-bit ones, and renumbers the columns if there are too many.
