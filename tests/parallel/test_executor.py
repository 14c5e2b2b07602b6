"""`executor=`: the same bits as without one, whoever runs the tasks; data handed over once; errors instead of hangs."""

import dataclasses
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from kernelrules import cluster, erm, kernels, parallel, progress, prune, ridge, shared_data, svm

KINDS = ["threads", "fork", "spawn", "loky", "dask"]


@pytest.fixture(scope="module")
def pools():
    """Executors by name, each started when first asked for."""
    open_ones, closers = {}, []

    def pool(kind):
        if kind not in open_ones:
            open_ones[kind] = _start(kind, closers)
        return open_ones[kind]

    yield pool
    for close in reversed(closers):
        close()


def _start(kind, closers):
    if kind == "threads":
        made = ThreadPoolExecutor(2)
    elif kind in ("fork", "spawn"):
        if kind not in multiprocessing.get_all_start_methods():
            pytest.skip(f"no {kind} here")
        made = ProcessPoolExecutor(2 if kind == "fork" else 1, mp_context=multiprocessing.get_context(kind))
    elif kind == "loky":
        loky = pytest.importorskip("loky")
        made = loky.ProcessPoolExecutor(1)
    else:
        distributed = pytest.importorskip("distributed")
        config = pytest.importorskip("dask.config")
        settings = config.set({"distributed.scheduler.allowed-failures": 0})  # a task that killed a worker has failed
        closers.append(lambda: settings.__exit__(None, None, None))
        made = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", worker_dashboard_address=None
        )
        client = distributed.Client(made)
        closers.extend([made.close, client.close])
        return client.get_executor()
    closers.append(made.shutdown)
    return made


def blobs(n, n_classes, p=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, p)) + np.eye(max(p, n_classes))[y][:, :p], y


def svc(n, n_classes, **options):
    X, y = blobs(n, n_classes)
    return lambda executor: svm.svc(X, y, executor=executor, **options)


def svc_sparse(executor):
    X, y = blobs(300, 3, 6)
    return svm.svc(sparse.csr_array(np.maximum(X, 0)), y, executor=executor)


def svc_precomputed(executor):
    X, y = blobs(300, 3)
    return svm.svc(kernels.gram(X), y, kernel=kernels.Precomputed(), executor=executor)


def svc_warm(executor):
    X, y = blobs(300, 3)
    weight = 1.0 + np.arange(300) % 3
    start = svm.svc(X, y, C=0.1)
    return svm.svc(X, y, C=3.0, warm_start=start, sample_weight=weight, class_weight="balanced", executor=executor)


def tune(n, n_classes, **options):
    X, y = blobs(n, n_classes)
    return lambda executor: svm.tune(X, y, executor=executor, rng=0, Cs=[10.0, 0.5], folds=3, **options)


def path(executor):
    X, y = blobs(400, 3)
    return svm.path(X, y, [0.1, 10.0, 1.0], executor=executor)


def separable(executor):
    X, y = blobs(90, 3)
    return svm.svc(X + 20 * np.eye(4)[y], y, C=np.inf, executor=executor)


def cross_validate(executor):
    X, y = blobs(300, 3)
    return prune.cross_validate(X, y, rng=0, folds=4, executor=executor)


def erm_fit(executor):
    X, y = blobs(300, 4)
    return erm.fit(X, y, 1e-3, kernels.RBF(0.2), executor=executor)


def erm_features(executor):
    X, y = blobs(300, 3)
    return erm.fit(X, y, 1e-3, kernels.Linear(), intercept=True, executor=executor)


def fit_blocks(executor):
    X, y = blobs(1200, 3)
    phi = kernels.nystroem(X, kernels.RBF(0.2), 90, rng=0)
    return ridge.fit_blocks([(X[i : i + 200], y[i : i + 200] * 1.0) for i in range(0, 1200, 200)], 1e-3, phi,
                            executor=executor)  # fmt: skip


CASES = {
    "svc": svc(200, 4),
    "svc, float32 matrix": svc(1100, 3),
    "svc, little memory": svc(900, 3, cache_mb=1.0),
    "svc, linear": svc(300, 3, kernel=kernels.Linear()),
    "svc, one against the rest": svc(200, 3, multiclass="ovr"),
    "svc, nu": svc(200, 3, nu=0.3),
    "svc, two classes": svc(200, 2),
    "svc, sparse": svc_sparse,
    "svc, precomputed": svc_precomputed,
    "svc, warm start": svc_warm,
    "svc, hard margin": separable,
    "svc, groups of pairs": svc(5100, 20, max_iter=50),
    "tune": tune(200, 3),
    "tune, gammas": tune(240, 2, gammas=[0.1, 1.0]),
    "tune, one against the rest": tune(200, 3, multiclass="ovr", kernel=kernels.Polynomial(2)),
    "tune, little memory": tune(500, 3, cache_mb=1.0),
    "path": path,
    "erm": erm_fit,
    "erm, features": erm_features,
    "cross_validate": cross_validate,
    "fit_blocks": fit_blocks,
}
# Processes all get the same tasks; each kind gets what another way of handing over data could break.
SOME = ["svc", "tune, gammas", "cross_validate"]
CASES_OF = {
    "threads": list(CASES),
    "fork": [case for case in CASES if case != "svc, groups of pairs"],
    "spawn": [*SOME, "svc, float32 matrix", "erm"],
    "loky": SOME,
    "dask": [*SOME, "fit_blocks"],
}


