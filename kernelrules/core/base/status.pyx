"""Status codes of the compiled core (`Status`), and the one place where a code becomes an exception: compiled routines
return a status without the GIL, and `raise_for_status` is called once after them."""


cdef const char *status_text(int status) noexcept nogil:
    if status == OK:
        return b"done"
    if status == MAX_ITER:
        return b"stopped by the limit on iterations"
    if status == STALLED:
        return b"stopped because rounding left no step to take"
    if status == STOPPED:
        return b"stopped on request"
    if status == NO_MEMORY:
        return b"working memory could not be allocated"
    if status == BAD_ARGUMENT:
        return b"an argument is out of range"
    if status == CALLBACK:
        return b"a supplied function reported failure"
    return b"unknown status"


def raise_for_status(int status):
    """Raise the exception that a negative status stands for; do nothing for the others."""
    if status >= 0:
        return
    text = status_text(status).decode()
    if status == NO_MEMORY:
        raise MemoryError(text)
    if status == BAD_ARGUMENT:
        raise ValueError(text)
    raise RuntimeError(text)
