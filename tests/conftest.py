"""What all tests share: hypothesis' settings, and the folder of real data that may lie beside the checkout.

test_*.py, core/        one file a capability; core/ calls compiled routines by themselves
oracles/                their slow twins, which tests compare with
strategies.py           what hypothesis draws: kernels, data, layouts
_tree, general_trees, rule_lists, _induce, _svm, _plots, _tables    data and comparisons of one part
saved_results.py        a result of every type; exported.py: readers of what was exported
fuzz*.py                every public function with hostile arguments. _refused, _imports: small helps
interrupting.py         children that are sent SIGINT; memory_child.py and failing_malloc.c: those whose memory ends
cimport_project/        a package of its own that calls the C-level surface; images/: pictures to compare with
"""

import os
from pathlib import Path

# Workers share the cores: threads that spin while they wait, and BLAS's own, would take them from the other worker.
# To be set before NumPy is loaded; tests of BLAS's threads ask for more themselves.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

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
