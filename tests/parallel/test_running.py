"""How long computations behave: callbacks, Ctrl-C, threads, forked children, memory; and the command line."""

import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from forks import printed, results_of
from interrupting import seconds_of_all
from scipy import sparse

from kernelrules import kernels, parallel
from kernelrules.__main__ import main
from kernelrules.core.base import team


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_callback_sees_progress(form):
    seen = []
    X = form(np.random.default_rng(0).normal(size=(800, 30)))
    kernels.gram(X, callback=seen.append)
    assert seen
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].done == seen[-1].total
    assert seen[-1].fraction == 1.0
    assert {p.what for p in seen} == {"gram"}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_callback_can_stop(form):
    class Enough(Exception):
        pass

    def stop(progress):
        raise Enough

    with pytest.raises(Enough):
        kernels.gram(form(np.ones((500, 3))), callback=stop)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is not sent to one process there")
def test_ctrl_c_returns_within_a_second():
    """A child process computes for many seconds on one thread; SIGINT must end it at once."""
    prepare = """
import numpy as np
from scipy import sparse
from kernelrules import kernels
rng = np.random.default_rng(0)

def dense(n):
    return rng.standard_normal((n, 300), dtype=np.float32)

def csr(n):  # one of each two neighbouring columns: scipy.sparse.random takes a second for as many
    columns = 2 * np.arange(150) + rng.integers(2, size=(n, 150))
    return sparse.csr_array((rng.random(150 * n, np.float32), columns.ravel(), 150 * np.arange(n + 1)), (n, 300))
"""
    data = {
        "dense": ("dense(22000)", "None"),
        "csr": ("csr(16000)", "None"),
        "mixed": ("dense(20000)", "csr(20000)"),
    }
    out = "out = np.zeros((X.shape[0], (X if Z is None else Z).shape[0]), dtype=np.float32)"
    call = "kernels.gram(X, Z, kernels.Laplacian(0.01), out=out, n_threads=1)"
    told = seconds_of_all(prepare, {name: (f"X = {X}; Z = {Z}; {out}", call) for name, (X, Z) in data.items()})
    assert all(seconds is not None and seconds < 1.0 for seconds in told.values()), told


ANY_NUMBER = """
import numpy as np
from scipy import sparse
from kernelrules import check
from kernelrules.core.gram.dense import gram_dense
from kernelrules.core.gram.csr import gram_csr
X = np.random.default_rng(0).normal(size=(300, 3))
S = check.matrix(sparse.csr_array(X))
first = None
for n_threads in [*range(1, 65), 128, 256, 1024]:
    dense, csr = np.empty((300, 300)), np.empty((300, 300))
    gram_dense(X, None, (2, 0, 1.0, 0.0), dense, n_threads)
    gram_csr(S, None, S.columns(), 3, (2, 0, 1.0, 0.0), csr, n_threads)
    first = first or (dense.tobytes(), csr.tobytes())
    assert (dense.tobytes(), csr.tobytes()) == first
print("done")
"""
DEFAULT = "from kernelrules import parallel; print(parallel.n_threads_or_default())"


@pytest.fixture(scope="module")
def told():
    """What became of children."""
    children = {"any number": (ANY_NUMBER, {}), "default": (DEFAULT, {"OMP_NUM_THREADS": "1"})}
    return results_of(children, timeout=120)


def test_any_number_of_threads_returns(told):
    """Also more than there are tiles or cores, and counts whose product with anything large leaves 32 bits."""
    assert printed(told, "any number").strip() == "done"


def test_callback_is_in_time_on_skewed_sparse_data():
    """Most entries in a few full columns: an estimate from the mean would be far off.

    In seconds of the processor, so that a busy machine may do other things; without a callback on the way all of them
    would be one.
    """
    n = 2500
    rng = np.random.default_rng(0)
    full = sparse.csr_array(rng.normal(size=(n, 100)))
    X = sparse.hstack([full, sparse.eye_array(n), sparse.csr_array((n, 400 * n))], format="csr")
    times = [time.process_time()]
    kernels.gram(X, kernel=kernels.RBF(100.0), n_threads=1, callback=lambda _: times.append(time.process_time()))
    assert max(np.diff(times)) < min(1.0, 0.3 * (times[-1] - times[0]))


