"""Whether a hyperplane separates two classes of rows, by linear programming in whole numbers of any length.

The rows are the very floats that they are. Either weights exist, at which the convex hulls meet, or a hyperplane does,
and whichever is found is checked before it is returned: the answer is right because its proof is.
"""

from fractions import Fraction

__all__ = ["hyperplane_or_weights", "in_exact_numbers"]


def in_exact_numbers(X):
    """Rows as fractions."""
    return [[Fraction(float(number)) for number in row] for row in X]


def _whole_columns(rows):
    """Columns multiplied by what makes whole numbers of them, and by what: separability does not see that."""
    factors = []
    for column in zip(*rows, strict=True):
        common = max(number.denominator for number in column)  # powers of two
        factors.append(common)
    return [[int(number * factor) for number, factor in zip(row, factors, strict=True)] for row in rows], factors


def hyperplane_or_weights(X, signs):
    """(w, b) with s(w·x + b) > 0 for all rows, or weights ≥ 0 with sum 1 in each class and equal means; the other is
    None.

    Phase one of the simplex method for  Σ a s (x, 1) = 0, Σ a = 1, a ≥ 0  with Bland's rule (which never cycles) and
    pivots that keep whole numbers (Edmonds 1967). Where it ends above 0, the multipliers of the equations are the
    hyperplane.
    """
    exact = in_exact_numbers(X)
    rows, factors = _whole_columns(exact)
    signs = [1 if s > 0 else -1 for s in signs]
    n, m = len(rows), len(rows[0]) + 2
    columns = [[s * number for number in (*row, 1)] + [1] for row, s in zip(rows, signs, strict=True)]
    # A tableau of whole numbers over one denominator: n variables, m artificial ones, and the right-hand side.
    table = [[column[i] for column in columns] + [int(i == j) for j in range(m)] + [int(i == m - 1)] for i in range(m)]
    cost = [-sum(table[i][j] for i in range(m)) for j in range(n)] + [0] * m + [-1]
    basis, denominator = list(range(n, n + m)), 1
    while True:
        entering = next((j for j in range(n) if cost[j] < 0), None)
        if entering is None or cost[-1] == 0:
            break
        leaving = min(
            (i for i in range(m) if table[i][entering] > 0),
            key=lambda i: (Fraction(table[i][-1], table[i][entering]), basis[i]),
        )
        pivot_row, pivot = table[leaving], table[leaving][entering]
        for row in [*(table[i] for i in range(m) if i != leaving), cost]:
            factor = row[entering]
            row[:] = [(number * pivot - factor * p) // denominator for number, p in zip(row, pivot_row, strict=True)]
        basis[leaving], denominator = entering, pivot
    if cost[-1] == 0:
        weights = [Fraction(0)] * n
        for i, variable in enumerate(basis):
            if variable < n:
                weights[variable] = Fraction(2 * table[i][-1], denominator)
        assert all(weight >= 0 for weight in weights)
        for side in (1, -1):
            assert sum(w for w, s in zip(weights, signs, strict=True) if s == side) == 1
        for column in zip(*exact, strict=True):
            assert sum(w * s * x for w, s, x in zip(weights, signs, column, strict=True)) == 0
        return None, weights
    # Reduced costs of the artificial variables are 1 - y, in units of the denominator.
    y = [Fraction(cost[n + i], denominator) - 1 for i in range(m)]
    w, b = [number * factor for number, factor in zip(y[: m - 2], factors, strict=True)], y[m - 2]
    assert all(
        s * (sum(p * q for p, q in zip(w, row, strict=True)) + b) > 0 for row, s in zip(exact, signs, strict=True)
    )
    return (w, b), None
