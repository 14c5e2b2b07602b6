"""What the tests of rules share: random rule lists and rows, made by hypothesis."""

import numpy as np
from hypothesis import strategies as st

from kernelrules.results import Condition, Rule, RuleList


def condition(feature, rng, n_levels):
    """A condition on a column of small numbers, or of levels; sometimes on missing values only."""
    missing = bool(rng.random() < 0.4)
    if n_levels:
        codes = tuple(code for code in range(-1, n_levels) if rng.random() < 0.5)
        return Condition(feature, categories=codes, missing=missing)
    low, high = sorted(rng.choice([-np.inf, 0.5, 1.5, 2.5, 3.5, np.inf], size=2).tolist())
    return Condition(feature, low, high, missing=missing)


@st.composite
def rule_lists(draw, most_rules=8, classes=("a", "b", "c")):
    """A list of random rules over columns of numbers 0 to 4 and of levels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    p = draw(st.integers(1, 4))
    n_levels = [draw(st.sampled_from([0, 0, 3, 1])) for _ in range(p)]
    n_rules = draw(st.integers(0, most_rules))
    found = []
    for _ in range(n_rules):
        columns = rng.permutation(p)[: rng.integers(0, p + 1)]
        shares = rng.dirichlet(np.ones(len(classes)))
        conditions = tuple(condition(int(j), rng, n_levels[j]) for j in columns)
        prediction = str(rng.choice(classes))
        weight = float(rng.integers(0, 5))
        found.append(Rule(conditions, prediction, weight / 10, 0.5, int(weight), weight, shares))
    return RuleList(
        rules=tuple(found),
        default="b",
        default_shares=np.array([0.25, 0.5, 0.25]),
        classes=np.array(classes),
        feature_names=tuple(f"f{j}" for j in range(p)),
        class_names=classes,
        levels=tuple(np.array([f"l{k}" for k in range(n)]) if n else None for n in n_levels),
        n_features=p,
        ordered=True,
    )


def coded_rows(rules, rng, n):
    """Rows as the conditions see them: numbers, codes (-1 unseen), NaN."""
    rows = np.empty((n, rules.n_features))
    for j, levels in enumerate(rules.levels):
        rows[:, j] = rng.integers(0, 5, size=n) if levels is None else rng.integers(-1, len(levels), size=n)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    return rows


def as_given(rules, rows):
    """The same rows as a user has them: levels by name, "new" for an unseen one, None for missing."""
    X = np.empty(rows.shape, dtype=object)
    for (i, j), value in np.ndenumerate(rows):
        levels = rules.levels[j]
        if np.isnan(value):
            X[i, j] = None
        elif levels is None:
            X[i, j] = float(value)
        else:
            X[i, j] = "new" if value < 0 else str(levels[int(value)])
    return X
