"""Every public function with hostile input: no crash, no hang, no NaN that was not put in, and errors that are meant.

fuzz_table.py says how the arguments of each function are drawn, fuzz_estimators.py how those of the estimators are; a
function or a parameter that is not there fails test_the_table_is_complete. Most calls have one hostile argument among
good ones, some none, some several. What may come out is a result, a ValueError, TypeError or MemoryError that says
something, or a class of the package's own.

The default is cheap. KERNELRULES_FUZZ=2000 makes so many calls of each function, from new seeds each time.
"""

import dataclasses
import faulthandler
import importlib.util
import inspect
import os
import sys
import types
import warnings

import fuzz_table
import fuzzing
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import kernelrules

DEEP = int(os.environ.get("KERNELRULES_FUZZ", "0"))
SECONDS = 60  # of one function's calls in the cheap profile take one or two; a hang ends the process, with a traceback
ALLOWED = (ValueError, TypeError, MemoryError)
# Fields in which NaN says that there is no number, as their description tells.
NAN_MEANS_NONE = {
    "threshold",
    "fill",
    "confidence",
    "gammas",
    "loo_residuals",
    "fold_error",
    "gap_all",
    "Slacks.values",
}
pytestmark = pytest.mark.filterwarnings("default")

settings.register_profile(
    "fuzz",
    deadline=None,
    max_examples=DEEP or 12,
    derandomize=not DEEP,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def public_functions():
    """Name: function, of all that __all__ lists, here and in its modules; kernels are made by users."""
    found = {}
    listed = [getattr(kernelrules, name) for name in kernelrules.__all__ if name not in fuzz_table.ELSEWHERE]
    for module in [*(m for m in listed if isinstance(m, types.ModuleType)), kernelrules]:
        for name in module.__all__:
            thing = getattr(module, name)
            full = name if module is kernelrules else f"{module.__name__.removeprefix('kernelrules.')}.{name}"
            if isinstance(thing, type):
                if not issubclass(thing, kernelrules.kernels.Kernel):
                    continue  # results, warnings and errors: functions make them
            elif not callable(thing) or set(thing.__module__.split(".")) & fuzz_table.ELSEWHERE:
                continue
            found.setdefault(thing, full)
    found[kernelrules.kernels.FeatureMap.transform] = "kernels.FeatureMap.transform"
    return {full: thing for thing, full in found.items()}


FUNCTIONS, TABLE = public_functions(), fuzz_table.TABLE
if importlib.util.find_spec("sklearn"):
    import fuzz_estimators

    FUNCTIONS, TABLE = FUNCTIONS | fuzz_estimators.FUNCTIONS, TABLE | fuzz_estimators.TABLE


def parameters_of(function):
    return {
        name: p
        for name, p in inspect.signature(function).parameters.items()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    }


def kinds_of(name):
    return fuzz_table.EVERYWHERE | TABLE[name]


def test_the_table_is_complete():
    assert not set(FUNCTIONS) - set(TABLE), "public functions without a line in fuzz_table.py"
    for name, function in FUNCTIONS.items():
        missing = set(parameters_of(function)) - set(kinds_of(name))
        assert not missing, f"parameters of {name} without a kind in fuzz_table.py: {missing}"


@st.composite
def calls(draw, name):
    """Arguments of one call, and whether something in them holds NaN."""
    parameters, every = parameters_of(FUNCTIONS[name]), inspect.signature(FUNCTIONS[name]).parameters.values()
    passes_on = any(
        p.kind is p.VAR_KEYWORD for p in every
    )  # to another function, whose parameters are in the table too
    kinds = {k: kind for k, kind in kinds_of(name).items() if passes_on or k in parameters}
    case = draw(fuzzing.cases(p=fuzz_table.WIDTH if set(kinds) & fuzz_table.MODELS else None))
    case.own_matrix = "kernel" in kinds and "X" in kinds and draw(st.integers(0, 7)) == 7
    needed = [k for k in kinds if k in parameters and parameters[k].default is inspect.Parameter.empty]
    free = [k for k in kinds if k not in needed]
    n_hostile = draw(st.sampled_from([0, 0, 1, 1, 1, 2]))
    hostile = {draw(st.sampled_from(sorted(kinds))) for _ in range(n_hostile if kinds else 0)}
    given_too = {draw(st.sampled_from(free)) for _ in range(draw(st.integers(0, 4)))} if free else set()
    given_too |= {"kernel"} if case.own_matrix else set()
    given_too |= {more for one, more in fuzz_table.ALWAYS.items() if one in kinds}
    return {
        k: (kinds[k].bad if k in hostile else kinds[k].good)(draw, case)
        for k in kinds
        if k in hostile | given_too | set(needed)
    }, case.has_nan


def holds_nan(thing, seen=0):
    """Where NaN stands in a result: the path to it, or None."""
    if isinstance(thing, (float, np.floating)):
        return "" if thing != thing else None
    if sparse.issparse(thing):
        thing = thing.data
    if isinstance(thing, np.ndarray):
        return "" if thing.dtype.kind == "f" and np.isnan(thing).any() else None
    if seen > 6:
        return None
    parts = {}
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        names = {f.name for f in dataclasses.fields(thing)} - NAN_MEANS_NONE
        parts = {name: getattr(thing, name) for name in names if f"{type(thing).__name__}.{name}" not in NAN_MEANS_NONE}
    elif isinstance(thing, dict):
        parts = thing
    elif isinstance(thing, (tuple, list)):
        parts = dict(enumerate(thing))
    for key, part in parts.items():
        if (where := holds_nan(part, seen + 1)) is not None:
            return f".{key}{where}"
    return None


def frozen(thing):
    """What must not change in an argument: the bytes of arrays."""
    if isinstance(thing, np.ndarray) and thing.dtype.kind != "O":
        return thing.tobytes()
    if sparse.issparse(thing) and thing.format in ("csr", "csc"):
        return tuple(a.tobytes() for a in (thing.data, thing.indices, thing.indptr))
    return None


def outcome(function, arguments):
    """What a call gives: a result, or the error that it raised; other errors and warnings are let through."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(**arguments)
        except ALLOWED as error:
            ours = type(error).__module__.startswith("kernelrules")
            if not ours and type(error) not in ALLOWED:
                raise
            result = error
    assert not isinstance(result, Exception) or str(result).strip(), f"{type(result).__name__} without a word"
    for warning in caught:
        meant = warning.category.__module__.startswith(("kernelrules", "sklearn"))
        named = f"{os.sep}sklearn{os.sep}" in warning.filename  # of columns, where estimators are called
        assert meant or named, f"{warning.category.__name__}: {warning.message}"
    return result


@pytest.fixture
def no_hang():
    faulthandler.dump_traceback_later(SECONDS + DEEP, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_hostile_calls(name):
    function = FUNCTIONS[name]

    @settings(settings.get_profile("fuzz"))
    @given(calls(name))
    def check(call):
        arguments, nan_in = call
        before = {k: frozen(v) for k, v in arguments.items() if k != "out"}
        result = outcome(function, arguments)
        assert {k: frozen(v) for k, v in arguments.items() if k != "out"} == before, "an argument was changed"
        if isinstance(result, Exception) or nan_in or arguments.get("unreached") == "nan":
            return
        assert (where := holds_nan(result)) is None, f"NaN in the result at {where or 'its top'}"

    check()
