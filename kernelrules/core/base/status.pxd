# Status codes, read from the public header so that there is one list for C, Cython and Python; a kernel as C callers
# pass it.

cdef extern from "kernelrules/api.h" nogil:
    cpdef enum Status "kr_status":
        OK "KR_OK"
        MAX_ITER "KR_MAX_ITER"
        STALLED "KR_STALLED"
        STOPPED "KR_STOPPED"
        NO_MEMORY "KR_NO_MEMORY"
        BAD_ARGUMENT "KR_BAD_ARGUMENT"
        CALLBACK "KR_CALLBACK"

    ctypedef struct kr_kernel:
        int kind
        int degree
        double gamma
        double coef0

cdef const char *status_text(int status) noexcept nogil
