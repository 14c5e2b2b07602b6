"""What releases are made by: the workflows do what `.ci/run` does, for every platform; setup.py knows the compilers.

Nothing is built or uploaded here; these files are read. They are not part of what is installed, so where the tests run
without a checkout they are not there, and the tests skip.
"""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from file_imports import imports
from places import ROOT, TESTS

LINUX = {f"cp311-{libc}_{arch}" for libc in ("manylinux", "musllinux") for arch in ("x86_64", "aarch64")}
PLATFORMS = {
    "linux": ("x86_64,aarch64", LINUX),
    "macos": ("x86_64,arm64", {"cp311-macosx_x86_64", "cp311-macosx_arm64"}),
    "windows": ("AMD64", {"cp311-win_amd64"}),
}


def text_of(name):
    if not (ROOT / name).exists():
        pytest.skip(f"tests run without {name}")
    return (ROOT / name).read_text(encoding="utf-8")


def workflow(name):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(text_of(f".github/workflows/{name}"))


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def test_ci_runs_every_stage_once():
    script = text_of(".ci/run")
    written = re.findall(r"^stage_(\w+)\(\)", script, flags=re.M)
    by_default = re.search(r"stages=\(([a-z ]+)\)", script)[1].split()
    job = workflow("ci.yml")["jobs"]["run"]
    run = " ".join(job["strategy"]["matrix"]["stages"]).split()
    assert sorted(run) == sorted(by_default)
    assert set(run) <= set(written)
    assert commands(job) == [".ci/run ${{ matrix.stages }}"]


def test_ci_runs_what_a_green_run_promises():
    """The whole report on Spambase within a minute; and where a browser is installed, its tests may not skip."""
    script = text_of(".ci/run")
    body = dict(re.findall(r"^(\w+)\(\) \{\n(.*?)^\}", script, flags=re.M | re.S))
    assert re.search(r"timeout 60 python -P -m kernelrules report(?! [^-])", body["stage_report"])
    install = body["browser"].index("apt-get")
    assert "export KERNELRULES_NEED_BROWSER=1" in body["browser"][:install].split("elif")[1]
    assert "KERNELRULES_NEED_BROWSER" in text_of("tests/report/test_report_browser.py")


