"""Induction of rules, slow and obvious: every condition tried, every row visited, weights added as fractions.

A condition is (column, kind, value): kind "<=" or ">" with a threshold, or "=" with a code, which NaN does not satisfy;
or "missing", which only NaN does.
"""

from fractions import Fraction
from itertools import pairwise
from math import log2

import numpy as np


def holds(x, condition):
    column, kind, value = condition
    if np.isnan(x[column]) or kind == "missing":
        return bool(np.isnan(x[column])) and kind == "missing"
    return {"<=": x[column] <= value, ">": x[column] > value, "=": x[column] == value}[kind]


def covers(x, conditions):
    return all(holds(x, condition) for condition in conditions)


def candidates(X, rows, n_levels, ask_missing=False):
    """All conditions, in the order in which ties are decided."""
    for column in range(X.shape[1]):
        known = sorted({float(X[row, column]) for row in rows if not np.isnan(X[row, column])})
        if n_levels[column]:
            yield from ((column, "=", level) for level in known)
        else:
            for low, high in pairwise(known):
                yield column, "<=", (low + high) / 2
                yield column, ">", (low + high) / 2
        if ask_missing and any(np.isnan(X[row, column]) for row in rows):
            yield column, "missing", None


def sums(rows, positive, weights):
    """Weight of the positive rows, and of all."""
    p = sum((Fraction(float(weights[row])) for row in rows if positive[row]), Fraction(0))
    return p, sum((Fraction(float(weights[row])) for row in rows), Fraction(0))


def gain(before, after):
    """FOIL's gain, in bits, with 1 added to the weights in logarithms."""
    (P, T), (p, t) = before, after
    return float(p) * ((log2(p + 1) - log2(t + 1)) - (log2(P + 1) - log2(T + 1)))


def all_gains(X, rows, positive, weights, n_levels, ask_missing=False):
    """(gain, condition, weights kept: positive, all) of all conditions."""
    before = sums(rows, positive, weights)
    found = []
    for condition in candidates(X, rows, n_levels, ask_missing):
        after = sums([row for row in rows if holds(X[row], condition)], positive, weights)
        found.append((gain(before, after), condition, after))
    return found


def prune(X, conditions, rows, positive, weights, whole):
    """How many of the conditions, from the first, are worth most."""
    if not rows:
        return len(conditions)
    worths = []
    for size in range(len(conditions) + 1):
        covered = [row for row in rows if covers(X[row], conditions[:size])]
        p, t = sums(covered, positive, weights)
        others = [row for row in rows if row not in covered and not positive[row]]
        worths.append(p + sums(others, positive, weights)[1] if whole else (p + 1) / (t + 2))
    return worths.index(max(worths))


def first_matches(covered, rows):
    """For every rule of a list the rows that belong to it, and those that belong to none; covered are sets of rows."""
    left, found = set(rows), []
    for cover in covered:
        found.append(left & cover)
        left -= cover
    return [*found, left]


def log2_or_zero(x):
    return log2(x) if x > 0 else 0.0


def subset_length(n, k, p):
    """-log2 of the probability of one set of k things among n, each in it with probability p."""
    return -(k * log2_or_zero(p)) - (n - k) * log2_or_zero(1 - p)


def data_length(share, covered, uncovered, fp, fn):
    n = covered + uncovered
    length = log2(n + 1)
    if covered > uncovered:
        p = min(share * (fp + fn) / covered, 1)
        length += subset_length(covered, fp, p if p < 1 else fp / covered)
        return length + (subset_length(uncovered, fn, fn / uncovered) if uncovered else 0)
    if covered:
        length += subset_length(covered, fp, fp / covered)
    p = min((1 - share) * (fp + fn) / uncovered, 1)
    return length + subset_length(uncovered, fn, p if p < 1 else fn / uncovered)


def theory_length(k, m):
    if k == 0:
        return 0.0
    size = log2(k) + (2 * log2(log2(k)) if k > 1 else 0)
    return 0.5 * (size + subset_length(m, k, k / m))
