"""`executor=`: the same bits as without one, whoever runs the tasks; data handed over once; errors instead of hangs."""

import dataclasses
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from kernelrules import kernels, prune, svm

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
        made = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(kind))
    elif kind == "loky":
        loky = pytest.importorskip("loky")
        made = loky.ProcessPoolExecutor(2)
    else:
        distributed = pytest.importorskip("distributed")
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
        )
        client = distributed.Client(cluster)
        closers.extend([cluster.close, client.close])
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


CASES = {
    "svc": svc(300, 4),
    "svc, float32 matrix": svc(1300, 3, C=10.0),
    "svc, little memory": svc(1300, 3, C=10.0, cache_mb=2.0),
    "svc, groups of pairs": svc(5200, 26, max_iter=200),
    "svc, linear": svc(500, 3, kernel=kernels.Linear()),
    "svc, one against the rest": svc(300, 3, multiclass="ovr"),
    "svc, nu": svc(300, 3, nu=0.3),
    "svc, two classes": svc(300, 2),
    "svc, sparse": svc_sparse,
    "svc, precomputed": svc_precomputed,
    "svc, warm start": svc_warm,
    "svc, hard margin": separable,
    "tune": tune(240, 3),
    "tune, gammas": tune(240, 2, gammas=[0.1, 1.0]),
    "tune, one against the rest": tune(240, 3, multiclass="ovr", kernel=kernels.Polynomial(2)),
    "tune, little memory": tune(600, 3, cache_mb=1.0),
    "path": path,
    "cross_validate": cross_validate,
}
DEAR = {"svc, groups of pairs"}  # by threads and one kind of process only


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


@pytest.mark.filterwarnings("ignore::kernelrules.svm.ConvergenceWarning", "ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_as_without(pools, alone, kind):
    executor = pools(kind)
    for case, fit in CASES.items():
        if case in DEAR and kind not in ("threads", "spawn"):
            continue
        assert_same(fit(executor), alone(case), f"{case}, by {kind}")
