# Applying a node's split. See split.pyx.

from kernelrules.core.tree.node cimport TreeBuilder, PendingNode


cdef int split(TreeBuilder *builder, PendingNode *pending) noexcept nogil
