"""Tune C and gamma on a dask cluster: 110 tasks of 13 fits each.

The cluster runs in this process, and the data are few. With the address of a scheduler, such as "scheduler:8786", the
same function uses its machines.
"""

import numpy as np
from dask.distributed import Client, LocalCluster

from kernelrules import datasets, svm


def tuned(X, y, address):
    """Tune C and gamma by ten folds, with one task per gamma and fold."""
    with Client(address) as client:
        return svm.tune(X, y, Cs=np.logspace(-2, 4, 13), gammas=np.logspace(-4, 1, 11), folds=10, rng=0,
                        executor=client.get_executor(), progress=True)  # fmt: skip


def main():
    """Tune on every fiftieth e-mail of Spambase."""
    X, y, _, _ = datasets.spambase()
    X, y = ((X - X.mean(axis=0)) / X.std(axis=0))[::50], y[::50]
    with LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster:
        found = tuned(X, y, cluster.scheduler_address)
    print(found)
    assert found.mean.shape == (11, 13)
    assert found.mean.min() < 0.2


if __name__ == "__main__":
    main()
