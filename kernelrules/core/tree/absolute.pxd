# Splits by absolute error. See absolute.pyx.

from libc.stdint cimport uint8_t

from kernelrules.core.tree.criteria cimport Criterion
from kernelrules.core.tree.scan cimport BestSplit, SplitRules, ScanBuffers, NodeView


cdef void scan_absolute(const Criterion *criterion, const SplitRules *rules, const NodeView *view, Py_ssize_t column,
                        ScanBuffers *scratch, BestSplit *found, uint8_t *left_of) noexcept nogil
