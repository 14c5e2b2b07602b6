"""Files that an earlier build saved still load, and what they hold answers as it did then.

saved_files.zip has a file of every example of saved_results.py, and the answers of each at that time. It was written
before the core was divided into folders, and is never written again: `python tests/persist/test_persist_earlier.py`
adds examples that are new, and leaves what is there as it is.
"""

import io
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from saved_results import EXAMPLES, arrays_in, example, loaded, saved

ARCHIVE = Path(__file__).with_name("saved_files.zip")


def answers(use, result):
    """Arrays of what a result answers; those that hold neither numbers nor booleans as text."""
    found = [np.asarray(array) for array in arrays_in(use(result))]
    return [array if array.dtype.kind in "biuf" else np.array(list(map(repr, array.tolist()))) for array in found]


@cache
def archive():
    with zipfile.ZipFile(ARCHIVE) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_every_example_has_a_file():
    assert {name.rpartition(".")[0] for name in archive()} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_files_of_an_earlier_build_load_and_answer_as_they_did(name):
    result = loaded(archive()[name + ".kr"])
    fresh, use = example(name)
    assert type(result) is type(fresh)
    with np.load(io.BytesIO(archive()[name + ".npz"])) as file:
        expected = list(file.values())
    found = answers(use, result)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        if b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-4 if b.dtype == np.float32 else 1e-9, atol=1e-12)
        else:
            assert a.tolist() == b.tolist()


if __name__ == "__main__":
    with zipfile.ZipFile(ARCHIVE, "a", zipfile.ZIP_DEFLATED) as file:
        for name in EXAMPLES:
            if name + ".kr" not in file.namelist():
                made, use = example(name)
                buffer = io.BytesIO()
                np.savez(buffer, *answers(use, made))
                file.writestr(name + ".kr", saved(made))
                file.writestr(name + ".npz", buffer.getvalue())
