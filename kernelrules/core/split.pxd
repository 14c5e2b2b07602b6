# Making a node's split. See split.pyx.

from kernelrules.core.node cimport Grower, Work


cdef int split(Grower *grower, Work *work) noexcept nogil
