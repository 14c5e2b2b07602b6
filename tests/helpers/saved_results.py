"""What the tests of `save` and `load` share: a result of every type, what it is good for, and equality in every bit."""

import hashlib
import io
import json
from functools import cache
from itertools import chain

import gram_oracle
import numpy as np
from scipy import sparse

import kernelrules
from kernelrules import bounds, erm, graph, kernels, prune, results, ridge, rules, svm, tree
from kernelrules.persist.container import HEADER, members_of, write_members
from kernelrules.persist.registry import field_names, is_saved
from kernelrules.persist.writing import json_text

RNG = np.random.default_rng(7)
N = 60
X = RNG.normal(size=(N, 3))
NEW = RNG.normal(size=(25, 3))
SPARSE, NEW_SPARSE = (sparse.csr_array(np.where(a > 0.3, a, 0.0)) for a in (X, NEW))
Y = X[:, 0] + 0.5 * np.sin(3 * X[:, 1])
TWO = np.where(Y > 0, "ja", "nö")
THREE = np.digitize(Y, [-0.5, 0.5])
HOLES = np.where(RNG.random(X.shape) < 0.15, np.nan, X)
NEW_HOLES = np.where(RNG.random(NEW.shape) < 0.15, np.nan, NEW)
MIXED = np.column_stack([X[:, 0].astype(object), RNG.choice(["red", "green", "blue"], N), RNG.choice([True, False], N)])
NEW_MIXED = np.column_stack([NEW[:, 0].astype(object), RNG.choice(["red", "new", "blue"], 25), RNG.choice([True], 25)])
RBF, POLYNOMIAL = kernels.RBF(0.4), kernels.Polynomial(2, 0.5, 1.0)
GRAM, NEW_GRAM = kernels.gram(X, kernel=RBF), kernels.gram(NEW, X, RBF)
LINEAR = {"criterion": "squared_error", "leaf": "linear"}
OBJECTS = np.empty(3, dtype=object)
OBJECTS[:] = [("a", 1), ("b", 2.5), ("c", None)]


def _svm(fit, new=NEW):
    return fit, lambda model: (svm.decision(model, new), svm.predict(model, new))


def _calibrated(method, y):
    model = svm.svc(X, y, kernel=RBF)
    return svm.calibrate(model, X, y, method=method), lambda found: svm.predict_proba(found, NEW)


def _erm(kernel, y, new=NEW, **options):
    return erm.fit(X if new is NEW else GRAM, y, 0.1, kernel, **options), lambda fit: erm.decision(fit, new)


def _ridge(data, y, kernel, new=NEW, **options):
    def use(fit):
        if isinstance(kernel, kernels.Precomputed):
            return ridge.predict(fit, new)
        found = ridge.posterior(fit, new)
        return ridge.predict(fit, new), found.mean, found.variance, ridge.log_marginal_likelihood(fit)

    return ridge.fit(data, y, 0.01, kernel, **options), use


def _path(kernel, y):
    return ridge.path(X, y, [0.1, 0.01], kernel), lambda path: ridge.predict(ridge.at(path), NEW)


def _tree(data, y, new=NEW, **options):
    grown = tree.grow(data, y, max_depth=4, rng=0, **options)
    ask = tree.predict if grown.missing == "fractional" else tree.apply  # where a row has one leaf
    return grown, lambda t: (tree.predict(t, new), ask(t, new), tree.importance(t))


def _rules(made, new=NEW):
    return made, lambda rs: (rules.predict(rs, new), rules.coverage(rs, new).rule, str(rs))


def _map(phi, new=NEW):
    return phi, lambda found: found.transform(new)


def _nothing(made):
    return made, lambda found: ()


def _graph(classes):
    chain_of = np.diag(np.ones(7), 1) + np.diag(np.ones(7), -1)
    chain_of[5, 6] = chain_of[6, 5] = 0.0  # two points that no label reaches
    y = ["left", "right"] if classes else [0.0, 3.0]
    return _nothing(graph.fit(chain_of, y, 0.1, [0, 4], unreached="nan"))


