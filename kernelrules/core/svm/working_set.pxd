# Working sets and shrinking, for callers inside core.

from kernelrules.core.svm.rows cimport RowStore, Segment
from kernelrules.core.svm.steps cimport Dual


cdef enum:
    MIN_SHRINK_POINTS = 1024    # fewer points fit the caches: shrinking saves nothing

cdef struct WorkingSet:         # memory of the solver, kept between its rounds
    Py_ssize_t size             # most points in the set
    Py_ssize_t n_members        # points in it
    Py_ssize_t *members         # those, ascending
    Py_ssize_t n_old
    Py_ssize_t *old_members     # of the previous round
    Py_ssize_t *old_place       # by member: its place in old_members, or -1
    Py_ssize_t *place           # by point of the store: its place in the set, or -1
    Py_ssize_t *candidates      # points of violating variables
    double *keys                # and by how much each violates
    const void **rows           # addresses of kernel rows
    void *block                 # kernel values between members
    void *old_block
    void *diagonal
    Dual local                  # the problem of the members
    Segment *segments           # of the local problem
    int *origins                # by local segment: the segment of the whole problem it is part of
    double *arrays              # of the local problem: a, gradient, up, low, lower and upper
    Py_ssize_t n_changed        # members whose change the gradient of the whole problem has not received
    Py_ssize_t *changed
    double *changes             # of their beta
    # a whole matrix: the problem is shrunk to its active points
    bint shrunk
    Py_ssize_t until_check      # steps until the active points are determined again
    char *active
    char *present               # rows of the block that have been gathered
    double *pending             # changes of beta that gradients outside the local problem have not received

cdef int start_work(WorkingSet *work, const Dual *dual, const RowStore *store) noexcept nogil
cdef void free_work(WorkingSet *work) noexcept nogil
cdef int unshrink(Dual *dual, RowStore *store, WorkingSet *work) noexcept nogil
cdef void advance(Dual *dual, RowStore *store, WorkingSet *work, double tol, Py_ssize_t n_steps) noexcept nogil
