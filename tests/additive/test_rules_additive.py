"""rules.additive as a whole: certificates, relations that must hold, answers, and any input."""

import additive_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupting import seconds_to_stop
from scipy import sparse
from strategies import layouts

from kernelrules import rules
from kernelrules.results import AdditiveRules

STUMPS = {"max_depth": 1}


def problem(n=300, p=4, seed=0, logistic=True):
    """A box, a threshold and a level decide, with noise; some values are missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).round(2)
    X[:, -1] = rng.integers(3, size=n)
    f = 2.0 * ((X[:, 0] > 0) & (X[:, 1] <= 0.5)) - 1.5 * (X[:, 2] > 1) + 1.0 * (X[:, -1] == 2) - 0.5
    X[rng.random(n) < 0.1, 0] = np.nan
    y = f + rng.logistic(size=n)
    return X, np.where(y > 0, "in", "out") if logistic else y


def fit(X, y, **options):
    options = {"categorical": [-1], "rng": 0, "n_lams": 12, "ratio": 0.05, "folds": None, "n_threads": 1} | options
    return rules.additive(X, y, **options)


def target(y):
    return (y == "out").astype(float) if y.dtype.kind == "U" else y


def same(a, b, **tolerance):
    np.testing.assert_allclose(a.lams, b.lams, **tolerance)
    np.testing.assert_allclose(a.intercepts, b.intercepts, **tolerance)
    assert [r.conditions for r in a.rules] == [r.conditions for r in b.rules]
    np.testing.assert_allclose(a.coefficients, b.coefficients, **tolerance)


# ---- certificates -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("logistic", [True, False])
@pytest.mark.parametrize("options", [STUMPS, {"max_depth": 3}, {"max_depth": 2, "linear": True}])
def test_path_is_optimal_over_its_rules(logistic, options):
    """The objective at every λ, recomputed from the conditions, and that of proximal gradients on the same columns."""
    X, y = problem(logistic=logistic)
    model = fit(X, y, loss="logistic" if logistic else "squared", tol=1e-7, **options)
    C, w, t = oracle.rule_matrix(model, X), np.ones(len(y)), target(y)
    for k in range(0, len(model.lams), 3):
        lam, reported = model.lams[k], model.coefficients[k, 0]
        primal = oracle.objective(C, t, w, reported, model.intercepts[k, 0], lam, logistic)
        assert primal == pytest.approx(model.primal[k, 0], rel=1e-9)
        best = oracle.objective(C, t, w, *oracle.solve(C, t, w, lam, logistic, 3000), lam, logistic)
        assert model.dual[k, 0] <= best + 1e-10
        assert model.gap[k, 0] <= 1.1e-7 * max(model.primal[0, 0], 1)
        assert primal <= best + model.gap[k, 0] + 1e-10
    assert model.converged.all()
    assert not model.coefficients[0].any() or options != STUMPS
    norms = np.abs(model.coefficients).sum(axis=(1, 2))
    assert (np.diff(norms) >= -1e-3 * norms[1:]).all()


@pytest.mark.parametrize("logistic", [True, False])
def test_gap_over_all_stumps(logistic):
    """No stump whatever may exceed λ at the solution: all are tried, one by one."""
    X, y = problem(120, logistic=logistic)
    model = fit(X, y, loss="logistic" if logistic else "squared", tol=1e-8, n_lams=6, **STUMPS)
    C, t = oracle.rule_matrix(model, X), target(y)
    for k, lam in enumerate(model.lams):
        f = C @ model.coefficients[k, 0] + model.intercepts[k, 0]
        s = (t - (1 / (1 + np.exp(-f)) if logistic else f)) / len(t)
        assert abs(s.sum()) < 1e-6
        largest = max(oracle.best_stump(X[:, j], 3 if j == 3 else 0, s) for j in range(4))
        assert largest <= lam * (1 + 1e-4)
        assert largest == pytest.approx(lam, rel=1e-4)
        assert model.gap_all[k, 0] >= model.gap[k, 0]
    assert model.gap_all.max() <= 1.1e-8 * model.primal[0, 0]
    assert model.converged.all()
    assert not model.coefficients[0].any()  # the first λ is the largest at which there is something
    assert model.coefficients[1].any()


def test_scikit_learn_finds_no_better_weights():
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = problem(logistic=False)
    model = fit(X, y, loss="squared", tol=1e-8, **STUMPS)
    C, k = oracle.rule_matrix(model, X), 4
    peer = linear_model.Lasso(alpha=model.lams[k], tol=1e-8, max_iter=100000).fit(C, y)
    theirs = oracle.objective(C, y, np.ones(len(y)), peer.coef_, peer.intercept_, model.lams[k], False)
    assert model.primal[k, 0] <= theirs + 1e-7
    assert model.dual[k, 0] <= theirs + 1e-12


@pytest.mark.parametrize("seed", [3, 7, 9, 12])
def test_converges_where_the_penalty_is_tiny(seed):
    """Nodes of trees are sums of others, and coordinate steps gain next to nothing: it must not stop there."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(20, 60)), 1)).round(1)
    y = rng.random(len(X)) < 0.5 if seed % 2 else rng.normal(size=len(X))
    loss = "logistic" if seed % 2 else "squared"
    model = fit(X, y, loss=loss, categorical=None, n_lams=8, ratio=1e-4, min_leaf=2, max_depth=2 + seed % 2, rng=seed)
    assert len(model.lams) == 8
    assert model.converged.all()


