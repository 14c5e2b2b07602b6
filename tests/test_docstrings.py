"""Parameters that many functions share are documented once (kernelrules/docstrings.py) and inserted everywhere."""

import inspect
import re
import subprocess
import sys

import pytest

import kernelrules
from kernelrules import docstrings, kernels, selection

SHARED = sorted(docstrings._SHARED)


FAMILIES = ("kernels", "ridge", "svm", "erm", "graph", "tree", "prune", "rules", "bounds")


def documented():
    """Public functions and estimators by name."""
    modules = [getattr(kernelrules, family) for family in FAMILIES]
    try:
        from kernelrules import estimators

        modules.append(estimators)
    except ImportError:
        pass
    found = {f"{module.__name__}.{name}": getattr(module, name) for module in modules for name in module.__all__}
    found = {name: thing for name, thing in found.items() if inspect.isfunction(thing) or "estimators" in name}
    found["kernels.FeatureMap.transform"] = kernels.FeatureMap.transform
    found["selection.fold_numbers"] = selection.fold_numbers
    return found


@pytest.mark.parametrize("name", documented())
def test_shared_parameters_are_documented_in_full(name):
    """One entry for each that the signature has, none for others, with the common text; no placeholder is left."""
    thing = documented()[name]
    text = inspect.getdoc(thing)
    assert not re.search(r"^\s*\{[\w, ]+\}$", text, flags=re.M)
    given = inspect.signature(thing).parameters
    for shared in SHARED:
        entry = "\n".join(docstrings._SHARED[shared])
        assert text.count(f"\n{entry}\n") == (shared in given), (name, shared)


def test_margins_and_particulars_are_kept():
    @docstrings.shared_parameters
    def function():
        """One line.

        {rng}
            Draws rows.
        {callback, progress}

        {other} stays, and so does
        {}
        """

    entries = {name: list(docstrings._SHARED[name]) for name in SHARED}
    entries["rng"].append("    Draws rows.")
    expected = ["One line.", "", *entries["rng"], *entries["callback"], *entries["progress"]]
    assert inspect.getdoc(function).splitlines() == [*expected, "", "{other} stays, and so does", "{}"]


def test_a_name_that_is_not_shared_is_an_error():
    def function():
        """{n_thread}"""

    with pytest.raises(KeyError, match="n_thread"):
        docstrings.shared_parameters(function)


def test_the_package_works_without_docstrings():
    code = "import kernelrules, kernelrules.progress as p; assert kernelrules.svm.svc.__doc__ is None; print(p.reports)"
    subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, check=True)
