"""Status codes: one list for C and Python, and the exceptions they stand for."""

import numpy as np
import pytest

from kernelrules import kernels
from kernelrules.core.base.status import Status, raise_for_status
from kernelrules.core.gram.dense import gram_dense


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
        (kernels.RBF.kind, 0, 0.0, 0.0),
        (kernels.RBF.kind, 0, np.nan, 0.0),
        (kernels.Laplacian.kind, 0, np.inf, 0.0),
        (kernels.Polynomial.kind, -1, 1.0, 0.0),
        (kernels.Polynomial.kind, 2, 1.0, np.inf),
        (kernels.Sigmoid.kind, 0, 1.0, np.nan),
    ],
)
def test_core_refuses_bad_kernels(kernel):
    out = np.full((2, 2), 7.0)
    with pytest.raises(ValueError, match="out of range"):
        gram_dense(np.ones((2, 2)), None, kernel, out, 1)
    assert (out == 7).all()


def test_core_refuses_no_threads():
    with pytest.raises(ValueError, match="out of range"):
        gram_dense(np.ones((2, 2)), None, (kernels.Linear.kind, 0, 1.0, 0.0), np.empty((2, 2)), 0)
