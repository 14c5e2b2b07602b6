"""Ways of rows down a tree, one row and one node at a time: `leaf`, `path` and `mixture` as the fields of `Tree` say.

Rows hold numbers, codes of categories, and NaN. Shares are exact fractions.
"""

import math
from fractions import Fraction


def side(tree, row, column, threshold, subset_start):
    """ "left" or "right"; "missing", or "unseen" for a category that the split says nothing about."""
    if column >= tree.n_features:
        direction = tree.directions[column - tree.n_features]
        value = 0.0
        for coefficient, entry in zip(direction, row, strict=True):
            if coefficient != 0:
                value += float(coefficient) * float(entry)
    else:
        value = float(row[column])
    if math.isnan(value):
        return "missing"
    if subset_start < 0:
        return "left" if value <= float(threshold) else "right"
    levels = tree.categories[column]
    if value not in range(len(levels)):
        return "unseen"
    return {0: "right", 1: "left", 2: "unseen"}[int(tree.subset_left[subset_start + int(value)])]


def larger(tree, node):
    return "left" if tree.weight[tree.left[node]] >= tree.weight[tree.right[node]] else "right"


def own_side(tree, node, row):
    return side(tree, row, tree.feature[node], tree.threshold[node], tree.subset_start[node])


def decided(tree, node, row):
    """The side that a whole row goes to."""
    first = own_side(tree, node, row)
    if first in ("left", "right"):
        return first
    if tree.surrogates is None:
        if first == "unseen":
            return larger(tree, node)
        return "left" if tree.missing_left[node] else "right"
    s = tree.surrogates
    for k in range(s.start[node], s.start[node + 1]):
        says = side(tree, row, s.feature[k], s.threshold[k], s.subset_start[k])
        if says in ("left", "right"):
            turned = s.subset_start[k] < 0 and not s.below_left[k]
            return {"left": "right", "right": "left"}[says] if turned else says
    return "left" if tree.missing_left[node] else "right"


def path(tree, row):
    """The nodes from the root to the leaf."""
    nodes = [0]
    while tree.left[nodes[-1]] >= 0:
        node = nodes[-1]
        nodes.append(int(tree.left[node] if decided(tree, node, row) == "left" else tree.right[node]))
    return nodes


def leaf(tree, row):
    return path(tree, row)[-1]


def mixture(tree, row, node=0, share=Fraction(1)):
    """The share of the row that comes to each leaf, where missing values send parts of it both ways."""
    if tree.left[node] < 0:
        return {int(node): share}
    first = own_side(tree, node, row)
    first = larger(tree, node) if first == "unseen" else first
    children = {"left": tree.left[node], "right": tree.right[node]}
    if first != "missing":
        return mixture(tree, row, children[first], share)
    weight = {name: Fraction(float(tree.weight[child])) for name, child in children.items()}
    shares = {}
    for name, child in children.items():
        shares |= mixture(tree, row, child, share * weight[name] / sum(weight.values()))
    return shares
