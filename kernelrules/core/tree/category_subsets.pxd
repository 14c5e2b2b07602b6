# The best subset of a categorical column's levels. See category_subsets.pyx.

from libc.stdint cimport uint8_t

from kernelrules.core.tree.criteria cimport Criterion
from kernelrules.core.tree.candidate cimport ColumnBins
from kernelrules.core.tree.scan cimport BestSplit, SplitRules, ScanBuffers, NodeView


cdef enum:
    MAX_ENUMERATED_LEVELS = 12            # levels up to which every subset is tried

cdef int ascending(const void *a, const void *b) noexcept nogil
cdef void scan_subsets(const Criterion *criterion, const SplitRules *rules, const NodeView *view, Py_ssize_t column,
                       const ColumnBins *bins, ScanBuffers *scratch, BestSplit *found, uint8_t *left_of) noexcept nogil
