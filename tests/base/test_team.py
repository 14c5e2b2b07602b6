"""The team of threads (core/base/team.h): every index once, for any caller, in forked children too; no data races."""

import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import numpy as np
import pytest

import kernelrules
from kernelrules import kernels, parallel
from kernelrules.core.base import team

HEADERS = Path(kernelrules.__file__).parent / "core"
PLAIN = {
    name: value for name, value in os.environ.items() if name != "LD_PRELOAD"
}  # no sanitizer beside a program's own
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def built(folder, *flags):
    """The program team_stress.c, built with the package's own team.h."""
    if COMPILER is None or sys.platform == "win32" or not (HEADERS / "base" / "team.h").exists():
        pytest.skip("no C compiler here, or no header")
    program = folder / "team_stress"
    source = Path(__file__).with_name("team_stress.c")
    includes = [f"-I{HEADERS}", f"-I{sysconfig.get_paths()['include']}"]
    command = [COMPILER, "-O2", "-g", "-std=gnu11", *flags, *includes, str(source), "-o", str(program), "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=PLAIN)
    if done.returncode != 0 and flags:
        pytest.skip(f"the compiler has no {flags[0]}")
    assert done.returncode == 0, done.stderr
    return program


def test_every_index_is_visited_once_by_any_number_of_callers(tmp_path):
    command = [built(tmp_path), "fork"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=PLAIN)
    assert (done.returncode, done.stdout) == (0, "passed\n")


def test_without_data_races(tmp_path):
    program = [str(built(tmp_path, "-fsanitize=thread"))]
    if shutil.which("setarch"):  # some kernels put programs where ThreadSanitizer wants its own memory
        program = ["setarch", "-R", *program]
    environment = PLAIN | {"TSAN_OPTIONS": "halt_on_error=1"}
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=300, env=environment)
    if "unexpected memory mapping" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip("ThreadSanitizer does not run here")
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork") or not team.has_threads(), reason="no fork here, or no threads")
def test_a_forked_child_has_threads_of_its_own():
    """A library of OpenMP cannot start threads there."""
    code = """
        import os, sys
        import numpy as np
        from kernelrules import kernels
        X = np.random.default_rng(0).normal(size=(2000, 30))
        n_threads = lambda: len(os.listdir("/proc/self/task"))
        K = kernels.gram(X, n_threads=3)
        if (child := os.fork()) == 0:
            alone = n_threads()
            same = np.array_equal(kernels.gram(X, n_threads=3), K)
            os._exit(0 if alone == 1 and same and n_threads() == 3 else 1)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("threads cannot be counted here")
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], env=environment, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, np.inf),
        ({"cpu.max": ""}, np.inf),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, np.inf),
        ({}, np.inf),
    ],
)
def test_a_containers_quota_counts(files, expected, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert parallel._cgroup_cores(str(tmp_path)) == expected


@pytest.mark.parametrize(("value", "expected"), [("3", 3), ("2,4", 2), ("0", 1), ("many", None), ("", None)])
def test_omp_num_threads_limits_the_default(value, expected, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    most = parallel.cpu.MAX_THREADS
    assert parallel._omp_num_threads() == (most if expected is None else expected)


def test_threadpoolctl_finds_the_team():
    from threadpoolctl import threadpool_info, threadpool_limits

    kernels.gram(np.eye(3))
    assert [part["user_api"] for part in threadpool_info()].count("kernelrules") == 1
    before = parallel.n_threads_or_default()
    with threadpool_limits(1, user_api="kernelrules"):
        assert parallel.n_threads_or_default() == 1
    assert parallel.n_threads_or_default() == before
