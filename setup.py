"""Build of the compiled core: the list of extensions, the compiler's flags, Cython's directives, and four switches.

Everything else (metadata, dependencies, tools) is in pyproject.toml. The switches are environment variables:

KERNELRULES_BOUNDS=1      bounds and wraparound checks on: what one CI run builds with
KERNELRULES_NO_OPENMP=1   as where the compiler has no OpenMP: prange becomes a plain loop
KERNELRULES_SANITIZE=1    AddressSanitizer and UndefinedBehaviorSanitizer: what .ci/sanitize builds with (GCC or Clang)
KERNELRULES_ANNOTATE=1    write Cython's annotated HTML next to the generated C, under build/
"""

import multiprocessing
import os
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

CHECKS = os.environ.get("KERNELRULES_BOUNDS") == "1"
NO_OPENMP = os.environ.get("KERNELRULES_NO_OPENMP") == "1"
SANITIZE = os.environ.get("KERNELRULES_SANITIZE") == "1"
ANNOTATE = os.environ.get("KERNELRULES_ANNOTATE") == "1"
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))  # has no limited API

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": CHECKS,
    "wraparound": CHECKS,
    "initializedcheck": CHECKS,
    "cdivision": True,
    "embedsignature": True,
    "freethreading_compatible": True,
}
COMPILE_ARGS = ["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"] if SANITIZE else []
if SANITIZE:  # the later of two flags counts: slower code that the sanitizers can see through, with line numbers
    COMPILE_ARGS += [*SANITIZERS, "-O1", "-g1", "-fno-omit-frame-pointer"]
# Fused multiply-adds make the vectorised kernels fast; elsewhere they would break error-free sums.
CONTRACT = {"core.simd": "-ffp-contract=fast"}
HEADERS = [str(p) for p in sorted(Path("kernelrules").rglob("*.h"))]
MODULES = [
    "core.status",
    "core.simd",
    "core.machine",
    "core.finite",
    "core.gram",
    "core.gram_csr",
    "core.rows",
    "core.steps",
    "core.working_set",
    "core.smo",
    "core.smo_source",
    "core.apply",
    "core.cholesky",
    "core.neighbours",
    "core.multigrid",
    "core.symmetric",
    "core.presort",
    "core.absolute",
    "core.levels",
    "core.scan",
    "core.surrogate",
    "core.node",
    "core.split",
    "core.grower",
    "core.grow",
    "core.tree_source",
    "core.walk",
    "core.prune",
    "core.ranked",
    "core.induce",
    "core.cover",
    "core.length",
    "core.match",
    "core.rule_tree",
    "core.simplify",
    "cython_api",
]


def extension(name):
    """The extension kernelrules.NAME, built from the file of that name."""
    return Extension(
        f"kernelrules.{name}",
        [f"kernelrules/{name.replace('.', '/')}.pyx"],
        include_dirs=["kernelrules/include", "kernelrules/core"],
        depends=HEADERS,
        extra_compile_args=[*COMPILE_ARGS, CONTRACT.get(name, "-ffp-contract=off")],
        extra_link_args=list(SANITIZERS),
        define_macros=[] if FREE_THREADED else [("Py_LIMITED_API", "0x030b0000")],
        py_limited_api=not FREE_THREADED,
    )


class BuildExt(build_ext):
    """Cythonizes at build time (an sdist then holds .pyx, not .c), in parallel, with OpenMP where there is one."""

    def finalize_options(self):
        """Use every core unless told otherwise."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self):
        """Generate the C into the build folder, then compile as usual."""
        from Cython.Build import cythonize

        flags = [] if NO_OPENMP or not self._links_openmp() else ["-fopenmp"]
        for ext in self.extensions:
            ext.extra_compile_args += flags
            ext.extra_link_args += flags
        generated = cythonize(
            self.extensions,
            build_dir=self.build_temp,
            compiler_directives=DIRECTIVES,
            annotate=ANNOTATE,
            # Where processes are forked; where they are spawned, each would run this file again.
            nthreads=self.parallel if multiprocessing.get_start_method() == "fork" else 0,
        )
        by_name = {ext.name: ext for ext in generated}
        for ext in self.extensions:
            done = by_name[ext.name]
            ext.sources, ext.depends, ext.language = done.sources, done.depends, done.language
        super().build_extensions()
        if not (self.inplace or CHECKS or NO_OPENMP or SANITIZE):
            # A checkout's own folder shadows the installed package for `python -m kernelrules` run inside it.
            self.copy_extensions_to_source()

    def _links_openmp(self):
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.c")
            probe.write_text("#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n")
            try:
                objects = self.compiler.compile([str(probe)], output_dir=folder, extra_postargs=["-fopenmp"])
                self.compiler.link_executable(objects, str(Path(folder, "probe")), extra_postargs=["-fopenmp"])
            except (CompileError, LinkError):
                return False
        return True


setup(
    ext_modules=[extension(name) for name in MODULES],
    cmdclass={"build_ext": BuildExt},
    options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
