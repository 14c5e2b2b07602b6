"""Run by test_leaks.py in a process of its own: calls of every family, what they leave behind, and what they do where
memory ends.

    memory_child.py growth      bytes a call that are in use after 1000 fits more, a family a line
    memory_child.py faults      one line a call: allocations, and what came of failing each of them
    memory_child.py limit       what comes of large calls where the address space is nearly used up
"""

import ctypes
import gc
import io
import resource
import sys
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
from scipy import sparse

from kernelrules import bounds, cython_api, erm, export, graph, kernels, load, prune, ridge, rules, save, svm  # noqa: F401
from kernelrules import tree as trees

rng = np.random.default_rng(0)


def table(n):
    """Numbers, two classes, three, targets, and numbers with holes."""
    X = rng.normal(size=(n, 3)).round(3)
    two = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)
    three = np.where(X[:, 2] > 1, 2, two)
    return X, two, three, X @ [1.0, -2.0, 0.5], np.where(rng.random(X.shape) < 0.2, np.nan, X)


X, two, three, y, holes = table(24)
thin = sparse.csr_array(np.where(rng.random(X.shape) < 0.5, 0, X))
words = np.column_stack([np.array(["a", "b", "c"], dtype=object)[three], X[:, :2]])
grown, model, near = trees.grow(X, three), svm.svc(X, three), graph.knn_graph(X, 3)
listed, fitted = rules.extract(grown), ridge.fit(X, y, 0.1)
text = export.to_json(grown)
summed = rules.additive(X, two, max_depth=1, n_lams=3, folds=None, rng=0)


class Enough(Exception):
    """What a callback raises."""


def stopped(call):
    """Ended by its callback, at the first time that it is told anything."""

    def enough(_):
        raise Enough

    try:
        call(callback=enough)
    except Enough:
        return
    raise AssertionError("the callback was not heard")


def saved_and_loaded(result):
    """By a file in memory."""
    file = io.BytesIO()
    save(result, file)
    return load(io.BytesIO(file.getvalue()))


FAMILIES = {
    "gram": lambda: (kernels.gram(X), kernels.gram(thin)),
    "maps": lambda: kernels.nystroem(X, n_components=4, rng=0).transform(X),
    "svc": lambda: svm.svc(X, two),
    "svr": lambda: svm.svr(X, y),
    "svm use": lambda: svm.predict(model, X),
    "ridge": lambda: ridge.fit(X, y, 0.1),
    "ridge use": lambda: ridge.predict(fitted, X),
    "erm": lambda: erm.fit(X[:8], two[:8], 1.0),
    "knn graph": lambda: graph.knn_graph(X, 3),
    "graph fit": lambda: graph.fit(near, two[:12], 0.1, np.arange(12), unreached="nan"),
    "tree": lambda: trees.grow(X, three),
    "tree with holes": lambda: trees.grow(holes, two, missing="surrogate"),
    "tree use": lambda: trees.predict(grown, X),
    "prune": lambda: (prune.cost_complexity_path(grown), prune.reduced_error(grown, X, three)),
    "induce": lambda: rules.induce(X[:12], two[:12], rng=0, optimise=0),
    "extract": lambda: rules.predict(rules.extract(grown), X),
    "export": lambda: export.from_json(text),
    "refused": lambda: refused(),
    "additive": lambda: rules.additive(X, two, max_depth=1, n_lams=3, folds=None, rng=0),
    "additive use": lambda: rules.decision(summed, X),
    "ridge path": lambda: ridge.path(X, y, [0.1, 1.0]),
    "save and load": lambda: [saved_and_loaded(result) for result in (grown, model, listed, fitted, summed)],
    "stopped svc": lambda: stopped(lambda **told: svm.svc(X, three, **told)),
    "stopped tree": lambda: stopped(lambda **told: trees.grow(X, three, **told)),
    "stopped ridge": lambda: stopped(lambda **told: ridge.fit(X, y, 0.1, **told)),
    "stopped additive": lambda: stopped(lambda **told: rules.additive(X, two, max_depth=1, n_lams=3, rng=0, **told)),
}


FITS = (
    "gram", "maps", "svc", "ridge", "ridge path", "erm", "graph fit", "tree", "tree with holes", "induce",
    "stopped tree",
)  # fmt: skip


def refused():
    """Errors leave nothing behind either."""
    for call in (lambda: svm.svc(X, two[:3]), lambda: trees.grow(X * np.inf, two), lambda: ridge.fit(X, y, -1.0)):
        try:
            call()
        except ValueError:
            continue
        raise AssertionError("was not refused")


class MallocInfo(ctypes.Structure):
    """glibc's mallinfo2."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    )  # fmt: skip


def bytes_in_use():
    """What malloc has handed out; with PYTHONMALLOC=malloc Python's objects too."""
    gc.collect()
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = MallocInfo
    info = libc.mallinfo2()
    return info.uordblks + info.hblkhd


def growth():
    """Fits a thousand times; what uses them less often, as it shares their memory.

    NumPy and the standard library keep some small blocks for later, once: what seems to grow is called as often again,
    up to two times. What leaks does so every time.
    """
    gc.collect()
    gc.freeze()  # what was imported stays: looking through it fifty times would take seconds
    for name, call in FAMILIES.items():
        n_calls, least = 1000 if name in FITS else 250, float("inf")
        for _ in range(60):
            call()
        for _ in range(3):
            before = bytes_in_use()
            for _ in range(n_calls):
                call()
            least = min(least, (bytes_in_use() - before) / n_calls)
            if least < 50:
                break
        print(f"{name}\t{least}", flush=True)


