"""The Cholesky factor as it is defined, column by column, in float64."""

import numpy as np


def factor(a):
    """The lower factor of a, or the number (from 1) of the first pivot that is not positive."""
    n, a = len(a), a.astype(np.float64)
    lower = np.zeros((n, n))
    for j in range(n):
        left = a[j:, j] - lower[j:, :j] @ lower[j, :j]
        if not left[0] > 0:
            return j + 1
        lower[j:, j] = left / np.sqrt(left[0])
    return lower


def forward(lower, b):
    """The solution of lower · x = b, one unknown after the other."""
    x = np.zeros(len(b))
    for i in range(len(b)):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    return x


def solve(lower, b):
    """The solution of lower · lowerᵀ · x = b."""
    return forward(lower.T[::-1, ::-1], forward(lower, b)[::-1])[::-1]
