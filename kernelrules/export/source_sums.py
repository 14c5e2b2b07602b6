"""Sums of columns in source code: those that oblique splits compare, and those that linear leaves predict.

Terms are added one by one in the order of the columns, as in the core. If missing values are filled in, sums are
computed from the filled values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kernelrules.results import Condition, LinearFunction, RuleList, Tree
from kernelrules.results.linear import fills_splits

__all__ = ["SourceSums", "python_number"]

_TERMS_PER_LINE = 50  # because Python's parser nests a sum once per term


def python_number(number: float) -> str:
    """Return a number as Python source."""
    return repr(float(number)) if math.isfinite(number) else f'float("{number}")'


class SourceSums:
    """The sums in conditions and predictions; `columns` are those that these and the conditions use."""

    def __init__(self, t: Tree | RuleList, conditions: Sequence[tuple[Condition, ...]], answers: list[Any]) -> None:
        used = {condition.feature for way in conditions for condition in way}
        self._t = t
        self._sums = sorted(column - t.n_features for column in used if column >= t.n_features)
        functions = [answer for answer in answers if isinstance(answer, LinearFunction)]
        summed = {column for place in self._sums for column, _ in self._terms(place)}
        predicting = {column for function in functions for column in function.features}
        self._fills_sums, self._fills_functions = fills_splits(t), t.fill is not None
        self._filled = (summed if self._fills_sums else set()) | (predicting if self._fills_functions else set())
        self.columns = sorted(summed | predicting | {column for column in used if column < t.n_features})

    def _terms(self, place: int) -> list[tuple[int, float]]:
        """Return the columns and coefficients of a sum."""
        direction = self._t.directions[place]
        return [(int(column), float(direction[column])) for column in np.flatnonzero(direction)]

    def python_lines(self) -> Iterator[str]:
        """Yield assignments of the filled values, then of the sums."""
        for column in sorted(self._filled):
            yield f"    f{column} = {python_number(self._t.fill[column])} if x{column} != x{column} else x{column}"
        for place in self._sums:
            for line in self._python_sum(self._terms(place), None, f"s{place}", filled=self._fills_sums):
                yield f"    {line}"

    def python_function(self, function: LinearFunction, name: str) -> list[str]:
        """Return the assignments of a linear function to a variable."""
        terms = zip(function.features, function.coefficients, strict=True)
        return self._python_sum(list(terms), function.constant, name, filled=self._fills_functions)

    def _python_sum(
        self, terms: list[tuple[int, float]], constant: float | None, name: str, *, filled: bool
    ) -> list[str]:
        parts = [
            _signed(factor, f"{python_number(abs(factor))} * {'f' if filled else 'x'}{column}")
            for column, factor in terms
        ]
        parts += [] if constant is None else [_signed(constant, python_number(abs(constant)))]
        lines = []
        for first in range(0, len(parts), _TERMS_PER_LINE):
            some = "".join(parts[first : first + _TERMS_PER_LINE])
            lines.append(f"{name} = {name}{some}" if first else f"{name} = {_first(some)}")
        return lines or [f"{name} = 0.0"]

    def sql_sum(self, place: int, quoted: list[str]) -> str:
        """Return a sum in brackets."""
        return f"({self._sql(self._terms(place), quoted, filled=self._fills_sums)})"

    def sql_function(self, function: LinearFunction, quoted: list[str]) -> str:
        """Return a linear function as an expression, which is NULL if a value that it uses is missing."""
        terms = zip(function.features, function.coefficients, strict=True)
        constant = _signed(function.constant, _sql_number(abs(function.constant)))
        return self._sql(list(terms), quoted, filled=self._fills_functions) + constant

    def _sql(self, terms: list[tuple[int, float]], quoted: list[str], *, filled: bool) -> str:
        parts = [
            _signed(factor, f"{_sql_number(abs(factor))} * {self._sql_column(column, quoted, filled=filled)}")
            for column, factor in terms
        ]
        return _first("".join(parts)) or "0.0"

    def _sql_column(self, column: int, quoted: list[str], *, filled: bool) -> str:
        if not filled:
            return quoted[column]
        return f"COALESCE({quoted[column]}, {_sql_number(self._t.fill[column])})"


def _signed(factor: float, text: str) -> str:
    return f" - {text}" if factor < 0 else f" + {text}"


def _first(terms: str) -> str:
    """Return terms without a leading plus."""
    return terms.removeprefix(" + ") if terms.startswith(" + ") else terms.replace(" - ", "-", 1)


def _sql_number(number: float) -> str:
    if not math.isfinite(number):
        raise ValueError(f"{number} cannot be a number in SQL")
    return repr(float(number))
