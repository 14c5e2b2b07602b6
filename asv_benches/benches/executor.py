"""Many fits with an executor: the cost of tasks and of data transfer, and the speedup by workers.

    python -m asv_benches.benches.executor > docs/guide/outgrowing_table.inc

prints, for each function with many fits, the time without an executor on one thread, and the ratio to it with two
workers of one thread each: interleaved, the best of several. A ratio of 0.5 is the ideal for two workers.
"""

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np

from ._common import Repeats, normal, require

# Name of the fit, number of rows, and description of the tasks.
FITS = {
    "pairs": ("svm.svc, ten classes, 4000 × 20", "45 machines"),
    "ovr": ("svm.svc, one against the rest, 3000 × 20", "10 machines"),
    "grid": ("svm.tune, 3 C × 3 gammas × 5 folds, 1500 × 20", "15 gammas and folds"),
    "folds": ("prune.cross_validate, 10 folds, 12 000 × 20", "10 folds"),
    "erm": ("erm.fit, eight classes, 2000 × 20", "7 machines"),
    "blocks": ("ridge.fit_blocks, Nyström of 300, 20 blocks of 4000 × 20", "20 blocks"),
}


def classes(n, n_classes, p=20):
    """Return normal clouds, each shifted along its own axis."""
    y = np.arange(n) % n_classes
    return normal((n, p)) + 1.5 * np.eye(p)[y], y


def fit_of(name):
    """Return a fit as a function of an executor."""
    kernels = require("kernels", "RBF")
    if name == "pairs":
        X, y = classes(4000, 10)
        return partial(require("svm", "svc").svc, X, y, C=10.0, kernel=kernels.RBF(0.05))
    if name == "ovr":
        X, y = classes(3000, 10)
        return partial(require("svm", "svc").svc, X, y, C=10.0, kernel=kernels.RBF(0.05), multiclass="ovr")
    if name == "grid":
        X, y = classes(1500, 2)
        grid = {"Cs": [0.1, 1.0, 10.0], "gammas": [0.01, 0.03, 0.1], "rng": 0}
        return partial(require("svm", "tune").tune, X, y, **grid)
    if name == "folds":
        X, y = classes(12_000, 4)
        return partial(require("prune", "cross_validate").cross_validate, X, y, rng=0)
    if name == "erm":
        X, y = classes(2000, 8)
        return partial(require("erm", "fit").fit, X, y, 1e-4, kernels.RBF(0.05), "squared_hinge")
    X, y = classes(80_000, 4)
    phi = kernels.nystroem(X[:2000], kernels.RBF(0.05), 300, rng=0)
    blocks = [(X[i : i + 4000], y[i : i + 4000] * 1.0) for i in range(0, 80_000, 4000)]
    return partial(require("ridge", "fit_blocks").fit_blocks, blocks, 1e-4, phi)


class Threads(Repeats):
    """Fits with two threads of this process."""

    params = (["ovr", "grid", "folds"],)
    param_names = ("fit",)

    def setup(self, fit):
        require("shared_data", "Scattered")
        self.pool, self.fit = ThreadPoolExecutor(2), fit_of(fit)

    def teardown(self, fit):
        self.pool.shutdown()

    def time_fit(self, fit):
        self.fit(executor=self.pool)


class Overhead(Repeats):
    """An empty task, and the transfer of 80 MB, with a process."""

    def setup(self):
        self.parallel, self.sharing = require("parallel", "run"), require("shared_data", "Scattered")
        self.pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        self.data = np.ones((1_000_000, 10))
        self.parallel.run(len, [((),)], self.pool)

    def teardown(self):
        self.pool.shutdown()

    def time_hundred_tasks(self):
        self.parallel.run(len, [((),)] * 100, self.pool)

    def time_scatter_80_mb_for_ten_tasks(self):
        with self.shared_data.Scattered(self.pool) as scatter:
            self.parallel.run(len, [(scatter(self.data),)] * 10, self.pool)


# ---- the table ------------------------------------------------------------------------------------------------------


def executors():
    """Return names and functions that return an executor of two workers and a function to end it."""

    def pool(kind):
        made = kind()
        return made, made.shutdown

    def loky():
        return __import__("loky").ProcessPoolExecutor(2)

    def dask():
        distributed = __import__("distributed")
        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
        client = distributed.Client(cluster)

        def close():
            client.close()
            cluster.close()

        return client.get_executor(), close

    spawned = partial(ProcessPoolExecutor, 2, mp_context=multiprocessing.get_context("spawn"))
    return {
        "threads": lambda: pool(partial(ThreadPoolExecutor, 2)),
        "processes": lambda: pool(spawned),
        "loky": lambda: pool(loky),
        "dask": dask,
    }


def seconds(fit, executor):
    """Return the seconds of a fit with one thread per task."""
    started = time.perf_counter()
    fit(executor=executor, n_threads=1)
    return time.perf_counter() - started


def measured(names, rounds):
    """Yield for every fit the best times without an executor and with each executor."""
    opened, closers = {}, []
    for name, start in executors().items():
        try:
            opened[name], close = start()
        except ImportError:
            continue
        closers.append(close)
    found = {}
    try:
        for name in names:
            fit = fit_of(name)
            best = dict.fromkeys([None, *opened], np.inf)
            for executor in opened.values():
                seconds(fit, executor)  # starts workers and imports
            for _ in range(rounds):
                for kind in best:
                    best[kind] = min(best[kind], seconds(fit, opened.get(kind)))
            found[name] = best
            print(FITS[name][0], {k: round(v, 3) for k, v in best.items()}, file=sys.stderr)
    finally:
        for close in closers:
            close()
    return found


def table(found):
    """Return seconds without an executor and ratios, as a reST table."""
    kinds = [kind for kind in next(iter(found.values())) if kind is not None]
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (
        ["fit", "tasks", "alone", *kinds],
        *(
            [*FITS[name], f"{best[None]:.2f} s", *(f"{best[kind] / best[None]:.2f}" for kind in kinds)]
            for name, best in found.items()
        ),
    ):
        lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", default=list(FITS), choices=list(FITS))
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    load = f"Load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."  # of other processes
    print(f"{table(measured(given.only, given.rounds))}\n\n{load}")


if __name__ == "__main__":
    main()
