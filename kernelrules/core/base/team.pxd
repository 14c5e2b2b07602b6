# Loops on several threads, as team.h describes.

# Called for ranges first <= k < last of a loop's indices. Threads that run at the same time have different `worker`s.
ctypedef void (*task_t)(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil

# chunk: how many indices a thread takes at a time; 0 takes fewer and fewer, for tasks that are small and alike.
cdef void run_team(Py_ssize_t first, Py_ssize_t last, Py_ssize_t chunk, int n_threads, task_t task,
                   void *context) noexcept nogil

cdef extern from *:
    """
    #define kr_gather_status(total, status) ((void)__atomic_fetch_or(total, status, __ATOMIC_RELAXED))
    #define kr_status_so_far(total) __atomic_load_n(total, __ATOMIC_RELAXED)
    """
    void gather_status "kr_gather_status"(int *total, int status) noexcept nogil     # OK is 0: any other one stays
    int status_so_far "kr_status_so_far"(const int *total) noexcept nogil
