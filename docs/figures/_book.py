"""The split of Spambase in two figures: that of The Elements of Statistical Learning, if it is available.

The split cannot be distributed with the package. It is read from the folder `shared` beside the checkout, or from
$KERNELRULES_SHARED. If it is absent, the same number of rows is drawn at random.
"""

import os
from pathlib import Path

import numpy as np

from kernelrules import datasets

N_TEST = 1536


def find_split():
    """Return a mask of the book's test rows, in the order of `datasets.spambase`; None if it is unavailable."""
    for folder in (os.environ.get("KERNELRULES_SHARED"), Path(__file__).resolve().parents[3] / "shared"):
        path = Path(folder or "", "data", "spambase_esl.csv.gz")
        if folder and path.exists():
            return np.loadtxt(path, delimiter=",", skiprows=1, usecols=58) == 1
    return None


def spam():
    """Return X, y, the column names, a mask of the test rows, and a label for these rows."""
    X, y, names, _ = datasets.spambase()
    test, called = find_split(), "the book's test rows"
    if test is None:
        test, called = np.random.default_rng(0).permutation(len(y)) < N_TEST, "test rows drawn at random"
    return X, y, names, test, called
