"""Status codes: one list for C and Python, and the exceptions they stand for."""

import numpy as np
import pytest

from kernelrules.core.gram import gram_dense
from kernelrules.core.status import KernelKind, Status, raise_for_status


def test_codes_become_exceptions():
    for code in Status:
        if code >= 0:
            raise_for_status(code)
    with pytest.raises(MemoryError, match="memory"):
        raise_for_status(Status.NO_MEMORY)
    with pytest.raises(ValueError, match="out of range"):
        raise_for_status(Status.BAD_ARGUMENT)
    with pytest.raises(RuntimeError, match="reported failure"):
        raise_for_status(Status.CALLBACK)
    with pytest.raises(RuntimeError, match="unknown status"):
        raise_for_status(-99)


@pytest.mark.parametrize(
    "kernel",
    [
        (99, 0, 1.0, 0.0),
        (KernelKind.RBF, 0, 0.0, 0.0),
        (KernelKind.RBF, 0, np.nan, 0.0),
        (KernelKind.LAPLACIAN, 0, np.inf, 0.0),
        (KernelKind.POLYNOMIAL, -1, 1.0, 0.0),
        (KernelKind.POLYNOMIAL, 2, 1.0, np.inf),
        (KernelKind.SIGMOID, 0, 1.0, np.nan),
    ],
)
def test_core_refuses_bad_kernels(kernel):
    out = np.full((2, 2), 7.0)
    with pytest.raises(ValueError, match="out of range"):
        gram_dense(np.ones((2, 2)), None, kernel, out, 1)
    assert (out == 7).all()


def test_core_refuses_no_threads():
    with pytest.raises(ValueError, match="out of range"):
        gram_dense(np.ones((2, 2)), None, (KernelKind.LINEAR, 0, 1.0, 0.0), np.empty((2, 2)), 0)
