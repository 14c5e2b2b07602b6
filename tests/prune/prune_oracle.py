"""Pruning the slow and obvious way: all pruned trees one by one, links cut one at a time, limits by recursion.

A pruned tree is the frozenset of its leaves (numbers of nodes of the whole tree). Risks are exact fractions.
"""

import math
from fractions import Fraction
from statistics import NormalDist


def children(tree, node):
    return () if tree.left[node] < 0 else (int(tree.left[node]), int(tree.right[node]))


def pruned_trees(tree, node=0):
    """All of them, as sets of leaves."""
    found = [frozenset([node])]
    if tree.left[node] >= 0:
        left, right = children(tree, node)
        found += [a | b for a in pruned_trees(tree, left) for b in pruned_trees(tree, right)]
    return found


def best(trees, risk, alpha):
    """The tree of least risk + alpha · leaves, and of these the one with the fewest leaves."""
    cost = {leaves: sum(risk[leaf] for leaf in leaves) + alpha * len(leaves) for leaves in trees}
    least = min(cost.values())
    winners = [leaves for leaves in trees if cost[leaves] == least]
    smallest = min(map(len, winners))
    winners = [leaves for leaves in winners if len(leaves) == smallest]
    assert len(winners) == 1, "the smallest of the best trees is unique"
    return winners[0]


def leaves_below(tree, node, cut):
    """Leaves of the subtree of a node that has been cut at some nodes."""
    if node in cut or tree.left[node] < 0:
        return [node]
    return [leaf for child in children(tree, node) for leaf in leaves_below(tree, child, cut)]


def weakest_links(tree, risk):
    """(alpha, leaves) of the nested trees: the links of least g(t) = (R(t) - R(T_t)) / (|T_t| - 1) go, all at once."""
    cut, alpha, sequence = set(), Fraction(0), []
    while True:
        g, stack = {}, [0]
        while stack:
            node = stack.pop()
            if node in cut or tree.left[node] < 0:
                continue
            below = leaves_below(tree, node, cut)
            g[node] = (risk[node] - sum(risk[leaf] for leaf in below)) / (len(below) - 1)
            stack += children(tree, node)
        weakest = [node for node in g if g[node] <= max(alpha, min(g.values()))]
        if g and (min(g.values()) <= alpha or sequence):
            alpha = max(alpha, min(g.values()))
            cut |= set(weakest)
            if sequence and sequence[-1][0] == alpha:
                sequence.pop()
        if not sequence or g:
            sequence.append((alpha, frozenset(leaves_below(tree, 0, cut))))
        if len(sequence[-1][1]) == 1:
            return sequence


def to_size(tree, risk, n_leaves):
    """Leaves after pairs of leaves have gone one by one: least rise, least gain, last number.

    For tables of a few rows: what differs after eleven digits differs by rounding there.
    """
    cut = set()
    rise = [0.0 if tree.left[t] < 0 else risk[t] - sum(risk[c] for c in children(tree, t)) for t in range(tree.n_nodes)]
    gain = [round(g / (tree.impurity[0] or 1.0), 11) for g in tree.gain.tolist()]
    rise = [round(r / (risk[0] or 1.0), 11) for r in rise]
    while len(leaves := set(leaves_below(tree, 0, cut))) > n_leaves:
        pairs = [node for node in range(tree.n_nodes) if tree.left[node] >= 0 and set(children(tree, node)) <= leaves]
        cut.add(min(pairs, key=lambda t: (rise[t], gain[t], -t)))
    return frozenset(leaves)


def extra_errors(n, errors, confidence):
    """As Weka's `Stats.addErrs` describes it: one leaf at a time."""
    if errors < 1:
        base = n * (1 - confidence ** (1 / n))
        return base if errors == 0 else base + errors * (extra_errors(n, 1.0, confidence) - base)
    if errors + 0.5 >= n:
        return max(n - errors, 0.0)
    z = NormalDist().inv_cdf(1 - confidence)
    f = (errors + 0.5) / n
    upper = (f + z * z / (2 * n) + z * math.sqrt(f / n - f * f / n + z * z / (4 * n * n))) / (1 + z * z / n)
    return upper * n - errors


def pessimistic(tree, counts, confidence):
    """Leaves of C4.5's tree: collapsed from the root, then replaced from the leaves."""

    def errors(node):
        return sum(counts[node]) - max(counts[node])

    def expected(node):
        return errors(node) + extra_errors(sum(counts[node]), errors(node), confidence)

    def collapsed(node):
        if tree.left[node] < 0 or sum(map(errors, leaves_below(tree, node, ()))) >= errors(node) - 1e-3:
            return {node}
        return set().union(*(collapsed(child) for child in children(tree, node)))

    cut = collapsed(0)

    def pruned(node):
        if node in cut or tree.left[node] < 0:
            return {node}, expected(node)
        (one, e1), (two, e2) = (pruned(child) for child in children(tree, node))
        return ({node}, expected(node)) if expected(node) <= e1 + e2 + 0.1 else (one | two, e1 + e2)

    return frozenset(pruned(0)[0])


