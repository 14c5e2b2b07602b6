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
from kernelrules.svm import dual
from kernelrules.svm.settings import Settings
from kernelrules.svm.values import KernelValues

__all__ = ["Workers", "lent"]


class Workers:
    """Who solves the machines of some kernel values."""

    def __init__(self, values: KernelValues, settings: Settings, scatter: sharing.Scattered) -> None:
        self.values, self.settings, self.scatter = values, settings, scatter
        self.rows = self.handle = None

    def solve(
        self, problems: list[dual.Problem], machines: list[smo.Machine], aim: float, limit: int, max_rows: int | None
    ) -> list[smo.Machine]:
        """The machines after their runs."""
        values = self.values
        if self.rows is not values.rows:  # at first, and when float64 values have taken the place of float32
            self.handle = self.scatter(values.source)
            values.use_source(sharing.seen_here(self.handle, values.source))  # one copy for this process and all others
            self.rows = values.rows
        common = (aim, limit, max_rows, values.budget, self.settings.task_threads)
        tasks = [(self.handle, p, m, *common) for p, m in zip(problems, machines, strict=True)]
        found = parallel.run(_solve, tasks, self.settings.executor, self.settings.tick, "machine")
        self.rows.add_computed(sum(n_computed for _, n_computed in found))
        return [machine for machine, _ in found]


def _solve(
    source: tuple,
    problem: dual.Problem,
    machine: smo.Machine,
    aim: float,
    limit: int,
    max_rows: int | None,
    budget: int,
    n_threads: int,
) -> tuple[smo.Machine, int]:
    values = KernelValues.from_source(source, budget, parallel.n_threads_or_default(n_threads))
    machine = dual.run_alone(values, problem, machine, aim, limit, parallel.ticker(None, "svm"), max_rows)
    return machine, values.rows.n_computed


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