def test_trees_know_no_gap_over_all():
    X, y = problem()
    assert np.isnan(fit(X, y).gap_all).all()


# ---- relations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_weight_two_is_a_row_twice(loss):
    X, y = problem(150, logistic=loss == "logistic")
    w = np.random.default_rng(0).integers(0, 3, size=len(y))
    # of equal solutions either may have more terms: no number of them ends the path
    options = STUMPS | {"loss": loss, "tol": 1e-8, "linear": True, "max_rules": 1000}
    weighted = fit(X, y, sample_weight=w, **options)
    repeated = fit(np.repeat(X, w, axis=0), np.repeat(y, w), **options)
    np.testing.assert_allclose(weighted.lams, repeated.lams, rtol=1e-9)
    np.testing.assert_allclose(weighted.primal, repeated.primal, rtol=1e-7)
    np.testing.assert_allclose(rules.decision(weighted, X), rules.decision(repeated, X), atol=1e-3)


def test_rows_in_another_order_and_columns_in_another_place():
    X, y = problem()
    order = np.random.default_rng(0).permutation(len(y))
    model = fit(X, y, tol=1e-8, **STUMPS)
    moved = fit(X[order], y[order], tol=1e-8, **STUMPS)
    swapped = fit(X[:, ::-1], y, tol=1e-8, categorical=[0], **STUMPS)
    for other in (moved, swapped):
        np.testing.assert_allclose(other.primal, model.primal, rtol=1e-7)
        np.testing.assert_allclose(other.lams, model.lams, rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-8, 3.0, 1e9])
def test_targets_in_another_unit(unit):
    X, y = problem(logistic=False)
    a, b = fit(X, y, loss="squared"), fit(X, unit * y + 2 * unit, loss="squared")
    same(a, b.__class__(**{**vars(b), "lams": b.lams / unit, "coefficients": b.coefficients / unit,
                           "intercepts": b.intercepts / unit - 2}), rtol=1e-6, atol=1e-6)  # fmt: skip
    np.testing.assert_allclose(b.primal, unit**2 * a.primal, rtol=1e-6)


def test_the_same_for_any_number_of_threads_and_by_seed():
    X, y = problem()
    one, two, three = (fit(X, y, folds=3, n_threads=k, rng=5) for k in (1, 2, 3))
    for other in (two, three, fit(X, y, folds=3, rng=np.random.default_rng(5))):
        assert (one.coefficients == other.coefficients).all()
        assert (one.error == other.error).all()
        assert one.rules[0].conditions == other.rules[0].conditions
        assert one.chosen == other.chosen
    assert {len(fit(X, y, rng=seed).rules) for seed in range(6)} != {len(one.rules)}


