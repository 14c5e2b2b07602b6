"""The SIMD level that the core runs at.

The level is the processor's best unless the environment variable KERNELRULES_SIMD (baseline, v3 or v4), read once when
the module is loaded, requests a lower one.
"""

import os

from kernelrules.core.simd.dispatch cimport best_level

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
    """Return the name of the SIMD level in use: one of `LEVELS`."""
    return LEVELS[LEVEL]


def simd_best():
    """Return the number of the highest level of this processor."""
    return best_level()
