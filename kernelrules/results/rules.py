"""What rule learners return: conditions, rules, and lists of rules.

A rule is IF condition & condition & ... THEN prediction. A list answers with its first rule that holds, and with its
default (OTHERWISE) where none does; the rules of a tree exclude one another, so that their order does not matter.

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

_MOST_SHOWN = 50  # rules in a table


@dataclass(frozen=True, repr=False)
class Condition(Result):
    """What a rule asks of one column.

    Every combination means what the fields say: without limits and categories, the value is known; with `missing` as
    well, always true (no rule needs it); with an empty interval or no categories, and `missing`, the value is missing.

    Attributes
    ----------
    feature : int
        The column.
    low, high : float
        low < x <= high; infinite where there is no limit.
    categories : tuple of int, or None
        For a column of categories the codes (places in `RuleList.levels`) that satisfy it, ascending; -1 stands for all
        levels that the training data did not have. None for numbers.
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
        """Whether no value satisfies it but a missing one."""
        return self.missing and (not self.low < self.high if self.categories is None else not self.categories)

    @property
    def only_known(self) -> bool:
        """Whether every number satisfies it, and a missing value does not."""
        return self.categories is None and not self.missing and self.low == -math.inf and self.high == math.inf

    def _says(self) -> list[str]:
        said = [str(self.feature)]
        said += [f"low={float(self.low)!r}"] if self.low != -math.inf else []
        said += [f"high={float(self.high)!r}"] if self.high != math.inf else []
        said += [f"categories={short(self.categories)}"] if self.categories is not None else []
        return said + (["missing=True"] if self.missing else [])


@dataclass(frozen=True, eq=False, repr=False)
class Rule(Result):
    """IF all conditions hold THEN the prediction.

    Attributes
    ----------
    conditions : tuple of Condition
        At most one for a column; none is always true.
    prediction : label, float or ndarray (n_outputs,)
        One of the list's classes, or what a regression predicts.
    support : float
        Share of the training weight that the rule covers; of an ordered list, that no earlier rule covers.
    confidence : float
        Share of the covered weight that has the predicted class; NaN for regression.
    n : int or float
        Training rows covered; fractions of rows count as such.
    weight : float
        Their weight.
    shares : ndarray (n_classes,) or None
        Shares of the classes among them, for classification.
    """

    conditions: tuple[Condition, ...]
    prediction: Any
    support: float
    confidence: float
    n: float
    weight: float
    shares: np.ndarray | None = None

    def _says(self) -> list[str]:
        sure = [] if math.isnan(self.confidence) else [f"confidence {number(self.confidence, 3)}"]
        what = f"{counted(len(self.conditions), 'condition')} → {short(self.prediction, 40)}"
        return [what, f"support {number(self.support, 3)}", *sure, f"n = {number(self.n)}"]


@dataclass(frozen=True, eq=False, repr=False)
class RuleList(Result):
    """Rules, and what to say where none holds. Iterable, indexable; `str` prints it as a person writes.

    Attributes
    ----------
    rules : tuple of Rule
        In order.
    default : label, float or ndarray (n_outputs,)
        What is predicted where no rule holds: OTHERWISE.
    default_shares : ndarray (n_classes,) or None
        Shares of the classes there, for classification.
    classes : ndarray or None
        In ascending order; None for regression.
    feature_names : tuple of str
        What the columns are called in text.
    class_names : tuple of str, or None
        What the classes are called in text.
    levels : tuple
        For each column None if it is numerical, else its levels in the order of their codes, as `Tree.categories`.
    n_features : int
        Columns that data must have.
    ordered : bool
        Whether the first rule that holds counts; otherwise no two rules hold at once.
    complete : bool
        Whether some rule holds for every row, so that the default is never needed.
    missing : str
        "error" where data with missing values are refused, else how the learner treated them.
    missing_seen : ndarray (n_features,) of bool, or None
        Columns that had missing values in training: text names missing values of these only. None: of all.
    columns : tuple of str, or None
        Names that the columns of a data frame must have, those of the training data; None: any.
    n_train : int
        Rows of the training data.
    n_outputs : int
        Numbers that a regression predicts.
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

    @property
    def n_conditions(self) -> int:
        """Conditions of all rules."""
        return sum(len(rule.conditions) for rule in self.rules)

    def __len__(self) -> int:
        """Rules, the default not counted."""
        return len(self.rules)

    def __iter__(self) -> Iterator[Rule]:
        """The rules in order."""
        return iter(self.rules)

    def __getitem__(self, place: int | slice) -> Any:
        """A rule; of a slice, the list of these rules only, with the same default."""
        if isinstance(place, slice):
            return replace(self, rules=self.rules[place], complete=False)
        return self.rules[place]

    def __str__(self) -> str:
        """One rule a line."""
        return list_text(self)

    def _says(self) -> list[str]:
        kind = "ordered" if self.ordered else "disjoint"
        sizes = counted(self.n_conditions, "condition"), counted(self.n_features, "feature")
        return [counted(len(self.rules), f"{kind} rule"), *sizes]

    def _body(self) -> str:
        rows = []
        for rule in self.rules[:_MOST_SHOWN]:
            when = " & ".join(condition_texts(rule, self)) or "ALWAYS"
            sure = "" if math.isnan(rule.confidence) else f"{rule.confidence:.3f}"
            rows.append((when, prediction_text(rule.prediction, self), number(rule.n), f"{rule.support:.3f}", sure))
        if not self.complete:
            rows.append(("OTHERWISE", prediction_text(self.default, self), "", "", ""))
        more = len(self.rules) - _MOST_SHOWN
        return table(("if", "then", "n", "support", "confidence"), rows, more=more)


@dataclass(frozen=True, eq=False, repr=False)
class Coverage(Result):
    """Which rows the rules of a list hold for.

    Attributes
    ----------
    rule : ndarray (n,) of int64
        The rule that answers for each row: the first that holds; -1 where none does.
    first : ndarray (n_rules,) of int64
        Rows that each rule answers for.
    raw : ndarray (n_rules,) of int64
        Rows that each rule holds for, whatever the rules before it.
    otherwise : int
        Rows that no rule holds for.
    """

    rule: np.ndarray
    first: np.ndarray
    raw: np.ndarray
    otherwise: int

    def _says(self) -> list[str]:
        sizes = counted(len(self.rule), "row"), counted(len(self.first), "rule")
        return [*sizes, f"{self.otherwise} rows that no rule holds for"]

    def _body(self) -> str:
        rows = [(k, self.first[k], self.raw[k]) for k in range(min(len(self.first), _MOST_SHOWN))]
        return table(("rule", "answers for", "holds for"), rows, more=len(self.first) - len(rows))
