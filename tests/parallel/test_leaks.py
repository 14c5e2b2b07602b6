"""Memory: thousands of fits leave nothing behind, and where memory ends there is a MemoryError, no crash and no leak.

What runs is memory_child.py, in processes of its own. failing_malloc.c, preloaded there, makes each allocation of the
core fail in turn, and counts what the core has not freed.
"""

import ast
import os
import shutil
import subprocess
import sys

import pytest
from places import HELPERS

# An array that stays has more, and what the core itself does not free is counted exactly below.
BYTES_A_CALL = 100
FAILURES = 2000 if os.environ.get("KERNELRULES_FUZZ") else 25  # of each call; the number of its allocations is about 50

ANOTHER_WAY = {"additive"}  # without the matrix of its working set it goes through the columns

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc's malloc and /proc"),
    pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer has a malloc of its own"),
]


def child(*arguments, **environment):
    """The lines that memory_child.py prints, each split at its tabs."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", HELPERS / "memory_child.py", *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_fits_leave_nothing_behind():
    # Without blocks that malloc keeps for a thread: it counts them as in use.
    malloc = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    grown = {name: float(n_bytes) for name, n_bytes in child("growth", **malloc)}
    assert len(grown) > 15
    assert max(grown.values()) < BYTES_A_CALL, grown


def test_memory_that_ends_is_an_error(tmp_path):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    shim = tmp_path / "failing_malloc.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", shim, HELPERS / "failing_malloc.c"], check=True)
    lines = child("faults", str(FAILURES), LD_PRELOAD=str(shim), KERNELRULES_KEEP_MB="0")
    assert len(lines) > 25
    for name, n_asked, came in lines:
        assert int(n_asked) > 0, f"{name} asks for no memory"
        came = set(ast.literal_eval(came))
        assert "MemoryError" in came, f"{name}: {came}"
        assert came <= {"MemoryError"} | ({"no error"} if name in ANOTHER_WAY else set()), f"{name}: {came}"


def test_a_full_address_space_is_an_error():
    assert dict(child("limit", OMP_NUM_THREADS="1")) == dict.fromkeys(
        ("gram", "ridge", "ridge path", "svc", "tree"), "MemoryError"
    )