def _pruned():
    """Trees of other kinds, and of other makers."""
    grown = tree.grow(HOLES, THREE, missing="surrogate")
    mixed = tree.grow(MIXED, TWO, growth="best")
    pruned = tuple(prune.to_size(t, 5) for t in (grown, mixed))
    pruned += (
        prune.pessimistic(mixed),
        prune.mdl(grown),
        prune.chi2(mixed, 0.2),
        prune.reduced_error(grown, NEW, THREE[:25]),
    )
    pruned += (prune.pessimistic(mixed, raising=True, X=MIXED, y=TWO), prune.snip(grown, [1]))
    own = tree.grow(X, TWO, criterion=lambda shares: shares.min(axis=-1), max_depth=3)
    few = tree.grow(X, Y, criterion="absolute_error", max_leaves=6, growth="best", max_features=2, rng=0)
    return (*pruned, own, few, tree.grow(X, np.zeros(N))), lambda trees: tree.predict(trees[0], NEW)


def _prune_cv():
    found = prune.cross_validate(X, THREE, folds=3, rng=0)
    return found, lambda cv: (tree.predict(cv.tree, NEW), tree.predict(cv.grown, NEW), cv.xerror)


EXAMPLES = {
    **{
        cls.__name__: lambda made=definition.example: (made, lambda kernel: kernels.gram(NEW, X, kernel))
        for cls, definition in gram_oracle.KERNELS.items()
    },
    "svc": lambda: _svm(svm.svc(X, TWO)),
    "svc of three classes, float32": lambda: _svm(svm.svc(X.astype(np.float32), THREE, kernel=kernels.Linear())),
    "svc one-vs-rest, sparse": lambda: _svm(svm.svc(SPARSE, THREE, kernel=RBF, multiclass="ovr"), NEW_SPARSE),
    "svc, hard margin": lambda: _svm(svm.svc(X, X[:, 0] > 0, C=np.inf, kernel=kernels.Linear())),
    "svc precomputed": lambda: _svm(svm.svc(GRAM, TWO, kernel=kernels.Precomputed()), NEW_GRAM),
    "svc of dates": lambda: _svm(svm.svc(X, THREE.astype("M8[D]"), kernel=kernels.Laplacian(0.3))),
    "svc of tuples": lambda: _svm(svm.svc(X, OBJECTS[THREE], kernel=RBF)),
    "svc with weights": lambda: _svm(svm.svc(1e8 * X, THREE, C=10.0, kernel=kernels.Linear())),
    "svr": lambda: _svm(svm.svr(X, Y, kernel=kernels.Sigmoid(0.1))),
    "one class": lambda: _svm(svm.one_class(X, nu=0.2)),
    "svm path": lambda: (svm.path(X, TWO, [0.1, 1.0]), lambda models: [svm.decision(m, NEW) for m in models]),
    "svm tuned": lambda: (
        svm.tune(X, TWO, Cs=[0.1, 1.0], folds=3, rng=0), lambda found: (svm.predict(found.model, NEW), found.best["C"]),
    ),
    "svr tuned": lambda: (
        svm.tune(X, Y, Cs=[0.1, 1.0], gammas=[0.1, 1.0], folds=3, rng=0, task="svr", measure="absolute_error"),
        lambda found: (svm.predict(found.model, NEW), found.grid, found.measure),
    ),
    "slacks": lambda: _nothing(svm.slacks(svm.svc(X, TWO), X, TWO)),
    "slacks of three classes": lambda: _nothing(svm.slacks(svm.svc(X, THREE), X, THREE)),
    "svm budget of three classes": lambda: _svm(svm.budget(X, THREE, 8.0, kernel=RBF)),
    "platt": lambda: _calibrated("platt", TWO),
    "isotonic": lambda: _calibrated("isotonic", THREE),
    "erm": lambda: _erm(RBF, TWO),
    "erm by features": lambda: _erm(POLYNOMIAL, THREE, loss="squared"),
    "erm of the hinge loss": lambda: _erm(RBF, TWO, loss="hinge", intercept=True),
    "erm precomputed": lambda: _erm(kernels.Precomputed(), TWO, NEW_GRAM),
    "ridge": lambda: _ridge(X, Y, RBF, form="kernel", keep_factor=True),
    "ridge of float32": lambda: _ridge(X.astype(np.float32), Y, RBF, NEW.astype(np.float32), keep_factor=True),
    "ridge by features": lambda: _ridge(X, np.column_stack([Y, X[:, 2]]), POLYNOMIAL, form="features", intercept=True),
    "ridge sparse": lambda: _ridge(SPARSE, Y, RBF, NEW_SPARSE, form="dual"),
    "ridge precomputed": lambda: _ridge(GRAM, Y[:40], kernels.Precomputed(), NEW_GRAM),
    "ridge path": lambda: _path(RBF, Y),
    "ridge path by features": lambda: _path(kernels.Linear(), np.column_stack([Y, Y])),
    "posterior": lambda: _nothing(ridge.posterior(ridge.fit(X, Y, 0.01, RBF), NEW)),
    "graph of classes": lambda: _graph(True),
    "graph of numbers": lambda: _graph(False),
    "tree": lambda: _tree(X, TWO),
    "tree with surrogates": lambda: _tree(HOLES, THREE, NEW_HOLES, missing="surrogate"),
    "tree with fractions": lambda: _tree(HOLES, THREE, NEW_HOLES, missing="fractional"),
    "tree of categories": lambda: _tree(MIXED, TWO, NEW_MIXED),
    "tree with linear leaves": lambda: _tree(HOLES, Y, NEW_HOLES, **LINEAR, missing="impute"),
    "tree with oblique splits": lambda: _tree(X, TWO, splits="oblique"),
    "tree of several targets": lambda: _tree(X, np.column_stack([Y, X[:, 1]]), criterion="squared_error"),
    "prune path": lambda: _nothing(prune.cost_complexity_path(tree.grow(X, THREE))),
    "pruned": _pruned,
    "prune cv": _prune_cv,
    "rules": lambda: _rules(rules.extract(tree.grow(X, THREE, max_depth=3), ["a", "b", "ς"])),
    "many rules": lambda: _rules(rules.extract(tree.grow(MIXED, RNG.integers(0, 3, N))), NEW_MIXED),
    "many rules of regression": lambda: _rules(rules.extract(tree.grow(X, Y, criterion="squared_error"))),
    "many rules of two targets": lambda: _rules(rules.extract(tree.grow(X, X[:, :2], criterion="squared_error"))),
    "rules of categories": lambda: _rules(rules.induce(MIXED, TWO, rng=0), NEW_MIXED),
    "rules of regression": lambda: _rules(rules.extract(tree.grow(X, Y, criterion="squared_error", max_depth=2))),
    "rules of sums": lambda: _rules(rules.extract(tree.grow(X, TWO, splits="oblique", max_depth=3))),
    "rules of linear leaves": lambda: _rules(
        rules.extract(tree.grow(HOLES, Y, **LINEAR, missing="impute", max_depth=2, rng=0)), NEW_HOLES,
    ),
    "many rules of linear leaves": lambda: _rules(rules.extract(tree.grow(X, Y, **LINEAR, splits="oblique"))),
    "rules of words": lambda: _rules(rules.induce(SPARSE > 0, TWO, rng=0), NEW_SPARSE > 0),
    "a rule": lambda: _nothing(rules.extract(tree.grow(X, THREE, max_depth=3))[1]),
    "coverage": lambda: _nothing(rules.coverage(rules.extract(tree.grow(X, TWO, max_depth=3)), NEW)),
    "a bound": lambda: _nothing(bounds.of_tree(tree.grow(X, TWO, max_depth=2), X, TWO)),
    "an estimate": lambda: _nothing(bounds.rademacher_monte_carlo(GRAM, 1.0, rng=0)),
    "kernels": lambda: _nothing((kernels.RBF(), kernels.Linear(), kernels.Precomputed(), kernels.Sigmoid(0.5, -0.0))),
    "identity map": lambda: _map(kernels.feature_map(kernels.Linear(), 3)),
    "monomials": lambda: _map(kernels.feature_map(kernels.Polynomial(3, 1.0, 0.0), 3)),
    "nystroem": lambda: _map(kernels.nystroem(X, RBF, 10, rng=0)),
    "nystroem sparse": lambda: _map(kernels.nystroem(SPARSE, RBF, 10, rng=0), NEW_SPARSE),
    "nystroem precomputed": lambda: _map(kernels.nystroem(GRAM, kernels.Precomputed(), 10, rng=0), NEW_GRAM),
    "fourier": lambda: _map(kernels.random_fourier(RBF, 3, 7, rng=0)),
    "several": lambda: _nothing({"t": [tree.grow(X, TWO, max_depth=1)], 3: (RBF, svm.one_class(X))}),
}  # fmt: skip


