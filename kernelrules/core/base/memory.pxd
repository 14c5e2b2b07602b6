# Memory for large arrays, used again: see memory.h.

cdef void *take(size_t n_bytes) noexcept nogil          # NULL: there is none
cdef void give_back(void *block) noexcept nogil         # what take() gave, of any size, or NULL; free() keeps nothing
