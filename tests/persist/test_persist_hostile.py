"""`load` of files that `save` did not write: one kind of error, in time, without a crash, whatever is in them.

Some are damaged (bits flipped, cut short); others are made by someone who knows the format and gets every checksum
right, so that only what must hold of the result itself can stop them.
"""

import base64
import gc
import io
import json
import os
import pickle
import struct
import tracemalloc
import warnings
import zipfile
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saved_results import EXAMPLES, X, assert_same, example, loaded, put_together, saved, taken_apart

import kernelrules
from kernelrules import kernels, svm, tree
from kernelrules.persist import PersistError

NAMES = sorted(EXAMPLES)


def refused(data, message=None):
    with pytest.raises(PersistError, match=message) as caught:
        loaded(data)
    assert str(caught.value).startswith("the file cannot be loaded: ")


def npy(array):
    """An .npy file as `save` writes it."""
    text = f"{{'descr': {array.dtype.str!r}, 'fortran_order': False, 'shape': {array.shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + array.tobytes()


# ---- damaged ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["svc one-vs-rest, sparse", "a rule"])
def test_cut_short(name):
    data = saved(example(name)[0])
    for n in range(0, len(data), 1 if len(data) < 2000 else 7):
        refused(data[:n])


@pytest.mark.parametrize("name", ["a rule", "monomials"])
def test_every_byte_counts(name):
    """There is no byte that could be another without being noticed."""
    data = bytearray(saved(example(name)[0]))
    for place in range(len(data)):
        data[place] ^= 0x20
        refused(bytes(data))
        data[place] ^= 0x20


@given(st.sampled_from(NAMES), st.data())
def test_flipped_bits_and_moved_pieces(name, data):
    whole = bytearray(saved(example(name)[0]))
    match data.draw(st.sampled_from(["flip", "insert", "remove", "repeat", "zero"])):
        case "flip":
            for _ in range(data.draw(st.integers(1, 4))):
                whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        case "insert":
            place = data.draw(st.integers(0, len(whole)))
            whole[place:place] = data.draw(st.binary(min_size=1, max_size=80))
        case "remove":
            start = data.draw(st.integers(0, len(whole) - 1))
            del whole[start : start + data.draw(st.integers(1, 200))]
        case "repeat":
            start = data.draw(st.integers(0, len(whole) - 1))
            whole[start:start] = whole[start : start + 128]
        case "zero":
            start = data.draw(st.integers(0, len(whole) - 1))
            whole[start : start + 16] = bytes(len(whole[start : start + 16]))
    try:
        again = loaded(bytes(whole))
    except PersistError:
        return
    assert_same(again, example(name)[0])  # zeros over zeros, a flip undone


@pytest.mark.parametrize(
    "data",
    [
        b"", b"PK", b"PK\3\4", b"PK\5\6" + bytes(18), bytes(1000), b"\x93NUMPY\x01\x00" + bytes(200), b"{}" * 100,
        pickle.dumps(svm.svc(X, X[:, 0] > 0)), b"PK\3\4" + bytes(26) + b"header.json" + bytes(500), os.urandom(5000),
    ],
    ids=range(10),
)  # fmt: skip
def test_foreign(data):
    refused(data, "not a file that kernelrules.save wrote|cut short|damaged")


def test_other_archives():
    for write in (lambda f: np.savez(f, X), lambda f: np.savez_compressed(f, X), zip_with_bomb, zip_with_slash):
        file = io.BytesIO()
        write(file)
        refused(file.getvalue(), "not a file|damaged")


def zip_with_bomb(file):
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "[" * 10_000_000)


def zip_with_slash(file):
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("../../etc/passwd", "root")


def test_a_pickle_inside_is_not_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    header, members = taken_apart(saved(example("monomials")[0]))
    body = io.BytesIO()
    np.save(body, np.array([Trap()]), allow_pickle=True)
    refused(put_together(header, members | {"weights.npy": body.getvalue()}), "weights.npy is not the array")
    header["content"]["fields"]["weights"] = {"array": "|O", "shape": [1], "order": "C"}
    refused(put_together(header, members | {"weights.npy": body.getvalue()}), "weights is not described as arrays are")
    assert not (tmp_path / "sprung").exists()


