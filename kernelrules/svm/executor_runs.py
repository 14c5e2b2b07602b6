"""Runs of the SMO solver as tasks of an executor.

A machine goes to a worker with its variables and gradient, and comes back changed. Kernel values are scattered once.
Everything that machines do together (float64 gradients, the change to float64 rows) stays in the calling process, so
every machine takes the same steps as without an executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kernelrules import parallel, shared_data
from kernelrules.core.svm import smo
from kernelrules.svm.kernel_values import KernelValues
from kernelrules.svm.settings import Settings

__all__ = ["ExecutorRuns", "runs_by_executor"]


class ExecutorRuns:
    """Maps a function over machines on some kernel values, by the settings' executor."""

    def __init__(self, values: KernelValues, settings: Settings, scatter: shared_data.Scattered) -> None:
        self.values, self.settings, self.scatter = values, settings, scatter
        self.rows = self.handle = None

    def map(self, run: Callable[..., smo.Machine], tasks: list[tuple]) -> list[smo.Machine]:
        """Return run(values, *task) for every task, where `values` are the kernel values as the worker sees them."""
        values = self.values
        if self.rows is not values.rows:  # at first, and when float64 values have replaced float32 values
            self.handle = self.scatter(values.source)
            values.use_source(
                shared_data.mapped_view(self.handle, values.source)
            )  # one copy for this process and all others
            self.rows = values.rows
        common = (self.handle, values.budget, self.settings.task_threads, run)
        tasks = [(*common, task) for task in tasks]
        found = parallel.run(_run_task, tasks, self.settings.executor, self.settings.tick, "machine")
        self.rows.add_computed(sum(n_computed for _, n_computed in found))
        return [machine for machine, _ in found]


def _run_task(
    source: tuple, budget: int, n_threads: int, run: Callable[..., Any], task: tuple
) -> tuple[smo.Machine, int]:
    """Return the machine after its run, and the number of kernel rows computed."""
    values = KernelValues.from_source(source, budget, parallel.n_threads_or_default(n_threads))
    return run(values, *task), values.rows.n_computed


@contextmanager
def runs_by_executor(values: KernelValues, settings: Settings) -> Iterator[None]:
    """Inside, machines that are solved together on `values` are tasks of the settings' executor, if there is one."""
    if settings.executor is None or values.source is None:
        yield
        return
    with shared_data.Scattered(settings.executor) as scatter:
        values.executor_runs = ExecutorRuns(values, settings, scatter)
        try:
            yield
        finally:
            values.executor_runs = None
