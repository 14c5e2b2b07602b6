# How much work is done between two checks for signals and calls of the callback: enough that checking costs nothing,
# little enough that Ctrl-C and progress seem immediate.


cdef inline Py_ssize_t better_step(Py_ssize_t step, double seconds) noexcept nogil:
    """Return the number of tasks before the next check, if `step` of them took so long: doubled until they take a
    twentieth of a second, halved if they take more than a tenth."""
    if seconds < 0.05:
        return min(2 * step, <Py_ssize_t> 1 << 30)
    return max(step // 2, <Py_ssize_t> 1) if seconds > 0.1 else step