def raised(tree, rows, sides, counts, confidence):
    """Rows in the leaves of C4.5's tree with raising, as J48 goes about it: sons first, then leaf, branch or node.

    `sides(node, rows)` is where the split of a node sends rows, `counts(rows)` the weights of their classes.
    """

    def expected(some):
        n = sum(counts(some))
        return n - max(counts(some)) + extra_errors(n, n - max(counts(some)), confidence) if n > 0 else 0.0

    def of_branch(node, some):
        if not node[1]:
            return expected(some)
        return sum(of_branch(son, part) for son, part in zip(node[1], sides(node[0], some), strict=True))

    def pruned(node, some):
        """A node is (split, sons); it comes back with the rows in its leaves."""
        if not node[1]:
            return node, [some]
        parts = sides(node[0], some)
        done = [pruned(son, part) for son, part in zip(node[1], parts, strict=True)]
        node = (node[0], [son for son, _ in done])
        as_tree = sum(of_branch(son, part) for (son, _), part in zip(done, parts, strict=True))
        larger = node[1][0 if sum(counts(parts[0])) >= sum(counts(parts[1])) else 1]
        as_branch = of_branch(larger, some)
        if expected(some) <= as_tree + 0.1 and expected(some) <= as_branch + 0.1:
            return (node[0], []), [some]
        if as_branch <= as_tree + 0.1:
            return pruned(larger, some)
        return node, [leaf for _, leaves in done for leaf in leaves]

    def grown(node):
        return node, [grown(child) for child in children(tree, node)]

    def collapsed(node, some):
        """From the root down: what saves no training error is a leaf."""
        if not node[1]:
            return node

        def wrong(at, here):
            if not at[1]:
                return sum(counts(here)) - max(counts(here))
            return sum(wrong(son, part) for son, part in zip(at[1], sides(at[0], here), strict=True))

        if wrong(node, some) >= sum(counts(some)) - max(counts(some)) - 1e-3:
            return node[0], []
        return node[0], [collapsed(son, part) for son, part in zip(node[1], sides(node[0], some), strict=True)]

    return {frozenset(leaf) for leaf in pruned(collapsed(grown(0), rows), rows)[1]}


def raised_in_parts(tree, some, sides, counts, confidence):
    """The same where rows come apart: `some` is {row: part}, `sides(node, some)` two of these. {split path: rows}

    Every estimate sends all rows of a node down what it is an estimate of, as J48 does.
    """

    def expected(here):
        n = sum(counts(here))
        wrong = n - max(counts(here))
        return wrong + extra_errors(n, wrong, confidence) if n > 0 else 0.0

    def of_branch(node, here):
        if not here:
            return 0.0
        if not node[1]:
            return expected(here)
        return sum(of_branch(son, part) for son, part in zip(node[1], sides(node[0], here), strict=True))

    def pruned(node, here):
        if not node[1]:
            return node
        parts = sides(node[0], here)
        node = (node[0], [pruned(son, part) for son, part in zip(node[1], parts, strict=True)])
        as_tree = of_branch(node, here)
        larger = node[1][0 if sum(counts(parts[0])) >= sum(counts(parts[1])) else 1]
        as_branch = of_branch(larger, here)
        if expected(here) <= min(as_tree, as_branch) + 0.1:
            return node[0], []
        return pruned(larger, here) if as_branch <= as_tree + 0.1 else node

    def grown(node):
        return node, [grown(child) for child in children(tree, node)]

    def leaves(node, here):
        if not node[1]:
            return [here]
        return [leaf for son, part in zip(node[1], sides(node[0], here), strict=True) for leaf in leaves(son, part)]

    return leaves(pruned(grown(0), some), some)


def number_bits(targets, weight, spread_of_all, precision):
    """Of the numbers of one leaf, (n, d), a term at a time; without the bit that says that it is one."""
    n, d = sum(weight), len(targets[0])
    means = [sum(w * y[k] for w, y in zip(weight, targets, strict=True)) / n for k in range(d)]
    squares = sum(w * (y[k] - means[k]) ** 2 for w, y in zip(weight, targets, strict=True) for k in range(d))
    deviation = math.sqrt(max(squares / n / d, precision**2 / 12))
    bits = 0.0
    for _ in range(d):
        bits += n * math.log2(math.sqrt(2 * math.pi * math.e) * deviation / precision)
        bits += math.log2(math.sqrt(2 * math.pi * math.e) * spread_of_all / (deviation / math.sqrt(n)))
    return bits + math.log2(math.sqrt(n)) + math.log2(1 + math.log2(spread_of_all / deviation))


def expected_residuals(targets, weight, centre, squared):
    """M5's of one leaf, summed over its rows."""
    n = sum(weight)
    if n <= 1:
        return math.inf
    if squared:
        mean = math.sqrt(sum(w * (y - centre) ** 2 for w, y in zip(weight, targets, strict=True)) / n)
    else:
        mean = sum(w * abs(y - centre) for w, y in zip(weight, targets, strict=True)) / n
    return n * mean * (n + 1) / (n - 1)


def description_bits(tree, leaves, counts, n_levels_here):
    """Of a pruned tree and the labels, by whole numbers of possibilities."""
    bits, stack = 0.0, [0]
    while stack:
        node = stack.pop()
        bits += 1
        if node in leaves:
            n, k = sum(counts[node]), len(counts[node])
            ways = math.factorial(n)
            for count in counts[node]:
                ways //= math.factorial(count)
            bits += math.log2(math.comb(n + k - 1, k - 1)) + math.log2(ways)
            continue
        bits += math.log2(tree.n_features)
        if tree.subset_start[node] >= 0:
            bits += math.log2(2 ** (max(n_levels_here(node), 2) - 1) - 1)
        else:
            bits += math.log2(tree.n_samples[node] - 1)
        stack += children(tree, node)
    return bits
