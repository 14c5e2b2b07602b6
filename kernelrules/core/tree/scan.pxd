# The best split of one column of one node. See scan.pyx.

from libc.math cimport INFINITY, rint
from libc.stdint cimport int8_t, uint8_t, uint32_t, uint64_t

from kernelrules.core.tree.criteria cimport Criterion
from kernelrules.core.tree.presort cimport SampleArena, PresortedTable
from kernelrules.core.base.team cimport status_so_far


cdef extern from "tree/scan_loops.h" nogil:
    ctypedef struct kr_cut:
        double score
        Py_ssize_t at
        double sum

    ctypedef struct kr_range:
        Py_ssize_t first
        Py_ssize_t last
        double weight0
        double sum0
        double weight
        double sum
        double squares
        const double *inverse

    const double NO_CUT "KR_NO_CUT"
    kr_cut kr_cut_two(int level, const uint32_t *entries, int shift, const kr_range *range)
    kr_cut kr_cut_mean(int level, const uint32_t *entries, uint32_t id_mask, const double *y, double shift,
                       const kr_range *range)
    kr_cut kr_cut_entropy(const uint32_t *entries, int shift, const double *logs, double base, const kr_range *range)
    kr_cut kr_cut_classes(const uint32_t *entries, int shift, const double *all, double *left, Py_ssize_t n_sums,
                          const kr_range *range)


cdef struct SplitRules:                  # of a split, for all nodes
    Py_ssize_t min_leaf
    double min_weight               # of each side; 0 where all weights are 1, which min_leaf says as well
    bint missing_apart              # missing rows do not count in scores; otherwise their side is chosen
    bint one_category                  # of categories, one against the rest
    const int8_t *monotone          # of a column; NULL: no constraint
    int level                       # of instructions
    int *stop                       # atomic: set if a signal asks to stop; NULL: signals are not checked
    void (*check_signals)(int *) noexcept nogil      # at signals, and sets it


cdef struct NodeView:                   # a node
    const PresortedTable *table
    const SampleArena *arena
    Py_ssize_t start
    Py_ssize_t m
    const double *sums
    const double *shift             # taken off targets before they are added up
    const uint32_t *known           # entries that are not missing, by ordered column; NULL: all
    const void *histogram           # of all coded columns; NULL: none
    double unit                     # scores are whole multiples of it, so that equal splits are; 0: sums are exact
    double low                      # of monotone constraints: bounds of values
    double high
    const uint32_t *rank            # absolute error: of the node's rows by target, ...
    const double *sorted_y          # ... and targets and weights by rank
    const double *sorted_w


cdef struct LevelKey:                  # of a categorical column
    double key                      # what it is ordered by
    Py_ssize_t bin


cdef struct BestSplit:
    double score                    # in units of the view; NO_CUT: there is no split
    double raw                      # the score as it was computed
    double second                   # decides between equal scores
    double left_weight
    double weight                   # of all rows that count
    Py_ssize_t at                   # entries of an ordered column, or bins of a numerical coded one, that go left
    bint missing_left


cdef struct ScanBuffers:                # of one thread
    uint32_t *entries               # as many as rows, and some more
    double *cells                   # sums by bin
    uint64_t *touched               # bits of the bins that have rows
    Py_ssize_t *bins                # those bins
    double *keys                    # by bin
    double *sums                    # several times n_sums
    uint8_t *left_of
    double *losses                  # absolute error: losses and medians left and right of a cut
    uint32_t *links                 # ... and two lists of targets
    double *inverse                 # by cut
    double *classes                 # squares of classes, for principal components
    double *counts                  # of classes, zero between two scans


cdef ScanBuffers *new_scratch(const PresortedTable *table, const Criterion *criterion, bint weighted,
                              Py_ssize_t n) noexcept nogil
cdef void free_scratch(ScanBuffers *scratch) noexcept nogil
cdef Py_ssize_t cell_size(const Criterion *criterion, bint weighted) noexcept nogil
cdef bint is_packed(const Criterion *criterion, bint weighted) noexcept nogil
cdef void fill_histogram(const Criterion *criterion, const NodeView *view, Py_ssize_t first, Py_ssize_t end,
                         void *histogram) noexcept nogil
cdef void scan_column(const Criterion *criterion, const SplitRules *rules, const NodeView *view, Py_ssize_t column,
                      ScanBuffers *scratch, BestSplit *found, uint8_t *left_of) noexcept nogil
cdef Py_ssize_t scan_columns(const Criterion *criterion, const SplitRules *rules, const NodeView *view,
                             const Py_ssize_t *columns, Py_ssize_t first, Py_ssize_t end, bint may_stop,
                             ScanBuffers *scratch, BestSplit *found) noexcept nogil
cdef void add_entries(const Criterion *criterion, const NodeView *view, const uint32_t *entries, Py_ssize_t n,
                      double *sums) noexcept nogil


cdef inline bint is_constrained(const SplitRules *rules, Py_ssize_t column) noexcept nogil:
    """Whether predictions must rise or fall with a column."""
    return rules.monotone != NULL and rules.monotone[column] != 0


cdef enum:
    SUMS_BETWEEN_SIGNAL_CHECKS = 1 << 22      # within a column: some 20 ms, as rows are read at random


cdef inline bint is_stopped(const SplitRules *rules, Py_ssize_t *worked) noexcept nogil:
    """Whether a signal asks to stop; checked after so much work, which is then counted anew."""
    if worked[0] <= SUMS_BETWEEN_SIGNAL_CHECKS or rules.stop == NULL:
        return False
    worked[0] = 0
    rules.check_signals(rules.stop)
    return status_so_far(rules.stop)


cdef inline double rounded_score(double score, double unit) noexcept nogil:
    """A score without its last digits, which are rounding errors of inexact sums."""
    return rint(score / unit) * unit if unit > 0 else score


cdef inline double halfway(double low, double high) noexcept nogil:
    """Between two neighbours, never the larger of them."""
    cdef double middle = (low + high) / 2
    if not (-INFINITY < middle < INFINITY):
        middle = low / 2 + high / 2
    return middle if low <= middle < high else low
