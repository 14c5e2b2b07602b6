"""The page on the C level names everything that there is, and what it shows is built and run as it stands."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

import kernelrules

DOCS = ROOT / "docs"
PACKAGE = Path(kernelrules.__file__).parent
EXAMPLE = DOCS / "examples" / "low_level"
CMAKE = [
    ["cmake", "-B", "build", "-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}"],
    ["cmake", "--build", "build"],
]
# By this interpreter: meson builds for the Python that it runs in.
MESON = [
    [sys.executable, "-m", "mesonbuild.mesonmain", *rest] for rest in (["setup", "build"], ["compile", "-C", "build"])
]


def names_of_the_surface():
    """Functions, structs with their members, enumerations with their codes, and what api.h adds for C."""
    pxd = re.sub(r"#.*", "", (PACKAGE / "cython_api.pxd").read_text(encoding="utf-8"))
    header = (PACKAGE / "include" / "kernelrules" / "api.h").read_text(encoding="utf-8")
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    found = set(re.findall(r"\b(?:kr|KR)_\w+", pxd)) | set(re.findall(r"\b(?:kr|KR)_\w+", header))
    members = re.findall(r"^        (?:const )?\w[\w ]*?[ *](\w+)(?:\[\d\])?$", pxd, flags=re.M)
    members += re.findall(r"\(\*(\w+)\)\(", pxd)
    assert len(found) > 50
    assert len(members) > 30
    return found, set(members)


def test_the_page_names_everything():
    """In its own words, with what the included files say left out."""
    page = "".join(path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("low_level*.rst")))
    names, members = names_of_the_surface()
    names -= {name for name in names if name.endswith("_fn")}  # types of pointers: their names are the functions'
    names |= {name.removesuffix("_fn") for name in names_of_the_surface()[0] if name.endswith("_fn")}
    assert not sorted(name for name in names if not re.search(rf"\b{name}\b", page))
    assert not sorted(name for name in members if not re.search(rf"``[^`]*\b{name}\b", page))


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("commands", [CMAKE, MESON], ids=["cmake", "meson"])
def test_the_example_builds_and_runs(commands, tmp_path):
    """By a build tool of another project; then scipy integrates a function of it that calls kr_gram."""
    if commands is MESON:
        pytest.importorskip("mesonbuild")
    for tool in (commands[0][0], "ninja"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLE, folder)
    for command in commands:
        run(command, folder)
    assert "0.625581544741" in run([sys.executable, "use_kernel_mean.py", "build"], folder)
