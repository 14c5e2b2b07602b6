"""Callers that get in the way: callbacks and signal handlers that raise, forks, sub-interpreters, many threads.

What they raise comes out of the function as it is, the next call gives the same bits as ever, and no process hangs.
"""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from result_bits import bits

from kernelrules import erm, graph, kernels, prune, ridge, rules, svm, tree
from kernelrules.core.base import team

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4)).round(2)
TWO = (X[:, 0] * X[:, 1] > 0).astype(int)
THREE = np.where(X[:, 2] > 0.8, 2, TWO)
Y = X @ [1.0, -2.0, 0.5, 0.0]
RBF = kernels.RBF(0.3)
TREE, MACHINE = tree.grow(X, THREE), svm.svc(X, THREE, kernel=RBF)
RULES, LINE = rules.extract(TREE), ridge.fit(X, Y, 0.1, RBF)
UNIX = pytest.mark.skipif(sys.platform == "win32", reason="no such signals, and no fork, there")
# A child forked while another thread allocates waits forever in its own first allocation of that size.
FORK_SAFE_MALLOC = pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="a forked child keeps AddressSanitizer's locks"
)

CALLS = {
    "gram": lambda **options: kernels.gram(X, kernel=RBF, **options),
    "transform": lambda **options: kernels.feature_map(kernels.Polynomial(2), 4).transform(X, **options),
    "svc": lambda **options: svm.svc(X, THREE, kernel=RBF, **options),
    "svr": lambda **options: svm.svr(X, Y, kernel=RBF, **options),
    "decision": lambda **options: svm.decision(MACHINE, X, **options),
    "ridge": lambda **options: ridge.fit(X, Y, 0.1, RBF, **options),
    "ridge cg": lambda **options: ridge.fit(X, Y, 0.1, RBF, solver="cg", **options),
    "posterior": lambda **options: ridge.posterior(LINE, X, **options),
    "erm": lambda **options: erm.fit(X, TWO, 0.1, RBF, **options),
    "knn graph": lambda **options: graph.knn_graph(X, 5, **options),
    "grow": lambda **options: tree.grow(X, THREE, **options),
    "predict": lambda **options: tree.predict(TREE, X, **options),
    "cross-validate": lambda **options: prune.cross_validate(X, THREE, folds=3, rng=0, **options),
    "induce": lambda **options: rules.induce(X, TWO, rng=0, **options),
    "rules predict": lambda **options: rules.predict(RULES, X, **options),
}


class Enough(Exception):
    pass


def raising_at(turn):
    """A callback that raises when it is called for the so-manieth time."""
    seen = []

    def callback(progress):
        seen.append(progress)
        if len(seen) == turn:
            raise Enough(turn)

    return callback, seen


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("name", CALLS)
def test_a_callback_that_raises(name, n_threads):
    """At its first, second and last call; later calls are not disturbed by what was left undone."""
    expected = bits(CALLS[name]())
    callback, seen = raising_at(0)
    assert bits(CALLS[name](callback=callback, n_threads=n_threads)) == expected
    assert seen
    for turn in sorted({1, 2, len(seen)} & set(range(1, len(seen) + 1))):
        callback, again = raising_at(turn)
        with pytest.raises(Enough):
            CALLS[name](callback=callback, n_threads=n_threads)
        assert len(again) == turn, "it was called after it had raised"
    assert bits(CALLS[name](n_threads=n_threads)) == expected


def test_eight_threads_with_callbacks_of_their_own():
    """Half of them raise; none receives the progress or the exceptions of another."""
    names, together = list(CALLS), threading.Barrier(8)
    expected = {name: bits(call()) for name, call in CALLS.items()}

    def work(number):
        together.wait()
        wrong = []
        for name in names[number:] + names[:number]:
            here, homes = threading.get_ident(), set()
            callback, seen = raising_at(1 if number % 2 else 0)

            def told(progress, callback=callback, homes=homes):
                homes.add(threading.get_ident())
                callback(progress)

            try:
                right = bits(CALLS[name](callback=told, n_threads=1 + number % 3)) == expected[name] and not number % 2
            except Enough:
                right = number % 2 == 1
            if not right or homes != {here} or len({p.what for p in seen}) != 1:
                wrong.append(name)
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [[]] * 8


# ---- signals ------------------------------------------------------------------------------------------------------

