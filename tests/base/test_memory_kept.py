"""Memory for large arrays: what it holds stays, what is given back is used again, and only so much is kept.

How much is kept is read at import, and what was kept before would count: most of this runs in processes of its own.
"""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from forks import printed, results_of

from kernelrules.core.base import memory

LARGE = 5 << 20  # bytes
keeps = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="blocks are kept on Linux only")
frees = pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer keeps what is freed")


@pytest.fixture(scope="module")
def told():
    """What became of each of CHILDREN."""
    return results_of({name: (code, {"KERNELRULES_KEEP_MB": limit}) for name, (code, limit) in CHILDREN.items()})


@pytest.mark.parametrize("shape", [(0, 5), (3,), (1 << 19,), (1 << 19, 2), (1024, 1025)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_as_numpys(shape, dtype):
    array, other = memory.empty(shape, dtype), np.empty(shape, dtype)
    assert (array.shape, array.dtype, array.strides) == (other.shape, other.dtype, other.strides)
    assert array.flags.writeable
    assert array.flags.aligned
    array[...] = 3
    np.testing.assert_array_equal(array, np.full(shape, 3, dtype))


AGAIN = """
import numpy as np
from kernelrules.core.base import memory

def address(array):
    return array.__array_interface__["data"][0]

first = memory.empty((5 << 20,), np.uint8)
place = address(first)
part = first[5:10]
del first
other = memory.empty((5 << 20,), np.uint8)
print(address(other) == place)
del part
again = memory.empty((5_000_000,), np.uint8)
print(address(again) == place)
print(address(memory.empty((5_000_000,), np.uint8)) == place)
"""


@keeps
def test_what_is_given_back_is_used_again_once(told):
    """And not before the last view of it is gone."""
    assert printed(told, "again").split() == ["False", "True", "False"]


TWICE = """
import ctypes
from kernelrules.core.base import memory

def function(name, *kinds):
    capsule = memory.__pyx_capi__[name]
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
def test_a_block_given_back_twice_ends_the_process(told):
    """And only blocks that begin with a huge page are kept."""
    status, out, err = told["twice"]
    assert out.split() == ["True"], err
    assert status == -signal.SIGABRT
    assert "given back twice" in err


def test_arrays_in_use_never_share_memory():
    def work(seed):
        rng = np.random.default_rng(seed)
        held = []
        for step in range(60):
            array = memory.empty((int(rng.integers(LARGE, 2 * LARGE)),), np.uint8)
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


KEPT = """
import os, sys
import numpy as np
from kernelrules.core.base import memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

before = resident()
for _ in range(3):
    many = [memory.empty((20 << 20,), np.uint8) for _ in range(6)]
    for array in many:
        array[:] = 1
    del array, many
print(resident() - before)
"""


LIMITS = [("0", 0, 10), ("50", 30, 55), ("1000", 110, 130), ("-1", 0, 10), ("17592186044416", 110, 130)]


@keeps
@frees
@pytest.mark.parametrize(("limit", "least", "most"), LIMITS)
def test_only_so_much_is_kept(told, limit, least, most):
    assert least <= float(printed(told, f"kept {limit}")) <= most


@keeps
@frees
def test_the_environment_is_read_once(told):
    """At import: later, other threads may be changing it."""
    assert 110 <= float(printed(told, "changed")) <= 130


UNREADABLE = ["", "abc", "0x10", "5x"]


@keeps
@frees
@pytest.mark.parametrize("limit", UNREADABLE)
def test_a_limit_that_cannot_be_read_is_none(told, limit):
    """The default is more than any of these might have meant."""
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 32 * (40 << 20):
        pytest.skip("little is kept on a machine of little memory")
    assert float(printed(told, f"kept {limit}")) > 30


@keeps
def test_a_forked_child_has_blocks_of_its_own():
    array = memory.empty((LARGE,), np.uint8)
    array[:] = 7
    del array
    child = os.fork()
    if child == 0:
        mine = memory.empty((LARGE,), np.uint8)
        mine[:] = 9
        os._exit(0 if (mine == 9).all() else 1)
    mine = memory.empty((LARGE,), np.uint8)
    mine[:] = 8
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (mine == 8).all()


SHORT = """
import resource
import numpy as np
from kernelrules.core.base import memory

for _ in range(2):
    many = [memory.empty((40 << 20,), np.uint8) for _ in range(5)]
    del many
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), resource.RLIM_INFINITY))
array = memory.empty((150 << 20,), np.uint8)
array[:] = 1
print(len(array))
"""


@keeps
@frees
def test_what_is_kept_gives_way_where_addresses_are_short(told):
    assert int(printed(told, "short")) == 150 << 20


CHILDREN = {  # name: (code, KERNELRULES_KEEP_MB)
    "again": (AGAIN, None),
    "twice": (TWICE, None),
    "changed": (KEPT.replace("before = ", "os.environ['KERNELRULES_KEEP_MB'] = '0'\nbefore = "), "1000"),
    "short": (SHORT, "1000"),
    **{f"kept {limit}": (KEPT, limit) for limit in [*(limit for limit, *_ in LIMITS), *UNREADABLE]},
}


@pytest.mark.parametrize("shape", [(1 << 60,), (1 << 40, 1 << 40)])
def test_no_memory_is_an_error(shape):
    with pytest.raises(MemoryError, match="no memory for an array"):
        memory.empty(shape, np.uint8)
