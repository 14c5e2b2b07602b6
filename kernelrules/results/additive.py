"""Results of `rules.additive`: rules and linear terms with their weights, for every λ of a path.

score(x) = intercept + Σ_rules weight · [x satisfies the rule] + Σ_linear weight · scale · (clip(x_j) - mean)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelrules.results.rule_text import condition_texts, number_text
from kernelrules.results.rules import Rule
from kernelrules.results.show import Result, counted

__all__ = ["AdditiveRules", "LinearTerm"]

_DIGITS = 4  # of weights in text
_TERM_DEVIATION = 0.4  # standard deviation of a linear term, by its scale


@dataclass(frozen=True, repr=False)
class LinearTerm(Result):
    """A linear term: scale · (clip(x_j, low, high) - mean); 0 if x_j is missing.

    Attributes
    ----------
    feature : int
        The column j.
    low, high : float
        Limits of clipping: quantiles of the training values.
    mean : float
        Mean of the clipped values over the training rows.
    scale : float
        0.4 over their standard deviation, so that a term varies as much as a typical rule.
    """

    feature: int
    low: float
    high: float
    mean: float
    scale: float


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveRules(Result):
    """Rules and linear terms, their weights at every λ of the path, certificates, errors, and the chosen λ.

    Terms are the rules, then the linear terms. Regression and two classes have one score; more classes one score each.

    Attributes
    ----------
    rules : tuple of Rule
        Those with a nonzero weight somewhere on the path. `prediction` is the weight at the chosen λ, `confidence` the
        largest share of a class.
    linear : tuple of LinearTerm
        Those with a nonzero weight somewhere on the path.
    loss : str
        "logistic" or "squared".
    lams : ndarray (n_lams,)
        Descending.
    coefficients : ndarray (n_lams, n_scores, n_terms)
        Weights.
    intercepts : ndarray (n_lams, n_scores)
        Constants of the scores.
    primal, dual, gap : ndarray (n_lams, n_scores)
        The objective, a lower bound of it over all rules that were found, and the difference: no weights of these
        rules lower the objective by more.
    gap_all : ndarray (n_lams, n_scores)
        The gap over all possible rules of one condition. NaN for rules with more conditions.
    converged : ndarray (n_lams, n_scores) of bool
        Whether the gap (gap_all, if it is not NaN) is within the tolerance.
    error, se : ndarray (n_lams,) or None
        Cross-validated error, and its standard error over the folds.
    fold_error : ndarray (n_folds, n_lams) or None
        The error in each fold.
    chosen : int
        Index of the chosen λ.
    measure : str
        The error measure: "loss" or "zero_one".
    n_tried : int
        Number of rules that were found, with a nonzero weight or not.
    classes : ndarray or None
        In ascending order; None for regression. A single score is positive for classes[1], score k for classes[k].
    feature_names, class_names, levels, n_features, missing, missing_seen, columns, n_train, indicators
        As in `RuleList`.
    """

    rules: tuple[Rule, ...]
    linear: tuple[LinearTerm, ...]
    loss: str
    lams: np.ndarray
    coefficients: np.ndarray
    intercepts: np.ndarray
    primal: np.ndarray
    dual: np.ndarray
    gap: np.ndarray
    gap_all: np.ndarray
    converged: np.ndarray
    error: np.ndarray | None
    se: np.ndarray | None
    fold_error: np.ndarray | None
    chosen: int
    measure: str
    n_tried: int
    classes: np.ndarray | None
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...] | None
    levels: tuple[Any, ...]
    n_features: int
    missing: str
    missing_seen: np.ndarray | None
    columns: tuple[str, ...] | None
    n_train: int
    indicators: np.ndarray | None = None

    @property
    def n_scores(self) -> int:
        """1, or the number of classes if there are more than two."""
        return self.coefficients.shape[1]

    @property
    def n_terms(self) -> np.ndarray:
        """Number of terms with a nonzero weight at every λ, (n_lams,)."""
        return (self.coefficients != 0).any(axis=1).sum(axis=1)

    @property
    def weights(self) -> np.ndarray:
        """Weights at the chosen λ, (n_scores, n_terms)."""
        return self.coefficients[self.chosen]

    @property
    def intercept(self) -> np.ndarray:
        """Constants at the chosen λ, (n_scores,)."""
        return self.intercepts[self.chosen]

    @property
    def importance(self) -> np.ndarray:
        """Absolute weight times the standard deviation of the term over the training rows, (n_scores, n_terms)."""
        support = np.array([rule.support for rule in self.rules])
        deviation = np.append(np.sqrt(support * (1 - support)), np.full(len(self.linear), _TERM_DEVIATION))
        return np.abs(self.weights) * deviation

    @property
    def n_conditions(self) -> int:
        """Number of conditions of the rules with a nonzero weight at the chosen λ."""
        used = self.weights[:, : len(self.rules)].any(axis=0)
        return sum(len(rule.conditions) for rule, here in zip(self.rules, used, strict=True) if here)

    def at(self, place: int) -> AdditiveRules:
        """Return the same path with another λ chosen.

        Parameters
        ----------
        place : int
            Index into `lams`; negative ones count from the end.

        Returns
        -------
        AdditiveRules
            The model that predicts with this λ.
        """
        if not -len(self.lams) <= place < len(self.lams):
            raise IndexError(f"place is {place}, but the path has {len(self.lams)} points")
        place = int(place) % len(self.lams)
        weights = self.coefficients[place]
        predictions = weights[0].tolist() if self.n_scores == 1 else list(weights.T)
        rules = tuple(replace(rule, prediction=predictions[j]) for j, rule in enumerate(self.rules))
        return replace(self, rules=rules, chosen=place)

    def __len__(self) -> int:
        """Number of terms with a nonzero weight at the chosen λ."""
        return int(self.n_terms[self.chosen])

    def __str__(self) -> str:
        """Weights and rules, the most important first."""
        parts = []
        for score in range(self.n_scores):
            if self.n_scores > 1:
                parts.append(f"score of {self.class_names[score]}:")
            weights, importance = self.weights[score], self.importance[score]
            order = [j for j in np.argsort(-importance, kind="stable") if weights[j] != 0]
            lines = [(_signed(weights[j]), self._term_text(j)) for j in order]
            lines.append((_signed(self.intercept[score]), "ALWAYS"))
            width = max(len(number) for number, _ in lines)
            parts += [f"{number:>{width}}  {text}" for number, text in lines]
        return "\n".join(parts)

    def _term_text(self, j: int) -> str:
        if j < len(self.rules):
            return " & ".join(condition_texts(self.rules[j], self)) or "ALWAYS"
        term = self.linear[j - len(self.rules)]
        low, high, mean, scale = (number_text(x, digits=_DIGITS) for x in (term.low, term.high, term.mean, term.scale))
        return f"{scale} · ({self.feature_names[term.feature]} in [{low}, {high}] - {mean})"

    def _summary(self) -> list[str]:
        lam = number_text(self.lams[self.chosen], digits=3)
        return [self.loss, f"{counted(len(self), 'term')} at lam {lam}", counted(self.n_features, "feature")]


def _signed(weight: float) -> str:
    return f"{weight:+.{_DIGITS}g}"