def test_dense_and_sparse():
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 4, size=(200, 12)) * (rng.random((200, 12)) < 0.3)
    y = (X[:, 0] > 0) | (X[:, 1] + rng.normal(size=200) > 1)
    for options in (STUMPS, {"max_depth": 2}, {"max_depth": 2, "linear": True}):
        options = options | {"categorical": None}
        dense, thin = fit(X, y, **options), fit(sparse.csr_array(X), y, **options)
        same(dense, thin, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(rules.decision(thin, sparse.csr_array(X)), rules.decision(dense, X), atol=1e-6)


@given(st.data())
@settings(max_examples=10)
def test_layout_and_float32(data):
    X, y = problem(60)
    X = X.astype(np.float32)
    a, b = fit(X, y, n_lams=5), fit(data.draw(layouts(X)), y, n_lams=5)
    assert (a.coefficients == b.coefficients).all()
    wide = fit(X.astype(np.float64), y, n_lams=5)
    np.testing.assert_allclose(wide.primal, a.primal, rtol=1e-10)


def test_deeper_rules_find_what_stumps_cannot():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)) ^ (rng.random(800) < 0.05)
    deep, flat = (rules.additive(X, y, max_depth=depth, rng=0, n_lams=25) for depth in (2, 1))
    assert (rules.predict(deep, X) == y).mean() > 0.9
    assert (rules.predict(flat, X) == y).mean() < 0.7
    assert len(deep) <= 15


# ---- cross-validation ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_errors_are_those_of_paths_without_the_fold(loss):
    X, y = problem(150, logistic=loss == "logistic")
    X = X.round()  # no value is missing in a fold: thresholds are halfway between those of all rows
    folds = np.arange(len(y)) % 3
    options = {"loss": loss, "n_lams": 6, "ratio": 0.2} | STUMPS
    model = fit(X, y, folds=folds, **options)
    for fold in range(3):
        held = folds == fold
        part = fit(X[~held], y[~held], lams=model.lams, **options)
        for k in (1, 5):
            f = rules.decision(part.at(k), X[held])
            assert model.fold_error[fold, k] == pytest.approx(
                oracle.losses(f, target(y)[held], loss == "logistic").mean(), rel=2e-3
            )
    np.testing.assert_allclose(model.error, model.fold_error.mean(axis=0))
    best = model.error.argmin()
    within = np.flatnonzero(model.error <= model.error[best] + model.se[best])
    assert model.chosen == within[0]
    assert fit(X, y, folds=folds, rule="min", **options).chosen == best


def test_wrong_answers_as_errors():
    X, y = problem(200)
    model = fit(X, y, folds=np.arange(200) % 4, measure="zero_one", n_lams=5)
    counts = model.fold_error * 50
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    majority = max((y == "in").mean(), (y == "out").mean())
    assert model.error[0] <= 1 - majority + 0.1


@pytest.mark.parametrize("folds", [None, 3])
def test_a_first_lam_that_needs_more_than_max_rules_is_refused(folds):
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(ValueError, match="more than max_rules = 1 terms"):
        rules.additive(X, X[:, 0] + X[:, 1] > 0, lams=[1e-6], max_rules=1, folds=folds)


def test_units_of_tiny_targets():
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = np.sign(X[:, 0]) + 0.1 * X[:, 1]
    one, tiny = (rules.additive(X, y * unit, loss="squared", rng=0, folds=None) for unit in (1.0, 2.0**-600))
    assert len(tiny) == len(one) > 0
    np.testing.assert_array_equal(tiny.coefficients, one.coefficients * 2.0**-600)


def test_max_rules_ends_the_path():
    X, y = problem(logistic=False)
    model = fit(X, y, loss="squared", max_rules=4, n_lams=40, ratio=1e-3)
    assert model.n_terms.max() <= 4
    assert 1 < len(model.lams) < 40
    assert fit(X, y, loss="squared", lams=[0.01], max_depth=1).n_terms[0] > 50


