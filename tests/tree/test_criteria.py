"""The table of criteria against its other readers: the guide, api.h, and the losses of the oracle."""

import re

import numpy as np
import pytest
import tree_large_oracle
from places import ROOT

from kernelrules.core.tree.criteria import CLASS_CRITERIA, CRITERIA, NUMBER_CRITERIA

GUIDE = ROOT / "docs" / "guide" / "tree.rst"
API = ROOT / "kernelrules" / "include" / "kernelrules" / "api.h"
needs_source = pytest.mark.skipif(not GUIDE.exists() or not API.exists(), reason="the source is not beside the tests")


@needs_source
def test_the_guide_lists_all_criteria():
    table = re.search(r"\n   \* - ``criterion``\n(.*?)\n\n", GUIDE.read_text(encoding="utf-8"), flags=re.S)[1]
    assert sorted(re.findall(r"^   \* - ``\"(\w+)\"``", table, flags=re.M)) == sorted(CRITERIA)


@needs_source
def test_numbers_are_those_of_the_header():
    named = re.findall(r"KR_(\w+) = (\d+), +/\*.*of (?:classes|targets)", API.read_text(encoding="utf-8"))
    assert len(named) == 5
    for name, number in named:
        assert CRITERIA[name.lower()].number == int(number)
    others = set(CRITERIA) - {name.lower() for name, _ in named}
    assert all(CRITERIA[name].number >= 64 for name in others)
    assert len({row.number for row in CRITERIA.values()}) == len(CRITERIA)


@pytest.mark.parametrize("name", CLASS_CRITERIA)
def test_class_losses_and_impurities(name):
    counts = np.random.default_rng(0).integers(0, 9, size=(5, 40)).astype(float) + 0.25
    expected = tree_large_oracle.class_losses(counts.T, name)
    np.testing.assert_allclose(CRITERIA[name].class_losses(counts), expected, rtol=1e-12)
    weight = counts.sum(axis=0)
    np.testing.assert_allclose(CRITERIA[name].impurities((counts / weight).T), expected / weight, rtol=1e-12)
    assert (CRITERIA[name].class_losses(np.zeros((3, 2))) == 0).all()


@pytest.mark.parametrize("name", [name for name in NUMBER_CRITERIA if not CRITERIA[name].of_medians])
def test_losses_of_numbers_are_those_of_their_rows(name):
    """sum w·row_loss(y, mean) = sum w·row_term(y) - sum_term(W, sum w·y)."""
    rng = np.random.default_rng(1)
    y, w = rng.gamma(2.0, size=(30, 2)), rng.random(30)
    row, means = CRITERIA[name], w @ y / w.sum()
    by_rows = w @ row.row_losses(y, np.tile(means, (30, 1))).sum(axis=1)
    sums = np.concatenate([[w.sum()], w @ y])[:, None]
    by_sums = w @ row.row_terms(y).sum(axis=1) - row.sum_terms(sums, np.ones(2))[0]
    assert by_rows == pytest.approx(by_sums, rel=1e-12)
    assert by_rows == pytest.approx(sum(tree_large_oracle.loss(y[:, k], w, name) for k in range(2)), rel=1e-12)


def test_a_criterion_for_numbers_has_no_class_losses():
    with pytest.raises(ValueError, match="not a criterion for classes"):
        CRITERIA["squared_error"].class_losses(np.ones((2, 3)))
