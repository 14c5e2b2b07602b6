"""The drawings on the developers' architecture page follow the code.

Each drawing is a tree of files: a file is called by the one that it is indented under. The tests read the drawings from
the page and check that every file exists, that a drawing has at most eight files, that the first file defines the
function, that every other file is imported, cimported or included by the one above it, and that the result exists.
"""

import importlib
import re
from pathlib import Path

import pytest
from places import ROOT

import kernelrules
from kernelrules import results

PACKAGE = Path(kernelrules.__file__).parent
PAGE = ROOT / "docs/developers/architecture.rst"
MAX_FILES = 8
FLOWS = {"svm.svc", "tree.grow", "tree.predict", "ridge.fit", "rules.additive"}
# This module compiles the headers of core/simd for every SIMD level, and gives their functions to other modules.
DISPATCH = "kernelrules.core.simd.dispatch"


def drawings():
    """{function: (result, [(indentation, file)])} of the literal blocks in the section "Data flow"."""
    text = PAGE.read_text(encoding="utf-8")
    section = re.search(r"^Data flow\n-+\n(.*?)^\S[^\n]*\n-+\n", text, flags=re.M | re.S)[1]
    found = {}
    for block in re.findall(r"^\.\. code-block:: none\n\n((?:   .*\n|\n)+)", section, flags=re.M):
        name = re.match(r"\s*([\w.]+)\(", block)[1]
        lines = re.findall(r"^([ │├└─]+)([\w/]+\.(?:py|pyx|pxd|h))  +\S", block, flags=re.M)
        files = [(len(indent), name) for indent, name in lines]
        found[name] = re.search(r"→ (.+)", block)[1], files
    return found


def names_seen(path):
    """Modules, and names in them, that a file imports or cimports."""
    text = re.sub(r"\(([^()]*)\)", lambda m: m[1].replace("\n", " "), path.read_text(encoding="utf-8"))
    for module, names in re.findall(r"^ *from (\S+) c?import ([^#\n]*)", text, flags=re.M):
        yield from (f"{module}.{name.split()[0]}" for name in names.replace("\\", "").split(",") if name.strip())
    yield from re.findall(r"^c?import (\S+)", text, flags=re.M)


def uses(caller, called):
    """Whether a file imports, cimports or includes another; the .pxd file of a module belongs to it."""
    files = [PACKAGE / caller, *([(PACKAGE / caller).with_suffix(".pxd")] if caller.endswith(".pyx") else [])]
    files = [path for path in files if path.exists()]
    if called.endswith(".h"):
        text = "".join(path.read_text(encoding="utf-8") for path in files)
        if re.search(rf'^(?:cdef extern from|#include) "{called.removeprefix("core/")}"', text, flags=re.M):
            return True
    module = "kernelrules." + called.rpartition(".")[0].replace("/", ".")
    module = DISPATCH if re.fullmatch(r"core/simd/\w+\.h", called) else module
    return any(f"{name}.".startswith(f"{module}.") for path in files for name in names_seen(path))


@pytest.fixture(autouse=True)
def _sources():
    if not any((PACKAGE / "core").rglob("*.pyx")):
        pytest.skip("what is installed has no .pyx files")


def test_every_flow_is_drawn():
    assert set(drawings()) == FLOWS


@pytest.mark.parametrize("function", sorted(FLOWS))
def test_files_of_a_flow_exist_and_are_few(function):
    _, files = drawings()[function]
    names = [name for _, name in files]
    assert 3 <= len(names) <= MAX_FILES
    assert len(set(names)) == len(names)
    assert [name for name in names if not (PACKAGE / name).is_file()] == []


@pytest.mark.parametrize("function", sorted(FLOWS))
def test_the_first_file_of_a_flow_defines_the_function(function):
    result, files = drawings()[function]
    module, _, name = function.partition(".")
    defined = getattr(importlib.import_module(f"kernelrules.{module}"), name).__module__
    assert files[0][1] == defined.removeprefix("kernelrules.").replace(".", "/") + ".py"
    assert result == "array" or hasattr(results, result)


@pytest.mark.parametrize("function", sorted(FLOWS))
def test_each_file_of_a_flow_is_used_by_the_one_above_it(function):
    _, files = drawings()[function]
    for place, (indent, name) in enumerate(files[1:], start=1):
        above = [other for other_indent, other in files[:place] if other_indent < indent]
        assert above, f"{name} is indented under nothing"
        assert uses(above[-1], name), f"{above[-1]} does not use {name}"


def test_what_is_not_used_is_noticed():
    assert uses("core/svm/steps.pyx", "core/simd/solver.h")
    assert not uses("core/tree/prune.pyx", "core/simd/solver.h")
    assert not uses("svm/__init__.py", "ridge/fit.py")
    assert uses("ridge/__init__.py", "ridge/fit.py")
