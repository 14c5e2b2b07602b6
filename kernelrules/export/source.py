"""export.to_python, to_sql: a tree or rule list as source code without dependencies.

There is one condition per leaf or rule, and the first that holds decides: nested conditions could be deeper than
parsers allow. Numbers are written so that they read back the same. Sums are computed as in the core, product after
product in the order of the columns, so that with IEEE 754 numbers, as in Python, rows on a boundary go to the same
side.
"""

from __future__ import annotations

import builtins
import keyword
import math
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.export.branches import branches_of, require_tree_or_rules
from kernelrules.export.source_sums import SourceSums, python_number
from kernelrules.results import Condition, LinearFunction, RuleList, Tree
from kernelrules.results.rules import UNSEEN

__all__ = ["to_python", "to_sql"]


def _plain(value: Any, what: str) -> Any:
    """Return a label or level as a string, number or truth value of Python."""
    plain = value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufUS" else value
    if isinstance(plain, (bool, int, str, bytes)) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    raise ValueError(f"{what} {value!r} is neither a string nor a number, and cannot be written as source")


def _listed_levels(condition: Condition, levels: Any, *, inside: bool) -> list[Any]:
    """Return the levels that satisfy a condition, or those that do not."""
    chosen = set(condition.categories)
    return [_plain(level, "the level") for code, level in enumerate(levels) if (code in chosen) == inside]


# ---- Python -----------------------------------------------------------------------------------------------------


def to_python(t: Tree | RuleList, feature_names: Any = None, *, name: str = "predict") -> str:
    """Write a Python function that predicts a row as the tree or rule list does, without any package.

    Parameters
    ----------
    t : Tree or RuleList
        Trees with surrogates or fractional rows are refused.
    feature_names : sequence of str, optional
        Names of the columns in comments.
    name : str
        Name of the function.

    Returns
    -------
    str
        Source of a module. The function takes a sequence of the row's values in the order of the columns, None or NaN
        for missing ones, and returns the class or number, or a tuple for several targets. Sums of oblique splits and
        linear leaves are computed in the same order, and so to the same bits, as by `predict`.

    Examples
    --------
    >>> from kernelrules import export, tree
    >>> source = export.to_python(tree.grow([[0.0], [1.0]], ["a", "b"]), ["A"])
    >>> print(source)
    def predict(row):
        x0 = float("nan") if row[0] is None else float(row[0])  # A
        if x0 <= 0.5 or x0 != x0:
            return 'a'
        if x0 > 0.5:
            return 'b'
    >>> module = {}
    >>> exec(source, module)
    >>> module["predict"]([0.3])
    'a'
    """
    require_tree_or_rules(t)
    if not (isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)):
        raise ValueError(f"name must be a Python identifier, got {name!r}")
    if hasattr(builtins, name):
        raise ValueError(f"name must not be that of one of Python's own functions, got {name!r}")
    names = check.column_names(feature_names, t.feature_names, t.n_features)
    levels = t.levels if isinstance(t, RuleList) else t.categories
    conditions, predictions, default = branches_of(t)
    sums = SourceSums(t, conditions, [*predictions, default])
    lines = [f"def {name}(row):"]
    for column in sums.columns:
        read = f"row[{column}]"
        if levels[column] is None:
            read = f'float("nan") if {read} is None else float({read})'
        lines.append(f"    x{column} = {read}  # {ascii(names[column])[1:-1]}")
    lines += sums.python_lines()
    for way, prediction in zip(conditions, predictions, strict=True):
        tests = [_python_test(c, levels[c.feature] if c.feature < t.n_features else None, t) for c in way]
        if len(tests) > 1:
            tests = [f"({test})" if " or " in test else test for test in tests]
        lines.append(f"    if {' and '.join(tests) or True}:")
        lines += [f"        {line}" for line in _python_answer(prediction, sums)]
    if default is not None:
        lines += [f"    {line}" for line in _python_answer(default, sums)]
    return "\n".join(lines)


def _python_answer(prediction: Any, sums: SourceSums) -> list[str]:
    if isinstance(prediction, LinearFunction):
        otherwise = python_number(prediction.otherwise)
        return [*sums.python_function(prediction, "y"), f"return y if y == y else {otherwise}"]
    return [f"return {_python_value(prediction)}"]


def _python_value(prediction: Any) -> str:
    if np.ndim(prediction):
        return repr(tuple(float(number) for number in prediction))
    return repr(_plain(prediction, "the prediction"))


def _python_test(condition: Condition, levels: Any, t: Tree | RuleList) -> str:
    place = condition.feature - t.n_features
    value = f"x{condition.feature}" if place < 0 else f"s{place}"
    if levels is not None:
        return _python_levels(condition, levels, value)
    absent = f"{value} != {value}"
    if condition.only_missing:
        return absent
    if condition.only_known:
        return f"{value} == {value}"
    low = "" if condition.low == -math.inf else f"{python_number(condition.low)} < "
    high = "" if condition.high == math.inf else f" <= {python_number(condition.high)}"
    test = f"{low}{value}{high}" if high or not low else f"{value} > {python_number(condition.low)}"
    return f"{test} or {absent}" if condition.missing else test


