# Arrays that grow: at least doubled each time, so that an entry is moved once or twice on average.

from libc.stdlib cimport realloc


cdef inline void *more_room(void *list, Py_ssize_t *room, Py_ssize_t wanted, Py_ssize_t size) noexcept nogil:
    """Return the list with a capacity of at least `wanted` entries; NULL, with the list unchanged, without memory."""
    cdef Py_ssize_t n = max(wanted, 2 * room[0], 16)
    cdef void *longer = realloc(list, n * size)
    if longer != NULL:
        room[0] = n
    return longer
