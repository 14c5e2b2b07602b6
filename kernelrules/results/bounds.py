"""Results of bounds: risk ≤ empirical + complexity + deviation with probability 1 - eta, and simulated estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kernelrules.results.show import Result, card, fields_table, number, short

__all__ = ["Bound", "Estimate"]


@dataclass(frozen=True, repr=False)
class Bound(Result):
    """An upper bound of a risk: empirical + complexity + deviation, with probability at least 1 - eta.

    Attributes
    ----------
    empirical : float
        The mean loss on the sample.
    complexity : float
        Twice a bound of the Rademacher complexity: how well the class of functions can fit pure noise.
    deviation : float
        How far the sample may deviate from its distribution.
    eta : float
        The probability with which the bound may fail, over samples.
    n : int
        Size of the sample.
    about : str
        The bounded quantity, and the class of functions.
    """

    empirical: float
    complexity: float
    deviation: float
    eta: float
    n: int
    about: str

    @property
    def total(self) -> float:
        """The bound."""
        return self.empirical + self.complexity + self.deviation

    @property
    def vacuous(self) -> bool:
        """Whether the bound is trivial, because every risk is at most 1."""
        return self.total >= 1.0

    def __str__(self) -> str:
        meaning = "vacuous: a risk is at most 1" if self.vacuous else f"with probability {1 - self.eta:g}"
        total, empirical, complexity, deviation = (
            f"{part:.4f}" if part < 1e4 else f"{part:.3g}"
            for part in (self.total, self.empirical, self.complexity, self.deviation)
        )
        return (
            f"{self.about} <= {total} ({meaning})\n"
            f"  = {empirical} on the {self.n} points + {complexity} for the class of functions + {deviation} for chance"
        )

    def _summary(self) -> list[str]:
        parts = " + ".join(map(number, (self.empirical, self.complexity, self.deviation)))
        end = "vacuous" if self.vacuous else f"with probability {1 - self.eta:g}"
        return [f"{short(self.about, 80)} ≤ {number(self.total)} = {parts}", end, f"n = {self.n}"]


class Estimate(NamedTuple):
    """A mean over random draws.

    Attributes
    ----------
    value : float
        The mean.
    standard_error : float
        Standard error of the mean.
    n_draws : int
        Number of draws.
    """

    value: float
    standard_error: float
    n_draws: int

    def _repr_html_(self) -> str:
        """For notebooks."""
        return card(self, fields_table(self))