def test_other_python_threads_run_meanwhile():
    """The core holds no GIL: a counter in another thread goes on during a Gram matrix."""
    counts, running = [0], threading.Event()
    running.set()

    def count():
        while running.is_set():
            counts[0] += 1

    counter = threading.Thread(target=count)
    X = np.random.default_rng(0).normal(size=(3000, 300))
    counter.start()
    before = counts[0]
    kernels.gram(X, n_threads=1)
    after = counts[0]
    running.clear()
    counter.join()
    assert after - before > 1000


def test_eight_threads_share_their_input():
    X = np.random.default_rng(1).normal(size=(400, 20))
    X.flags.writeable = False
    S = sparse.csr_array(X)
    expected = kernels.gram(X, kernel=kernels.RBF(0.1)), kernels.gram(S, kernel=kernels.RBF(0.1))
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(kernels.gram, data, kernel=kernels.RBF(0.1), n_threads=2) for data in (X, S) * 16]
        for i, job in enumerate(jobs):
            np.testing.assert_array_equal(job.result(), expected[i % 2])


def test_default_number_of_threads(told):
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert 1 <= parallel.n_threads_or_default() <= cores
    assert parallel.n_threads_or_default(5) == 5
    if not team.has_threads():
        assert parallel.n_threads_or_default() == 1
    assert printed(told, "default").strip() == "1"


def test_threadpoolctl_lowers_the_default():
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        assert parallel.n_threads_or_default() == 1


def test_forked_child_does_not_hang():
    """The team's threads are not in the child, which starts its own."""
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    code = """
import multiprocessing, numpy as np
from kernelrules import kernels
X = np.ones((600, 3))
kernels.gram(X, n_threads=4)
with multiprocessing.get_context("fork").Pool(2) as pool:
    print([K.sum() for K in pool.map(kernels.gram, [X, X])])
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[np.float64(360000.0), np.float64(360000.0)]"


# One more byte for each entry of the second would be more than 64 MB; so would be a copy of the last.
SHAPES = [(5000, 50), (8200, 20), (4000, 784), (2, 3_000_000), (12000, 784)]


@pytest.fixture(scope="module")
def beyond():
    """{dtype: bytes at the peak beyond the result}, measured in a process that keeps no memory for later."""
    code = f"""
import gc, re, numpy as np
from kernelrules import kernels

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])

for dtype in "float64", "float32":
    for shape in {SHAPES}:
        X = np.random.default_rng(0).standard_normal(shape, dtype=dtype)
        kernels.gram(X[:300], n_threads=2)
        for gamma in (0.01, "scale"):
            K = None
            gc.collect()
            open("/proc/self/clear_refs", "w").write("5")     # the peak is what there is now
            before = peak()
            K = kernels.gram(X, X[:800].copy() if len(X) > 10000 else None, kernels.RBF(gamma), n_threads=2)
            print(dtype, peak() - before - K.nbytes)
"""
    env = {**os.environ, "KERNELRULES_KEEP_MB": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    told = {"float64": [], "float32": []}
    for line in done.stdout.splitlines():
        dtype, n_bytes = line.split()
        told[dtype].append(int(n_bytes))
    return told


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forgets the peak of a process's memory when told to")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_memory_is_the_result_and_64_megabytes(beyond, dtype):
    assert len(beyond[dtype]) == 2 * len(SHAPES)
    assert max(beyond[dtype]) <= 64e6
    assert max(beyond[dtype]) > 0, "a peak that is never above the result was not measured"


def test_memory_does_not_grow():
    resource = pytest.importorskip("resource")
    X = np.random.default_rng(2).normal(size=(100, 20))
    S = sparse.csr_array(X)
    peaks = []
    for _ in range(4):
        for _ in range(500):
            kernels.gram(X, kernel=kernels.RBF(0.1))
            kernels.gram(S, X, kernels.Laplacian(0.1))
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert peaks[-1] - peaks[0] < 4096  # kilobytes


def test_self_check(capsys):
    assert main([]) == 0
    said = capsys.readouterr().out
    for word in ("kernelrules", "threads", "SIMD", "BLAS", "Gram matrix", "numpy", "passed"):
        assert word in said
    assert re.search(r"[\d.]+ times as long", said)


def test_command_line(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert re.fullmatch(r"kernelrules \d+\.\d+\.\d+\S*\s*", capsys.readouterr().out)
    wrong = subprocess.run(
        [sys.executable, "-m", "kernelrules", "--no-such"], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr
