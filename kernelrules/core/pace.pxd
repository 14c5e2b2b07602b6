# How much is done between two looks at signals and at the callback: long enough that looking costs nothing, short
# enough that Ctrl-C and progress seem immediate.


cdef inline Py_ssize_t better_step(Py_ssize_t step, double seconds) noexcept nogil:
    """How many tasks to do before the next look, if `step` of them took so long: doubled until they take a twentieth of
    a second, halved where they take more than a tenth."""
    if seconds < 0.05:
        return min(2 * step, <Py_ssize_t> 1 << 30)
    return max(step // 2, <Py_ssize_t> 1) if seconds > 0.1 else step
