"""The data of two figures: two moons with a few known labels."""

import numpy as np


def two_moons(n=400, noise=0.1, seed=3):
    """Return the points of two interleaved half circles, their classes, and six labelled points."""
    rng = np.random.default_rng(seed)
    angle, y = rng.uniform(0, np.pi, n), np.arange(n) % 2
    X = np.c_[np.cos(angle), np.sin(angle)]
    X[y == 1] = [1.0, 0.5] - X[y == 1]
    labelled = np.concatenate([rng.choice(np.flatnonzero(y == c), 3, replace=False) for c in (0, 1)])
    return X + noise * rng.normal(size=X.shape), y, labelled
