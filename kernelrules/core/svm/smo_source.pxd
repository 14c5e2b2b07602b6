# The dual solver for callers that bring kernel rows of their own.

from kernelrules.core.svm.rows cimport kr_row_source

cdef extern from "kernelrules/api.h" nogil:
    ctypedef struct kr_smo_problem:
        Py_ssize_t n_points
        Py_ssize_t n_variables
        Py_ssize_t split
        const double *diagonal
        const double *linear
        const double *lower
        const double *upper
        double kink

    ctypedef struct kr_smo_state:
        double *a
        double *gradient

    ctypedef struct kr_smo_report:
        double objective
        double violation
        double offset[2]
        Py_ssize_t n_steps
        Py_ssize_t n_rows

    ctypedef struct kr_smo_options:
        double tol
        Py_ssize_t max_steps
        size_t cache_bytes
        int n_threads
        int (*proceed)(void *context, const kr_smo_report *report) noexcept nogil
        void *context

cdef int solve_source(const kr_row_source *source, const kr_smo_problem *problem, const kr_smo_options *options,
                      kr_smo_state *state, kr_smo_report *report) noexcept nogil
