"""Memory for large arrays: what it holds stays, what is given back is used again, and only so much is kept."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kernelrules.core import blocks

LARGE = 5 << 20  # bytes
keeps = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="blocks are kept on Linux only")
frees = pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer keeps what is freed")


def child(code, limit=None, **options):
    """What code prints in a process of its own, where nothing else is kept; `limit` is KERNELRULES_KEEP_MB."""
    env = {name: value for name, value in os.environ.items() if name != "KERNELRULES_KEEP_MB"}
    env |= {} if limit is None else {"KERNELRULES_KEEP_MB": limit}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, **options)


@pytest.mark.parametrize("shape", [(0, 5), (3,), (1 << 19,), (1 << 19, 2), (1024, 1025)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_as_numpys(shape, dtype):
    array, other = blocks.empty(shape, dtype), np.empty(shape, dtype)
    assert (array.shape, array.dtype, array.strides) == (other.shape, other.dtype, other.strides)
    assert array.flags.writeable
    assert array.flags.aligned
    array[...] = 3
    np.testing.assert_array_equal(array, np.full(shape, 3, dtype))


AGAIN = """
import numpy as np
from kernelrules.core import blocks

def address(array):
    return array.__array_interface__["data"][0]

first = blocks.empty((5 << 20,), np.uint8)
place = address(first)
part = first[5:10]
del first
other = blocks.empty((5 << 20,), np.uint8)
print(address(other) == place)
del part
again = blocks.empty((5_000_000,), np.uint8)
print(address(again) == place)
print(address(blocks.empty((5_000_000,), np.uint8)) == place)
"""


@keeps
def test_what_is_given_back_is_used_again_once():
    """And not before the last view of it is gone."""
    assert child(AGAIN, check=True).stdout.split() == ["False", "True", "False"]


TWICE = """
import ctypes
from kernelrules.core import blocks

def function(name, *kinds):
    capsule = blocks.__pyx_capi__[name]
    get, named = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_GetName
    named.argtypes, named.restype = [ctypes.py_object], ctypes.c_char_p
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return ctypes.CFUNCTYPE(*kinds)(get(capsule, named(capsule)))

take = function("take", ctypes.c_void_p, ctypes.c_size_t)
give_back = function("give_back", None, ctypes.c_void_p)
give_back(take((4 << 20) - 8))  # malloc's, with room for a few bytes more than 4 MB
fresh = take(4 << 20)
print(fresh % (1 << 21) == 0, flush=True)
give_back(fresh)
give_back(fresh)
print("alive")
"""


@keeps
def test_a_block_given_back_twice_ends_the_process():
    """And only blocks that begin with a huge page are kept."""
    found = child(TWICE, check=False)
    assert found.stdout.split() == ["True"], found.stderr
    assert found.returncode == -signal.SIGABRT
    assert "given back twice" in found.stderr


def test_arrays_in_use_never_share_memory():
    def work(seed):
        rng = np.random.default_rng(seed)
        held = []
        for step in range(60):
            array = blocks.empty((int(rng.integers(LARGE, 2 * LARGE)),), np.uint8)
            mark = (seed * 61 + step) % 256
            array[:: 1 << 12] = mark
            held.append((array, mark))
            if len(held) > 3:
                array, mark = held.pop(int(rng.integers(len(held))))
                assert (array[:: 1 << 12] == mark).all()
            del array
        return all((array[:: 1 << 12] == mark).all() for array, mark in held)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


CHILD = """
import os, sys
import numpy as np
from kernelrules.core import blocks

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

before = resident()
for _ in range(3):
    many = [blocks.empty((20 << 20,), np.uint8) for _ in range(6)]
    for array in many:
        array[:] = 1
    del array, many
print(resident() - before)
"""


@keeps
@frees
@pytest.mark.parametrize(
    ("limit", "least", "most"),
    [("0", 0, 10), ("50", 30, 55), ("1000", 110, 130), ("-1", 0, 10), ("17592186044416", 110, 130)],
)
def test_only_so_much_is_kept(limit, least, most):
    assert least <= float(child(CHILD, limit, check=True).stdout) <= most


@keeps
@frees
def test_the_environment_is_read_once():
    """At import: later, other threads may be changing it."""
    code = CHILD.replace("before = ", "os.environ['KERNELRULES_KEEP_MB'] = '0'\nbefore = ")
    assert 110 <= float(child(code, "1000", check=True).stdout) <= 130


@keeps
@frees
@pytest.mark.parametrize("limit", ["", "abc", "0x10", "5x"])
def test_a_limit_that_cannot_be_read_is_none(limit):
    """The default is more than any of these might have meant."""
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 32 * (40 << 20):
        pytest.skip("little is kept on a machine of little memory")
    assert float(child(CHILD, limit, check=True).stdout) > 30


@keeps
def test_a_forked_child_has_blocks_of_its_own():
    array = blocks.empty((LARGE,), np.uint8)
    array[:] = 7
    del array
    child = os.fork()
    if child == 0:
        mine = blocks.empty((LARGE,), np.uint8)
        mine[:] = 9
        os._exit(0 if (mine == 9).all() else 1)
    mine = blocks.empty((LARGE,), np.uint8)
    mine[:] = 8
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (mine == 8).all()


SHORT = """
import resource
import numpy as np
from kernelrules.core import blocks

for _ in range(2):
    many = [blocks.empty((40 << 20,), np.uint8) for _ in range(5)]
    del many
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), resource.RLIM_INFINITY))
array = blocks.empty((150 << 20,), np.uint8)
array[:] = 1
print(len(array))
"""


@keeps
@frees
def test_what_is_kept_gives_way_where_addresses_are_short():
    assert int(child(SHORT, "1000", check=True).stdout) == 150 << 20


@pytest.mark.parametrize("shape", [(1 << 60,), (1 << 40, 1 << 40)])
def test_no_memory_is_an_error(shape):
    with pytest.raises(MemoryError, match="no memory for an array"):
        blocks.empty(shape, np.uint8)