# ---- answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [STUMPS | {"linear": True}, {"max_depth": 3, "linear": True}])
def test_scores_are_sums_of_what_holds(options):
    X, y = problem()
    model = fit(X, y, folds=3, **options)
    assert any(rule.conditions for rule in model.rules)
    new = np.vstack([X[:40], [[np.nan] * 4], [[0.0, 0.0, 0.0, 7.0]], [[9.0, -9.0, np.nan, 1.0]]])
    codes = new.copy()
    codes[codes[:, 3] == 7.0, 3] = -1  # a level that training did not have
    for shown in (model, model.at(-1)):
        f = oracle.rule_matrix(shown, codes) @ shown.weights[0] + shown.intercept[0]
        np.testing.assert_allclose(rules.decision(shown, new), f, atol=1e-12)
        p = rules.predict_proba(shown, new)
        np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-f)), atol=1e-12)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert (rules.predict(shown, new) == shown.classes[(f > 0).astype(int)]).all()
        assert len(shown) == (shown.weights[0] != 0).sum()


def test_many_rows_and_threads_score_alike():
    X, y = problem(200)
    model = fit(X, y)
    many = np.tile(X, (400, 1))
    one = rules.decision(model, many, n_threads=1)
    assert (one == rules.decision(model, many, n_threads=3)).all()
    assert (one.reshape(400, -1) == rules.decision(model, X)).all()
    assert len(rules.decision(model, X[:0])) == 0


def test_statistics_of_rules():
    X, y = problem()
    w = np.random.default_rng(0).random(len(y))
    model = fit(X, y, sample_weight=w, folds=3)
    covers = oracle.rule_matrix(model, X).astype(bool)
    for rule, holds, weight in zip(model.rules, covers.T, model.weights[0], strict=True):
        assert rule.n == holds.sum()
        assert rule.weight == pytest.approx(w[holds].sum())
        assert rule.support == pytest.approx(w[holds].sum() / w.sum())
        np.testing.assert_allclose(rule.shares, [w[holds & (y == c)].sum() / w[holds].sum() for c in model.classes])
        assert rule.prediction == weight
        assert rule.confidence == rule.shares.max()


def test_more_than_two_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.array(["a", "b", "c"])[(X[:, 0] > 0) + (X[:, 0] > 0) * (X[:, 1] > 0).astype(int)]
    model = fit(X, y, categorical=None, folds=3, ratio=0.02)
    assert model.coefficients.shape[1] == model.n_scores == 3
    assert rules.decision(model, X).shape == (400, 3)
    np.testing.assert_allclose(rules.predict_proba(model, X).sum(axis=1), 1.0)
    assert (rules.predict(model, X) == y).mean() > 0.95
    C = oracle.rule_matrix(model, X)
    for k in range(3):
        t = (y == model.classes[k]).astype(float)
        reported = oracle.objective(C, t, np.ones(400), model.coefficients[-1, k], model.intercepts[-1, k],
                                model.lams[-1], True)  # fmt: skip
        assert reported == pytest.approx(model.primal[-1, k], rel=1e-9)
    assert str(model).count("score of ") == 3


def test_text():
    X, y = problem(2000)
    model = fit(X, y, folds=3, linear=True, feature_names=["a", "b", "c", "kind"])
    lines = str(model).splitlines()
    assert len(lines) == len(model) + 1
    assert lines[-1].endswith("  ALWAYS")
    weights = [float(line.split()[0]) for line in lines[:-1]]
    order = np.argsort(-model.importance[0], kind="stable")[: len(model)]
    np.testing.assert_allclose(weights, model.weights[0][order], rtol=1e-3)
    assert any("kind" in line for line in lines)
    assert "logistic" in repr(model)


