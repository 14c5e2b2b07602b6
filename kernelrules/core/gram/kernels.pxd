# The table of kernels (kernels.h), for callers inside core.

from kernelrules.core.base.status cimport kr_kernel
from kernelrules.core.base.types cimport real_t


cdef extern from "gram/kernels.h" nogil:
    enum:
        KR_GAMMA
        KR_COEF0
        KR_DEGREE
    enum:
        SQUARED_DISTANCE "KR_KERNEL_SQUARED_DISTANCE"
        LINEAR "KR_KERNEL_LINEAR"
        RBF "KR_KERNEL_RBF"

    ctypedef struct KernelRow "kr_kernel_row":
        const char *name
        int number
        int sum
        int parameters
        bint unit
        const char *semidefinite
        const char *value

    ctypedef struct KernelFunction "kr_kernel_function":
        int kind
        bint expanded
        int degree
        double gamma
        double coef0
        void (*row_d)(const KernelFunction *, double, const double *, double *, Py_ssize_t) noexcept nogil
        void (*row_f)(const KernelFunction *, float, const float *, float *, Py_ssize_t) noexcept nogil


cdef const KernelRow *row_of_kernel(int kind) noexcept nogil    # NULL: there is no such kernel
cdef bint kernel_is_valid(const kr_kernel *kernel) noexcept nogil
cdef KernelFunction function_of_kernel(const kr_kernel *kernel, int level) noexcept nogil
cdef double vanishing_sum(const KernelFunction *function, double candidate, bint single) noexcept nogil


cdef inline void evaluate_row(const KernelFunction *function, real_t norm_i, const real_t *norm_j, real_t *row,
                              Py_ssize_t n) noexcept nogil:
    """row[j] := the kernel's value from the sum row[j]; norm_i and norm_j are read if the sums are expanded."""
    if function.kind == LINEAR:
        return
    if real_t is double:
        function.row_d(function, norm_i, norm_j, row, n)
    else:
        function.row_f(function, norm_i, norm_j, row, n)
