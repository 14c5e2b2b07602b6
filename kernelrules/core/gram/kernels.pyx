"""The table of kernels (kernels.h) for the core and for Python: which kernels there are, what is summed for each, which
parameters are allowed, and the vectorised function of the sum (kernel_values.h).

The table lies here rather than in `simd` because it is about kernels; the vectors that its expressions are compiled to
come from there. This module alone compiles them.
"""

from libc.math cimport INFINITY, isfinite

cdef extern from "gram/kernel_values.h" nogil:
    enum:
        KR_N_KERNELS
    const KernelRow kr_kernel_table[KR_N_KERNELS]
    void kr_choose_level(KernelFunction *function, int level)


cdef const KernelRow *row_of_kernel(int kind) noexcept nogil:
    cdef int i
    for i in range(KR_N_KERNELS):
        if kr_kernel_table[i].number == kind:
            return &kr_kernel_table[i]
    return NULL


cdef bint kernel_is_valid(const kr_kernel *kernel) noexcept nogil:
    """Whether the kernel is in the table and each of its parameters in range."""
    cdef const KernelRow *row = row_of_kernel(kernel.kind)
    if row == NULL:
        return False
    if row.parameters & KR_GAMMA and not (isfinite(kernel.gamma) and kernel.gamma > 0):
        return False
    if row.parameters & KR_COEF0 and not isfinite(kernel.coef0):
        return False
    return not row.parameters & KR_DEGREE or kernel.degree >= 0


cdef KernelFunction function_of_kernel(const kr_kernel *kernel, int level) noexcept nogil:
    """The function of the sum for a valid kernel; parameters that it does not have are neutral."""
    cdef int parameters = row_of_kernel(kernel.kind).parameters
    cdef KernelFunction function
    function.kind, function.expanded = kernel.kind, False
    function.degree = kernel.degree if parameters & KR_DEGREE else 0
    function.gamma = kernel.gamma if parameters & KR_GAMMA else 1.0
    function.coef0 = kernel.coef0 if parameters & KR_COEF0 else 0.0
    kr_choose_level(&function, level)
    return function


cdef double vanishing_sum(const KernelFunction *function, double candidate, bint single) noexcept nogil:
    """gamma·s beyond which values of a kernel of differences are 0: the candidate, or infinity if the value there, in
    float32 (single) or float64, is not 0."""
    cdef KernelFunction at_one = function[0]
    cdef double value = candidate
    cdef float value_f = <float> candidate
    at_one.gamma, at_one.expanded = 1.0, False
    if single:
        evaluate_row(&at_one, <float> 0, NULL, &value_f, 1)
        value = value_f
    else:
        evaluate_row(&at_one, <double> 0, NULL, &value, 1)
    return candidate if value == 0 else INFINITY


def table():
    """The rows of the table that are kernels: (name, number, sum, parameters, unit, semidefinite, value) of each, with
    the sum and the parameters as words and the two expressions as text."""
    sums = ("products", "squares", "magnitudes")
    rows = []
    for i in range(KR_N_KERNELS):
        row = kr_kernel_table[i]
        if row.number < 0:
            continue
        parameters = [name for name, flag in (("gamma", KR_GAMMA), ("coef0", KR_COEF0), ("degree", KR_DEGREE))
                      if row.parameters & flag]
        rows.append((row.name.decode(), row.number, sums[row.sum], tuple(parameters), bool(row.unit),
                     row.semidefinite.decode(), row.value.decode()))
    return rows