def assert_same(a, b, where="result"):
    """All fields, bit for bit."""
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        assert a.shape == b.shape, where
        assert a.tobytes() == b.tobytes(), where
    elif sparse.issparse(a):
        assert_same(a.toarray(), b.toarray(), where)
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name), f"{where}.{field.name}")
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}[{i}]")
    elif isinstance(a, dict):
        assert_same(list(a.items()), list(b.items()), where)
    else:
        assert a == b or (a != a and b != b), where


@pytest.fixture(scope="module")
def alone():
    """What each case gives without an executor, computed once."""
    known = {}

    def result(case):
        if case not in known:
            known[case] = CASES[case](None)
        return known[case]

    return result


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_worker_that_dies_is_an_error():
    """First of all: forking is safe while nothing has started threads."""
    closers, kind = [], "fork"
    executor = _start(kind, closers)
    for run in (parallel.run, lambda *given: list(parallel.stream(*given[:3], None, given[4]))):
        with pytest.raises(parallel.WorkerDied, match=r"number \d.* got no answer") as caught:
            run(die, [(i,) for i in range(4)], executor, None, "number")
        assert caught.value.__cause__ is not None
        with pytest.raises(parallel.WorkerDied, match="takes no more tasks"):
            run(die, [(0,)], executor, None, "number")
        executor = _start(kind, closers)
    for close in closers:
        close()


