"""All that can be done with a result that was loaded from a file which someone made by hand, every checksum right.

`load` refuses the file; or every function of the result answers, or says what is wrong in a ValueError.
"""

import io
import zlib

import numpy as np
import pytest
from result_uses import clear, data_of, pictures_of, uses_of
from saved_results import EXAMPLES, example, loaded, put_together, saved, taken_apart
from test_persist_hostile import npy, places_in

from kernelrules.persist import PersistError

# Plausible numbers, some of which point outside: children, columns, levels, places of flags.
ODD = {
    "f": (np.nan, np.inf, -1.0, 0.0, 2.0, 1e30),
    "i": (-2, -1, 0, 1, 2, 7, 10**9),
    "u": (0, 1, 2, 3, 255),
    "b": (False, True),
}
SCALARS = (None, True, 0, -1, 1, 3, 10**9, 0.5, {"float": "nan"}, {"float": "inf"}, "x", "", [], [None])
TRIED = 60  # changes of each example, drawn


def changed_arrays(rng, array):
    """Arrays that are as the given one but for one entry, all entries, or the length."""
    if not array.size:
        return
    for value in ODD.get(array.dtype.kind, (array.flat[0],)):
        for place in {0, array.size - 1, int(rng.integers(array.size))}:
            changed = array.copy()
            changed.flat[place] = value
            yield changed
        yield np.full_like(array, value)
    yield array[:-1]
    yield array[:0]
    yield np.concatenate([array, array[-1:]])
    if array.ndim == 2:
        yield array[:, :0]
    yield array.reshape(-1, 1)


def described(node, member):
    """What the header says of an array."""
    for step in member[: -len(".npy")].split("."):
        node = node.get("fields", node.get("list", node)) if isinstance(node, dict) else node
        node = node["masked" if "masked" in node and step == "data" else int(step) if isinstance(node, list) else step]
    return node


def changed_files(rng, name):
    """Files of an example with one array, or one entry of the header, changed; all sums right."""
    header, members = taken_apart(saved(example(name)[0]))
    for member, body in members.items():
        node = described(header["content"], member)
        before = dict(node)
        for new in changed_arrays(rng, np.load(io.BytesIO(body))):
            node.update({"array": new.dtype.str, "shape": list(new.shape), "order": "C"})
            yield member, new, lambda new=new, member=member: put_together(header, members | {member: npy(new)})
        node.update(before)
    for path in (path for path in places_in(header["content"]) if path):
        node = header["content"]
        for step in path[:-1]:
            node = node[step]
        before = node[path[-1]]
        for value in SCALARS:
            node[path[-1]] = value
            yield path, value, lambda: put_together(header, members)
        node[path[-1]] = before


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_function_answers_or_says_what_is_wrong(name):
    """Of what is loaded, whatever was changed: never an IndexError, KeyError or TypeError."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    n = sum(1 for _ in changed_files(rng, name))
    tried = set(rng.choice(n, min(n, TRIED), replace=False).tolist())
    data, wrong, n_loaded = data_of(name), [], 0
    for turn, (place, value, file) in enumerate(changed_files(rng, name)):
        if turn not in tried:
            continue
        try:
            found = loaded(file())
        except PersistError:
            continue
        n_loaded += 1
        uses = uses_of(found, *data)
        uses |= pictures_of(found, data[0]) if n_loaded == 1 else {}  # which take long
        wrong += [(place, value, use, error) for use, call in uses.items() if (error := clear(call)) is not None]
    assert not wrong, f"{len(wrong)} of {n_loaded}: {wrong[0]}"
