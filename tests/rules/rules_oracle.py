"""Rules one row, one rule and one condition at a time, as the fields of `Condition` and `RuleList` say.

Rows hold numbers, codes of categories (-1: none of the levels), and NaN.
"""

import math
from fractions import Fraction


def holds(condition, row):
    value = float(row[condition.feature])
    if math.isnan(value):
        return condition.missing
    if condition.categories is None:
        return condition.low < value <= condition.high
    return int(value) in condition.categories


def rule_holds(rule, row):
    return all(holds(condition, row) for condition in rule.conditions)


def first_rule(rules, row):
    """Number of the first rule that holds; -1 if none does."""
    return next((number for number, rule in enumerate(rules) if rule_holds(rule, row)), -1)


def prediction(rules, row):
    number = first_rule(rules, row)
    return rules.default if number < 0 else rules[number].prediction


def path_tests(tree, leaf):
    """The tests on the way to a leaf as functions of a row, not merged."""
    parent = {}
    for node in range(tree.n_nodes):
        if tree.left[node] >= 0:
            parent[int(tree.left[node])] = (node, "left")
            parent[int(tree.right[node])] = (node, "right")
    tests, at = [], leaf
    while at in parent:
        at, side = parent[at]
        tests.append((at, side))
    return tests[::-1]


# ---- decision lists ---------------------------------------------------------------------------------------------


def can_meet(one, two):
    """Whether a value satisfies both conditions on one column."""
    if one.missing and two.missing:
        return True
    if one.categories is not None and two.categories is not None:
        return bool(set(one.categories) & set(two.categories))
    return max(one.low, two.low) < min(one.high, two.high)


def needed(conditions, later):
    """Conditions without those that go one after the other, as long as no later rule can meet all that are left."""
    kept = list(conditions)
    for condition in conditions:
        left = [other for other in kept if other is not condition]
        met = any(
            all(can_meet(mine, theirs) for mine in left for theirs in rule.conditions if mine.feature == theirs.feature)
            for rule in later
        )
        if not met:
            kept = left
    return tuple(kept)


# ---- simplification ---------------------------------------------------------------------------------------------


def added_errors(n, e, confidence):
    """C4.5's errors beyond those seen: the upper limit of a binomial proportion, less e. Quinlan's three cases."""
    from scipy.stats import norm

    if confidence > 0.5:
        raise ValueError(confidence)
    if e < 1:
        base = n * (1 - confidence ** (1 / n))
        return base if e == 0 else base + e * (added_errors(n, 1.0, confidence) - base)
    if e + 0.5 >= n:
        return max(n - e, 0.0)
    z = norm.ppf(1 - confidence)
    f = (e + 0.5) / n
    return (f + z * z / (2 * n) + z * math.sqrt(f / n - f * f / n + z * z / (4 * n * n))) / (1 + z * z / n) * n - e


def score(parts, rows, right, weights, confidence=None):
    """Accuracy of the rule with these parts, or its pessimistic estimate; and the weight covered. None: no rows."""
    covered = [i for i, row in enumerate(rows) if all(holds(part, row) for part in parts)]
    n = sum(Fraction(weights[i]) for i in covered)
    if n == 0:
        return None, 0
    correct = sum(Fraction(weights[i]) for i in covered if right[i])
    if confidence is None:
        return correct / n, n
    wrong = float(n - correct)
    return 1 - (wrong + added_errors(float(n), wrong, confidence)) / float(n), n


def as_good(one, other):
    """Whether a (score, covered) is as good at least; no score is the worst."""
    if one[0] is None or other[0] is None:
        return other[0] is None and (one[0] is not None or one[1] >= other[1])
    return one[0] > other[0] or (one[0] == other[0] and one[1] >= other[1])


def drop_parts(parts, rows, right, weights, confidence=None):
    """What is left of a rule: the part goes whose removal leaves the best rule, until every removal makes it worse."""
    kept = list(parts)
    worth = score(kept, rows, right, weights, confidence)
    while kept:
        best, best_place = None, None
        for place in range(len(kept)):
            tried = score(kept[:place] + kept[place + 1 :], rows, right, weights, confidence)
            if best is None or as_good(tried, best):
                best, best_place = tried, place
        if worth[0] is not None and (best[0] is None or best[0] < worth[0]):
            break
        kept.pop(best_place)
        worth = best
    return kept, worth
