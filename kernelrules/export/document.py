"""export.to_json, from_json: all fields of a tree or rule list as JSON, and back without loss.

    {"kernelrules": 1, "kind": "tree" or "rules", field: value, ...}

An array is {"dtype", "shape", "data"}; numbers that are not finite are "nan", "inf" or "-inf". Nothing is executed when
a document is read, and an invalid document is refused.
"""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.export.branches import require_tree_or_rules
from kernelrules.results import Condition, LinearFunction, Rule, RuleList, Surrogates, Tree
from kernelrules.results.verify import verified_rules, verified_tree

__all__ = ["from_json", "to_json"]

_FORMAT = 1
_SCALARS = (bool, int, float, str)
_MAX_INDENT = 100
_NOT_IN_JSON = ("nan", "inf", "-inf")  # as strings in documents


def to_json(t: Tree | RuleList, *, indent: int | None = None) -> str:
    """Write a tree or rule list as a JSON document, which `from_json` reads.

    Parameters
    ----------
    t : Tree or RuleList
        A tree or rule list. Labels and levels must be strings, numbers, truth values or dates.
    indent : int, optional
        Spaces per level of indentation.

    Returns
    -------
    str
        The document, in ASCII.

    Examples
    --------
    >>> from kernelrules import export, tree
    >>> t = tree.grow([[0.0], [1.0]], ["a", "b"])
    >>> again = export.from_json(export.to_json(t))
    >>> tree.predict(again, [[0.2], [0.9]])
    array(['a', 'b'], dtype='<U1')
    """
    require_tree_or_rules(t)
    spaces = None if indent is None else check.whole(indent, "indent", 0)
    if spaces is not None and spaces > _MAX_INDENT:
        raise ValueError(f"indent must be at most {_MAX_INDENT}, got {spaces}")
    kind = "tree" if isinstance(t, Tree) else "rules"
    written = {field.name: _written(getattr(t, field.name), field.name) for field in fields(t)}
    return json.dumps({"kernelrules": _FORMAT, "kind": kind} | written, indent=spaces, allow_nan=False)


def from_json(text: str) -> Tree | RuleList:
    """Read the tree or rule list of a JSON document.

    Parameters
    ----------
    text : str
        The result of `to_json`.

    Returns
    -------
    Tree or RuleList
        Equal in every number to the original.

    Examples
    --------
    >>> from kernelrules import export, rules, tree
    >>> rs = rules.extract(tree.grow([[0.0], [1.0]], ["a", "b"]), ["A"])
    >>> print(export.from_json(export.to_json(rs)))
    A ≤ 0.5 → a
    A > 0.5 → b
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise TypeError(f"text must be a string, got {type(text).__name__}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"text is not JSON: {error}") from None
    if not isinstance(found, dict) or "kernelrules" not in found:
        raise ValueError("text is not a document of to_json: it has no entry kernelrules")
    if found["kernelrules"] != _FORMAT:
        raise ValueError(f"text has the format {found['kernelrules']!r}, and this version reads {_FORMAT}")
    makers = {"tree": _tree, "rules": _rules}
    if not isinstance(found.get("kind"), str) or found["kind"] not in makers:
        raise ValueError(f'the kind of a document is "tree" or "rules", got {found.get("kind")!r}')
    try:
        return makers[found["kind"]](found)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, ValueError) as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else error
        raise ValueError(f"the document does not describe a {found['kind'].rstrip('s')}: {reason}") from None


# ---- writing ----------------------------------------------------------------------------------------------------


def _written(value: Any, name: str) -> Any:
    """Return a value as JSON can hold it."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, np.ndarray):
        return _written_array(value, name)
    if isinstance(value, np.generic):
        return _written_array(np.array(value), name)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (tuple, list)):
        return [_written(entry, name) for entry in value]
    if isinstance(value, (Surrogates, Rule, Condition, LinearFunction)):
        return {field.name: _written(getattr(value, field.name), field.name) for field in fields(value)}
    raise ValueError(f"{name} holds {value!r}, which JSON cannot represent")


def _written_array(array: np.ndarray, name: str) -> dict[str, Any]:
    kind, shape = array.dtype.kind, list(array.shape)
    if kind in "mM":
        return {"dtype": array.dtype.str, "shape": shape, "data": array.view(np.int64).ravel().tolist()}
    if kind == "S":
        return {"dtype": array.dtype.str, "shape": shape, "data": [entry.decode("latin-1") for entry in array.ravel()]}
    data = array.ravel().tolist()
    if kind == "O":
        wrong = [entry for entry in data if not isinstance(entry, _SCALARS)]
        if wrong:
            raise ValueError(f"{name} holds {wrong[0]!r}, which JSON cannot represent")
    if kind in "fO":
        data = [str(x) if isinstance(x, float) and not math.isfinite(x) else x for x in data]
    return {"dtype": "O" if kind == "O" else array.dtype.str, "shape": shape, "data": data}


