"""The team of threads that runs the core's loops; team.h implements it, and explains why it does not use OpenMP."""

cdef extern from "base/team.h" nogil:
    ctypedef void (*kr_task)(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil
    int KR_HAS_THREADS
    int kr_team_begin()
    void kr_team_run(Py_ssize_t first, Py_ssize_t last, Py_ssize_t chunk, int n_threads, kr_task task, void *context)

if kr_team_begin() != 0:
    raise MemoryError("no memory for the team of threads")


cdef void run_team(Py_ssize_t first, Py_ssize_t last, Py_ssize_t chunk, int n_threads, task_t task,
                   void *context) noexcept nogil:
    kr_team_run(first, last, chunk, n_threads, task, context)


def has_threads():
    """Whether the core was built with threads."""
    return bool(KR_HAS_THREADS)
