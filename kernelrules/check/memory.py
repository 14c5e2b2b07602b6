"""Checks that an array fits in free memory before it is allocated: the system may otherwise kill the process."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

__all__ = ["fits_memory", "free_memory"]

_ALWAYS_FITS = 1 << 26  # bytes; below this nobody needs to ask the system how much is free


def fits_memory(shape: tuple[int, ...], dtype: Any, what: str) -> None:
    """Raise MemoryError, with the size, for an array larger than the memory that is free."""
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if n_bytes <= _ALWAYS_FITS:
        return
    free = free_memory()
    if n_bytes > free:
        size = " × ".join(str(n) for n in shape)
        raise MemoryError(
            f"{what} ({size} {np.dtype(dtype)}) would take {_gigabytes(n_bytes)}; {_gigabytes(free)} are free"
        )


def free_memory() -> int:
    """Bytes that this process can still get: what the system has available, within its control group's limit."""
    free = _available_on_machine()
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            with open(limit) as at_most, open(used) as now:
                free = min(free, int(at_most.read()) - int(now.read()))
        except (OSError, ValueError):
            continue  # no such group, or "max": no limit
    return max(free, 0)


def _available_on_machine() -> int:
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 62  # unknown: let the allocation itself decide


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.2f} GB"
