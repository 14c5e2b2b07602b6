"""Build of the compiled core: the list of extensions, the compiler's flags, Cython's directives, and some switches.

Everything else (metadata, dependencies, tools) is in pyproject.toml. The switches are environment variables:

KERNELRULES_BOUNDS=1      bounds and wraparound checks on: what one CI run builds with
KERNELRULES_NO_OPENMP=1   as where the compiler has no OpenMP: prange becomes a plain loop
KERNELRULES_LIBOMP=DIR    where LLVM's OpenMP is, for compilers that come without one: DIR/include, DIR/lib (macOS)
KERNELRULES_SANITIZE=1    AddressSanitizer and UndefinedBehaviorSanitizer: what .ci/run's stage sanitize builds with
KERNELRULES_ANNOTATE=1    write Cython's annotated HTML next to the generated C, under build/generated/
"""

import hashlib
import multiprocessing
import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

CHECKS = os.environ.get("KERNELRULES_BOUNDS") == "1"
NO_OPENMP = os.environ.get("KERNELRULES_NO_OPENMP") == "1"
LIBOMP = os.environ.get("KERNELRULES_LIBOMP")
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
# Vectors are passed to functions that are always inlined only: what GCC says of their ABI does not matter.
COMPILE_ARGS = ["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-Wno-psabi"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"] if SANITIZE else []
if SANITIZE:  # the later of two flags counts: slower code that the sanitizers can see through, with line numbers
    COMPILE_ARGS += [*SANITIZERS, "-O1", "-g1", "-fno-omit-frame-pointer"]
# Fused multiply-adds make the vectorised kernels fast; elsewhere they would break error-free sums.
CONTRACT = {"core.simd": "-ffp-contract=fast", "core.sweep": "-ffp-contract=fast"}
HEADERS = [str(p) for p in sorted(Path("kernelrules").rglob("*.h"))]
# What Cython puts beside every module that has memoryviews, once: half the C to compile, half the wheel.
SHARED = "core.shared"
GENERATED = Path("build", "generated")
MODULES = [
    "core.status",
    "core.simd",
    "core.machine",
    "core.blocks",
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
    "core.sweep",
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
    "core.leaves",
    "core.prune",
    "core.ranked",
    "core.induce",
    "core.cover",
    "core.length",
    "core.match",
    "core.rule_tree",
    "core.simplify",
    "core.terms",
    "core.descent",
    "core.coordinate",
    "core.stumps",
    "core.draw",
    "core.weak",
    "core.score",
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


def generated_c(name):
    """Where the C of the extension of this name goes."""
    return GENERATED / (name.replace(".", "/") + ".c")


def fingerprints(flags):
    """[of the settings, of the sources] that a build is made of."""
    from Cython import __version__

    settings = repr(
        (__version__, DIRECTIVES, COMPILE_ARGS, CONTRACT, flags, ANNOTATE, FREE_THREADED, os.environ.get("CFLAGS"))
    )
    sources = hashlib.sha256()
    for path in sorted(p for p in Path("kernelrules").rglob("*") if p.suffix in {".pyx", ".pxd", ".h"}):
        sources.update(f"{path.as_posix()} {path.stat().st_size}\n".encode() + path.read_bytes())
    return [hashlib.sha256(settings.encode()).hexdigest(), sources.hexdigest()]


class BuildExt(build_ext):
    """Cythonizes at build time (an sdist then holds .pyx, not .c), in parallel, with OpenMP where there is one."""

    def finalize_options(self):
        """Use every core unless told otherwise."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self):
        """Generate the C, then compile as usual: nothing at all where a build left all that is needed."""
        windows = self.compiler.compiler_type == "msvc"
        libraries = self._use_clang_cl() if windows else []
        flags = [[], []] if NO_OPENMP else self._openmp(windows)
        for ext in self.extensions:
            spelled = [f"/clang:{flag}" for flag in ext.extra_compile_args] if windows else ext.extra_compile_args
            ext.extra_compile_args = [*spelled, *flags[0]]
            ext.extra_link_args = [*ext.extra_link_args, *libraries, *flags[1]]
        stamp = GENERATED / "stamp"
        before = stamp.read_text().split() if stamp.exists() else ["", ""]
        stamp.unlink(missing_ok=True)  # until all is compiled
        now = fingerprints(flags)
        if now == before:  # by contents: a checkout is younger than its C, and an isolated build's Cython than both
            for ext in self.extensions:
                ext.sources, ext.depends = [str(generated_c(ext.name))], []
        else:
            self._generate(force=now[0] != before[0])
        super().build_extensions()
        if not (self.inplace or CHECKS or NO_OPENMP or SANITIZE):
            # A checkout's own folder shadows the installed package for `python -m kernelrules` run inside it.
            self.copy_extensions_to_source()
        stamp.write_text(" ".join(now))

    def _generate(self, force):
        from Cython.Build import cythonize
        from Cython.Build.SharedModule import generate_shared_module
        from Cython.Compiler.Options import CompilationOptions

        *typed, shared = self.extensions
        c_file = generated_c(shared.name)
        if force or not c_file.exists():
            c_file.parent.mkdir(parents=True, exist_ok=True)
            generate_shared_module(CompilationOptions(shared_c_file_path=str(c_file), module_name=shared.name))
        shared.sources, shared.depends = [str(c_file)], []
        generated = cythonize(
            typed,
            build_dir=str(GENERATED),
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=shared.name,
            annotate=ANNOTATE,
            force=force,
            # Where processes are forked; where they are spawned, each would run this file again.
            nthreads=self.parallel if multiprocessing.get_start_method() == "fork" else 0,
        )
        by_name = {ext.name: ext for ext in generated}
        for ext in typed:
            done = by_name[ext.name]
            ext.sources, ext.depends, ext.language = done.sources, done.depends, done.language

    def _use_clang_cl(self):
        """Compile by clang-cl, since cl has no generic vectors; what the linker needs for it, which is cl's own."""
        clang = shutil.which("clang-cl")
        if clang is None:
            raise CompileError("kernelrules needs clang-cl on Windows: install LLVM, and put its bin folder on PATH")
        if not self.compiler.initialized:
            self.compiler.initialize(self.plat_name)
        self.compiler.cc = clang
        asked = [clang, "/clang:-print-libgcc-file-name", "/clang:--rtlib=compiler-rt"]
        return [subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()]

    def _openmp(self, windows):
        """[flags of the compiler, of the linker] with which OpenMP works; none where it does not."""
        if windows:
            folder = LIBOMP or Path(self.compiler.cc).parents[1]
            candidates = [[["/clang:-fopenmp"], [f"/LIBPATH:{Path(folder, 'lib')}", "libomp.lib"]]]
        else:
            candidates = [[["-fopenmp"], ["-fopenmp"]]]
            if LIBOMP:
                candidates.append([["-Xclang", "-fopenmp", f"-I{LIBOMP}/include"], [f"-L{LIBOMP}/lib", "-lomp"]])
        return next((flags for flags in candidates if self._links(*flags)), [[], []])

    def _links(self, compile_flags, link_flags):
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.c")
            probe.write_text("#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n")
            try:
                objects = self.compiler.compile([str(probe)], output_dir=folder, extra_postargs=compile_flags)
                self.compiler.link_executable(objects, str(Path(folder, "probe")), extra_postargs=link_flags)
            except (CompileError, LinkError):
                return False
        return True


setup(
    ext_modules=[extension(name) for name in [*MODULES, SHARED]],
    cmdclass={"build_ext": BuildExt},
    options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
