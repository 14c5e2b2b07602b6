"""Tests of vectorised code once more at the instruction sets that this process does not use, those of two files in one
process each."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelrules.core import machine

FILES = ["test_solver_passes.py", "test_match.py"]


@pytest.mark.parametrize("level", [name for name in machine.LEVELS if name != machine.simd()])
def test_all_of_it_at_another_level(level):
    if machine.LEVELS.index(level) > machine.simd_best():
        pytest.skip(f"this processor has no {level}")
    chosen = [str(Path(__file__).with_name(name)) for name in FILES]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *chosen]
    env = {**os.environ, "KERNELRULES_SIMD": level}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