if hasattr(rules, "additive"):

    def _additive(data, y, new, **options):
        found = rules.additive(data, y, n_lams=6, folds=3, trees=1, rng=0, **options)
        return found, lambda model: (rules.predict(model, new), str(model))

    EXAMPLES["additive rules"] = lambda: _additive(MIXED, TWO, NEW_MIXED)
    EXAMPLES["additive rules of three classes"] = lambda: _additive(X, THREE, NEW, linear=True)
    EXAMPLES["additive rules of numbers"] = lambda: _additive(HOLES, Y, NEW_HOLES, loss="squared")
if hasattr(ridge, "fit_blocks"):

    def _blocks(phi, y, **options):
        return ridge.fit_blocks([(X[:30], y[:30]), (X[30:], y[30:])], 0.01, phi, **options), lambda fit: ridge.predict(
            fit, NEW
        )

    EXAMPLES["ridge of blocks"] = lambda: _blocks(kernels.nystroem(X, RBF, 10, rng=0), Y)
    EXAMPLES["ridge of blocks as they are"] = lambda: _blocks(None, X[:, :2], intercept=True)
if hasattr(results, "TableModel"):
    EXAMPLES["a model of a table"] = lambda: _nothing(
        results.TableModel(
            learner="svm", target="y", classes=np.array(["ja", "nö"]), columns=("a", "b", "c"), kinds=("number",) * 3,
            levels=(None,) * 3, centre=np.zeros(3), scale=np.ones(3), dummies=(None,) * 3,
            missing_seen=np.zeros(3, dtype=bool), model=svm.svc(X, TWO), n_train=N,
        )
    )  # fmt: skip

    def _table(learner, fit, y):
        """Of a column of numbers and one of categories, as the command line makes it."""
        levels = ("blue", "green", "red")
        coded = np.column_stack([X[:, 0], np.searchsorted(levels, MIXED[:, 1].astype(str)).astype(float)])
        dummies = (coded[:, 1:] == [0, 2]).astype(float)
        return _nothing(
            results.TableModel(
                learner=learner, target="y", classes=None if y.dtype.kind == "f" else np.unique(y), columns=("a", "b"),
                kinds=("number", "category"), levels=(None, levels), centre=np.zeros(2), scale=np.ones(2),
                dummies=(None, np.array([0, 2])), missing_seen=np.zeros(2, dtype=bool), n_train=N, commas=("", ""),
                model=fit(coded if learner in ("tree", "rules") else np.column_stack([coded[:, 0], dummies]), y),
            )
        )  # fmt: skip

    EXAMPLES["a tree of a table"] = lambda: _table(
        "tree", lambda data, y: tree.grow(data, y, categorical=[1], max_depth=4), TWO
    )
    EXAMPLES["rules of a table"] = lambda: _table(
        "rules", lambda data, y: rules.induce(data, y, categorical=[1], rng=0), TWO
    )
    EXAMPLES["ridge of a table"] = lambda: _table("ridge", lambda data, y: ridge.fit(data, y, 0.1), Y)


