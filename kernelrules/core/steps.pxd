# Dual problems, and steps on all their variables.

from kernelrules.core.rows cimport Segment
from kernelrules.core.types cimport real_t


cdef enum:
    GROUPS = 2                  # most sums that are kept

cdef enum Outcome:
    MORE                        # the budget of steps was used up
    SOLVED                      # the violation is at most tol
    STALLED                     # rounding: no step changes anything any more
    FAILED                      # kernel values could not be had; `status` says why
    PAUSED                      # so many steps were taken that a Newton step would cost no more

cdef double NO_NUMBER           # a violation below it comes from kernel values that are not numbers

cdef struct Dual:               # one problem and where its solution stands; arrays have one entry a variable
    Py_ssize_t n
    int n_segments
    const Segment *segments
    const double *lower
    const double *upper
    double kink                 # the objective has kink·|a|
    double *a
    double *gradient            # of the smooth part: K·beta + linear
    double *up                  # masks of the two directions
    double *low
    double violation            # of the optimality conditions, when last looked at
    Py_ssize_t n_steps
    Py_ssize_t max_steps        # that are never exceeded
    Py_ssize_t resumed          # steps when it began, or went on after a pause
    double wait                 # a pause comes after wait + cubic·(free variables)³ / points steps; negative: never
    double cubic
    Outcome outcome
    int status

cdef struct Best:               # in one group
    double up
    double low
    Py_ssize_t variable         # of `up`
    Py_ssize_t point

cdef struct View:               # kernel rows of a problem's points
    const void *matrix
    Py_ssize_t stride
    const void *source              # where rows are gathered from when they are used; NULL: all are there
    Py_ssize_t source_stride
    const Py_ssize_t *members
    Py_ssize_t n_members
    char *present

cdef void set_mask(Dual *dual, Py_ssize_t v) noexcept nogil
cdef void set_masks(Dual *dual) noexcept nogil
cdef int scan_all(Dual *dual, const void *simd, const real_t *row_i, const real_t *row_j, double step,
                  Best *best) noexcept nogil
cdef Outcome solve_all(Dual *dual, const void *simd, const View *view, const real_t *diagonal, double tol,
                       Py_ssize_t n_steps) noexcept nogil
