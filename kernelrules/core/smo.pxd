# The dual solver, for callers inside core and for cython_api.

from kernelrules.core.rows cimport Segment, Store
from kernelrules.core.types cimport real_t


cdef enum:
    GROUPS = 2                  # most sums that are kept

cdef enum Outcome:
    MORE                        # the budget of steps was used up
    SOLVED                      # the violation is at most tol
    STALLED                     # rounding: no step changes anything any more
    FAILED                      # kernel values could not be had; `status` says why

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
    Outcome outcome
    int status

cdef struct Best:               # in one group
    double up
    double low
    Py_ssize_t variable         # of `up`
    Py_ssize_t point

cdef struct Work:               # memory of the solver, kept between its rounds
    Py_ssize_t size             # most points in a working set
    Py_ssize_t n_members        # points in it now
    Py_ssize_t *members         # those, ascending
    Py_ssize_t n_old
    Py_ssize_t *old_members     # of the round before
    Py_ssize_t *before          # of each member its place among those, or -1
    Py_ssize_t *place           # of every point of the store its place in the set, or -1
    Py_ssize_t *candidates
    double *keys
    const void **rows
    void *block                 # kernel values between members
    void *old_block
    void *diagonal
    void *gains
    Segment *segments           # of the local problem
    int *origins                # which of the whole problem's each was cut from
    double *numbers             # seven arrays of the local problem
    # a whole matrix: the problem shrunk to the points that matter
    bint shrunk
    Dual local
    Py_ssize_t until_check      # steps until the next look at which points matter
    char *keep                  # those
    char *present               # rows of the block that were gathered
    double *pending             # changes of beta that gradients outside the local problem have not seen

cdef int start_work(Work *work, const Dual *dual, const Store *store, Py_ssize_t itemsize) noexcept nogil
cdef void free_work(Work *work) noexcept nogil
cdef void set_masks(Dual *dual) noexcept nogil
cdef int scan_all(Dual *dual, const void *simd, const real_t *row_i, const real_t *row_j, double step,
                  Best *best) noexcept nogil
cdef void advance(Dual *dual, Store *store, Work *work, double tol, Py_ssize_t n_steps,
                  const real_t *example) noexcept nogil
