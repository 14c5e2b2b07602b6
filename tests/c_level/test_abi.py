"""The low-level surface is final once released: additions pass, changes fail.

abi_signatures.json holds every exported C signature, the text of cython_api.pxd, the constants and the layout of the
structs, as they were when each was added. After an addition run `python tests/c_level/test_abi.py` to write what is
new into the file (a skipped test says that this is due); nothing that stands there is ever rewritten.
"""

import ctypes
import json
import re
from pathlib import Path

import pytest

import kernelrules
from kernelrules import cython_api
from kernelrules.core.base.status import Status
from kernelrules.kernels.specs import TABLE

SNAPSHOT = Path(__file__).with_name("abi_signatures.json")
PACKAGE = Path(kernelrules.__file__).parent

capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]


def declarations(text):
    """The declarations of a pxd, one a line, without comments and without differences of layout."""
    lines, current = [], ""
    for line in text.splitlines():
        bare = line.split("#")[0].rstrip()
        if not bare.strip():
            continue
        current = f"{current} {bare.strip()}" if current else bare
        if current.count("(") == current.count(")"):
            lines.append(re.sub(r"(?<=\S)\s+", " ", current))
            current = ""
    return lines


def qualified(lines):
    """Each line with the block that it stands in, so that a member of one struct is not taken for another's."""
    block, result = [], []
    for line in lines:
        depth = (len(line) - len(line.lstrip())) // 4
        block = [*block[:depth], line.strip()]
        result.append(" / ".join(block))
    return result


def header_parts(text):
    """The structs, enumerations and function types of api.h, by name, without comments and white space."""
    bare = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    parts = {}
    for match in re.finditer(r"typedef (?:enum \w+|struct) \{(.*?)\} (\w+);", bare, flags=re.S):
        parts[match[2]] = " ".join(match[1].split())
    for match in re.finditer(r"typedef [^;{}]*?\(\*(\w+)\)[^;]*;", bare):
        parts[match[1]] = " ".join(match[0].split())
    for match in re.finditer(r"^static inline ([^{;]*?(\w+)\([^{;]*\))$", bare, flags=re.M):
        parts[match[2]] = " ".join(match[1].split())
    return parts


def api_version(text):
    return int(re.search(r"#define KR_API_VERSION (\d+)", text)[1])


def current():
    header = (PACKAGE / "include" / "kernelrules" / "api.h").read_text()
    return {
        "functions": {name: capsule_name(c).decode() for name, c in cython_api.__pyx_capi__.items()},
        "pxd": qualified(declarations((PACKAGE / "cython_api.pxd").read_text())),
        "header": header_parts(header),
        "api_version": api_version(header),
        "status": {s.name: int(s) for s in Status},
        "kernel_kinds": {row.name: row.number for row in TABLE.values()},
    }


def merged(old, new):
    """What is new added to what there was; what there was stays as it was."""
    if isinstance(old, dict):
        return {**new, **{key: merged(value, new.get(key, value)) for key, value in old.items()}}
    if isinstance(old, list):  # additions may stand between what there was, if that keeps its order
        in_order = [line for line in new if line in old] == old
        return new if in_order else old + [line for line in new if line not in old]
    return old


def test_signatures_do_not_change():
    pinned, now = json.loads(SNAPSHOT.read_text()), current()
    for name, signature in pinned["functions"].items():
        assert now["functions"].get(name) == signature, f"{name} was {signature}"


def test_pxd_declarations_do_not_change():
    pinned, now = json.loads(SNAPSHOT.read_text()), current()
    missing = [line for line in pinned["pxd"] if line not in now["pxd"]]
    assert not missing
    kept = [line for line in now["pxd"] if line in pinned["pxd"]]
    assert kept == pinned["pxd"], "the order of struct members is part of the contract"


def test_structs_and_codes_do_not_change():
    pinned, now = json.loads(SNAPSHOT.read_text()), current()
    for name, text in pinned["header"].items():
        here = now["header"].get(name, "")
        if name in ("kr_status", "kr_kernel_kind"):
            for code in text.split(", "):
                assert code in here.split(", "), f"{code} of {name} changed"
        elif name == "kr_api":  # the table of pointers is compiled into its user: it may grow at its end
            assert here.startswith(text), f"{name} changed"
        else:
            assert here == text, f"{name} changed"
    assert now["api_version"] >= pinned["api_version"]
    for table in ("status", "kernel_kinds"):
        for name, value in pinned[table].items():
            assert now[table].get(name) == value


