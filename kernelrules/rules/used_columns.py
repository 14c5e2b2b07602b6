"""The columns of sparse data that rules use: only these are made dense."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from kernelrules.results import Condition, Rule, RuleList
from kernelrules.rules.linear_sums import has_sums

__all__ = ["narrowed", "widened"]

_Narrow = tuple[RuleList, np.ndarray]
_cache: WeakKeyDictionary[RuleList, _Narrow] = WeakKeyDictionary()  # so that their matchers are cached, too


def narrowed(rs: RuleList, X: Any, name: str = "X") -> tuple[RuleList, Any, np.ndarray | None]:
    """Return the list over the columns that it uses, these columns of sparse X, and their numbers.

    Dense X is returned unchanged. Invalid values in the other columns are refused here.
    """
    if not sparse.issparse(X) or X.ndim != 2 or X.shape[1] != rs.n_features or X.dtype.kind not in "fiub":
        return rs, X, None
    short, used = _cache.get(rs) or _narrow(rs)
    if len(used) == rs.n_features:
        return rs, X, None
    rows = _checked(X, name, refuse_missing=rs.missing == "error")
    return short, rows[:, used], used


def _checked(X: Any, name: str, *, refuse_missing: bool) -> sparse.csr_array:
    rows = X.tocsr()
    try:
        rows = sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
        rows.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is not a valid CSR matrix: {error}") from None
    if rows.dtype.kind == "f":
        for refused in (np.isinf, np.isnan) if refuse_missing else (np.isinf,):
            found = refused(rows.data)
            if found.any():
                place = int(found.argmax())
                row = int(np.searchsorted(rows.indptr, place, side="right")) - 1
                raise ValueError(f"{name} holds {rows.data[place]} at row {row}, column {rows.indices[place]}")
    return rows


def _narrow(rs: RuleList) -> _Narrow:
    if has_sums(rs):  # which use columns that no condition names
        return rs, np.arange(rs.n_features)
    columns = {condition.feature for rule in rs.rules for condition in rule.conditions}
    used = np.array(sorted(columns) or [0])
    place = {int(column): number for number, column in enumerate(used)}
    if used[0] < 0 or used[-1] >= rs.n_features or len(rs.levels) != rs.n_features:
        return rs, np.arange(rs.n_features)  # an invalid list, which the matcher refuses
    short = replace(
        rs,
        rules=tuple(_renumbered(rule, place) for rule in rs.rules),
        levels=tuple(rs.levels[column] for column in used),
        feature_names=tuple(rs.feature_names[column] for column in used),
        columns=None,
        missing_seen=None if rs.missing_seen is None else rs.missing_seen[used],
        indicators=None if rs.indicators is None else rs.indicators[used],
        n_features=len(used),
    )
    _cache[rs] = short, used
    return short, used


def _renumbered(rule: Rule, place: Any) -> Rule:
    def renumbered(condition: Condition) -> Condition:
        return replace(condition, feature=int(place[condition.feature]))

    return replace(rule, conditions=tuple(renumbered(condition) for condition in rule.conditions))


def widened(short: RuleList, rs: RuleList, used: np.ndarray | None) -> RuleList:
    """Return a list over the used columns as a list over all columns."""
    if used is None:
        return short
    return replace(
        short,
        rules=tuple(_renumbered(rule, used) for rule in short.rules),
        levels=rs.levels,
        feature_names=rs.feature_names,
        columns=rs.columns,
        missing_seen=rs.missing_seen,
        indicators=rs.indicators,
        n_features=rs.n_features,
    )
