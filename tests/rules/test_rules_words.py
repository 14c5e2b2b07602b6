"""Conditions on truth values and counts in words: `shr` and `not shr`, where that is what they mean, and only there."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saved_results import loaded, put_together, saved, taken_apart
from scipy import sparse

from kernelrules import export, prune, rules, tree
from kernelrules.results import Condition, Rule, RuleList
from kernelrules.results.rule_text import condition_text

WORDS = ["shr", "net", "vs", "loss"]
COUNTS = np.array(list(itertools.product([0, 0, 0, 1, 3], [0, 2], [0, 1], [0, 1])), dtype=float)
EARN = np.where((COUNTS[:, 0] > 0) & (COUNTS[:, 3] == 0), "earn", "other")


def text_of(X, y=EARN, **options):
    return str(rules.induce(X, y, prune=False, feature_names=WORDS, **options))


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix, lambda X: sparse.csr_array(X).astype(np.int32)])
def test_sparse_words_are_said(form):
    assert text_of(form(COUNTS)) == "shr & not loss → earn\nOTHERWISE → other"
    assert text_of(sparse.csr_array(COUNTS) > 0) == "shr & not loss → earn\nOTHERWISE → other"
    grown = tree.grow(form(COUNTS), EARN)
    lines = ["not shr: other (24, 1.00)", "shr", "|   not loss: earn (8, 1.00)", "|   loss: other (8, 1.00)"]
    assert export.to_text(grown, WORDS) == "\n".join(lines)
    assert str(rules.extract(grown, WORDS)) == "not shr → other\nshr & not loss → earn\nshr & loss → other"


def test_only_what_is_equivalent_is_said():
    """Not of weights, which may lie between 0 and the threshold; not of thresholds between counts; not of dense
    numbers, whose type says that they are numbers; not where everything is to be said."""
    assert text_of(sparse.csr_array(0.3 * COUNTS)).startswith("shr > 0.15 & loss ≤ 0.15 →")
    assert text_of(sparse.csr_array(-COUNTS)).startswith("shr ≤ -0.5 & loss > -0.5 →")
    assert text_of(COUNTS).startswith("shr > 0.5 & loss ≤ 0.5 →")
    many = np.where(COUNTS[:, 0] == 3, "many", "few")
    assert text_of(sparse.csr_array(COUNTS), many) == "shr > 2 → many\nOTHERWISE → few"
    one = np.where(COUNTS[:, 0] == 1, "one", "else")
    assert text_of(sparse.csr_array(COUNTS), one).startswith("0.5 < shr ≤ 2 →")
    seen = sparse.csr_array(2 * COUNTS)  # 1 was never seen, and is above 0: the threshold 1 does not ask for that
    assert text_of(seen).startswith("shr > 1 & loss ≤ 1 →")
    found = rules.induce(sparse.csr_array(COUNTS), EARN, prune=False, feature_names=WORDS)
    assert export.to_text(found, exact=True).startswith("shr > 0.5 & loss ≤ 0.5 →")
    assert '"shr" > 0.5' in export.to_sql(found)


def test_names_that_could_be_conditions_have_thresholds():
    """A column `not shr` beside a column `shr`: what `not shr` means could not be seen."""
    names = ["shr", "not shr", "vs & net", ""]
    for column, said in enumerate(["shr", "not shr > 0.5", "vs & net > 0.5", " > 0.5"]):
        grown = tree.grow(sparse.csr_array(np.minimum(COUNTS, 1)), COUNTS[:, column] > 0)
        assert str(rules.extract(grown, names)).endswith(f"\n{said} → True")
        assert f"\n{said}: True" in export.to_text(grown, names)


@pytest.mark.parametrize("as_numbers", [False, True])
def test_truth_values_are_said(as_numbers):
    truths = COUNTS > 0
    X = truths if as_numbers else truths.astype(object)
    assert text_of(X) == "shr & not loss → earn\nOTHERWISE → other"
    assert text_of(X.astype(object), categorical=None) == "shr & not loss → earn\nOTHERWISE → other"
    assert text_of(X, categorical=[0, 3]) == "shr & not loss → earn\nOTHERWISE → other"
    assert text_of(np.where(truths, "True", "False")).startswith("shr = True & loss = False →")


def test_truth_values_of_data_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COUNTS > 0, columns=WORDS)
    grown = tree.grow(frame.assign(age=np.arange(len(frame))), EARN, max_depth=1)
    assert export.to_text(grown) == "shr: earn (16, 0.50)\nnot shr: other (24, 1.00)"
    nullable = frame.astype("boolean")
    nullable.loc[3, "shr"] = pandas.NA
    said = str(rules.extract(tree.grow(nullable, EARN, max_depth=1)))
    assert {line.split(" →")[0].removesuffix(" or missing") for line in said.splitlines()} == {"shr", "not shr"}
    assert said.count("or missing") == 1


def test_every_picture_says_the_same():
    grown = tree.grow(sparse.csr_array(COUNTS), EARN)
    assert '0 [label="not shr"' in export.to_dot(grown, WORDS)
    assert 'n0["not shr"]' in export.to_mermaid(grown, WORDS)
    assert 'label="shr & not loss"' in export.to_dot(rules.extract(grown, WORDS))
    assert "not x0" in grown._repr_html_()
    assert "not x0" in rules.extract(grown)._repr_html_()
    plot = pytest.importorskip("matplotlib.pyplot")
    from kernelrules import plot as pictures

    ax = pictures.tree(grown, feature_names=WORDS)
    assert {"not shr", "not loss"} <= {text.get_text() for text in ax.texts}
    plot.close("all")
    additive = rules.additive(sparse.csr_array(COUNTS), EARN, max_depth=1, linear=False, feature_names=WORDS, rng=0)
    assert ">" not in str(additive)
    assert "≤" not in str(additive)
    assert " shr" in str(additive)


def test_words_outlive_files_and_whatever_makes_lists_of_lists():
    X = sparse.csr_array(COUNTS)
    grown = tree.grow(X, EARN)
    found = rules.extract(grown, WORDS)
    said = str(found)
    for again in (export.from_json(export.to_json(found)), loaded(saved(found))):
        assert str(again) == said
    for again in (export.from_json(export.to_json(grown)), loaded(saved(grown)), prune.to_size(grown, 3)):
        assert export.to_text(again, WORDS) == export.to_text(grown, WORDS)
    assert str(rules.decision_list(found)) == "shr & not loss → earn\nOTHERWISE → other"
    assert str(rules.simplify(found, X, EARN)) == "shr & not loss → earn\nOTHERWISE → other"
    old = export.to_json(found).replace('"indicators"', '"something"')
    assert str(export.from_json(old)).startswith("shr ≤ 0.5 → other")
    with pytest.raises(ValueError, match="indicators"):
        export.from_json(export.to_json(replace(found, indicators=np.ones(3, dtype=bool))))


@pytest.mark.parametrize("kind", ["rules", "tree"])
def test_files_of_older_versions_are_read(kind):
    """They lack what is new, and text says thresholds."""
    grown = tree.grow(sparse.csr_array(COUNTS), EARN)
    made = grown if kind == "tree" else rules.extract(grown)
    header, members = taken_apart(saved(made))
    for name in ("indicators",) if kind == "tree" else ("indicators", "directions", "fill"):
        del header["content"]["fields"][name]
        members.pop(f"{name}.npy", None)
    again = loaded(put_together(header, members))
    assert again.indicators is None
    assert export.to_text(again).startswith("x0 ≤ 0.5")


# ---- any condition ------------------------------------------------------------------------------------------------


@st.composite
def conditions(draw):
    """On a column of counts, of truth values as numbers or as levels, of one truth value only."""
    kind = draw(st.sampled_from(["count", "truth", "one level"]))
    missing = draw(st.booleans())
    if kind == "count":
        limits = st.sampled_from([-np.inf, -0.5, 0.0, 0.5, 0.999, 1.0, 1.5, np.inf])
        low, high = draw(limits), draw(limits)
        return None, Condition(0, low, high, missing=missing)
    levels = np.array([False, True]) if kind == "truth" else np.array([draw(st.booleans())])
    codes = draw(st.sets(st.integers(-1, len(levels) - 1)))
    return levels, Condition(0, categories=tuple(sorted(codes)), missing=missing)


@given(conditions())
@settings(max_examples=300)
def test_words_hold_where_the_condition_does(drawn):
    """By the slow way: which values satisfy it, and which satisfy the words."""
    levels, condition = drawn
    rule = Rule((condition,), 1.0, 1.0, np.nan, 1, 1.0)
    listed = RuleList((rule,), 0.0, None, None, ("w",), None, (levels,), 1, True, indicators=np.array([levels is None]))
    text = condition_text(condition, listed)
    said = text.removesuffix(" or missing")
    values = [0, 1, 2, 7] if levels is None else [False, True]
    rows = np.array([[value] for value in values], dtype=float if levels is None else object)
    held = rules.predict(listed, rows).astype(bool).tolist()
    truths = [bool(value) for value in values]
    if said in ("w", "not w"):
        assert held == (truths if said == "w" else [not truth for truth in truths])
        assert (text != said) == condition.missing
    elif levels is not None and len(levels) == 2:
        assert held in ([True, True], [False, False])
    elif levels is None and condition.low in (0.0, 0.5, 0.999) and condition.high == np.inf:
        raise AssertionError(text)