def test_no_memory_by_what_is_claimed():
    """Sizes and shapes of terabytes in files of kilobytes."""
    data = bytearray(saved(example("svc")[0]))
    end = data.rfind(b"PK\5\6")
    directory = data.find(b"PK\1\2")
    tracemalloc.start()
    try:
        for place in (end + 12, end + 16, directory + 20, directory + 24, directory + 42, 18, 22):
            forged = bytearray(data)
            forged[place : place + 4] = b"\xf0\xff\xff\xff"
            refused(bytes(forged))
        header, members = taken_apart(bytes(data))
        for shape in ([1 << 40], [1 << 61, 0], [1 << 61, 8], [1 << 31, 1 << 31], [2] * 32, [2] * 33, [-1], [1 << 70]):
            forged = deepcopy(header)
            forged["content"]["fields"]["dual_coef"]["shape"] = shape
            refused(put_together(forged, members))
        for kind in ("<U999999999", "|S99999999", "<f8" * 1000, "<M8[999999999s]"):
            forged = deepcopy(header)
            forged["content"]["fields"]["dual_coef"]["array"] = kind
            refused(put_together(forged, members))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
        deep = json.loads("[" * 100 + "]" * 100)
        cases = ([], 50_000, 40), ({}, 50_000, 40), ({"": 0}, 25_000, 40), ("ab", 30_000, 40), ([[0]], 25_000, 60), (
            deep, 800, 80,
        )  # fmt: skip
        for part, n, times in cases:
            forged = put_together({**header, "content": [part] * n}, members)
            gc.collect()  # what an earlier one left would be counted or not, by chance
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            refused(forged)
            assert tracemalloc.get_traced_memory()[1] - before < times * len(forged), part
    finally:
        tracemalloc.stop()


def test_a_header_larger_than_memory(monkeypatch):
    """As Python's objects, which take more than JSON: it is refused before it is read."""
    header, members = taken_apart(saved(example("svc")[0]))
    forged = put_together({**header, "content": [[]] * 10**6}, members)
    monkeypatch.setattr("kernelrules.check.free_memory", lambda: 10**8)
    monkeypatch.setattr("json.loads", lambda *_, **__: pytest.fail("it was read"))
    refused(forged, "its header takes .* memory are free")


def test_larger_than_memory(monkeypatch):
    data = saved(example("svc")[0])
    monkeypatch.setattr("kernelrules.check.free_memory", lambda: 1000)
    refused(data, "memory are free")

    class Endless:
        def read(self, n):
            return data[:n] if n < 100 else bytes(n)

    monkeypatch.setattr("kernelrules.check.free_memory", lambda: 10**8)
    with pytest.raises(PersistError, match="memory are free"):
        kernelrules.load(Endless())


# ---- headers ----------------------------------------------------------------------------------------------------


def edited(name, edit):
    """The file of an example with its header changed, all sums right."""
    header, members = taken_apart(saved(example(name)[0]))
    edit(header)
    return put_together(header, members)


def test_newer_format():
    def edit(header):
        header.update(format=2, kernelrules="9.9", news={})

    refused(edited("svc", edit), "format 2, written by kernelrules '9.9'; this version, .*, reads format 1")