# ---- reading ----------------------------------------------------------------------------------------------------


def _read(value: Any) -> Any:
    """Return a value of a document, with arrays, and with tuples for lists."""
    if isinstance(value, list):
        return tuple(_read(entry) for entry in value)
    if isinstance(value, dict):
        return _read_array(value)
    return value


def _read_array(value: dict[str, Any]) -> Any:
    kind, shape, data = value["dtype"], tuple(value["shape"]), value["data"]
    if kind == "O":
        array = np.empty(len(data), dtype=object)
        array[:] = data
        return array.reshape(shape)
    dtype = np.dtype(kind)
    if dtype.kind in "mM":
        array = np.array(data, dtype=np.int64).view(dtype)
    elif dtype.kind == "S":
        array = np.array([entry.encode("latin-1") for entry in data], dtype=dtype)
    elif dtype.kind in "biufU":
        array = np.array(data, dtype=dtype)
    else:
        raise ValueError(f"arrays of dtype {kind} are not written")
    array = array.reshape(shape)
    return array if shape else array[()]


def _number(value: Any) -> float:
    """Return a number, from a JSON number, one of the three strings, or an array of no dimensions."""
    if isinstance(value, dict):
        value = _read(value)
    if isinstance(value, bool) or not (
        isinstance(value, (int, float)) or (isinstance(value, str) and value in _NOT_IN_JSON)
    ):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _fields(cls: Any, found: dict[str, Any], *but: str) -> dict[str, Any]:
    """Return the fields of a class except those named; documents of older versions lack some that have a default."""
    named = [field for field in fields(cls) if field.name not in but]
    return {field.name: _read(found[field.name]) for field in named if field.default is MISSING or field.name in found}


def _tree(found: dict[str, Any]) -> Tree:
    given = dict(found)
    surrogates = given.pop("surrogates")
    made = _fields(Tree, given, "surrogates")
    if surrogates is not None:
        surrogates = Surrogates(**{field.name: _read(surrogates[field.name]) for field in fields(Surrogates)})
    return verified_tree(Tree(**made, surrogates=surrogates))


def _rules(found: dict[str, Any]) -> RuleList:
    made = _fields(RuleList, found, "rules", "default")
    of_classes = made["classes"] is not None
    listed = tuple(_rule(rule, of_classes=of_classes) for rule in found["rules"])
    made["default"] = _answer(found["default"], of_classes=of_classes)
    return verified_rules(RuleList(rules=listed, **made))


def _answer(found: Any, *, of_classes: bool) -> Any:
    """Return a prediction: a class, numbers, or a linear function."""
    if isinstance(found, dict) and "coefficients" in found:
        return _function(found)
    return _number(found) if isinstance(found, str) and not of_classes else _read(found)


def _function(found: dict[str, Any]) -> LinearFunction:
    columns = found["features"]
    if not isinstance(columns, list) or any(type(column) is not int for column in columns):
        raise ValueError(f"{found!r} is not a linear function")
    coefficients = tuple(_number(factor) for factor in found["coefficients"])
    return LinearFunction(tuple(columns), coefficients, _number(found["constant"]), _number(found["otherwise"]))


def _rule(found: dict[str, Any], *, of_classes: bool) -> Rule:
    numbers = {name: _number(found[name]) for name in ("support", "confidence", "weight")}
    conditions = tuple(_condition(condition) for condition in found["conditions"])
    n = found["n"] if type(found["n"]) is int else _number(found["n"])
    prediction = _answer(found["prediction"], of_classes=of_classes)
    return Rule(conditions, prediction, n=n, shares=_read(found["shares"]), **numbers)


def _condition(found: dict[str, Any]) -> Condition:
    codes = found["categories"]
    whole = codes is None or (isinstance(codes, list) and all(type(code) is int for code in codes))
    if type(found["feature"]) is not int or not isinstance(found["missing"], bool) or not whole:
        raise ValueError(f"{found!r} is not a condition")
    if codes is not None:
        codes = tuple(codes)
    return Condition(found["feature"], _number(found["low"]), _number(found["high"]), codes, found["missing"])
