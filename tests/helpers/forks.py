"""Code in processes of its own, each with an environment that is read when kernelrules is imported.

On Linux they are forks of one process that has imported what kernelrules imports, which takes most of the time, but
not kernelrules.
"""

import json
import os
import signal
import subprocess
import sys

FORK = """
import json, os, sys, tempfile, traceback
import numpy, scipy.linalg, scipy.sparse.csgraph, scipy.sparse.linalg, scipy.special

told = {}
for name, (code, changes) in json.load(sys.stdin).items():
    assert "kernelrules" not in sys.modules
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                for variable, value in changes.items():
                    os.environ.pop(variable, None)
                    if value is not None:
                        os.environ[variable] = value
                exec(compile(code, name, "exec"), {"__name__": "__main__"})
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        streams = []
        for file in (out, err):
            file.seek(0)
            streams.append(file.read().decode())
        told[name] = [status, *streams]
json.dump(told, sys.stdout)
"""


def results_of(children, timeout=300):
    """{name: (exit code, what was printed, errors)} of children {name: (code, {variable: value or None})}."""
    if sys.platform.startswith("linux"):
        with subprocess.Popen(
            [sys.executable, "-c", FORK],
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # no threads: forks would not have them
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        ) as parent:  # fmt: skip
            try:
                out, errors = parent.communicate(json.dumps(children), timeout=timeout)
            except BaseException:
                os.killpg(parent.pid, signal.SIGKILL)  # a fork that hangs must not stay
                raise
        assert parent.returncode == 0, errors
        return json.loads(out)
    told = {}
    for name, (code, changes) in children.items():
        env = {variable: value for variable, value in (os.environ | changes).items() if value is not None}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=timeout)
        told[name] = done.returncode, done.stdout, done.stderr
    return told


def printed(told, name):
    """What one of them has printed, if it ended well."""
    status, out, err = told[name]
    assert status == 0, err
    return out
