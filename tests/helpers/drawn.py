"""Small data that tests of plots share."""

import numpy as np

_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(50, 2))
TWO = np.where(X[:, 0] + 0.6 * X[:, 1] + 0.4 * _RNG.normal(size=50) > 0, "up", "down")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
NUMBERS = X[:, 0] ** 2 + X[:, 1]
