"""What all tests share: hypothesis' settings, and the folder of real data that may lie beside the checkout.

One folder per folder of the package and of its core; in it the tests, and `*_oracle.py`: slow, obvious twins of what is
compiled, which they compare with.

parallel/     threads, executors, interrupts, progress, leaks         fuzz/     every public function, hostile arguments
c_level/      what C, Cython and numba callers see; cimport_project/ is a package of its own that calls it
project/      the rules that files of the repository keep: layers, documentation, release, benchmarks
helpers/      modules that several tests use: strategies (what hypothesis draws), saved_results (a result of every
              type), interrupting (children that are sent SIGINT), memory_child (one whose memory ends), ...

Every folder is on sys.path, so that names of files are unique among them.
"""

import os
import sys
from pathlib import Path

# Workers share the cores: BLAS's own threads would take them from the other worker. To be set before NumPy is loaded;
# tests of BLAS's threads ask for more themselves.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

sys.path[:0] = [str(folder) for folder in sorted(Path(__file__).parent.iterdir()) if folder.is_dir()]

settings.register_profile(
    "default", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("few", settings.get_profile("default"), max_examples=10)  # of a build with sanitizers
settings.register_profile("long", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def shared():
    """The folder of real data and golden outcomes; tests that need it skip where it is absent."""
    here = Path(__file__).resolve()
    for folder in (os.environ.get("KERNELRULES_SHARED"), here.parents[2] / "shared"):
        if folder and Path(folder, "data").is_dir():
            return Path(folder)
    pytest.skip("no shared/ folder beside this checkout")
