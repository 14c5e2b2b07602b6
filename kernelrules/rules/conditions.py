"""The distinct conditions of rules as arrays for the core, and the rows that satisfy them as bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.core.rules.condition_masks import fill_thresholds
from kernelrules.core.rules.match import ConditionTable, fill_masks
from kernelrules.results import Condition
from kernelrules.results.rules import UNSEEN

__all__ = ["CompiledConditions", "compile_conditions", "halves", "intersection", "merged", "row_masks"]

_SORT_MIN_LIMITS = 32  # with this many limits on a column, sorting its rows is faster than comparing each


@dataclass(frozen=True, eq=False)
class CompiledConditions:
    """The conditions of rules as arrays: rule i has the distinct conditions ids[start[i] : start[i + 1]]."""

    start: np.ndarray
    ids: np.ndarray
    distinct: list[Condition]
    n_levels: np.ndarray
    table: ConditionTable


def compile_conditions(
    rules: tuple[tuple[Condition, ...], ...], levels: tuple[Any, ...], *, merge: bool
) -> CompiledConditions:
    """Compile the conditions of several rules on columns with these levels.

    With `merge`, the conditions of a rule on one column become one; otherwise the limits of an interval become two.
    """
    numbers: dict[Condition, int] = {}
    start, ids = [0], []
    for place, conditions in enumerate(rules):
        for condition in merged(conditions, place) if merge else halves(conditions):
            ids.append(numbers.setdefault(condition, len(numbers)))
        start.append(len(ids))
    distinct = list(numbers)
    n_levels = np.array([0 if named is None else len(named) for named in levels], dtype=np.int64)
    level_start, flags = _flags(distinct, levels)
    table = ConditionTable(
        np.array([condition.feature for condition in distinct], dtype=np.int64),
        np.array([condition.low for condition in distinct], dtype=np.float64),
        np.array([condition.high for condition in distinct], dtype=np.float64),
        np.array([condition.missing for condition in distinct], dtype=np.uint8),
        level_start,
        flags,
        n_levels,
    )
    return CompiledConditions(np.array(start, dtype=np.int64), np.array(ids, dtype=np.int64), distinct, n_levels, table)


def halves(conditions: tuple[Condition, ...]) -> list[Condition]:
    """Return the conditions, with one condition for each limit of an interval."""
    parts = []
    for condition in conditions:
        if condition.categories is None and -np.inf < condition.low < condition.high < np.inf:
            column, missing = condition.feature, condition.missing
            parts.append(Condition(column, low=condition.low, missing=missing))
            parts.append(Condition(column, high=condition.high, missing=missing))
        else:
            parts.append(condition)
    return parts


def intersection(one: Condition, other: Condition) -> Condition:
    """Return the condition that holds if both conditions on a column do."""
    codes = None if one.categories is None else tuple(sorted(set(one.categories) & set(other.categories)))
    return Condition(
        one.feature, max(one.low, other.low), min(one.high, other.high), codes, one.missing and other.missing
    )


def merged(conditions: tuple[Condition, ...] | list[Condition], place: int) -> tuple[Condition, ...]:
    """Return the conditions of rule `place` with one condition per column."""
    if len({condition.feature for condition in conditions}) == len(conditions):
        return tuple(conditions)
    by_column: dict[int, Condition] = {}
    for condition in conditions:
        column = condition.feature
        if column not in by_column:
            by_column[column] = condition
            continue
        if (by_column[column].categories is None) != (condition.categories is None):
            raise ValueError(f"rule {place} treats column {column} both as numbers and as categories")
        by_column[column] = intersection(by_column[column], condition)
    return tuple(by_column.values())


def _flags(distinct: list[Condition], levels: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """First flag of each condition (-1 for numbers), and the flags: one for unseen levels, then one per level."""
    level_start, parts, n = np.full(len(distinct), -1, dtype=np.int64), [], 0
    for place, condition in enumerate(distinct):
        column = condition.feature
        if not 0 <= column < len(levels):
            raise ValueError(f"a rule has a condition on column {column}, but there are {len(levels)} columns")
        if np.isnan(condition.low) or np.isnan(condition.high):
            raise ValueError(f"a rule has NaN as a limit of column {column}")
        if levels[column] is None and condition.categories is None:
            continue
        n_levels = -1 if levels[column] is None else len(levels[column])
        codes = _codes(condition, n_levels)
        flags = np.zeros(n_levels + 1, dtype=np.uint8)
        flags[codes + 1] = 1
        level_start[place] = n
        parts.append(flags)
        n += len(flags)
    return level_start, np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint8)


def _codes(condition: Condition, n_levels: int) -> np.ndarray:
    """Codes of the levels that satisfy a condition."""
    column = condition.feature
    if condition.categories is None:
        if not (condition.only_known or condition.only_missing):
            raise ValueError(f"a rule compares column {column} with numbers, but it has categories")
        return np.arange(UNSEEN, n_levels if condition.only_known else UNSEEN)
    codes = np.array(condition.categories, dtype=np.int64)
    if ((codes < UNSEEN) | (codes >= n_levels)).any():
        raise ValueError(f"a rule names the categories {condition.categories}, which column {column} does not have")
    return codes


def row_masks(conditions: CompiledConditions, x: np.ndarray, threads: int) -> np.ndarray:
    """Return for each distinct condition the rows that satisfy it, 64 per word.

    The rows are sorted by columns with many limits: each limit then changes only a few words.
    """
    shape = (len(conditions.distinct), -(-len(x) // 64))
    check.fits_memory(shape, np.uint64, "the rows that satisfy the conditions")
    masks = np.empty(shape, dtype=np.uint64)
    by_column: dict[int, list[tuple[float, int]]] = {}
    others = []
    for number, condition in enumerate(conditions.distinct):
        one_limit = (condition.low > -np.inf) != (condition.high < np.inf)
        if one_limit and condition.categories is None and np.isfinite(max(condition.low, -condition.high)):
            limit = condition.low if condition.low > -np.inf else condition.high
            by_column.setdefault(condition.feature, []).append((limit, number))
        else:
            others.append(number)
    for column, limits in by_column.items():
        if len(limits) < _SORT_MIN_LIMITS:
            others += [number for _, number in limits]
            continue
        limits.sort()
        values = x[:, column].astype(np.float64)
        order = np.argsort(values, kind="stable")  # NaN last
        n_known = len(x) - int(np.isnan(values).sum())
        below = np.searchsorted(values[order[:n_known]], [limit for limit, _ in limits], side="right")
        numbers = np.array([number for _, number in limits], dtype=np.int64)
        fill_thresholds(conditions.table, numbers, below, order, n_known, masks)
    chosen = np.array(sorted(others), dtype=np.int64)
    fill_masks(conditions.table, chosen, x, masks, parallel.enough_threads(threads, 64 * len(chosen) * shape[1]))
    return masks
