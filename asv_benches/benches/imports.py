"""The cost of `import kernelrules` in a fresh interpreter, and the size of the installation.

The package itself should cost little compared with numpy and scipy, and import nothing that only some users need.
"""

import subprocess
import sys
from pathlib import Path

DEPENDENCIES = "import numpy, scipy.linalg, scipy.sparse, threadpoolctl, importlib.metadata"


class Imports:
    def timeraw_import(self):
        """Everything, as a user waits for it."""
        return "import kernelrules"

    def timeraw_import_after_dependencies(self):
        """Our own part, which has to stay below 0.15 s: numpy and scipy are there already."""
        return "import kernelrules", DEPENDENCIES


def modules_after(statements):
    """Return the names of the modules in a fresh interpreter after these statements."""
    code = f"{statements}\nimport sys\nprint(*sys.modules, sep='\\n')"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def track_modules_loaded():
    """Beyond those that numpy and scipy load: more of them is a slower start."""
    return len(modules_after(f"{DEPENDENCIES}\nimport kernelrules") - modules_after(DEPENDENCIES))


def track_compiled_bytes():
    """The size of all extension modules together."""
    import kernelrules

    return sum(file.stat().st_size for file in Path(kernelrules.__file__).parent.rglob("*.so"))


track_modules_loaded.unit = "modules"
track_compiled_bytes.unit = "bytes"
