"""Lists of many rules, for tests and for the children that they interrupt."""

import numpy as np

from kernelrules.results import Condition, Rule, RuleList


def listed(p, n_rules, seed=0, most=3):
    """Rules of random intervals."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_rules):
        columns = rng.permutation(p)[: rng.integers(1, most + 1)]
        made = [
            Condition(int(j), *np.sort(rng.normal(size=2)).tolist(), missing=bool(rng.random() < 0.5)) for j in columns
        ]
        found.append(Rule(tuple(made), float(rng.normal()), 0.1, np.nan, 1, 1.0))
    return RuleList(tuple(found), 0.0, None, None, tuple(f"x{j}" for j in range(p)), None, (None,) * p, p, ordered=True)