@cache
def example(name):
    """A result, and a function that asks it all it can answer."""
    return EXAMPLES[name]()


def saved(result):
    """The bytes of its file."""
    file = io.BytesIO()
    kernelrules.save(result, file)
    return file.getvalue()


def loaded(data):
    """What is in the bytes of a file."""
    return kernelrules.load(io.BytesIO(data))


def taken_apart(data):
    """The header of a file, and its arrays' bytes by name."""
    members = {name: contents.tobytes() for name, contents in members_of(np.frombuffer(data, dtype=np.uint8)).items()}
    return json.loads(members.pop(HEADER)), members


def put_together(header, members):
    """A file of them with all its checksums right, as someone makes it who knows the format."""
    header = {name: entry for name, entry in header.items() if name != "sha256"}
    header["members"] = {name: hashlib.sha256(contents).hexdigest() for name, contents in sorted(members.items())}
    header["sha256"] = hashlib.sha256(json_text(header)).hexdigest()
    file = io.BytesIO()
    write_members([(HEADER, [json_text(header)]), *((name, [part]) for name, part in sorted(members.items()))], file)
    return file.getvalue()


def objects_in(value):
    """All results, kernels and maps in a value."""
    if isinstance(value, dict):
        return chain.from_iterable(map(objects_in, value.values()))
    if is_saved(type(value)):
        return chain([value], *(objects_in(getattr(value, name)) for name in field_names(type(value))))
    return chain.from_iterable(map(objects_in, value)) if isinstance(value, (tuple, list)) else iter(())


