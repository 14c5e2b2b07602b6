"""export.to_python, to_sql: a tree or a rule list as source that needs nothing else.

One test for each leaf or rule, and the first that holds answers: nested tests would be deeper than parsers allow.
Numbers are written so that they read back the same.
"""

from __future__ import annotations

import builtins
import keyword
import math
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.export.branches import branches_of, one_of_both
from kernelrules.results import Condition, RuleList, Tree
from kernelrules.results.rules import UNSEEN

__all__ = ["to_python", "to_sql"]


def _plain(value: Any, what: str) -> Any:
    """A label or level as Python's own string, number or truth value."""
    plain = value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufUS" else value
    if isinstance(plain, (bool, int, str, bytes)) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    raise ValueError(f"{what} {value!r} is neither a string nor a number, and cannot be written as source")


def _listed_levels(condition: Condition, levels: Any, *, inside: bool) -> list[Any]:
    """The levels that satisfy a condition, or those that do not."""
    chosen = set(condition.categories)
    return [_plain(level, "the level") for code, level in enumerate(levels) if (code in chosen) == inside]


# ---- Python -----------------------------------------------------------------------------------------------------


def to_python(t: Tree | RuleList, feature_names: Any = None, *, name: str = "predict") -> str:
    """A Python function that predicts a row as the tree or rule list does, and needs no package.

    Parameters
    ----------
    t : Tree or RuleList
        Trees with oblique splits, linear leaves, surrogates or fractional rows are refused.
    feature_names : sequence of str, optional
        What to call the columns in comments.
    name : str
        Of the function.

    Returns
    -------
    str
        Source of a module. The function takes a sequence of the row's values in the order of the columns, None or NaN
        for missing ones, and returns the class or number, of several targets a tuple.

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
    one_of_both(t)
    if not (isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)):
        raise ValueError(f"name must be a Python identifier, got {name!r}")
    if hasattr(builtins, name):
        raise ValueError(f"name must not be that of one of Python's own functions, got {name!r}")
    names = check.column_names(feature_names, t.feature_names, t.n_features)
    levels = t.levels if isinstance(t, RuleList) else t.categories
    conditions, predictions, default = branches_of(t)
    lines = [f"def {name}(row):"]
    for column in sorted({condition.feature for way in conditions for condition in way}):
        read = f"row[{column}]"
        if levels[column] is None:
            read = f'float("nan") if {read} is None else float({read})'
        lines.append(f"    x{column} = {read}  # {ascii(names[column])[1:-1]}")
    for way, prediction in zip(conditions, predictions, strict=True):
        tests = [_python_test(condition, levels[condition.feature]) for condition in way]
        if len(tests) > 1:
            tests = [f"({test})" if " or " in test else test for test in tests]
        lines.append(f"    if {' and '.join(tests) or True}:")
        lines.append(f"        return {_python_value(prediction)}")
    if default is not None:
        lines.append(f"    return {_python_value(default)}")
    return "\n".join(lines)


def _python_value(prediction: Any) -> str:
    if np.ndim(prediction):
        return repr(tuple(float(number) for number in prediction))
    return repr(_plain(prediction, "the prediction"))


def _python_test(condition: Condition, levels: Any) -> str:
    value = f"x{condition.feature}"
    if levels is not None:
        return _python_levels(condition, levels, value)
    absent = f"{value} != {value}"
    if condition.only_missing:
        return absent
    if condition.only_known:
        return f"{value} == {value}"
    low = "" if condition.low == -math.inf else f"{_python_number(condition.low)} < "
    high = "" if condition.high == math.inf else f" <= {_python_number(condition.high)}"
    test = f"{low}{value}{high}" if high or not low else f"{value} > {_python_number(condition.low)}"
    return f"{test} or {absent}" if condition.missing else test


def _python_number(number: float) -> str:
    return repr(float(number)) if math.isfinite(number) else f'float("{number}")'


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
    """A tree or rule list as an SQL expression, or a query: one WHEN for each leaf or rule.

    Parameters
    ----------
    t : Tree or RuleList
        Trees with oblique splits, linear leaves, surrogates or fractional rows are refused.
    feature_names : sequence of str, optional
        The columns of the table. NULL is a missing value.
    table : str, optional
        With it the result is a query of this table, whose one column is called prediction.
    output : int, optional
        Which of several targets.

    Returns
    -------
    str
        Standard SQL: names stand in double quotes, strings in single ones.

    Examples
    --------
    >>> from kernelrules import export, tree
    >>> print(export.to_sql(tree.grow([[0.0], [1.0]], ["a", "b"]), ["A"], table="rows"))
    SELECT CASE
      WHEN "A" <= 0.5 OR "A" IS NULL THEN 'a'
      WHEN "A" > 0.5 THEN 'b'
    END AS "prediction" FROM "rows"
    """
    one_of_both(t)
    names = check.column_names(feature_names, t.feature_names, t.n_features)
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"feature_names has {sorted(repeated)[0]!r} twice, which SQL cannot tell apart")
    place = _output(t, output)
    levels = t.levels if isinstance(t, RuleList) else t.categories
    conditions, predictions, default = branches_of(t)
    lines = ["CASE"]
    for way, prediction in zip(conditions, predictions, strict=True):
        tests = [_sql_test(c, levels[c.feature], _sql_name(names[c.feature])) for c in way]
        if len(tests) > 1:
            tests = [f"({test})" if " OR " in test else test for test in tests]
        lines.append(f"  WHEN {' AND '.join(tests) or '1 = 1'} THEN {_sql_value(prediction, place)}")
    if not conditions:
        lines.append(f"  WHEN 1 = 1 THEN {_sql_value(default, place)}")
    elif default is not None:
        lines.append(f"  ELSE {_sql_value(default, place)}")
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