def test_ci_wants_every_python_that_is_promised():
    """GitHub's run names the versions of pyproject.toml: one that its machine lacks is a failure, not a shorter run."""
    classifiers = tomllib.loads(text_of("pyproject.toml"))["project"]["classifiers"]
    promised = [each.rsplit(" ", 1)[1] for each in classifiers if re.search(r"Python :: 3\.\d+$", each)]
    steps = workflow("ci.yml")["jobs"]["run"]["steps"]
    assert steps[-1]["env"]["KERNELRULES_PYTHONS"].split() == promised
    assert steps[-2]["with"]["python-version"].split() == promised


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("bash"), reason="bash runs it")
def test_ci_refuses_to_go_without_a_python_that_is_wanted():
    script = text_of(".ci/run")
    parts = [
        re.search(rf"^{name}\(\) \{{.*?\}}$", script, flags=re.M | re.S)[0] for name in ("minor_of", "require_pythons")
    ]
    here = "{}.{}".format(*sys.version_info)
    for wanted, code in (("", 0), (here, 0), (f"{here} 3.1", 1)):
        lines = ["set -euo pipefail", *parts, 'PYTHONS=("$1")', "require_pythons"]
        done = subprocess.run(
            ["bash", "-c", "\n".join(lines), "bash", sys.executable],
            env={"PATH": os.environ["PATH"], "KERNELRULES_PYTHONS": wanted},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        assert (done.stderr == f"Python 3.1 is wanted, but found were {here} \n") == (code == 1)


def test_ci_runs_benchmarks_and_looks_at_the_clock():
    """Some benchmarks are run; where all stages together take more than 35 minutes it says so; hand-written C is
    sanitized."""
    script = text_of(".ci/run")
    quick = re.search("^QUICK_BENCHES='(.*)'$", script, flags=re.M)[1]
    assert re.search(r'asv run --quick --dry-run --python=same .*--bench "\$QUICK_BENCHES"', script)
    names = json.loads(text_of("asv_benches/results/benchmarks.json"))
    for part in quick.split("|"):
        assert [name for name in names if re.search(part, name)], part
    assert script.splitlines()[-1].startswith('[ "$#" -gt 0 ] || [ "$SECONDS" -le 2100 ] || echo')
    sanitized = re.search(r"^SANITIZED=\((.*?)\)", script, flags=re.M | re.S)[1].split()
    assert {"linalg", "ridge/test_ridge_band.py", "additive/test_rules_additive_core.py", "fuzz"} <= set(sanitized)
    assert [name for name in sanitized if not (ROOT / "tests" / name).exists()] == []


def test_one_version_of_cython_is_asked_for():
    files = ("pyproject.toml", ".ci/run", "tests/c_level/cimport_project/pyproject.toml")
    asked = [version for name in files for version in re.findall(r"Cython>=([\d.]+)", text_of(name))]
    assert len(asked) >= 5
    assert len(set(asked)) == 1


def test_wheels_of_every_platform_are_built():
    found = workflow("wheels.yml")
    runners = {
        entry["runner"].split("-")[0]: set() for entry in found["jobs"]["wheels"]["strategy"]["matrix"]["include"]
    }
    for entry in found["jobs"]["wheels"]["strategy"]["matrix"]["include"]:
        runners[entry["runner"].split("-")[0]].add(entry["archs"])
        assert ("macos" in entry) == entry["runner"].startswith("macos")
    wanted = {name: set(archs.split(",")) for name, (archs, _) in PLATFORMS.items()}
    assert runners == {"ubuntu": wanted["linux"], "macos": wanted["macos"], "windows": wanted["windows"]}
    settings = tomllib.loads(text_of("pyproject.toml"))["tool"]["cibuildwheel"]
    assert {name: set(settings[name]["archs"]) for name in PLATFORMS} == wanted


def installed_by_cibuildwheel():
    """The packages that tests of wheels can import, their own helpers among them."""
    wanted = tomllib.loads(text_of("pyproject.toml"))["tool"]["cibuildwheel"]["test-requires"]
    there = {re.match(r"[\w-]+", each)[0] for each in wanted} | {"numpy", "scipy", "sklearn", "kernelrules", "_pytest"}
    return there | set(sys.stdlib_module_names) | {path.stem for path in TESTS.rglob("*.py")}


def test_wheels_are_tested_with_what_their_tests_import():
    """Files can be collected with no more than cibuildwheel installs; whatever else they import, they ask for first."""
    there = installed_by_cibuildwheel()
    for path in (path for path in TESTS.rglob("*.py") if "cimport_project" not in path.parts):
        lines = path.read_text(encoding="utf-8").splitlines()
        for name, line in imports(path):
            asked = f'importorskip("{name}")' in "\n".join(lines[:line])
            assert name in there or asked, f"{path.name} imports {name}"


WITHOUT = """
import sys
import pytest
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
sys.exit(pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def test_examples_that_want_more_than_wheels_are_tested_with_are_skipped():
    """Without what cibuildwheel does not install, whether it is installed here or not."""
    there = installed_by_cibuildwheel()
    wants = {path: {name for name, _ in imports(path)} - there for path in (ROOT / "docs/examples").glob("*.py")}
    absent, more = set().union(*wants.values()), sorted(path.stem for path in wants if wants[path])
    assert {"call_numba", "row_source"} <= set(more)
    tests = [f"{Path(__file__).with_name('test_documentation.py')}::test_examples_run[{stem}]" for stem in more]
    given = [sys.executable, "-c", WITHOUT.format(absent=absent), *tests]
    done = subprocess.run(given, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n{len(more)} skipped" in done.stdout


def test_only_a_tag_is_published_and_without_a_secret():
    found = workflow("wheels.yml")
    publish = found["jobs"]["publish"]
    assert set(publish["needs"]) == set(found["jobs"]) - {"publish"}
    assert publish["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert publish["permissions"] == {"id-token": "write"}
    assert found["permissions"] == {"contents": "read"}
    assert any("twine check --strict" in command for command in commands(publish))
    assert "secrets." not in text_of(".github/workflows/wheels.yml") + text_of(".github/workflows/ci.yml")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_cibuildwheel_reads_its_settings(platform):
    pytest.importorskip("cibuildwheel")  # of the extra "test"; cibuildwheel itself tests wheels without it
    text_of("setup.py")
    archs, wanted = PLATFORMS[platform]
    asked = [
        sys.executable,
        "-m",
        "cibuildwheel",
        "--print-build-identifiers",
        "--platform",
        platform,
        "--archs",
        archs,
    ]
    done = subprocess.run([*asked, str(ROOT)], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == wanted


def test_the_checklist_names_what_there_is():
    page = text_of("docs/developers/release.rst")
    for name in (
        ".github/workflows/wheels.yml",
        ".github/workflows/ci.yml",
        ".ci/run",
        "tests/c_level/abi_signatures.json",
    ):
        assert name in page
        text_of(name)


# ---- compilers --------------------------------------------------------------------------------------------------


class FakeCompiler:
    """Takes the place of setuptools' compiler."""

    def __init__(self, compiler_type):
        self.compiler_type, self.initialized, self.cc = compiler_type, False, None

    def initialize(self, plat_name=None):
        self.initialized = True


def build_ext(monkeypatch, compiler, **environment):
    """The build command of setup.py with this compiler."""
    setuptools = pytest.importorskip("setuptools")
    text_of("setup.py")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(setuptools, "setup", lambda **given: None)
    names = runpy.run_path(str(ROOT / "setup.py"))
    command = names["BuildExt"].__new__(names["BuildExt"])
    command.__dict__.update(compiler=compiler, plat_name="win-amd64")
    return command


@pytest.mark.skipif(sys.platform == "win32", reason="the compiler's stand-in is a script, which Windows does not run")
def test_windows_compiles_by_clang_cl(monkeypatch, tmp_path):
    command = build_ext(monkeypatch, FakeCompiler("msvc"), PATH=str(tmp_path))
    with pytest.raises(Exception, match="clang-cl"):
        command._use_clang_cl()
    fake = tmp_path / "clang-cl"
    fake.write_text(f"#!{sys.executable}\nimport sys\nprint('builtins.lib ' + ' '.join(sys.argv[1:]))\n")
    fake.chmod(0o755)
    libraries = command._use_clang_cl()
    assert command.compiler.initialized
    assert command.compiler.cc == str(fake)
    assert libraries == ["builtins.lib /clang:-print-libgcc-file-name /clang:--rtlib=compiler-rt"]
