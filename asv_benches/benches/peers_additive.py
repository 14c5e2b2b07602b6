"""Sums of rules against RuleFit of imodels: part of peers.py, which describes the method.

Both run with their defaults, on the ten folds of the six tables on which the other rule learners are compared. The
table shows accuracy / rules / conditions, averaged over the folds, and the median seconds of a fit, measured
alternately. RuleFit reads only numbers, so categories are one column per level; this conversion is not timed. Both
choose their penalty by cross-validation; kernelrules learns rules anew in every fold.
"""

import functools

import numpy as np

from . import _rules_data as data
from ._peers import Table, announce, skipped, verdict
from ._rules_peers import imodels, our_additive_rules
from .peers_rules import cell

ROUNDS = 10  # folds
FASTER = 20.0
LESS_ACCURATE = 0.002  # noise in the mean of the tables
HEADER = ("data", "ours", "RuleFit", "ours, s", "RuleFit, s", "× faster", "goal", "verdict")

rulefit = functools.partial(imodels, "RuleFitClassifier", random_state=0)


def tables(options, wanted):
    """Return the table."""
    if options.memory:
        return []
    return [Table("Sums of rules, ten folds", HEADER, lambda: rows(options.rounds or ROUNDS, wanted))]


def rows(rounds, wanted):
    """Yield a line per table, and their mean."""
    means = []
    for case in data.FILES:
        if not wanted(case):
            continue
        announce(f"{case}: {rounds} folds")
        try:
            table = data.load(case, data.N_ADULT if case == "adult" else None)
        except FileNotFoundError as error:
            yield skipped(HEADER, case, error)
            continue
        pairs = []
        for train, test in data.folds(table.y)[:rounds]:
            parts = table.rows(train), table.rows(test)
            pairs.append((our_additive_rules(*parts), rulefit(*parts)))
        if any(theirs is None for _, theirs in pairs):
            yield skipped(HEADER, case, "no imodels")
            continue
        figures = np.array([[[o.accuracy, o.n_rules, o.n_conditions, o.seconds] for o in pair] for pair in pairs])
        mine, theirs = figures[:, :, :3].mean(axis=0)
        seconds = np.median(figures[:, :, 3], axis=0)
        ratio = seconds[1] / seconds[0]
        means.append((mine, theirs))
        cells = (f"{seconds[0]:.3g}", f"{seconds[1]:.3g}", f"{ratio:.1f}", f"{FASTER:g}")
        yield case, cell(*mine), cell(*theirs), *cells, verdict([] if ratio >= FASTER else ["speed"])
    if len(means) == len(data.FILES):
        mine, theirs = np.mean(means, axis=0)
        missed = [] if mine[0] >= theirs[0] - LESS_ACCURATE else ["accuracy"]
        yield "mean", cell(*mine), cell(*theirs), "", "", "", "", verdict(missed)
