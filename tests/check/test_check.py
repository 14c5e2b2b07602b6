"""Checks that many functions share: each says the same words, whoever asks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelrules import bounds, check, erm, kernels, plot, rules, svm, tree

X = np.random.default_rng(0).normal(size=(30, 2))
Y = np.array(["a", "b", "c"] * 10)
TWO = Y != "c"


@given(st.lists(st.integers(-3, 3), min_size=1), st.sets(st.integers(-3, 3), min_size=1))
def test_codes_of_known_labels(labels, known):
    classes = np.array(sorted(known))
    if set(labels) <= known:
        codes = check.known_codes(labels, len(labels), classes)
        assert classes[codes].tolist() == labels
    else:
        unknown = min(set(labels) - known)
        with pytest.raises(ValueError, match=f"^y holds {unknown}, which the model does not know$"):
            check.known_codes(labels, len(labels), classes)


def test_labels_that_a_model_does_not_know():
    model = svm.svc(X[TWO], Y[TWO], kernel=kernels.Linear())
    fit = erm.fit(X[TWO], Y[TWO], 0.1, kernels.Linear())
    grown = tree.grow(X[TWO], Y[TWO], max_leaves=3)
    for ask, what in (
        (lambda: svm.slacks(model, X, Y), "model"),
        (lambda: svm.calibrate(model, X, Y), "model"),
        (lambda: bounds.of_model(model, X, Y), "model"),
        (lambda: bounds.of_model(fit, X, Y), "model"),
        (lambda: bounds.of_tree(grown, X, Y), "tree"),
        (lambda: plot.regions(model, X, Y), "model"),
    ):
        with pytest.raises(ValueError, match=f"^y holds 'c', which the {what} does not know$"):
            ask()


@pytest.mark.parametrize(
    "fit", [lambda y, w: svm.svc(X, y, sample_weight=w), lambda y, w: erm.fit(X, y, 1.0, sample_weight=w)]
)
def test_two_classes_are_needed_and_each_a_row(fit):
    with pytest.raises(ValueError, match=r"^y holds one class only, 'a'; at least two are needed$"):
        fit(np.full(30, "a"), None)
    with pytest.raises(ValueError, match=r"^all rows of class 'c' have sample_weight 0$"):
        fit(Y, TWO.astype(float))


def test_numbers_from_0_on():
    grown = tree.grow(X, Y, max_leaves=3)
    for ask, name in (
        (lambda: tree.predict_proba(grown, X, laplace=np.float64(-0.5)), "laplace"),
        (lambda: rules.predict_proba(rules.extract(grown), X, laplace=-0.5), "laplace"),
        (lambda: tree.grow(X, Y, min_gain=-0.5), "min_gain"),
        (lambda: rules.induce(X, Y, min_margin=-0.5), "min_margin"),
        (lambda: svm.budget(X[TWO], Y[TWO], -0.5), "budget"),
        (lambda: bounds.rademacher(-0.5, 3, 1.0), "trace"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must be at least 0, got -0.5$"):
            ask()
    assert check.not_negative(0, "laplace") == 0.0


@pytest.mark.parametrize("value", ["long", "", None, 3, ["short"], np.array(["short", "long"])])
def test_one_of_several_words(value):
    with pytest.raises(ValueError, match=r'^order must be "short", "support", "confidence" or "given", got '):
        rules.decision_list(rules.extract(tree.grow(X, Y)), order=value)
    assert check.one_of(np.str_("a"), "order", "a", "b") == "a"


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([0.0, 0.5, 3.0])), min_size=1),
    st.sampled_from([None, "balanced", {"a": 2.0}]),
)
def test_weights_of_rows_and_classes(rows, class_weight):
    """Row by row, as the words say."""
    labels, own = ["a", *(label for label, _ in rows)], [1.0, *(weight for _, weight in rows)]
    classes, codes = check.labels(labels, len(labels))
    counted = [label for label, weight in zip(labels, own, strict=True) if weight > 0]
    factor = dict.fromkeys(classes.tolist(), 1.0)
    if class_weight == "balanced":
        sizes = {label: max(counted.count(label), 1) for label in factor}
        factor = {label: sum(sizes.values()) / (len(factor) * size) for label, size in sizes.items()}
    elif class_weight is not None:
        factor |= class_weight
    expected = [weight * factor[label] for label, weight in zip(labels, own, strict=True)]
    np.testing.assert_allclose(check.class_weights(class_weight, own, classes, codes), expected, rtol=1e-15)
