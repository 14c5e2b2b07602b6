# Dual problems, and SMO steps on all their variables.

from kernelrules.core.svm.rows cimport RowStore, Segment
from kernelrules.core.base.types cimport real_t


cdef enum:
    MAX_GROUPS = 2              # equality constraints of a problem

cdef enum SolverOutcome:
    UNFINISHED                  # the limit of steps was reached
    SOLVED                      # the violation is at most tol
    NO_PROGRESS                 # rounding: no step changes anything
    FAILED                      # kernel values could not be computed; `status` has the reason
    PAUSED                      # the machine has taken as many steps as a Newton step costs

cdef double NAN_VIOLATION       # a violation below it comes from kernel values that are not numbers

cdef struct Dual:               # one problem and its current solution; arrays have one entry per variable
    Py_ssize_t n
    int n_segments
    const Segment *segments
    const double *lower
    const double *upper
    double kink                 # the objective has kink·|a|
    double *a
    double *gradient            # of the smooth part: K·beta + linear
    double *up                  # slope of the kink for a variable that grows; KR_NEVER at its upper bound
    double *low                 # and for one that shrinks
    double violation            # of the optimality conditions, when last computed
    Py_ssize_t n_steps
    Py_ssize_t max_steps        # never exceeded
    Py_ssize_t steps_at_resume  # n_steps when the work began, or was resumed after a pause
    double pause_steps          # a pause follows pause_steps + pause_cubic·(free variables)³ / n steps; negative: never
    double pause_cubic
    SolverOutcome outcome
    int status

cdef struct MaxViolation:       # of one group
    double up                   # max of up - gradient
    double low                  # max of low + gradient
    Py_ssize_t variable         # at which `up` is attained
    Py_ssize_t point

cdef struct RowView:            # kernel rows of a problem's points
    const void *matrix
    Py_ssize_t stride
    const void *source          # matrix from which rows are gathered when first used; NULL: all rows are in `matrix`
    Py_ssize_t source_stride
    const Py_ssize_t *members
    Py_ssize_t n_members
    char *present               # which rows have been gathered

cdef bint is_free(const Dual *dual, Py_ssize_t v) noexcept nogil
cdef void set_mask(Dual *dual, Py_ssize_t v) noexcept nogil
cdef void set_masks(Dual *dual) noexcept nogil
cdef int scan_all(Dual *dual, const void *simd, const real_t *row_i, const real_t *row_j, double step,
                  MaxViolation *best) noexcept nogil
cdef int find_violation(Dual *dual, const RowStore *store, MaxViolation *best) noexcept nogil
cdef SolverOutcome take_steps(Dual *dual, const RowStore *store, const RowView *view, const void *diagonal, double tol,
                              Py_ssize_t n_steps) noexcept nogil