def arrays_in(value):
    """All arrays in a value."""
    if sparse.issparse(value):
        yield from (value.data, value.indices, value.indptr)
    elif isinstance(value, np.ma.MaskedArray):
        yield from (value.data, value.mask)
    elif isinstance(value, np.ndarray):
        yield value
    elif is_saved(type(value)):
        yield from chain.from_iterable(arrays_in(getattr(value, name)) for name in field_names(type(value)))
    elif isinstance(value, (tuple, list)):
        yield from chain.from_iterable(map(arrays_in, value))
    elif isinstance(value, dict):
        yield from chain.from_iterable(map(arrays_in, value.values()))


def assert_same(a, b, where="it"):
    """Of the same types and bits throughout."""
    assert type(a) is type(b), where
    if is_saved(type(a)):
        for name in field_names(type(a)):
            assert_same(getattr(a, name), getattr(b, name), f"{where}.{name}")
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b), where
        for i, (left, right) in enumerate(zip(a, b, strict=True)):
            assert_same(left, right, f"{where}[{i}]")
    elif isinstance(a, dict):
        assert_same(list(a.items()), list(b.items()), where)
    elif sparse.issparse(a):
        assert a.shape == b.shape, where
        assert_same(list(arrays_in(a)), list(arrays_in(b)), where)
    elif isinstance(a, np.ma.MaskedArray):
        assert_same([a.data, np.ma.getmaskarray(a)], [b.data, np.ma.getmaskarray(b)], where)
    elif isinstance(a, (np.ndarray, np.generic)):
        assert a.dtype == b.dtype, where
        assert a.shape == b.shape, where
        if a.dtype.kind == "O":
            assert_same(a.ravel().tolist(), b.ravel().tolist(), where)
        else:
            assert a.tobytes() == b.tobytes(), where
            assert np.isfortran(np.asarray(a)) == np.isfortran(np.asarray(b)), where
    elif isinstance(a, float):
        assert a.hex() == b.hex(), where
    else:
        assert a == b, where