def faulted_calls():
    """Calls that ask for memory in every way that there is; the data of `many` do not fit one arena, nor a code."""
    many, two_of, _, y_of, holes_of = table(700)
    more, two_more, *_ = table(4800)
    large = rng.normal(size=(120_000, 9))
    wide = rng.normal(size=(800, 3))  # its matrix and the caches of kernel rows take more than 4 MB: core/base/memory.h
    calls = {
        "large gram": lambda: kernels.gram(wide),
        "large svc": lambda: svm.svc(wide, wide[:, 0] > 0, max_iter=5),
        "large erm": lambda: erm.fit(wide, wide[:, 0] > 0, 1.0, max_iter=2),
        "large induce": lambda: rules.induce(large, large[:, 0] > 1.5, rng=0, max_rules=1, optimise=0),
        "large tree": lambda: trees.grow(large, large[:, 0] > 0, max_depth=1),
        "gram": lambda: kernels.gram(X),
        "gram of sparse rows": lambda: kernels.gram(thin, X, kernels.Laplacian(1.0)),
        "svc": lambda: svm.svc(X, three, cache_mb=0.001, max_iter=30),
        "svc of sparse rows": lambda: svm.svc(thin, two),
        "nu svc": lambda: svm.svc(X, two, nu=0.3),
        "nu svr": lambda: svm.svr(X, y, nu=0.3),
        "one class": lambda: svm.one_class(X),
        "hard": lambda: svm.svc(X, y > 0, C=np.inf, kernel=kernels.Linear()),
        "decision": lambda: svm.decision(model, X),
        "ridge": lambda: ridge.fit(X, y, 0.1),
        "ridge cg": lambda: ridge.fit(X, y, 0.1, solver="cg"),
        "erm": lambda: erm.fit(X, two, 0.1),
        "knn graph": lambda: graph.knn_graph(X, 3, method="tiles"),
        "induce": lambda: rules.induce(many, two_of, rng=0, max_rules=3),
        "induce from words": lambda: rules.induce(words, two, rng=0),
        "coverage": lambda: rules.coverage(rules.extract(grown), X),
        "simplify": lambda: rules.simplify(listed, X, three),
        "apply": lambda: trees.decision_path(grown, X),
        "tree of words": lambda: trees.grow(words, three, missing="surrogate"),
        "tree of sparse rows": lambda: trees.grow(thin, two),
        "tree": lambda: trees.grow(holes_of, two_of, max_depth=4),
        "tree by surrogates": lambda: trees.grow(holes_of, two_of, missing="surrogate", max_depth=4),
        "tree best first": lambda: trees.grow(holes_of, two_of, max_leaves=12),
        "tree of targets": lambda: trees.grow(holes_of, y_of, criterion="squared_error", max_depth=4),
        "tree of medians": lambda: trees.grow(holes_of, y_of, criterion="absolute_error", max_depth=3),
        "subtrees": lambda: trees.grow(more, two_more, max_depth=4, n_threads=2),
        "additive": lambda: rules.additive(many, two_of, max_depth=2, trees=2, n_lams=3, folds=None, rng=0),
        "additive use": lambda: rules.decision(replace(summed), X),  # a new one: it keeps its tests
        "ridge path": lambda: ridge.path(X, y, [0.1, 1.0]),
        "stopped svc": lambda: stopped(lambda **told: svm.svc(X, three, **told)),
        "stopped tree": lambda: stopped(lambda **told: trees.grow(holes_of, two_of, **told)),
    }
    return calls


def faults(most):
    """Fail each allocation of each call, or `most` of them; a line tells of anything but a MemoryError with words."""
    shim = ctypes.CDLL(None)
    shim.live.restype = shim.asked.restype = ctypes.c_long
    shim.fail_at.argtypes = (ctypes.c_long,)
    assert shim.watch() > 30
    for name, call in faulted_calls().items():
        shim.fail_at(0)
        call()
        n_asked, came = shim.asked(), Counter()
        assert n_asked > 0, f"{name} asks for no memory"
        for k in range(1, n_asked + 1, -(-n_asked // most)):
            before = shim.live()
            shim.fail_at(k)
            try:
                call()
                came["no error"] += 1
            except MemoryError as error:
                came["MemoryError" if str(error) else "MemoryError without a word"] += 1
            except Exception as error:
                came[repr(error)] += 1
            shim.fail_at(0)
            came["left behind"] += shim.live() - before
        print(f"{name}\t{n_asked}\t{dict(+came)}", flush=True)


def limit():
    """Calls that need far more than is left."""
    wide, wider, labels = rng.normal(size=(6000, 4)), rng.normal(size=(6000, 1000)), rng.integers(2, size=6000)
    with open("/proc/self/statm") as pages:
        used = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), used + (20 << 20)))
    for name, call in {
        "gram": lambda: kernels.gram(wide),
        "ridge": lambda: ridge.fit(wide, wide[:, 0], 0.1, form="dual"),
        "ridge path": lambda: ridge.path(wide, wide[:, 0], [0.1]),
        "svc": lambda: svm.svc(wide, labels, max_iter=10**5),
        "tree": lambda: trees.grow(wider, labels),
    }.items():
        try:
            call()
            print(f"{name}\tdone", flush=True)
        except MemoryError:
            print(f"{name}\tMemoryError", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    match sys.argv[1]:
        case "growth":
            growth()
        case "faults":
            faults(int(sys.argv[2]))
        case "limit":
            limit()
