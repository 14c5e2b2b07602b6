"""Results of rule learners: conditions, rules, and lists of rules.

A rule is IF condition & condition & ... THEN prediction. A list predicts by its first rule that holds, or by its
default (OTHERWISE) if none does; the rules of a tree are disjoint, so that their order does not matter.

A column from n_features on is a sum of columns: x·direction, as in an oblique split of a tree.

    a condition on column j holds for a row x  iff  low < x_j ≤ high, or the code of x_j is one of `categories`;
                                                    for a missing x_j iff `missing`
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelrules.results.rule_text import UNSEEN, condition_texts, list_text, prediction_text
from kernelrules.results.show import Result, counted, number, short, table

__all__ = ["UNSEEN", "Condition", "Coverage", "Rule", "RuleList"]

_MAX_RULES_SHOWN = 50  # rules in a table


@dataclass(frozen=True, repr=False)
class Condition(Result):
    """A condition on one column.

    Without limits and categories, the condition is that the value is known; with `missing` in addition, it is always
    true. With an empty interval or no categories, and `missing`, the condition is that the value is missing.

    Attributes
    ----------
    feature : int
        The column; from the list's n_features on, row feature - n_features of its `directions`.
    low, high : float
        low < x <= high; infinite if there is no limit.
    categories : tuple of int, or None
        For a column of categories the codes (indices into `RuleList.levels`) that satisfy it, ascending; -1 is the code
        of all unseen levels. None for numbers.
    missing : bool
        Whether a missing value satisfies it.
    """

    feature: int
    low: float = -math.inf
    high: float = math.inf
    categories: tuple[int, ...] | None = None
    missing: bool = False

    @property
    def only_missing(self) -> bool:
        """Whether only a missing value satisfies it."""
        return self.missing and (not self.low < self.high if self.categories is None else not self.categories)

    @property
    def only_known(self) -> bool:
        """Whether every number satisfies it, and a missing value does not."""
        return self.categories is None and not self.missing and self.low == -math.inf and self.high == math.inf

    def _summary(self) -> list[str]:
        parts = [str(self.feature)]
        parts += [f"low={float(self.low)!r}"] if self.low != -math.inf else []
        parts += [f"high={float(self.high)!r}"] if self.high != math.inf else []
        parts += [f"categories={short(self.categories)}"] if self.categories is not None else []
        return parts + (["missing=True"] if self.missing else [])


@dataclass(frozen=True, eq=False, repr=False)
class Rule(Result):
    """IF all conditions hold THEN the prediction.

    Attributes
    ----------
    conditions : tuple of Condition
        At most one per column; a rule without conditions always holds.
    prediction : label, float, ndarray (n_outputs,) or LinearFunction
        A class of the list, or the value of a regression; for a linear leaf a function of the row.
    support : float
        Share of the training weight that the rule covers and, in an ordered list, no earlier rule covers.
    confidence : float
        Share of the covered weight that has the predicted class; NaN for regression.
    n : int or float
        Number of training rows covered; fractional rows count as fractions.
    weight : float
        Weight of these rows.
    shares : ndarray (n_classes,) or None
        Shares of the classes among these rows; None for regression.
    """

    conditions: tuple[Condition, ...]
    prediction: Any
    support: float
    confidence: float
    n: float
    weight: float
    shares: np.ndarray | None = None

    def _summary(self) -> list[str]:
        confidence = [] if math.isnan(self.confidence) else [f"confidence {number(self.confidence, 3)}"]
        what = f"{counted(len(self.conditions), 'condition')} → {short(self.prediction, 40)}"
        return [what, f"support {number(self.support, 3)}", *confidence, f"n = {number(self.n)}"]


@dataclass(frozen=True, eq=False, repr=False)
class RuleList(Result):
    """Rules, and a default if none holds. Iterable and indexable; `str` returns one rule per line.

    Attributes
    ----------
    rules : tuple of Rule
        The rules, in order.
    default : label, float, ndarray (n_outputs,) or LinearFunction
        The prediction if no rule holds: OTHERWISE.
    default_shares : ndarray (n_classes,) or None
        Shares of the classes among the rows of the default; None for regression.
    classes : ndarray or None
        In ascending order; None for regression.
    feature_names : tuple of str
        Names of the columns in text.
    class_names : tuple of str, or None
        Names of the classes in text.
    levels : tuple
        For each column None if it is numerical, else its levels in the order of their codes, as `Tree.categories`.
    n_features : int
        Number of columns of the data.
    ordered : bool
        Whether the first rule that holds decides; otherwise no two rules hold at once.
    complete : bool
        Whether some rule holds for every row, so that the default is never used.
    missing : str
        "error" if data with missing values are refused, else how the learner treated them.
    missing_seen : ndarray (n_features,) of bool, or None
        Columns with missing values in training: text mentions missing values of these only. None: of all.
    columns : tuple of str, or None
        Column names that a data frame must have, those of the training data; None: any.
    n_train : int
        Number of training rows.
    n_outputs : int
        Number of targets of a regression.
    indicators : ndarray (n_features,) of bool, or None
        As in `Tree`: columns of truth values, or of counts in sparse data. None: no column.
    directions : ndarray (n_sums, n_features) or None
        Coefficients of the sums that conditions compare with limits. A sum with a missing value in it is missing.
    fill : ndarray (n_features,) or None
        Replacements of missing values in linear functions, and with missing="zero" or "impute" in sums; None: they stay
        missing. Conditions on single columns have their own rule for missing values.
    """

    rules: tuple[Rule, ...]
    default: Any
    default_shares: np.ndarray | None
    classes: np.ndarray | None
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...] | None
    levels: tuple[Any, ...]
    n_features: int
    ordered: bool
    complete: bool = False
    missing: str = "extra"
    missing_seen: np.ndarray | None = None
    columns: tuple[str, ...] | None = None
    n_train: int = 0
    n_outputs: int = 1
    indicators: np.ndarray | None = None
    directions: np.ndarray | None = None
    fill: np.ndarray | None = None

    @property
    def n_conditions(self) -> int:
        """Number of conditions of all rules."""
        return sum(len(rule.conditions) for rule in self.rules)

    def __len__(self) -> int:
        """Number of rules, without the default."""
        return len(self.rules)

    def __iter__(self) -> Iterator[Rule]:
        """The rules in order."""
        return iter(self.rules)

    def __getitem__(self, place: int | slice) -> Any:
        """A rule, or for a slice the list of these rules with the same default."""
        if isinstance(place, slice):
            return replace(self, rules=self.rules[place], complete=False)
        return self.rules[place]

    def __str__(self) -> str:
        """One rule per line."""
        return list_text(self)

    def _summary(self) -> list[str]:
        kind = "ordered" if self.ordered else "disjoint"
        sizes = counted(self.n_conditions, "condition"), counted(self.n_features, "feature")
        return [counted(len(self.rules), f"{kind} rule"), *sizes]

    def _html_body(self) -> str:
        rows = []
        for rule in self.rules[:_MAX_RULES_SHOWN]:
            when = " & ".join(condition_texts(rule, self)) or "ALWAYS"
            confidence = "" if math.isnan(rule.confidence) else f"{rule.confidence:.3f}"
            rows.append(
                (when, prediction_text(rule.prediction, self), number(rule.n), f"{rule.support:.3f}", confidence)
            )
        if not self.complete:
            rows.append(("OTHERWISE", prediction_text(self.default, self), "", "", ""))
        more = len(self.rules) - _MAX_RULES_SHOWN
        return table(("if", "then", "n", "support", "confidence"), rows, more=more)


@dataclass(frozen=True, eq=False, repr=False)
class Coverage(Result):
    """The rows for which the rules of a list hold.

    Attributes
    ----------
    rule : ndarray (n,) of int64
        The first rule that holds for each row; -1 if none does.
    first : ndarray (n_rules,) of int64
        Number of rows for which each rule is the first to hold.
    raw : ndarray (n_rules,) of int64
        Number of rows for which each rule holds, whether or not an earlier rule does.
    otherwise : int
        Number of rows for which no rule holds.
    """

    rule: np.ndarray
    first: np.ndarray
    raw: np.ndarray
    otherwise: int

    def _summary(self) -> list[str]:
        sizes = counted(len(self.rule), "row"), counted(len(self.first), "rule")
        return [*sizes, f"{self.otherwise} rows without a rule"]

    def _html_body(self) -> str:
        rows = [(k, self.first[k], self.raw[k]) for k in range(min(len(self.first), _MAX_RULES_SHOWN))]
        return table(
            ("rule", "rows where it holds first", "rows where it holds"), rows, more=len(self.first) - len(rows)
        )