@pytest.mark.filterwarnings("ignore::kernelrules.svm.ConvergenceWarning", "ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_as_without(pools, alone, kind):
    executor = pools(kind)
    for case in CASES_OF[kind]:
        assert_same(CASES[case](executor), alone(case), f"{case}, by {kind}")


# ---- handing over -------------------------------------------------------------------------------------------------


class Counted:
    """An array that counts how often it is pickled here."""

    n_pickled = 0

    def __init__(self, array):
        self.array = array

    def __reduce__(self):
        type(self).n_pickled += 1
        return Counted, (self.array,)


def total(counted, number):
    return float(counted.array.sum()) + number


def read_only(array):
    return not array.flags.writeable


def die(number):
    if number == 1:
        os._exit(1)
    time.sleep(0.05)
    return number


def fail(number):
    if number == 1:
        raise ArithmeticError("no such number")
    return number


def wait_until_given_up(started):
    started.set()
    tick = parallel.ticker(None, "waiting")
    for _ in range(2000):
        tick(0, 1)
        time.sleep(0.01)
    raise AssertionError("nobody gave it up")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_data_are_handed_over_once(pools, kind):
    executor = pools(kind)
    Counted.n_pickled = 0
    with shared_data.Scattered(executor) as scatter:
        handle = scatter(Counted(np.ones(100_000)))
        answers = parallel.run(total, [(handle, i) for i in range(5)], executor)
        assert answers == [100_000.0 + i for i in range(5)]
        assert Counted.n_pickled <= (0 if kind == "threads" else 2)  # dask measures it by pickling
        if kind in ("fork", "spawn", "loky"):
            assert parallel.run(read_only, [(scatter(np.ones(100_000)),)], executor) == [True]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no list of open files here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_nothing_is_left_behind(pools):
    executor = pools("fork")
    parallel.run(total, [(Counted(np.ones(1)), 1)], executor)  # its processes start, and with them pipes
    before = len(os.listdir("/proc/self/fd"))
    for function in (total, die_not):
        with pytest.raises(ArithmeticError), shared_data.Scattered(executor) as scatter:  # noqa: PT012
            handle = scatter(Counted(np.ones(100_000)))
            parallel.run(function, [(handle, 1)], executor)
            raise ArithmeticError
    assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(FileNotFoundError):
        shared_data.open_handle(handle)


def die_not(counted, number):
    raise ArithmeticError(number)


def test_a_handle_of_another_computation_is_refused():
    """The number of a file may be used again by the time that a late task opens it."""
    if not hasattr(os, "memfd_create"):
        pytest.skip("temporary files have names of their own")
    with ProcessPoolExecutor(1) as executor:
        with shared_data.Scattered(executor) as scatter:
            late = scatter(np.ones(100_000))
        with shared_data.Scattered(executor) as scatter:
            scatter(np.zeros(100_000))
            with pytest.raises(FileNotFoundError, match="has ended"):
                shared_data.open_handle(late)


class Inline(Executor):
    """Somebody else's executor, of which nothing is known."""

    def submit(self, function, /, *arguments):
        future = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


def test_any_executor_will_do(alone):
    for case in ("svc", "tune, gammas", "cross_validate", "fit_blocks"):
        assert_same(CASES[case](Inline()), alone(case), case)


# ---- what goes wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["threads", "dask"])
def test_an_error_of_a_task_comes_out_and_says_where(pools, kind):
    with pytest.raises(ArithmeticError, match="no such number") as caught:
        parallel.run(fail, [(i,) for i in range(3)], pools(kind), None, "number")
    assert any("number 2 of 3" in note for note in caught.value.__notes__)
    with pytest.raises(ArithmeticError, match="no such number"):
        list(parallel.stream(fail, ((i,) for i in range(3)), pools(kind)))


def test_an_error_cancels_what_has_not_begun():
    started, begun = threading.Event(), []
    tasks = [(fail_when, started), (wait_until_given_up, started), *[(call, begun, 0.1)] * 50]
    with ThreadPoolExecutor(2) as pool, pytest.raises(ArithmeticError):
        parallel.run(of_two, tasks, pool)
    assert len(begun) < 40


def of_two(function, *arguments):
    return function(*arguments)


def call(begun, seconds):
    begun.append(seconds)
    time.sleep(seconds)


def fail_when(started):
    assert started.wait(20)
    raise ArithmeticError


def test_a_callback_ends_tasks_in_threads():
    """What it raises, as Ctrl-C does, stops those that run at their next tick."""
    started = threading.Event()

    class Watch(progress.Ticker):
        def check_interrupt(self):
            if started.is_set():
                raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        parallel.run(wait_until_given_up, [(started,)] * 3, pool, Watch(None, "watch"))


def test_an_executor_that_gives_up_is_an_error():
    class Lazy(Inline):
        def submit(self, function, /, *arguments):
            future = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with pytest.raises(parallel.WorkerDied, match="task 1 of 1 was cancelled"):
        parallel.run(pow, [(2, 3)], Lazy())


@pytest.mark.parametrize("bad", [3, "pool", object()])
def test_what_is_no_executor_is_refused(bad):
    X, y = blobs(30, 3)
    for fit in (
        lambda: svm.svc(X, y, executor=bad),
        lambda: svm.path(X, y, [1.0], executor=bad),
        lambda: svm.tune(X, y, Cs=[1.0], executor=bad),
        lambda: erm.fit(X, y, 1.0, executor=bad),
        lambda: prune.cross_validate(X, y, folds=2, executor=bad),
        lambda: ridge.fit_blocks([(X, y)], 1.0, executor=bad),
    ):
        with pytest.raises(TypeError, match="executor must be"):
            fit()


def die_with(data, number):
    assert data.sum() == len(data)
    return die(number)


def test_a_loky_worker_that_dies_is_an_error():
    """In a pool of its own, since it can be used no more; the data that it had are the file of this process."""
    closers = []
    executor = _start("loky", closers)
    with shared_data.Scattered(executor) as scatter:
        tasks = [(scatter(np.ones(100_000)), i) for i in range(3)]
        with pytest.raises(parallel.WorkerDied, match=r"number \d of 3.* got no answer") as caught:
            parallel.run(die_with, tasks, executor, None, "number")
    assert caught.value.__cause__ is not None
    for close in closers:
        close()


class Scheduler:
    """What is asked of a dask client, with the answers of a scheduler whose workers come and go."""

    def __init__(self, *, nanny):
        self.workers = {"tcp://here": {"nanny": "tcp://nanny" if nanny else None}}
        self.events = [(0.0, {"action": "add-worker"})]
        self.answers = True

    def scatter(self):
        raise AssertionError

    def scheduler_info(self):
        if not self.answers:
            raise OSError
        return {"workers": self.workers}

    def get_events(self, topic):
        assert topic == "all"
        return self.events

    def lose(self, *, expected):
        self.workers = {}
        self.events.append((1.0, {"action": "remove-worker", "expected": expected}))


@pytest.mark.parametrize("nanny", [True, False])
def test_a_cluster_without_workers(monkeypatch, nanny):
    """Workers that died are missed at once, or, where nannies may start them again, some seconds later; those that have
    not come yet, or were sent home, are waited for."""
    clock = [100.0]
    monkeypatch.setattr(cluster.time, "monotonic", lambda: clock[0])

    def look(workers):
        clock[0] += 1.0
        workers.require("task 3 of 5 got no answer")

    scheduler = Scheduler(nanny=nanny)
    workers = cluster.Workers(SimpleNamespace(_client=scheduler))
    look(workers)
    scheduler.lose(expected=True)
    for _ in range(30):
        look(workers)
    scheduler.events.append((2.0, {"action": "remove-worker", "expected": False}))
    scheduler.answers = False
    for _ in range(30):
        look(workers)
    scheduler.answers = True
    if nanny:
        for _ in range(10):
            look(workers)
        scheduler.workers = {"tcp://again": {"nanny": "tcp://nanny"}}
        look(workers)
        scheduler.workers = {}
        for _ in range(10):
            look(workers)
    with pytest.raises(parallel.WorkerDied, match=r"all workers .* have ended.*task 3 of 5 got no answer"):
        look(workers)
    scheduler.events = [None]  # nothing that can be read
    workers = cluster.Workers(SimpleNamespace(_client=scheduler))
    for _ in range(10 if nanny else 0):  # whether they have nannies was seen before, by the same client
        look(workers)
    with pytest.raises(parallel.WorkerDied, match="have ended"):
        look(workers)
    new = Scheduler(nanny=nanny)
    new.workers, new.events = {}, []
    workers = cluster.Workers(SimpleNamespace(_client=new))
    for _ in range(30):
        look(workers)


@pytest.mark.parametrize("raised", [None, TimeoutError("No valid workers found"), OSError("in closed comm")])
def test_workers_that_die_while_data_are_scattered(raised):
    """The error comes at once, and is ours, whether dask goes on waiting for a worker or raises an error of its own."""
    scheduler, over = Scheduler(nanny=False), threading.Event()

    def scatter(values, **options):
        scheduler.lose(expected=False)
        if raised is None:
            over.wait(30)
        else:
            raise raised

    scheduler.scatter = scatter
    start = time.monotonic()
    with pytest.raises(parallel.WorkerDied, match=r"all workers .* have ended.*the data of the tasks reached none"):
        shared_data.Scattered(SimpleNamespace(_client=scheduler))([1, 2])
    assert time.monotonic() - start < 15
    over.set()


def test_an_error_of_scattering_is_that_of_dask():
    scheduler = Scheduler(nanny=False)

    def scatter(values, **options):
        raise OSError("no route")

    scheduler.scatter = scatter
    with pytest.raises(OSError, match="no route"):
        shared_data.Scattered(SimpleNamespace(_client=scheduler))([1, 2])


def test_dask_workers_that_die_are_an_error(monkeypatch):
    """In a cluster of their own. First one that has a task, then all, and with them the data: dask then cancels what
    needs these. What comes after that fails too, without dask's waiting: 30 s for data, and for ever for tasks."""
    closers = []
    executor = _start("dask", closers)
    client = executor._client
    for nanny in client.cluster.workers.values():
        nanny.close_gracefully()  # no worker is started in place of a dead one, which takes seconds
    with shared_data.Scattered(executor) as scatter:
        handle = scatter(np.ones(100_000))
        with pytest.raises(parallel.WorkerDied, match=r"number 2 of 3.* got no answer"):
            parallel.run(die_with, [(handle, i) for i in range(3)], executor, None, "number")
    with shared_data.Scattered(executor) as scatter:
        handle = scatter(np.ones(100_000))
        for worker in client.run(os.getpid).values():
            os.kill(worker, signal.SIGKILL)
        end = time.monotonic() + 30
        while handle.status == "finished" and time.monotonic() < end:
            time.sleep(0.02)
        with pytest.raises(parallel.WorkerDied, match=r"number 1 of 2 was cancelled by the executor.* a worker died"):
            parallel.run(die_with, [(handle, 2), (handle, 3)], executor, None, "number")
    monkeypatch.setattr(cluster, "_RESTART_SECONDS", 0.0)  # their nannies have gone before
    start = time.monotonic()
    with pytest.raises(parallel.WorkerDied, match="the data of the tasks reached none"):
        svm.svc(*blobs(200, 3), executor=executor)
    with pytest.raises(parallel.WorkerDied, match="number 1 of 2 and 1 more got no answer"):
        parallel.run(pow, [(2, 3), (2, 4)], executor, None, "number")
    with pytest.raises(parallel.WorkerDied, match="number 1 got no answer"):
        list(parallel.stream(pow, [(2, 3)], executor, None, "number"))
    assert time.monotonic() - start < 25
    for close in closers:
        close()
