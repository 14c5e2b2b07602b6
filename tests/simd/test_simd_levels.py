"""Tests of vectorised code once more at the instruction sets that this process does not use, those of two files in one
process each."""

import os
import subprocess
import sys

import pytest
from places import TESTS

from kernelrules.core.simd import cpu

FILES = ["svm/test_solver_passes.py", "rules/test_match.py"]


@pytest.mark.parametrize("level", [name for name in cpu.LEVELS if name != cpu.simd()])
def test_all_of_it_at_another_level(level):
    if cpu.LEVELS.index(level) > cpu.simd_best():
        pytest.skip(f"this processor has no {level}")
    chosen = [str(TESTS / name) for name in FILES]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *chosen]
    env = {**os.environ, "KERNELRULES_SIMD": level}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
