"""Every function that can run long takes n_threads (unless it is serial), callback and progress, and reports."""

import inspect
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kernelrules
from kernelrules import bounds, erm, graph, kernels, parallel, progress, prune, ridge, rules, svm, tree

rng = np.random.default_rng(0)
X = rng.normal(size=(260, 3))
Y = np.arange(260) % 3
TARGETS = np.sin(X[:, 0])
RBF = kernels.RBF(0.5)


class Made:
    """What the functions that use a fit are given, made when first asked for."""

    @staticmethod
    def svc():
        return svm.svc(X, Y > 0)

    @staticmethod
    def map():
        return kernels.nystroem(X, RBF, 50, rng=0)

    @staticmethod
    def calibrated():
        return svm.calibrate(Made.svc(), X, Y > 0)

    @staticmethod
    def ridge():
        return ridge.fit(X, TARGETS, 0.1, RBF)

    @staticmethod
    def path():
        return ridge.path(X, TARGETS, [0.1, 1.0], RBF)

    @staticmethod
    def erm():
        return erm.fit(X, Y, 0.1, RBF)

    @staticmethod
    def tree():
        return tree.grow(X, Y, max_leaves=8)

    @staticmethod
    def large():
        return tree.grow(X, Y)

    @staticmethod
    def rules():
        return rules.extract(Made.tree())

    @staticmethod
    def additive():
        return rules.additive(X, Y, max_depth=1, n_lams=3, folds=None, rng=0)

    @staticmethod
    def graph():
        return graph.knn_graph(X, 5)


# Each function as it is called by hand; `told` is what the test adds.
LONG = {
    "kernels.gram": lambda **told: kernels.gram(X, **told),
    "kernels.nystroem": lambda **told: kernels.nystroem(X, RBF, 50, rng=0, **told),
    "kernels.FeatureMap.transform": lambda **told: Made.map().transform(X, **told),
    "ridge.fit": lambda **told: ridge.fit(X, TARGETS, 0.1, RBF, **told),
    "ridge.path": lambda **told: ridge.path(X, TARGETS, [0.1, 1.0], RBF, **told),
    "ridge.at": lambda **told: ridge.at(Made.path(), **told),
    "ridge.certificate": lambda **told: ridge.certificate(X, TARGETS, 1e6, RBF, alpha=0 * TARGETS, **told),
    "ridge.predict": lambda **told: ridge.predict(Made.ridge(), X, **told),
    "ridge.posterior": lambda **told: ridge.posterior(Made.ridge(), X, **told),
    "ridge.log_marginal_likelihood": lambda **told: ridge.log_marginal_likelihood(Made.ridge(), **told),
    "ridge.fit_blocks": lambda **told: ridge.fit_blocks([(X, TARGETS)] * 3, 0.1, **told),
    "svm.svc": lambda **told: svm.svc(X, Y, **told),
    "svm.svr": lambda **told: svm.svr(X, TARGETS, **told),
    "svm.one_class": lambda **told: svm.one_class(X, **told),
    "svm.path": lambda **told: svm.path(X, Y, [1.0, 0.1], **told),
    "svm.budget": lambda **told: svm.budget(X, Y > 0, 100.0, **told),
    "svm.tune": lambda **told: svm.tune(X, Y, Cs=[1.0, 0.1], gammas=[0.1, 1.0], folds=2, rng=0, **told),
    "svm.calibrate": lambda **told: svm.calibrate(Made.svc(), X, Y > 0, **told),
    "svm.decision": lambda **told: svm.decision(Made.svc(), X, **told),
    "svm.predict": lambda **told: svm.predict(Made.svc(), X, **told),
    "svm.predict_proba": lambda **told: svm.predict_proba(Made.calibrated(), X, **told),
    "svm.slacks": lambda **told: svm.slacks(Made.svc(), X, Y > 0, **told),
    "erm.fit": lambda **told: erm.fit(X, Y, 0.1, RBF, **told),
    "erm.decision": lambda **told: erm.decision(Made.erm(), X, **told),
    "erm.predict": lambda **told: erm.predict(Made.erm(), X, **told),
    "erm.predict_proba": lambda **told: erm.predict_proba(Made.erm(), X, **told),
    "graph.knn_graph": lambda **told: graph.knn_graph(X, 5, **told),
    "graph.fit": lambda **told: graph.fit(Made.graph(), Y[:40], 0.1, np.arange(40), solver="cg", **told),
    "tree.grow": lambda **told: tree.grow(X, Y, **told),
    "tree.apply": lambda **told: tree.apply(Made.tree(), X, **told),
    "tree.decision_path": lambda **told: tree.decision_path(Made.tree(), X, **told),
    "tree.predict": lambda **told: tree.predict(Made.tree(), X, **told),
    "tree.predict_proba": lambda **told: tree.predict_proba(Made.tree(), X, **told),
    "prune.cross_validate": lambda **told: prune.cross_validate(X, Y, folds=2, rng=0, **told),
    "prune.reduced_error": lambda **told: prune.reduced_error(Made.tree(), X, Y, **told),
    "prune.pessimistic": lambda **told: prune.pessimistic(Made.large(), raising=True, X=X, y=Y, **told),
    "rules.coverage": lambda **told: rules.coverage(Made.rules(), X, **told),
    "rules.predict": lambda **told: rules.predict(Made.rules(), X, **told),
    "rules.predict_proba": lambda **told: rules.predict_proba(Made.rules(), X, **told),
    "rules.additive": lambda **told: rules.additive(X, Y, max_depth=1, n_lams=4, folds=2, rng=0, **told),
    "rules.decision": lambda **told: rules.decision(Made.additive(), X, **told),
    "rules.induce": lambda **told: rules.induce(X[:60], Y[:60], rng=0, **told),
    "rules.decision_list": lambda **told: rules.decision_list(Made.rules(), **told),
    "rules.simplify": lambda **told: rules.simplify(Made.rules(), X, Y, **told),
    "bounds.of_model": lambda **told: bounds.of_model(Made.svc(), X, Y > 0, **told),
    "bounds.rademacher_monte_carlo": lambda **told: bounds.rademacher_monte_carlo(kernels.gram(X), 1.0, rng=0, **told),
}
# Linear or nearly so in nodes, rules or numbers that they are given, or a handful of products: never long.
SHORT = {
    "kernels.diagonal", "kernels.feature_map", "kernels.random_fourier", "svm.margin", "graph.laplacian",
    "tree.importance", "prune.chi2", "prune.cost_complexity", "prune.cost_complexity_path", "prune.mdl",
    "prune.snip", "prune.to_size", "rules.extract", "bounds.covering",
    "bounds.margin_bound", "bounds.of_tree", "bounds.rademacher", "bounds.tree", "bounds.tree_labelings",
    "bounds.tree_rademacher",
}  # fmt: skip
SERIAL = {"prune.pessimistic", "rules.decision_list"}  # by one thread, whatever there is
MANY_FITS = {"svm.svc", "svm.path", "svm.tune", "erm.fit", "prune.cross_validate", "ridge.fit_blocks"}
FAMILIES = ("kernels", "ridge", "svm", "erm", "graph", "tree", "prune", "rules", "bounds")