LONG = """
import os, signal, threading, time
import numpy as np
from kernelrules import kernels, svm, tree
rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 20))
y = rng.integers(0, 2, 4000)
big, wide = rng.normal(size=(400_000, 20)), rng.normal(size=(6000, 400))
CALLS = {
    "gram": lambda n: kernels.gram(wide, kernel=kernels.Laplacian(0.1), n_threads=n),
    "svc": lambda n: svm.svc(X, y, C=1000.0, kernel=kernels.RBF(0.05), n_threads=n),
    "grow": lambda n: tree.grow(big, big[:, 0] * big[:, 1] > 0, n_threads=n),
}
"""
SIGNALLED = """
class Ended(Exception):
    pass

def handler(number, frame):
    raise Ended(number)

for number, send in (
    (signal.SIGALRM, lambda: signal.setitimer(signal.ITIMER_REAL, 0.1)),
    (signal.SIGTERM, lambda: threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()),
):
    signal.signal(number, handler)
    for name, call in CALLS.items():
        for n in (1, 2):
            send()
            clock = time.process_time()
            try:
                call(n)
                print(name, n, "was too fast")
            except Ended as ended:
                late = time.process_time() - clock > 5
                print(name, n, ended.args[0].name if hasattr(ended.args[0], "name") else ended.args[0], late)
kernels.gram(X[:300], n_threads=2)
print("done")
"""


def ran(code, timeout=120):
    """What a script prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout.splitlines()


@UNIX
def test_handlers_of_signals_that_raise():
    """What the handler of SIGALRM or SIGTERM raises ends a computation, soon, and nothing else."""
    said = ran(LONG + SIGNALLED)
    numbers = [signal.SIGALRM] * 6 + [signal.SIGTERM] * 6
    wanted = [
        f"{name} {n} {int(number)} False"
        for number, (name, n) in zip(numbers, [(name, n) for name in ("gram", "svc", "grow") for n in (1, 2)] * 2,
                                     strict=True)
    ]  # fmt: skip
    assert said == [*wanted, "done"]


MASKS = """
kernels.gram(X, kernel=kernels.Laplacian(0.1), n_threads=3)
for task in os.listdir("/proc/self/task"):
    if int(task) != os.getpid():
        with open(f"/proc/self/task/{task}/status") as file:
            print(next(int(line.split()[1], 16) for line in file if line.startswith("SigBlk")))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux") or not team.has_threads(), reason="no /proc, or no threads")
def test_signals_that_the_team_takes():
    """None that is for the program; but a fault of a thread's own, so that faulthandler can say where it was."""
    said = ran("import os; os.environ['OPENBLAS_NUM_THREADS'] = '1'" + LONG + MASKS)
    assert len(said) == 2
    for blocked in map(int, said):
        taken = {number for number in signal.valid_signals() if not blocked >> (number - 1) & 1}
        faults = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP}
        assert taken - {signal.SIGKILL, signal.SIGSTOP} == faults


# ---- processes and interpreters -----------------------------------------------------------------------------------

FORKED = """
def work():
    while not stop.is_set():
        tree.grow(big[:20_000], big[:20_000, 0] > 0, n_threads=2)
        kernels.gram(X[:800], n_threads=2)
        began.set()

few, y_few = X[:300], y[:300]
expected = [svm.svc(few, y_few).dual_coef, tree.predict(tree.grow(few, y_few), few), kernels.gram(few)]
stop, began = threading.Event(), threading.Event()
worker = threading.Thread(target=work)
worker.start()
began.wait()
for turn in range(5):
    time.sleep(0.02 * turn)
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # a child that hangs ends by this
        found = [svm.svc(few, y_few, n_threads=2).dual_coef, tree.predict(tree.grow(few, y_few, n_threads=2), few),
                 kernels.gram(few, n_threads=2)]
        os._exit(0 if all(np.array_equal(a, b) for a, b in zip(found, expected)) else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
worker.join()
"""


@UNIX
@FORK_SAFE_MALLOC
def test_a_fork_while_a_fit_runs():
    """In another thread of the parent: the child fits and predicts, with the same bits, and so does the parent."""
    assert ran(LONG + FORKED) == ["0"] * 5


INTERPRETERS = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

CODE = '''
try:
    import numpy as np
    from kernelrules import kernels, tree
    X = np.arange(12.0).reshape(6, 2)
    assert kernels.gram(X, n_threads=2).shape == (6, 6)
    assert (tree.predict(tree.grow(X, [0, 0, 0, 1, 1, 1]), X) == [0, 0, 0, 1, 1, 1]).all()
    said = "works"
except ImportError as error:
    said = "refused"
print(said, flush=True)
'''
import {first}
for _ in range(2):
    made = interpreters.create()
    run = getattr(interpreters, "run_string", None) or interpreters.exec
    run(made, CODE)
print("done", flush=True)
"""


@pytest.mark.parametrize("first", ["sys", "kernelrules"])
def test_sub_interpreters(first):
    """Of a process that has, or has not, imported the package: it works, or cannot be imported; no crash."""
    pytest.importorskip("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    said = ran(INTERPRETERS.replace("{first}", first))
    assert said[-1] == "done"
    assert len(said) == 3
    assert set(said[:-1]) <= {"works", "refused"}


def test_the_environment_of_this_file():
    """Children import the package that is tested here."""
    assert ran("import kernelrules; print(kernelrules.__file__)") == [sys.modules["kernelrules"].__file__]