def test_everything_is_pinned():
    """An addition is written down with the change that makes it."""
    pinned = json.loads(SNAPSHOT.read_text())
    now = current()
    if merged(pinned, now) != pinned:
        pytest.skip("additions are not pinned yet: run python tests/c_level/test_abi.py")
    assert set(now["functions"]) == set(pinned["functions"])


def test_contract_of_the_pxd():
    """Plain C types and structs of api.h only, no cimport, and no function that could raise or needs the GIL."""
    lines = declarations((PACKAGE / "cython_api.pxd").read_text())
    assert not [line for line in lines if "cimport" in line]
    functions = [line for line in lines if line.startswith("cdef ") and "(" in line]
    assert functions
    allowed = {"int", "double", "float", "Py_ssize_t", "char", "const", "void", "kr_kernel", "kr_row_source"}
    allowed |= {"kr_smo_problem", "kr_smo_options", "kr_smo_state", "kr_smo_report"}
    allowed |= {"kr_column", "kr_criterion", "kr_split", "kr_tree"}
    for line in functions:
        assert line.endswith(" noexcept nogil"), line
        types = re.findall(r"[A-Za-z_]\w*", line.removeprefix("cdef ").removesuffix(" noexcept nogil"))
        named = {t for t in types if t not in allowed}
        parameters = set(re.findall(r"[\s*](\w+)(?=[,)])", line))
        assert named <= parameters | {re.search(r"(\w+)\(", line)[1]}, line


def test_header_names_the_signatures_that_are_exported():
    """kr_import() checks the signature of every function by its capsule's name: the header must spell it right."""
    header = (PACKAGE / "include" / "kernelrules" / "api.h").read_text()
    joined = re.sub(r'"\s*\n\s*"', "", header)
    for name, signature in current()["functions"].items():
        assert re.search(rf'"{name}",\s*"{re.escape(signature)}"', joined), name


def check_altered(monkeypatch, **changes):
    """Run the checks against a surface that differs from the real one."""
    surface = {**current(), **changes}
    monkeypatch.setitem(globals(), "current", lambda: surface)
    test_signatures_do_not_change()
    test_pxd_declarations_do_not_change()
    test_structs_and_codes_do_not_change()


def test_additions_pass(monkeypatch):
    now = current()
    check_altered(
        monkeypatch,
        functions={**now["functions"], "kr_new": "int (int)"},
        pxd=[*now["pxd"], "cdef int kr_new(int a) noexcept nogil"],
        header={
            **now["header"],
            "kr_new_struct": "int a;",
            "kr_status": now["header"]["kr_status"] + ", KR_NEW = -9",
            "kr_api": now["header"]["kr_api"] + " kr_new_fn added;",
        },
        status={**now["status"], "NEW": -9},
        api_version=now["api_version"] + 1,
    )


@pytest.mark.parametrize(
    "part", ["functions", "pxd", "header", "status", "kernel_kinds", "api_version", "api", "order"]
)
def test_changes_fail(monkeypatch, part):
    now = current()
    changes = {
        "functions": {"functions": {**now["functions"], "kr_gram": "int (void)"}},
        "pxd": {"pxd": now["pxd"][:-1]},
        "order": {"pxd": now["pxd"][::-1]},
        "header": {"header": {**now["header"], "kr_kernel": "int degree; int kind; double gamma; double coef0;"}},
        "api": {"header": {**now["header"], "kr_api": "kr_gram_fn gram;"}},
        "status": {"status": {**now["status"], "OK": 1}},
        "kernel_kinds": {"kernel_kinds": {}},
        "api_version": {"api_version": 0},
    }[part]
    with pytest.raises(AssertionError):
        check_altered(monkeypatch, **changes)


def test_snapshot_keeps_what_it_has():
    pinned = {"functions": {"f": "int (int)"}, "pxd": ["a", "b"]}
    assert merged(pinned, {"functions": {"f": "int (long)", "g": "int (void)"}, "pxd": ["b", "c"]}) == {
        "functions": {"f": "int (int)", "g": "int (void)"},
        "pxd": ["a", "b", "c"],
    }
    assert qualified(["cdef x:", "    int a", "cdef y:", "    int a"])[3] == "cdef y: / int a"


if __name__ == "__main__":
    before = json.loads(SNAPSHOT.read_text()) if SNAPSHOT.exists() else {}
    SNAPSHOT.write_text(json.dumps(merged(before, current()), indent=2) + "\n")