def public_functions():
    for family in FAMILIES:
        module = getattr(kernelrules, family)
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                yield f"{family}.{name}", getattr(module, name)
    yield "kernels.FeatureMap.transform", kernels.FeatureMap.transform


def test_the_table_is_complete():
    """Each public function is in it, or is known to be short; all that are long take the same three arguments."""
    known = dict(public_functions())
    assert set(known) - SHORT == set(LONG)
    for name in LONG:
        given = inspect.signature(known[name]).parameters
        for argument, default in (("n_threads", None), ("callback", None), ("progress", False)):
            if argument == "n_threads" and name in SERIAL:
                continue
            assert given[argument].default is default, f"{name} has no {argument}"
            assert given[argument].kind is inspect.Parameter.KEYWORD_ONLY
        assert ("executor" in given) == (name in MANY_FITS), name
        assert re.search(r"\bprogress\b", known[name].__doc__), f"{name} does not tell of progress"


@pytest.mark.parametrize("name", LONG)
def test_progress_is_told_in_order_and_ends(name):
    seen = []
    LONG[name](callback=seen.append)
    assert len({p.what for p in seen}) == 1
    assert all(isinstance(p, parallel.Progress) for p in seen)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert all(0 <= p.done <= p.total for p in seen)
    assert seen[-1].done == seen[-1].total > 0
    assert [p.fraction for p in seen].count(1.0) >= 1


@pytest.mark.parametrize("name", LONG)
def test_what_a_callback_raises_comes_out(name):
    class Enough(Exception):
        pass

    def enough(_):
        raise Enough

    with pytest.raises(Enough):
        LONG[name](callback=enough)
    with pytest.raises(TypeError, match="callback must be callable"):
        LONG[name](callback=3)
    with pytest.raises(TypeError, match="progress must be True or False"):
        LONG[name](progress="yes")


def test_a_bar_is_drawn_and_closed(capsys):
    pytest.importorskip("tqdm")
    for name in ("kernels.gram", "svm.svc", "prune.cross_validate"):
        LONG[name](progress=True)
        said = capsys.readouterr().err
        what = {"kernels.gram": "gram", "svm.svc": "svm", "prune.cross_validate": "prune"}[name]
        assert what in said
        assert "100%" in said
        assert said.endswith("\n")
    seen = []
    LONG["svm.svc"](progress=True, callback=seen.append)
    assert seen
    assert "violation" in capsys.readouterr().err

    def enough(_):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        LONG["kernels.gram"](progress=True, callback=enough)
    assert capsys.readouterr().err.endswith("\n")  # closed


def test_without_tqdm_there_is_a_hint_and_a_result(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.warns(progress.ProgressWarning, match=r"kernelrules\[progress\]") as caught:
        found = kernels.gram(X, progress=True)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(found, kernels.gram(X))


def test_parts_are_put_one_behind_the_other():
    seen = []
    tick = progress.Ticker(seen.append, "both")
    for done, total in ((1, 2), (2, 2), (0, 5), (3, 5), (1, 9)):
        tick(done, total)
    tick.finish()
    assert [(p.done, p.total) for p in seen] == [(1, 2), (2, 2), (2, 7), (5, 7), (6, 14), (14, 14)]


def test_a_solver_that_needs_less_than_its_limit_ends_there():
    seen = []
    tick = progress.Ticker(seen.append, "solver")
    tick(7, 10_000, 0.5)
    tick.finish()
    assert (seen[-1].done, seen[-1].total, seen[-1].violation) == (7, 7, 0.5)


@pytest.mark.parametrize("name", sorted(MANY_FITS))
def test_tasks_of_an_executor_are_counted(name):
    """Without one, what is computed here is told too; with one, tasks that are done."""
    seen = []
    with ThreadPoolExecutor(2) as pool:
        LONG[name](executor=pool, callback=seen.append)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].done == seen[-1].total
    assert len({p.done for p in seen}) > 1


def test_a_name_is_told_for_every_computation():
    """Decorated functions keep their names, signatures, docstrings, and their place for doctest."""
    for name, function in public_functions():
        if name in LONG:
            assert function.__name__ == name.split(".")[-1]
            assert function.__globals__["__name__"] == function.__module__
            assert ">>>" in function.__doc__