def _python_levels(condition: Condition, levels: Any, value: str) -> str:
    absent = f"{value} is None or {value} != {value}"
    if condition.only_missing:
        return absent
    unseen = condition.categories is None or UNSEEN in condition.categories
    named = [] if condition.categories is None else _listed_levels(condition, levels, inside=not unseen)
    listed = "(" + " ".join(f"{level!r}," for level in named) + ")"
    if not unseen:
        return f"{value} in {listed} or {absent}" if condition.missing else f"{value} in {listed}"
    if condition.missing:
        return f"{value} not in {listed}"
    return f"not ({absent}) and {value} not in {listed}"


# ---- SQL --------------------------------------------------------------------------------------------------------


def to_sql(
    t: Tree | RuleList, feature_names: Any = None, *, table: str | None = None, output: int | None = None
) -> str:
    """Write a tree or rule list as an SQL expression, or a query: one WHEN per leaf or rule.

    Parameters
    ----------
    t : Tree or RuleList
        Trees with surrogates or fractional rows are refused.
    feature_names : sequence of str, optional
        Columns of the table. NULL is a missing value.
    table : str, optional
        If given, the result is a query of this table, whose only column is named prediction.
    output : int, optional
        Index of the target, if there are several.

    Returns
    -------
    str
        Standard SQL: names are in double quotes, strings in single quotes. Sums are written in the order of `predict`;
        rows within rounding of a boundary go to the same side if columns are of double precision and the database reads
        all digits of a number.

    Examples
    --------
    >>> from kernelrules import export, tree
    >>> print(export.to_sql(tree.grow([[0.0], [1.0]], ["a", "b"]), ["A"], table="rows"))
    SELECT CASE
      WHEN "A" <= 0.5 OR "A" IS NULL THEN 'a'
      WHEN "A" > 0.5 THEN 'b'
    END AS "prediction" FROM "rows"
    """
    require_tree_or_rules(t)
    names = check.column_names(feature_names, t.feature_names, t.n_features)
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"feature_names has {sorted(repeated)[0]!r} twice, which SQL cannot tell apart")
    place = _output(t, output)
    levels = t.levels if isinstance(t, RuleList) else t.categories
    conditions, predictions, default = branches_of(t)
    quoted = [_sql_name(name) for name in names]
    sums = SourceSums(t, conditions, [*predictions, default])
    lines = ["CASE"]
    for way, prediction in zip(conditions, predictions, strict=True):
        tests = [
            _sql_test(c, levels[c.feature], quoted[c.feature])
            if c.feature < t.n_features
            else _sql_test(c, None, sums.sql_sum(c.feature - t.n_features, quoted))
            for c in way
        ]
        if len(tests) > 1:
            tests = [f"({test})" if " OR " in test else test for test in tests]
        lines.append(f"  WHEN {' AND '.join(tests) or '1 = 1'} THEN {_sql_answer(prediction, place, sums, quoted)}")
    if not conditions:
        lines.append(f"  WHEN 1 = 1 THEN {_sql_answer(default, place, sums, quoted)}")
    elif default is not None:
        lines.append(f"  ELSE {_sql_answer(default, place, sums, quoted)}")
    expression = "\n".join([*lines, "END"])
    return expression if table is None else f'SELECT {expression} AS "prediction" FROM {_sql_name(table)}'


def _output(t: Any, output: int | None) -> int | None:
    if t.n_outputs == 1:
        return None
    if output is None:
        raise ValueError(f"an expression has one value, but {t.n_outputs} are predicted: choose one by output=")
    place = check.whole(output, "output", 0)
    if place >= t.n_outputs:
        raise ValueError(f"output is {place}, but there are {t.n_outputs}")
    return place


def _sql_name(name: Any) -> str:
    if not isinstance(name, str) or not name or "\0" in name:
        raise ValueError(f"{name!r} cannot be a name in SQL")
    return '"' + name.replace('"', '""') + '"'


def _sql_answer(prediction: Any, place: int | None, sums: SourceSums, quoted: list[str]) -> str:
    if isinstance(prediction, LinearFunction):
        return f"COALESCE({sums.sql_function(prediction, quoted)}, {_sql_value(prediction.otherwise)})"
    return _sql_value(prediction, place)


def _sql_value(value: Any, place: int | None = None) -> str:
    plain = _plain(value if place is None else float(value[place]), "the value")
    if isinstance(plain, bool):
        return "TRUE" if plain else "FALSE"
    if isinstance(plain, bytes):
        return f"X'{plain.hex()}'"
    if isinstance(plain, str):
        if "\0" in plain:
            raise ValueError(f"{plain!r} cannot be a string in SQL")
        return "'" + plain.replace("'", "''") + "'"
    return repr(plain)


def _sql_test(condition: Condition, levels: Any, name: str) -> str:
    absent = f"{name} IS NULL"
    if condition.only_missing:
        return absent
    if levels is not None and condition.categories is not None:
        unseen = UNSEEN in condition.categories
        named = [_sql_value(level) for level in _listed_levels(condition, levels, inside=not unseen)]
        if named:
            test = f"{name} {'NOT IN' if unseen else 'IN'} ({', '.join(named)})"
        else:
            test = f"{name} IS NOT NULL" if unseen else "1 = 0"
    elif condition.low == -math.inf and condition.high == math.inf:
        test = f"{name} IS NOT NULL"
    elif not condition.low < condition.high:
        test = "1 = 0"
    else:
        limits = [f"{name} > {condition.low!r}"] if condition.low > -math.inf else []
        limits += [f"{name} <= {condition.high!r}"] if condition.high < math.inf else []
        test = " AND ".join(limits)
    if not condition.missing:
        return test
    return f"({test}) OR {absent}" if " AND " in test else f"{test} OR {absent}"
