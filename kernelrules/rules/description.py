"""Description lengths, in bits, of rules and of the data given the rules (Cohen 1995, after Quinlan 1995).

    theory    ½ (|k| + S(m, k, k/m)): k conditions out of the m that there are; |k| the bits to send a whole number
    data      log2 (n + 1) + S(covered, fp, ·) + S(uncovered, fn, ·): which rows are wrong
    S(n, k, p) = -k log2 p - (n - k) log2 (1 - p): which k of n things, when each is expected with probability p

The larger of the two sets of rows uses the errors that are expected there, all of them times the class's share (of the
uncovered rows: times the rest), the smaller its own rate. Weights stand for numbers of rows. Weka has the same.
"""

from __future__ import annotations

from math import log2

__all__ = ["data_bits", "subset_bits", "theory_bits"]


def subset_bits(n: float, k: float, p: float) -> float:
    """Bits that say which k of n things are meant, each expected with probability p.

    Parameters
    ----------
    n, k : float
        Things, and how many of them.
    p : float
        Below 1; from 1 on, which only estimates can reach, k / n stands in.

    Returns
    -------
    float
        At least 0.

    Examples
    --------
    >>> subset_bits(4, 2, 0.5)
    4.0
    """
    if p >= 1:
        p = k / n
    wrong = k * -log2(p) if k > 0 and p > 0 else 0.0
    right = (n - k) * -log2(1 - p) if p < 1 else 0.0
    return wrong + right


def data_bits(share: float, covered: float, uncovered: float, false_positive: float, false_negative: float) -> float:
    """Bits that say which rows a list of rules gets wrong.

    Parameters
    ----------
    share : float
        Of the class, among it and those that are learned after it.
    covered, uncovered : float
        Weight of the rows that some rule covers, and of the others.
    false_positive, false_negative : float
        Weight of the wrong ones among the covered, and among the uncovered.

    Returns
    -------
    float
        At least 0.

    Examples
    --------
    >>> data_bits(0.5, 0.0, 7.0, 0.0, 0.0)
    3.0
    """
    errors = false_positive + false_negative
    if covered > uncovered:
        rate_covered = share * errors / covered
        rate_uncovered = false_negative / uncovered if uncovered > 0 else 0.0
    else:
        rate_covered = false_positive / covered if covered > 0 else 0.0
        rate_uncovered = (1 - share) * errors / uncovered if uncovered > 0 else 0.0
    bits = log2(covered + uncovered + 1)
    if covered > 0:
        bits += subset_bits(covered, false_positive, rate_covered)
    if uncovered > 0:
        bits += subset_bits(uncovered, false_negative, rate_uncovered)
    return bits


def theory_bits(n_conditions: int, n_tests: int) -> float:
    """Bits that say which conditions a rule has.

    Parameters
    ----------
    n_conditions : int
        Of the rule.
    n_tests : int
        Conditions that there are.

    Returns
    -------
    float
        Half of what an encoding in any order takes, as conditions are redundant.

    Examples
    --------
    >>> theory_bits(0, 10), round(theory_bits(2, 10), 3)
    (0.0, 4.11)
    """
    if n_conditions == 0:
        return 0.0
    size = log2(n_conditions)
    if n_conditions > 1:
        size += 2 * log2(size)
    return 0.5 * (size + subset_bits(n_tests, n_conditions, n_conditions / n_tests))