@pytest.mark.parametrize("number", [0, -1, None, "1", 1.0, True])
def test_no_format(number):
    refused(edited("svc", lambda header: header.update(format=number)), "does not name its format")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda h: h.pop("kernelrules"), "entries of its format"),
        (lambda h: h.update(more=1), "entries of its format"),
        (lambda h: h.update(content=None), "does not say what"),
        (lambda h: h.update(content=[]), "does not say what"),
        (
            lambda h: h.update(content={"type": "Path", "fields": {}}),
            "a type that this version does not know: 'Path'",
        ),
        (lambda h: h.update(content={"type": ["SVMModel"], "fields": {}}), "does not know"),
        (lambda h: h.update(content={"type": "SVMModel", "fields": {}}), "does not have the fields of SVMModel"),
        (lambda h: h["content"]["fields"].update(extra=1), "does not have the fields"),
        (lambda h: h["content"]["fields"].pop("kernel"), "does not have the fields"),
        (lambda h: h["content"].update(call="os.system"), "nothing is written so"),
        (lambda h: h["content"]["fields"].update(C={"float": "1"}), "is no number"),
        (lambda h: h["content"]["fields"].update(C={"float": ["nan"]}), "is no number"),
        (lambda h: h["content"]["fields"].update(C={"bytes": "_"}), "base64"),
        (lambda h: h["content"]["fields"].update(C={"bytes": "YQ"}), "base64"),
        (lambda h: h["content"]["fields"].update(C={"bytes": "YR=="}), "base64"),
        (lambda h: h["content"]["fields"].update(C={"list": 3}), "no list"),
        (lambda h: h["content"]["fields"].update(C={"dict": [[1, 2], [1, 3]]}), "a key twice"),
        (lambda h: h["content"]["fields"].update(C={"dict": [[{"list": []}, 2]]}), "a key that cannot be one"),
        (lambda h: h["content"]["fields"].update(C={"dict": [[1]]}), "no pair"),
        (lambda h: h["content"]["fields"].update(C={"objects": [1, 2], "shape": [3]}), "2 entries and the shape"),
        (lambda h: h["content"]["fields"].update(C={"scalar": "<f8", "base64": "AAA="}), "has 2 bytes"),
        (lambda h: h["content"]["fields"].update(C={"scalar": "|b1", "base64": "Ag=="}), "neither true nor false"),
        (lambda h: h["content"]["fields"].update(C={"scalar": "<U1", "base64": "YQAAAA=="}), "not written as"),
        (lambda h: h["content"]["fields"].update(C={"scalar": "|S1", "base64": "YQ=="}), "not written as"),
        (
            lambda h: h["content"]["fields"].update(
                C=[{"array": "<U1", "shape": [1], "order": "C", "base64": "AAARAA=="}]
            ),
            "no characters",
        ),
        (
            lambda h: h["content"]["fields"].update(
                C=[{"array": "<f8", "shape": [0, 1 << 61, 2], "order": "C", "base64": ""}]
            ),
            "a shape that no array has",
        ),
        (lambda h: h["content"]["fields"].update(C={"objects": [], "shape": [0, 1 << 60]}), "a shape that no array"),
        (lambda h: h["content"]["fields"].update(C={"scalar": "str", "text": 3}), "no string of numpy's"),
        (lambda h: h["content"]["fields"].update(C={"scalar": "<f8", "text": "3"}), "no string of numpy's"),
        (lambda h: h["content"]["fields"].update(C={"masked": None, "mask": None}), "not an array with a mask"),
        (lambda h: h["content"]["fields"]["dual_coef"].update(array="<f4"), "dual_coef.npy is not the array"),
        (lambda h: h["content"]["fields"]["dual_coef"].update(order="F"), "not described as save"),
        (lambda h: h["content"]["fields"]["dual_coef"].update(base64=""), "not where arrays of its size are"),
        (lambda h: h["content"]["fields"]["support"].update(array="<M8[0D]"), "not described as arrays are"),
        (
            lambda h: h["content"]["fields"].update(intercept=h["content"]["fields"]["dual_coef"]),
            "intercept.npy is not",
        ),
    ],
    ids=range(35),
)
def test_headers_made_up(edit, message):
    refused(edited("svc", edit), message)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"floats": 3}, "no column of floats"),
        ({"floats": {"array": "<i8", "shape": [20], "order": "C", "base64": "A" * 214 + "=="}}, "no column of floats"),
        ({"integers": [1]}, "no column of integers"),
        ({"rows": None}, "no column of rows"),
        ({"rows": {"array": "<f8", "shape": [20, 0], "order": "C", "base64": ""}}, "no column of rows"),
        ({"scalars": {"objects": [1] * 20, "shape": [20]}}, "no column of scalars"),
        ({"same": 1}, "no column of a table"),
        ({"floats": 1, "rows": 2}, "no column of a table"),
        (3, "no column of a table"),
        ([1.0], "columns of different lengths"),
        ({"lengths": {"array": "<i8", "shape": [0], "order": "C", "base64": ""}, "entries": [1]}, "add up"),
        ({"lengths": None, "entries": []}, "add up"),
    ],
    ids=range(12),
)
def test_tables_made_up(column, message):
    def edit(header):
        header["content"]["fields"]["rules"]["fields"]["support"] = column

    refused(edited("many rules", edit), message)


