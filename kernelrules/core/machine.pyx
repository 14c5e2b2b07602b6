"""What this processor and this build can do: the SIMD level that the core runs at, and OpenMP's threads.

The level is the processor's best unless the environment variable KERNELRULES_SIMD (baseline, v3 or v4), read once when
the module is loaded, asks for a lower one.
"""

import os

from kernelrules.core.simd cimport best_level

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #define KR_HAS_OPENMP 1
    #define KR_OPENMP_THREADS omp_get_max_threads()
    #else
    #define KR_HAS_OPENMP 0
    #define KR_OPENMP_THREADS 1
    #endif
    """
    int KR_HAS_OPENMP
    int KR_OPENMP_THREADS

LEVELS = ("baseline", "v3", "v4")


cdef int chosen_level() except -1:
    wanted = os.environ.get("KERNELRULES_SIMD", "v4")
    if wanted not in LEVELS:
        raise ImportError(f"KERNELRULES_SIMD is {wanted!r}; it can be one of {', '.join(LEVELS)}")
    return min(LEVELS.index(wanted), best_level())


cdef int LEVEL = chosen_level()


cdef int simd_level() noexcept nogil:
    return LEVEL


def simd():
    """The name of the SIMD level in use: one of `LEVELS`."""
    return LEVELS[LEVEL]


def simd_best():
    """The number of the highest level that this processor has."""
    return best_level()


def has_openmp():
    """Whether the core was compiled with OpenMP."""
    return bool(KR_HAS_OPENMP)


def openmp_threads():
    """How many threads OpenMP would start by itself: what OMP_NUM_THREADS and threadpoolctl set. 1 without OpenMP."""
    return KR_OPENMP_THREADS
