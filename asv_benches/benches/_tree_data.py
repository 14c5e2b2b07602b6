"""Data for the tree benchmarks: from seeds, from the package, and from the shared folder beside a checkout.

Every function gives X and y. X is float32 in C order, which scikit-learn takes without a copy. scikit-learn also takes
values less than 1e-7 apart for equal: continuous columns have a spread of 1024, where that hardly happens. One label in
ten is wrong, so that a tree to purity has as many leaves as those that the goals were measured on. Where the shared
folder is absent a function raises FileNotFoundError.
"""

import numpy as np

from . import _svm_data
from ._common import normal, require, shared

SPREAD = np.float32(1024)
WRONG = 0.1


def continuous(n, p, seed=0):
    """Two classes, apart in five of the columns: a line, a product and a wave."""
    X = normal((n, p), "float32", seed)
    y = labels(X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3]) + X[:, 4] / 2, seed)
    X *= SPREAD
    return X, y


def tied(n, p, seed=0):
    """Two classes, counts with means from 1/2 to 60: columns of 6 to 70 different values."""
    means = np.geomspace(0.5, 60.0, p)
    X = np.random.default_rng(seed).poisson(means, (n, p)).astype(np.float32)
    low, middle, high = (((X - means) / np.sqrt(means))[:, j] for j in (p // 5, p // 2, p - 1))
    return X, labels(low + middle * high, seed)


def labels(scores, seed):
    """1 where the score is positive, else 0; one in ten is the other."""
    return ((scores > 0) ^ (np.random.default_rng(seed + 1).random(len(scores)) < WRONG)).astype(np.int64)


def response(n, p, seed=0):
    """A wave, a product and noise, for regression."""
    X, y = _svm_data.response(n, p, seed)
    return single(X * SPREAD), y


def gaps(n, p, seed=0):
    """The continuous ones, a tenth of the values missing."""
    X, y = continuous(n, p, seed)
    X[np.random.default_rng(seed + 2).random(X.shape) < 0.1] = np.nan
    return X, y


def spam():
    """4601 e-mails, 57 numbers; the labels are strings."""
    X, y, *_ = require("datasets", "spambase").spambase()
    return single(X), y


def book_spam():
    """The 4601 e-mails in the order of The Elements of Statistical Learning: X, y, and which 1536 are for testing."""
    table = np.loadtxt(shared("spambase_esl.csv.gz"), delimiter=",", skiprows=1)
    return table[:, :57], table[:, 57].astype(np.int64), table[:, 58] == 1


def letter():
    """20000 letters, 16 numbers, 26 classes."""
    X, y = _svm_data.letter()
    return single(X), y


def covtype():
    """10000 patches of forest, 54 numbers, most of them 0 or 1; 7 classes."""
    table = np.loadtxt(shared("covtype10k.csv.gz"), delimiter=",", skiprows=1)
    return single(table[:, :-1]), table[:, -1].astype(np.int64)


def california():
    """20433 blocks of houses, 8 numbers, and the median value of a house; blocks with a missing number are left out."""
    table = np.genfromtxt(shared("california_housing_ocean.csv.gz"), delimiter=",", skip_header=1, usecols=range(9))
    table = table[~np.isnan(table).any(axis=1)]
    return single(table[:, :-1]), table[:, -1]


def single(X):
    """As float32 in C order."""
    return np.ascontiguousarray(X, dtype=np.float32)