def test_no_tables_of_nothing():
    content = {"table": "Linear", "fields": {}}
    refused(put_together({"format": 1, "kernelrules": "0", "content": content}, {}), "columns of different lengths")


def test_members_that_are_not_listed_or_missing():
    header, members = taken_apart(saved(example("svc")[0]))
    refused(put_together(header, members | {"more.npy": b""}), "does not say what more.npy is")
    refused(put_together(header, {n: c for n, c in members.items() if n != "support.npy"}), "support is missing")


def test_json_of_other_kinds():
    header, _ = taken_apart(saved(example("a bound")[0]))
    good = json.dumps(header, sort_keys=True, separators=(",", ":"))
    for text in (good + " ", good.replace(":", ": "), good[:-1] + ',"format":1}', "[" * 100_000, "NaN", '"x"', "\xff"):
        refused(archive_of(text.encode("latin-1")), "header")
    assert_same(loaded(archive_of(good.encode())), example("a bound")[0])


def archive_of(text):
    from kernelrules.persist.container import write_members

    file = io.BytesIO()
    write_members([("header.json", [text])], file)
    return file.getvalue()


# ---- results ----------------------------------------------------------------------------------------------------


def forged(name, **arrays):
    """The file of an example with some arrays replaced, or changed by a function; all sums right."""
    header, members = taken_apart(saved(example(name)[0]))
    for path, change in arrays.items():
        node, (*steps, last) = header["content"], path.split("__")
        for step in steps:
            node = within(node, step)
        node, member = node.get("fields", node), path.replace("__", ".") + ".npy"
        old = np.load(io.BytesIO(members[member]))
        new = np.array(change(old.copy()) if callable(change) else change)
        node[last] = {"array": new.dtype.str, "shape": list(new.shape), "order": "C"}
        members[member] = npy(new)
    return put_together(header, members)


def within(node, step):
    """What a field, or an entry of a tuple, holds."""
    return node["fields"][step] if isinstance(node, dict) and "fields" in node else node[step]


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


