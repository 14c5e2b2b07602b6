"""Four extensions: three cimport kernelrules, the last includes its header. None links against it."""

from Cython.Build import cythonize
from setuptools import Extension, setup

import kernelrules

include = [kernelrules.get_include()]
cython_caller = Extension("outside.cython_caller", ["outside/cython_caller.pyx"], include_dirs=include)
string_svm = Extension("outside.string_svm", ["outside/string_svm.pyx"], include_dirs=include)
own_stump = Extension("outside.own_stump", ["outside/own_stump.pyx"], include_dirs=include)
c_caller = Extension("outside.c_caller", ["outside/c_caller.c"], include_dirs=include)

setup(ext_modules=[*cythonize([cython_caller, string_svm, own_stump], language_level=3), c_caller])
