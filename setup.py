"""Build of the compiled core, where every .pyx file is an extension: compiler flags, Cython directives, switches.

Everything else (metadata, dependencies, tools) is in pyproject.toml. The switches are environment variables:

KERNELRULES_BOUNDS=1      bounds and wraparound checks on: what one CI run builds with
KERNELRULES_NO_THREADS=1  without the team of threads: every loop runs on its caller's thread
KERNELRULES_SANITIZE=1    AddressSanitizer and UndefinedBehaviorSanitizer: what .ci/run's stage sanitize builds with;
                          =thread: ThreadSanitizer, for its stage tsan
KERNELRULES_ANNOTATE=1    write Cython's annotated HTML next to the generated C, under build/generated/
"""

import hashlib
import multiprocessing
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

CHECKS = os.environ.get("KERNELRULES_BOUNDS") == "1"
NO_THREADS = os.environ.get("KERNELRULES_NO_THREADS") == "1"
SANITIZERS = {
    "1": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"],
    "thread": ["-fsanitize=thread"],
}.get(os.environ.get("KERNELRULES_SANITIZE", ""), [])
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
if SANITIZERS:  # the later of two flags counts: slower code that the sanitizers can see through, with line numbers
    COMPILE_ARGS += [*SANITIZERS, "-O1", "-g1", "-fno-omit-frame-pointer"]
MACROS = [] if FREE_THREADED else [("Py_LIMITED_API", "0x030b0000")]
if NO_THREADS:
    MACROS += [("KERNELRULES_NO_THREADS", "1")]
# Fused multiply-adds make the vectorised kernels fast; elsewhere they would break error-free sums.
CONTRACT = dict.fromkeys(("core.simd.dispatch", "core.gram.kernels", "core.linalg.banded"), "-ffp-contract=fast")
HEADERS = [str(p) for p in sorted(Path("kernelrules").rglob("*.h"))]
# What Cython puts beside every module that has memoryviews, once: half the C to compile, half the wheel.
SHARED = "core.shared"
GENERATED = Path("build", "generated")
MODULES = [
    ".".join(path.with_suffix("").parts[1:])
    for path in [*sorted(Path("kernelrules", "core").rglob("*.pyx")), Path("kernelrules", "cython_api.pyx")]
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
        define_macros=MACROS,
        py_limited_api=not FREE_THREADED,
    )


def generated_c(name):
    """Where the C of the extension of this name goes."""
    return GENERATED / (name.replace(".", "/") + ".c")


def fingerprints():
    """[of the settings, of the sources] that a build is made of."""
    from Cython import __version__

    settings = repr(
        (__version__, DIRECTIVES, COMPILE_ARGS, CONTRACT, MACROS, ANNOTATE, FREE_THREADED, os.environ.get("CFLAGS"))
    )
    sources = hashlib.sha256()
    for path in sorted(p for p in Path("kernelrules").rglob("*") if p.suffix in {".pyx", ".pxd", ".h"}):
        sources.update(f"{path.as_posix()} {path.stat().st_size}\n".encode() + path.read_bytes())
    return [hashlib.sha256(settings.encode()).hexdigest(), sources.hexdigest()]


class BuildExt(build_ext):
    """Cythonizes at build time (an sdist then holds .pyx, not .c), in parallel."""

    def finalize_options(self):
        """Use every core unless told otherwise."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self):
        """Generate the C, then compile as usual: nothing at all where a build left all that is needed."""
        windows = self.compiler.compiler_type == "msvc"
        libraries = self._use_clang_cl() if windows else []
        for ext in self.extensions:
            if windows:
                ext.extra_compile_args = [f"/clang:{flag}" for flag in ext.extra_compile_args]
                ext.extra_link_args = [*ext.extra_link_args, *libraries]
            else:
                ext.extra_compile_args = [*ext.extra_compile_args, "-pthread"]
                ext.extra_link_args = [*ext.extra_link_args, "-pthread"]
        stamp = GENERATED / "stamp"
        before = stamp.read_text().split() if stamp.exists() else ["", ""]
        stamp.unlink(missing_ok=True)  # until all is compiled
        now = fingerprints()
        if now == before:  # by contents: a checkout is younger than its C, and an isolated build's Cython than both
            for ext in self.extensions:
                ext.sources, ext.depends = [str(generated_c(ext.name))], []
        else:
            self._generate(force=now[0] != before[0])
        super().build_extensions()
        if not (self.inplace or CHECKS or NO_THREADS or SANITIZERS):
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


setup(
    ext_modules=[extension(name) for name in [*MODULES, SHARED]],
    cmdclass={"build_ext": BuildExt},
    options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