FORGED = [
    ("nystroem", {name: lambda a: a[:0] for name in ("landmarks", "indices", "whitening")}, "there are no landmarks"),
    ("nystroem precomputed", {"whitening": lambda a: a[:, :0]}, "there are no landmarks"),
    ("svc", {"support": put(0, 60)}, "support must be at least 0 and less than 60"),
    ("svc", {"support": put(0, -1)}, "support must be at least 0"),
    ("svc", {"dual_coef": lambda a: a[:, :-1]}, "shape"),
    ("svc", {"dual_coef": lambda a: np.vstack([a, a])}, "shape"),
    ("svc", {"support_vectors": lambda a: a[:, :2]}, "shape"),
    ("svc", {"support_vectors": lambda a: a.astype("<U8")}, "dtype"),
    ("svc", {"intercept": lambda a: a[:0]}, "shape"),
    ("svc", {"classes": lambda a: a[:1]}, "there are 1 classes"),
    ("svc precomputed", {"support": put(0, 60)}, "support must be"),
    ("svc one-vs-rest, sparse", {"support_vectors__indices": put(0, 3)}, "an index is outside"),
    ("svc one-vs-rest, sparse", {"support_vectors__indices": put(0, -1)}, "an index is outside"),
    ("svc one-vs-rest, sparse", {"support_vectors__indptr": put(1, 10**9)}, "does not ascend"),
    ("svc one-vs-rest, sparse", {"support_vectors__indptr": put(-1, 10**6)}, "does not ascend"),
    ("svc one-vs-rest, sparse", {"support_vectors__indptr": lambda a: a[:-1]}, "does not ascend"),
    ("svc one-vs-rest, sparse", {"support_vectors__data": lambda a: a[:-1]}, "does not ascend"),
    ("ridge", {"alpha": lambda a: a[:-1]}, "shape"),
    ("ridge", {"sample_weight": put(3, np.nan)}, "sample_weight must be"),
    ("ridge", {"sample_weight": put(3, -1.0)}, "sample_weight must be"),
    ("ridge path", {"lams": put(0, 0.0)}, "lams must be greater than 0"),
    ("ridge", {"factor": lambda a: a[:-1, :-1]}, "shape"),
    ("ridge by features", {"weights": lambda a: np.vstack([a, a])}, "weights are 20"),
    ("erm", {"alpha": lambda a: np.hstack([a, a])}, "shape"),
    ("graph of classes", {"labelled": put(0, 8)}, "labelled must be"),
    ("tree", {"left": put(0, 0)}, "do not describe a tree"),
    ("tree", {"right": put(0, 10**9)}, "do not describe a tree"),
    ("tree", {"right": put(0, 1)}, "do not describe a tree"),
    ("tree", {"right": put(-1, 0)}, "depth-first order"),
    ("tree", {"left": put(-1, -7)}, "depth-first order"),
    ("tree", {"feature": put(-1, 2)}, "depth-first order"),
    ("tree", {"feature": put(0, 3)}, "do not describe a tree"),
    ("tree", {"feature": put(0, -7)}, "do not describe a tree"),
    ("tree", {"weight": lambda a: a[:-1]}, "shape"),
    ("tree", {"threshold": lambda a: a.astype(np.float32)}, "Tree"),
    ("tree", {"value": lambda a: a[:, :1]}, "shape"),
    ("tree", {"value": lambda a: a[:, :0], "classes": lambda a: a[:0]}, "there are no classes"),
    ("tree", {"subset_start": put(0, 0)}, "node .0. must have flags of levels if it splits on categories"),
    ("tree", {"subset_start": put(-1, 1)}, "must have flags of levels if it splits on categories, and only then"),
    ("tree", {"threshold": put(0, np.nan)}, "node .0. has a threshold that is no number"),
    ("tree of categories", {"subset_start": lambda a: np.full_like(a, -1)}, "must have flags of levels"),
    ("tree with surrogates", {"surrogates__subset_start": put(0, 0)}, "surrogate .0. must have flags of levels"),
    ("tree with linear leaves", {"fill": put(0, np.nan)}, "fill must be finite"),
    ("prune cv", {"grown__subset_start": put(-1, 1)}, "must have flags of levels"),
    ("a tree of a table", {"model__subset_start": lambda a: np.where(a < 0, 1, a)}, "must have flags of levels"),
    ("erm by features", {"weights": lambda a: a[:, :0]}, "there are no weights"),
    ("tree of categories", {"subset_start": lambda a: np.where(a >= 0, 10**9, a)}, "do not describe a tree"),
    ("tree with surrogates", {"surrogates__feature": put(0, 3)}, "surrogate 0"),
    ("tree with surrogates", {"surrogates__start": put(1, 10**9)}, "do not follow each other"),
    ("tree with oblique splits", {"directions": lambda a: a[:0]}, "do not describe a tree"),
    ("tree with linear leaves", {"linear": lambda a: a[:, :-1]}, "shape"),
    ("prune cv", {"error": lambda a: a[:-1]}, "shape"),
    ("coverage", {"rule": put(0, 99)}, "rule must be"),
    ("monomials", {"parents": put(1, 1)}, "not made from an earlier one"),
    ("monomials", {"factors": put(1, 3)}, "factors must be"),
    ("nystroem precomputed", {"indices": put(0, 60)}, "indices must be"),
    ("nystroem", {"whitening": lambda a: a[1:]}, "shape"),
    ("fourier", {"frequencies": lambda a: a[1:]}, "shape"),
]