def test_linear_terms():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    X[0, 0] = 1e6  # is cut off
    y = np.clip(X[:, 0], -3, 3)
    model = fit(X, y, loss="squared", categorical=None, linear=True, ratio=1e-3, folds=None)
    term = model.linear[0]
    low, high = np.sort(X[:, 0])[[7, 292]]
    assert (term.feature, term.low, term.high) == (0, low, high)
    cut = np.clip(X[:, 0], low, high)
    assert term.mean == pytest.approx(cut.mean())
    assert term.scale == pytest.approx(0.4 / cut.std())
    assert np.corrcoef(rules.decision(model, X), y)[0, 1] > 0.99


# ---- any input ----------------------------------------------------------------------------------------------------


def test_nothing_to_learn():
    constant = fit(np.arange(20.0)[:, None], np.full(20, 0.1), loss="squared", categorical=None)
    assert len(constant) == 0
    np.testing.assert_allclose(rules.predict(constant, [[3.0]]), [0.1])
    for options in (STUMPS, {}):
        useless = fit(np.ones((20, 2)), np.arange(20) % 4 == 0, categorical=None, folds=2, **options)
        assert len(useless) == 0
        np.testing.assert_allclose(rules.predict_proba(useless, [[1.0, 1.0]]), [[0.75, 0.25]])
        assert str(useless) == "-1.099  ALWAYS"
    one = fit([[1.0]], [2.0], loss="squared", categorical=None)
    assert rules.predict(one, [[5.0]]) == [2.0]


def test_separable_rows_and_repeated_columns():
    X = np.repeat(np.arange(30.0)[:, None], 3, axis=1)
    for options in (STUMPS, {}):
        model = fit(X, np.arange(30) > 11, categorical=None, ratio=1e-4, **options)
        assert (rules.predict(model, X) == (np.arange(30) > 11)).all()
        assert np.isfinite(model.coefficients).all()
        assert (model.gap <= 1e-3).all()


def test_frames_strings_and_missing():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"colour": ["red", "blue", None, "red", "green", "blue"] * 10, "size": [1.0, 2.0, np.nan, 2.0, 1.0, 1.0] * 10}
    )
    y = np.array(["yes", "no", "no", "yes", "no", "no"] * 10)
    model = rules.additive(frame, y, max_depth=1, rng=0, folds=2, n_lams=20)
    assert (rules.predict(model, frame) == y).all()
    assert "colour" in str(model)
    assert model.columns == ("colour", "size")
    with pytest.raises(ValueError, match="order"):
        rules.predict(model, frame[["size", "colour"]])
    odd = pandas.DataFrame({"colour": ["violet"], "size": [1.0]})
    assert len(rules.predict(model, odd)) == 1
    with pytest.raises(ValueError, match="violet"):
        rules.predict(model, odd, unseen="error")


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"loss": "hinge"}, ValueError, 'loss must be "'),
        ({"rule": "2se"}, ValueError, 'rule must be "'),
        ({"missing": "surrogate"}, ValueError, 'missing must be "'),
        ({"measure": "auc"}, ValueError, 'measure must be "'),
        ({"max_depth": 0}, ValueError, "max_depth must be at least 1"),
        ({"mean_leaves": 1.5}, ValueError, "mean_leaves must be at least 2"),
        ({"subsample": 0}, ValueError, "subsample must be greater than 0"),
        ({"subsample": 1.5}, ValueError, "subsample must be at most 1"),
        ({"ratio": -1}, ValueError, "ratio must be greater than 0"),
        ({"lams": []}, ValueError, "lams"),
        ({"lams": [1.0, -1.0]}, ValueError, "lams must be greater than 0, got -1.0 at position 1"),
        ({"lams": ["a"]}, ValueError, "lams must hold real numbers"),
        ({"tol": 0}, ValueError, "tol must be greater than 0"),
        ({"linear": 1}, TypeError, "linear must be True or False"),
        ({"max_rules": 0}, ValueError, "max_rules must be at least 1"),
        ({"folds": 1}, ValueError, "folds must be at least 2"),
        ({"folds": [0] * 40}, ValueError, "two different folds"),
        ({"folds": ([0] * 20) + [1] * 20}, ValueError, "all rows of class 'a' are in one fold"),
        ({"sample_weight": -np.ones(40)}, ValueError, "must not be negative"),
        ({"sample_weight": np.full(40, 1e308)}, ValueError, "overflows"),
        ({"sample_weight": np.arange(40) < 20}, ValueError, "two classes"),
        ({"feature_names": ["a"]}, ValueError, "feature_names has 1 entries"),
        ({"class_names": ["a"]}, ValueError, "class_names has 1 entries"),
        ({"rng": "x"}, TypeError, "rng"),
        ({"n_threads": 0}, ValueError, "n_threads"),
        ({"callback": 3}, TypeError, "callback must be callable"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict) else "",
)
def test_bad_arguments(options, error, match):
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.repeat(["a", "b"], 20)
    with pytest.raises(error, match=match):
        rules.additive(X, y, **options)


