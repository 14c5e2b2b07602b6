"""What bounds return: risk ≤ empirical + complexity + deviation with probability 1 - eta, and simulated estimates."""

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
        Twice a bound of the Rademacher complexity: what the class of functions can fit of pure noise.
    deviation : float
        What the sample itself may be unlike its source.
    eta : float
        The probability with which the bound may fail, over samples.
    n : int
        Size of the sample.
    about : str
        What was bounded, and for which functions.
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
        """Whether it says nothing: no risk here is above 1."""
        return self.total >= 1.0

    def __str__(self) -> str:
        says = "says nothing: a risk is at most 1" if self.vacuous else f"with probability {1 - self.eta:g}"
        total, empirical, complexity, deviation = (
            f"{part:.4f}" if part < 1e4 else f"{part:.3g}"
            for part in (self.total, self.empirical, self.complexity, self.deviation)
        )
        return (
            f"{self.about} <= {total} ({says})\n"
            f"  = {empirical} on the {self.n} points + {complexity} for the class of functions + {deviation} for chance"
        )

    def _says(self) -> list[str]:
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
        Of the mean.
    n_draws : int
        How many there were.
    """

    value: float
    standard_error: float
    n_draws: int

    def _repr_html_(self) -> str:
        """For notebooks."""
        return card(self, fields_table(self))