@pytest.mark.parametrize(("name", "arrays", "message"), FORGED, ids=range(len(FORGED)))
def test_results_that_would_lead_astray(name, arrays, message):
    refused(forged(name, **arrays), message)


@pytest.mark.parametrize(
    ("name", "path", "value", "message"),
    [
        ("svc", ("kernel",), {"type": "RBF", "fields": {"gamma": "scale"}}, "a number for gamma"),
        ("svc", ("kernel",), {"type": "RBF", "fields": {"gamma": -1.0}}, "gamma must be"),
        ("svc", ("kernel",), {"type": "Tree", "fields": {}}, "fields of Tree"),
        ("svc", ("kernel",), None, "kernel must be a kernel"),
        ("svc", ("n_features",), 4, "shape"),
        ("svc", ("n_features",), True, "n_features must be int"),
        ("svc", ("certificates",), [], "0 certificates of 1"),
        ("svc", ("kind",), "svz", "kind must be one of"),
        ("tree", ("n_features",), 1 << 60, "categories must have an entry"),
        ("tree", ("categories",), [None], "categories must have an entry"),
        ("tree", ("missing",), "x", "missing must be one of"),
        ("tree", ("missing",), "impute", "there is nothing to replace missing values"),
        ("tree with surrogates", ("missing",), "fractional", "surrogates are for"),
        ("tree of several targets", ("criterion",), "x", "no criterion 'x'"),
        ("additive rules of three classes", ("class_names",), None, "class_names are those of classes"),
        ("erm by features", ("kernel", "degree"), 1 << 20, "which the map of"),
        ("erm by features", ("n_features",), 1 << 50, "which the map of"),
        ("erm by features", ("n_features",), -1, "n_features must be at least 0"),
        ("erm by features", ("kernel", "coef0"), 1, "coef0 is not written as Polynomial has it"),
        ("svm budget of three classes", ("Cs",), 1.0, "Cs must be"),
        ("svr tuned", ("measure",), "relative", "measure must be one of"),
        ("svm tuned", ("best",), {"dict": [["D", 1.0]]}, "best must hold C"),
        ("svm tuned", ("best",), {"dict": [["C", 1.0], ["D", 1.0]]}, "best must hold C"),
        ("svm tuned", ("best",), {"dict": [["C", 77.0]]}, "a C that is not in the grid"),
        ("rules", ("rules", 0, "conditions", 0, "feature"), 3, "rule 0 has a condition on column 3"),
        ("rules", ("rules", 0, "prediction"), 7, "none of the classes"),
        ("rules of categories", ("n_features",), 4, "levels must have an entry"),
        ("a rule", ("conditions", 0, "feature"), "x", "feature must be int"),
        ("ridge", ("lam",), {"float": "inf"}, "lam must be greater than 0 and finite"),
        ("platt", ("maps",), [], "0 maps of 1"),
        ("platt", ("method",), "isotonic", "a map must be an array"),
        ("fourier", ("n_features",), 0, "n_features must be at least 1"),
        ("prune cv", ("chosen",), 99, "chosen must be"),
        ("ridge path", ("best",), -1, "best must be"),
    ],
    ids=range(34),
)
def test_fields_that_would_lead_astray(name, path, value, message):
    def edit(header):
        node = header["content"]
        for step in path[:-1]:
            node = within(node, step)
        node["fields"][path[-1]] = value

    refused(edited(name, edit), message)


def test_many_features_of_high_degree():
    """The number of their monomials has more digits than can be written: it is not computed."""

    def edit(header):
        header["content"]["fields"]["n_features"] = 10**6
        header["content"]["fields"]["kernel"]["fields"]["degree"] = 1 << 20

    refused(edited("erm by features", edit), "which the map of")


