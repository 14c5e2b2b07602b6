"""Data for the tree benchmarks: from seeds, from the package, and from the shared folder beside a checkout.

Every function returns X and y. X is float32 in C order, which scikit-learn takes without a copy. scikit-learn treats
values less than 1e-7 apart as equal, so continuous columns have a spread of 1024, where that hardly happens. One
label in ten is wrong, so that a tree to purity has as many leaves as the trees for which the goals were set. If the
shared folder is absent, a function raises FileNotFoundError.
"""

import numpy as np

from . import _svm_data
from ._common import normal, require, shared

SPREAD = np.float32(1024)
WRONG = 0.1


def continuous(n, p, seed=0):
    """Return two classes that differ in five columns: a line, a product and a wave."""
    X = normal((n, p), "float32", seed)
    y = labels(X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3]) + X[:, 4] / 2, seed)
    X *= SPREAD
    return X, y


def tied(n, p, seed=0):
    """Return two classes of counts with means from 1/2 to 60, in columns of 6 to 70 distinct values."""
    means = np.geomspace(0.5, 60.0, p)
    X = np.random.default_rng(seed).poisson(means, (n, p)).astype(np.float32)
    low, middle, high = (((X - means) / np.sqrt(means))[:, j] for j in (p // 5, p // 2, p - 1))
    return X, labels(low + middle * high, seed)


def labels(scores, seed):
    """Return 1 for positive scores and 0 for others, with one label in ten wrong."""
    return ((scores > 0) ^ (np.random.default_rng(seed + 1).random(len(scores)) < WRONG)).astype(np.int64)


def response(n, p, seed=0):
    """Return regression data: a wave, a product and noise."""
    X, y = _svm_data.response(n, p, seed)
    return single(X * SPREAD), y


def gaps(n, p, seed=0):
    """Return the continuous data with a tenth of the values missing."""
    X, y = continuous(n, p, seed)
    X[np.random.default_rng(seed + 2).random(X.shape) < 0.1] = np.nan
    return X, y


def spam():
    """Return 4601 e-mails with 57 columns and string labels."""
    X, y, *_ = require("datasets", "spambase").spambase()
    return single(X), y


def book_spam():
    """Return X, y and a mask of the 1536 test rows, in the order of The Elements of Statistical Learning."""
    table = np.loadtxt(shared("spambase_esl.csv.gz"), delimiter=",", skiprows=1)
    return table[:, :57], table[:, 57].astype(np.int64), table[:, 58] == 1


def letter():
    """Return 20000 letters of 26 classes with 16 columns."""
    X, y = _svm_data.letter()
    return single(X), y


def covtype():
    """Return 10000 patches of forest of 7 classes with 54 columns, most of them 0 or 1."""
    table = np.loadtxt(shared("covtype10k.csv.gz"), delimiter=",", skiprows=1)
    return single(table[:, :-1]), table[:, -1].astype(np.int64)


def california():
    """Return 20433 blocks of houses with 8 columns and the median value; blocks with missing values are left out."""
    table = np.genfromtxt(shared("california_housing_ocean.csv.gz"), delimiter=",", skip_header=1, usecols=range(9))
    table = table[~np.isnan(table).any(axis=1)]
    return single(table[:, :-1]), table[:, -1]


def single(X):
    """Return X as float32 in C order."""
    return np.ascontiguousarray(X, dtype=np.float32)
