"""The Cholesky factor as it is defined, entry by entry, in float64."""

import numpy as np


def factor(a):
    """The lower factor of a, or the number (from 1) of the first pivot that is not positive."""
    n = len(a)
    lower = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            left = float(a[i, j]) - lower[i, :j] @ lower[j, :j]
            if i == j and not left > 0:
                return i + 1
            lower[i, j] = np.sqrt(left) if i == j else left / lower[j, j]
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
