"""Whether a dask cluster still has workers, asked of its scheduler while tasks or data wait.

Dask itself waits: data that are scattered for 30 s (`distributed.comm.timeouts.connect`), tasks for ever
(`distributed.scheduler.no-workers-timeout`, null by default), as workers may yet come. A cluster whose last worker
ended unexpectedly is another matter: what its workers did is lost.

Nothing of dask is imported here: a client is whatever an executor has as `_client` that can scatter.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

__all__ = ["WorkerDied", "Workers", "client_of", "scattered"]

_POLL_SECONDS = 0.5  # between two queries of the scheduler, each of which takes about 1 ms
_RESTART_SECONDS = 10.0  # for a nanny to replace a dead worker


class WorkerDied(RuntimeError):
    """A worker of an executor died before it returned a result: killed, out of memory, or crashed."""


def client_of(executor: Any) -> Any:
    """Return the dask client of an executor, None for other executors."""
    client = getattr(executor, "_client", None)
    return client if callable(getattr(client, "scatter", None)) else None


_have_nannies: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()  # clients whose workers were seen, and if these have


class Workers:
    """The workers of a dask executor, looked at from time to time; of any other executor none is ever missed.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Whose tasks are waited for.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(1) as pool:
    ...     Workers(pool).require("task 1 of 1 got no answer")
    """

    def __init__(self, executor: Any) -> None:
        self._client = client_of(executor)
        self._gone_since: float | None = None
        self._next = 0.0

    def require(self, lost: str) -> None:
        """Raise WorkerDied, saying what is lost, if the last worker of the cluster has died.

        Workers that have a nanny get 10 s to be started again; where those that were seen have none, the error comes
        at once.
        """
        if self._client is None or time.monotonic() < self._next:
            return
        now = time.monotonic()
        self._next = now + _POLL_SECONDS
        n_workers = self._count()
        if n_workers is None:
            return
        if n_workers or (self._gone_since is None and not self._have_died()):
            self._gone_since = None
            return
        self._gone_since = now if self._gone_since is None else self._gone_since
        if now - self._gone_since >= (_RESTART_SECONDS if _have_nannies.get(self._client, True) else 0.0):
            raise WorkerDied(
                f"all workers of the dask cluster have ended, and none was started in their place: {lost}. Workers "
                "that run out of memory are killed like that"
            )

    def wait(self, lost: str) -> None:
        """Return unless the last worker has died; then wait for another, and raise as `require` does."""
        while self._client is not None:
            self._next = 0.0
            self.require(lost)
            if self._gone_since is None:
                return
            time.sleep(_POLL_SECONDS)

    def _count(self) -> int | None:
        """Workers that the scheduler knows of; None where it does not answer, which dask reports itself."""
        with suppress(OSError, TimeoutError, RuntimeError):
            workers = self._client.scheduler_info()["workers"]
            if workers:
                _have_nannies[self._client] = any(worker.get("nanny") for worker in workers.values())
            return len(workers)
        return None

    def _have_died(self) -> bool:
        """Whether the last worker ended unexpectedly: not where workers were retired, as an adaptive cluster does that
        has nothing to do.

        The scheduler cannot always send its events (after a KilledWorker of dask 2026.8 they hold what cannot be
        pickled): then workers that are gone have died.
        """
        try:
            told = [event for _, event in self._client.get_events("all") if event.get("action") == "remove-worker"]
        except Exception:  # whatever dask makes of it
            return self._client in _have_nannies
        return bool(told) and not told[-1].get("expected", False)


def scattered(executor: Any, value: Any) -> Any:
    """Hand an object to all workers of a dask executor; return dask's future of it.

    Dask's own call waits 30 s for a worker (`distributed.comm.timeouts.connect`) and then raises an error of its own.
    It runs in a thread of its own, so that WorkerDied comes as soon as `Workers.require` knows it; the thread is a
    daemon and ends with that wait.
    """
    client, workers, lost = client_of(executor), Workers(executor), "the data of the tasks reached none"
    workers.wait(lost)
    future: Future = Future()

    def scatter() -> None:
        try:
            future.set_result(client.scatter([value], broadcast=True, hash=False)[0])
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=scatter, name="kernelrules scatter", daemon=True).start()
    while not wait([future], timeout=_POLL_SECONDS).done:
        workers.require(lost)
    try:
        return future.result()
    except (OSError, TimeoutError):  # a connection that broke is one, too
        workers.wait(lost)
        raise
