# The loops over nodes. See builder.pyx.

from libc.stdint cimport uint32_t

from kernelrules.core.tree.criteria cimport Criterion
from kernelrules.core.tree.node cimport TreeBuilder, GrowthLimits
from kernelrules.core.tree.presort cimport SampleArena, PresortedTable
from kernelrules.core.tree.scan cimport SplitRules, ScanBuffers

cdef enum:
    MAX_CACHED_ROWS = 2048          # whose arena fits the first-level cache


cdef int build_depth_first(TreeBuilder *builder, Py_ssize_t budget) noexcept nogil
cdef int split_best_leaf(TreeBuilder *builder, Py_ssize_t *n_leaves) noexcept nogil
cdef int build_subtrees(TreeBuilder *top, TreeBuilder **subtrees, Py_ssize_t first, Py_ssize_t end,
                        ScanBuffers **scratch, uint32_t **numbers, int n_threads, Py_ssize_t budget) noexcept nogil
cdef int push_root(TreeBuilder *builder) noexcept nogil
cdef TreeBuilder *new_builder(const PresortedTable *table, const Criterion *criterion, const SplitRules *rules,
                              const GrowthLimits *limits, SampleArena *arena, bint own, ScanBuffers **scratch,
                              int n_threads) noexcept nogil
cdef void free_builder(TreeBuilder *builder) noexcept nogil
