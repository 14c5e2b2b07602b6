"""The same fit with threads and with processes: the results have the same bits, and data are sent once.

Run it as a script: spawned processes import the file that started them, hence the last two lines.
"""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np

from kernelrules import datasets, svm

X, y, _, _ = datasets.spambase()
X = ((X - X.mean(axis=0)) / X.std(axis=0))[::10]
y = y[::10]


def tuned(executor=None):
    """Tune C and gamma by five folds, with one task per gamma and fold."""
    return svm.tune(X, y, Cs=[0.1, 1.0, 10.0], gammas=[0.003, 0.01, 0.03], rng=0, executor=executor)


def main():
    """Compare the results of the executors."""
    alone = tuned()
    print(alone.best, f"error {alone.mean.min():.3f}")
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        for executor in (threads, processes):
            again = tuned(executor)
            assert np.array_equal(again.fold_errors, alone.fold_errors)
            assert np.array_equal(again.model.dual_coef, alone.model.dual_coef)


if __name__ == "__main__":
    main()
