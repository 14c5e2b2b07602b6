"""Large arrays in memory that is used again, as memory.h describes: `empty` in place of NumPy's."""

from kernelrules.core.base.types cimport PY_SSIZE_T_MAX

import numpy as np

cdef extern from "Python.h":
    int PyBuffer_FillInfo(Py_buffer *view, object owner, void *data, Py_ssize_t n_bytes, int readonly,
                          int flags) except -1

cdef extern from "base/memory.h" nogil:
    void kr_begin()
    void *kr_take(size_t n_bytes)
    void kr_give_back(void *block)

cdef enum:
    MIN_KEPT_BYTES = 4194304        # smaller arrays are NumPy's

kr_begin()


cdef void *take(size_t n_bytes) noexcept nogil:
    return kr_take(n_bytes)


cdef void give_back(void *block) noexcept nogil:
    kr_give_back(block)


cdef class MemoryBlock:
    """A block of memory for arrays; it is given back when the last of them is gone."""

    cdef void *data
    cdef Py_ssize_t n_bytes

    def __cinit__(self, Py_ssize_t n_bytes):
        self.n_bytes = n_bytes
        self.data = take(n_bytes)
        if self.data == NULL:
            raise MemoryError(f"no memory for an array of {n_bytes} bytes")

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.n_bytes, 0, flags)

    def __dealloc__(self):
        give_back(self.data)


def empty(shape, dtype):
    """Return an uninitialised array of this shape, a tuple."""
    dtype = np.dtype(dtype)
    n_bytes = dtype.itemsize
    for n in shape:
        n_bytes *= n
    if n_bytes < MIN_KEPT_BYTES:
        return np.empty(shape, dtype=dtype)
    if n_bytes > PY_SSIZE_T_MAX:
        raise MemoryError(f"no memory for an array of {n_bytes} bytes")
    return np.frombuffer(MemoryBlock(n_bytes), dtype=dtype).reshape(shape)
