# The two levels of the dual solver, for callers inside core.

from kernelrules.core.rows cimport Segment, Store
from kernelrules.core.steps cimport Dual
from kernelrules.core.types cimport real_t


cdef enum:
    SMALL = 1024                # points below which shrinking saves nothing

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
    Segment *segments           # of the local problem
    int *origins                # which of the whole problem's each was cut from
    double *numbers             # seven arrays of the local problem
    Py_ssize_t n_changed        # candidates whose changes the gradients of all have not seen yet
    # a whole matrix: the problem shrunk to the points that matter
    bint shrunk
    Dual local
    Py_ssize_t until_check      # steps until the next look at which points matter
    char *keep                  # those
    char *present               # rows of the block that were gathered
    double *pending             # changes of beta that gradients outside the local problem have not seen

cdef int start_work(Work *work, const Dual *dual, const Store *store, Py_ssize_t itemsize) noexcept nogil
cdef void free_work(Work *work) noexcept nogil
cdef int unshrink(Dual *dual, Store *store, Work *work, const real_t *example) noexcept nogil
cdef void advance(Dual *dual, Store *store, Work *work, double tol, Py_ssize_t n_steps,
                  const real_t *example) noexcept nogil
