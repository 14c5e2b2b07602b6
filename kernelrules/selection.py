"""Model selection by cross-validation: folds, and the choice among candidates from their errors.

The one-standard-error rule is that of Breiman et al. [1]_.

References
----------
.. [1] L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, "Classification and Regression Trees", Wadsworth, 1984,
       section 3.4.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.docstrings import shared_parameters

__all__ = ["fold_numbers", "pick", "require_rule", "summarise"]


@shared_parameters
def fold_numbers(
    folds: Any, n: int, strata: np.ndarray | None = None, rng: Any = None, groups: Any = None
) -> np.ndarray:
    """Return the fold of each row, numbered from 0.

    Parameters
    ----------
    folds : int or array (n,)
        Number of folds, or the fold of each row.
    n : int
        Number of rows.
    strata : ndarray (n,) of int, optional
        Each fold gets its share of every stratum.
    {rng}
        Used to assign rows to folds.
    groups : array (n,), optional
        Rows of a group stay together: each group, the largest first, goes to the fold with the fewest rows so far.
        `strata` are then ignored.

    Returns
    -------
    ndarray (n,) of int
        With at least two different folds.

    Examples
    --------
    >>> np.bincount(fold_numbers(5, 12, rng=0))
    array([3, 3, 2, 2, 2])
    """
    if np.ndim(folds) == 1:
        given, numbers = check.labels(folds, n, "folds")
        if len(given) < 2:
            raise ValueError("folds must hold at least two different folds")
        return numbers
    k = check.whole(folds, "folds", 2)
    if k > n:
        raise ValueError(f"folds = {k} but X has only {n} rows")
    generator = check.generator(rng)
    if groups is not None:
        return _folds_of_groups(k, check.labels(groups, n, "groups")[1], generator)
    order = generator.permutation(n)
    if strata is not None:
        order = order[np.argsort(strata[order], kind="stable")]
    numbers = np.empty(n, dtype=np.intp)
    numbers[order] = np.arange(n) % k  # rows of a stratum are adjacent, so they are distributed evenly
    return numbers


def _folds_of_groups(k: int, group_of_row: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    sizes = np.bincount(group_of_row)
    if len(sizes) < k:
        raise ValueError(f"folds = {k} but there are only {len(sizes)} groups")
    order = generator.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    fold_of_group, rows = np.empty(len(sizes), dtype=np.intp), np.zeros(k, dtype=np.int64)
    for group in order.tolist():
        fold = int(rows.argmin())
        fold_of_group[group] = fold
        rows[fold] += sizes[group]
    return fold_of_group[group_of_row]


def summarise(errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over folds, the last axis, and its standard error.

    Parameters
    ----------
    errors : ndarray (..., n_folds)
        An error for each candidate and fold.

    Returns
    -------
    mean, se : ndarray
        Without the last axis.

    Examples
    --------
    >>> summarise(np.array([[0.1, 0.3]]))
    (array([0.2]), array([0.1]))
    """
    return errors.mean(axis=-1), errors.std(axis=-1, ddof=1) / np.sqrt(errors.shape[-1])


def require_rule(rule: Any) -> None:
    """Refuse an unknown rule before the computation."""
    check.one_of(rule, "rule", "min", "1se")


def pick(mean: np.ndarray, se: np.ndarray, rule: str) -> int:
    """Return the index of the selected candidate, where candidates are ordered from the simplest on.

    Parameters
    ----------
    mean, se : ndarray (n_candidates,)
        From `summarise`.
    rule : {"min", "1se"}
        The smallest mean, or the simplest whose mean is within one standard error of the smallest.

    Returns
    -------
    int
        The first of several equal ones.

    Examples
    --------
    >>> pick(np.array([0.31, 0.3, 0.29]), np.array([0.02, 0.02, 0.02]), "1se")
    0
    """
    require_rule(rule)
    best = int(np.argmin(mean))
    return best if rule == "min" else int(np.flatnonzero(mean <= mean[best] + se[best])[0])