def test_sizes_beyond_all_files():
    """In zip's second edition sizes have 64 bits: their sum may not have."""
    first = bytes(saved(example("a rule")[0]))[:64]
    wide_end, locator, end = struct.Struct("<4sQ2H2I4Q"), struct.Struct("<4sIQI"), struct.Struct("<4s4H2IH")
    for size in (2**64 - 1, 2**64 - 200, 2**63):
        entries = [("header.json", size), ("x.npy", 200)]
        named = [
            struct.pack(
                "<4s6H3I5H2I",
                *(b"PK\1\2", 20, 45, 0, 0, 0, 33, 0, 0xFFFFFFFF, 0xFFFFFFFF, len(name), 28, 0, 0, 0, 0, 0xFFFFFFFF),
            )
            + name.encode()
            + struct.pack("<2H3Q", 1, 24, n, n, 0)
            for name, n in entries
        ]
        listed = b"".join(named)
        directory_end = (
            wide_end.pack(b"PK\6\6", wide_end.size - 12, 45, 45, 0, 0, 2, 2, len(listed), len(first))
            + locator.pack(b"PK\6\7", 0, len(first) + len(listed), 1)
            + end.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
        )
        refused(first + listed + directory_end, "larger than the file")


# ---- fuzzing with the sums right --------------------------------------------------------------------------------

NUMBERS = st.one_of(st.integers(-5, 70), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.builds(lambda v: {"list": v}, inner),
        st.builds(lambda v: {"bytes": base64.b64encode(v).decode()}, st.binary(max_size=9)),
    ),
    max_leaves=4,
)


def places_in(node, path=()):
    yield path
    for step, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places_in(inner, (*path, step))


@settings(max_examples=250)
@given(st.sampled_from(NAMES), st.data())
def test_any_change_of_the_tree(name, data):
    """A file that is consistent but for one place of its header loads as something that can be used, or not at all."""
    header, members = taken_apart(saved(example(name)[0]))
    path = data.draw(st.sampled_from([p for p in places_in(header["content"]) if p]))
    node = header["content"]
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = data.draw(JSON)
    survives(put_together(header, members), example(name)[1])


@settings(max_examples=250)
@given(st.sampled_from([name for name in NAMES if len(taken_apart(saved(example(name)[0]))[1])]), st.data())
def test_any_change_of_the_arrays(name, data):
    header, members = taken_apart(saved(example(name)[0]))
    member = data.draw(st.sampled_from(sorted(members)))
    body = bytearray(members[member])
    start = 10 + int.from_bytes(body[8:10], "little")
    if len(body) > start:
        for _ in range(data.draw(st.integers(1, 3))):
            place = data.draw(st.integers(start, len(body) - 1))
            body[place] = data.draw(st.sampled_from([0, 1, 2, 3, 127, 128, 255]))
    survives(put_together(header, members | {member: bytes(body)}), example(name)[1])


def survives(file, use):
    """It is refused; or loads, is saved as the same bytes, and answers or says why not. Crashes end the run."""
    try:
        result = loaded(file)
    except PersistError:
        return
    assert saved(result) == file
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(result)
    except (ValueError, MemoryError):
        pass


def test_loading_takes_no_names_from_the_file():
    """Classes are those of the registry: no import, no attribute is looked up by what a file says."""
    for name in ("os.system", "kernelrules.svm.svc", "Kernel", "__class__", "Own"):
        header = {"format": 1, "kernelrules": "0", "content": {"type": name, "fields": {}}}
        refused(put_together(header, {}), "does not know")
    for thing in (None, 3, "text", [{"list": [None]}]):
        refused(put_together({"format": 1, "kernelrules": "0", "content": thing}, {}), "is no result")
    assert loaded(put_together({"format": 1, "kernelrules": "0", "content": {"type": "Linear", "fields": {}}}, {})) == (
        kernels.Linear()
    )


def test_a_field_with_a_default_may_be_missing():
    """What a later version adds with a default is not in the files of this one."""
    header, members = taken_apart(saved(example("tree")[0]))
    del header["content"]["fields"]["missing_seen"]
    del members["missing_seen.npy"]
    again = loaded(put_together(header, members))
    assert again.missing_seen is None
    assert_same(tree.predict(again, X), tree.predict(example("tree")[0], X))