def test_a_class_in_one_fold_is_shown_as_a_number():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.repeat([-3.5, 2.0], 20)
    with pytest.raises(ValueError, match=r"all rows of class -3\.5 are in one fold"):
        rules.additive(X, y, loss="logistic", folds=np.repeat([0, 1], 20))


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (np.zeros((0, 2)), [], "no rows"),
        (np.zeros((3, 0)), [0, 1, 1], "no columns|columns"),
        (np.zeros((3, 2)), [0, 1], "y has 2 entries"),
        (np.zeros((3, 2)), [1, 1, 1], "two classes"),
        ([[np.inf], [1.0]], [0, 1], "inf"),
        (np.zeros((2, 1)), [0, np.nan], "nan"),
        (np.array([[1j], [2j]]), [0, 1], "numbers|dtype"),
    ],
    ids=["rows", "columns", "length", "one class", "inf", "nan", "complex"],
)
def test_bad_data(X, y, match):
    with pytest.raises(ValueError, match=match):
        rules.additive(X, y, folds=None)


def test_more_refusals():
    X, y = problem(60)
    with pytest.raises(ValueError, match='missing is "error"'):
        fit(X, y, missing="error")
    with pytest.raises(ValueError, match="zero_one"):
        fit(X, np.arange(60.0), loss="squared", measure="zero_one")
    with pytest.raises(ValueError, match="class_names"):
        fit(X, np.arange(60.0), loss="squared", class_names=["a", "b"])
    with pytest.raises(ValueError, match="too large"):
        fit(X, np.full(60, 1e200), loss="squared")
    model = fit(X, y)
    with pytest.raises(ValueError, match="columns"):
        rules.decision(model, X[:, :2])
    with pytest.raises(ValueError, match="laplace"):
        rules.predict_proba(model, X, laplace=1.0)
    with pytest.raises(IndexError, match="points"):
        model.at(len(model.lams))
    with pytest.raises(TypeError, match=r"rules\.additive"):
        rules.decision("model", X)
    with pytest.raises(ValueError, match="squared"):
        rules.predict_proba(fit(X, np.arange(60.0), loss="squared"), X)
    assert isinstance(model, AdditiveRules)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_callback(n_threads):
    X, y = problem(100)
    reported = []
    fit(X, y, folds=3, callback=reported.append, n_threads=n_threads)
    assert [(t.done, t.total) for t in reported] == [(k, 4) for k in range(1, 5)]

    def refuse(progress):
        if progress.done == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        fit(X, y, folds=3, callback=refuse, n_threads=n_threads)


def test_interrupt():
    code = """
import time, numpy as np
from kernelrules import rules
rng = np.random.default_rng(0)
X = rng.normal(size=(60_000, 20))
y = X[:, 0] * X[:, 1] + rng.normal(size=60_000) > 0
rules.additive(X[:200], y[:200], rng=0)
print("ready", flush=True)
try:
    rules.additive(X, y, rng=0, ratio=1e-3, max_rules=2000, n_lams=100, n_threads=2)
except KeyboardInterrupt:
    print("interrupted", time.time())
"""
    assert seconds_to_stop(code) < 3
