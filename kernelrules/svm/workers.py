"""Machines on shared kernel values, solved by an executor.

The solver's runs are the tasks: a machine goes to a worker with its variables and gradient, and comes back changed.
Kernel values are scattered once. Everything that machines do together (exact gradients, more digits for all) stays
here, so every machine takes the very steps that it takes without an executor.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kernelrules import parallel, sharing
from kernelrules.core import smo
from kernelrules.svm.settings import Settings
from kernelrules.svm.values import KernelValues, rows_of

__all__ = ["Workers", "lent"]


class Workers:
    """Who solves the machines of some kernel values."""

    def __init__(self, values: KernelValues, settings: Settings, scatter: sharing.Scattered) -> None:
        self.values, self.settings, self.scatter = values, settings, scatter
        self.rows = self.handle = None

    def solve(self, machines: list[smo.Machine], aim: float, limit: int) -> list[smo.Machine]:
        """The machines after their runs."""
        if self.rows is not self.values.rows:  # at first, and when float64 values have taken the place of float32
            self.rows, self.handle = self.values.rows, self.scatter(self.values.source)
        threads = self.settings.task_threads
        tasks = [(self.handle, machine, aim, limit, threads) for machine in machines]
        found = parallel.run(_solve, tasks, self.settings.executor, self.settings.tick, "machine")
        self.rows.add_computed(sum(n_computed for _, n_computed in found))
        return [machine for machine, _ in found]


def _solve(source: tuple, machine: smo.Machine, aim: float, limit: int, n_threads: int) -> tuple[smo.Machine, int]:
    threads = parallel.n_threads_or_default(n_threads)
    rows = rows_of(source, threads)
    smo.solve(rows, [machine], aim, limit, threads, parallel.ticker(None, "svm"))
    return machine, rows.n_computed


@contextmanager
def lent(values: KernelValues, settings: Settings) -> Iterator[KernelValues]:
    """The values; inside, machines that are solved together are solved by the settings' executor, if there is one."""
    if settings.executor is None or values.source is None:
        yield values
        return
    with sharing.Scattered(settings.executor) as scatter:
        values.workers = Workers(values, settings, scatter)
        try:
            yield values
        finally:
            values.workers = None
