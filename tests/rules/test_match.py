"""First rules that hold, a word of rows at a time, against one rule after another for one row after another; at the
level of this process, while test_levels.py runs this file at the others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelrules.core.rules import match

N_LEVELS = (-1, -1, 3, -1)  # column 2 has levels


def plain_answer(tests, start, ids, row):
    """The number of the first rule whose tests all pass."""
    for rule in range(len(start) - 1):
        for t in ids[start[rule] : start[rule + 1]]:
            column, low, high, missing, flags = tests[t]
            value = row[column]
            if np.isnan(value):
                holds = missing
            elif flags is None:
                holds = low < value <= high
            else:
                holds = flags[int(value) + 1 if 0 <= value < N_LEVELS[column] else 0]
            if not holds:
                break
        else:
            return rule
    return len(start) - 1


@st.composite
def lists(draw):
    """(tests, start, ids, rows)"""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tests = []
    for _ in range(draw(st.integers(1, 12))):
        column = int(rng.integers(4))
        low, high = sorted(rng.choice([-np.inf, -1.0, 0.0, 1.0, 2.0, np.inf], 2))
        flags = None if N_LEVELS[column] < 0 else rng.integers(0, 2, N_LEVELS[column] + 1)
        tests.append((column, low, high, bool(rng.integers(2)), flags))
    counts = rng.integers(0 if rng.integers(3) == 0 else 1, 4, draw(st.integers(0, 9)))
    ids = rng.integers(0, len(tests), counts.sum())
    n = draw(st.sampled_from([0, 1, 63, 64, 65, 130]))
    rows = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 5.0, np.nan], (n, 4))
    return tests, np.concatenate([[0], counts.cumsum()]).astype(np.int64), ids.astype(np.int64), rows


def compiled(tests):
    flags, level_start = [], []
    for *_, own in tests:
        level_start.append(-1 if own is None else len(flags))
        flags += [] if own is None else list(own)
    column, low, high, missing, _ = zip(*tests, strict=True)
    return match.ConditionTable(
        np.array(column, dtype=np.int64), np.array(low), np.array(high), np.array(missing, dtype=np.uint8),
        np.array(level_start, dtype=np.int64), np.array(flags, dtype=np.uint8), np.array(N_LEVELS, dtype=np.int64),
    )  # fmt: skip


def answers(case, rows, n_threads=1):
    tests, start, ids, _ = case
    out = np.full(len(rows), -7, dtype=np.int64)
    by_rule = 100 - np.arange(len(start))
    assert match.first_rules_by_words(compiled(tests), start, ids, rows, by_rule, out, True, n_threads)
    return 100 - out


@given(lists())
def test_first_rules(case):
    tests, start, ids, rows = case
    expected = [plain_answer(tests, start, ids, row) for row in rows]
    assert answers(case, rows).tolist() == expected
    assert answers(case, rows.astype(np.float32), 3).tolist() == expected
    assert answers(case, np.asfortranarray(rows), 2).tolist() == expected
    assert answers(case, np.repeat(rows, 2, axis=0)[::2]).tolist() == expected


@given(lists(), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_first_rules_of_groups(case, n_groups, seed):
    """Groups take stretches of the list, rows belong to them at random, and some have their answer already."""
    tests, start, ids, rows = case
    rng, n_rules = np.random.default_rng(seed), len(start) - 1
    cuts = np.sort(rng.integers(0, n_rules + 1, n_groups + 1))
    group = rng.integers(-1, n_groups, len(rows))
    expected = []
    for row, g in zip(rows, group.tolist(), strict=True):
        here = start[cuts[g] : cuts[g + 1] + 1] if g >= 0 else [0]
        found = plain_answer(tests, here, ids, row) if g >= 0 else 0
        expected.append(1000 if g < 0 else 77 if found == len(here) - 1 else 10 * (cuts[g] + found))
    arrays = cuts.astype(np.int64), 10 * np.arange(n_rules + 1), start, np.append(ids, 0)
    for x, n_threads in ((rows, 1), (rows.astype(np.float32), 3), (np.asfortranarray(rows), 2), (rows[::-1][::-1], 1)):
        out = np.where(group < 0, 1000, -1 - group)
        match.first_rules(compiled(tests), *arrays, 77, x, out, n_threads)
        assert out.tolist() == expected


def test_lists_that_lead_outside_are_refused():
    tests, x, out = [(0, 0.0, 1.0, False, None)], np.zeros((3, 4)), np.zeros(3, dtype=np.int64)
    for start, ids in [([0, 2], [0]), ([0, 1], [1]), ([0, 1], [-1]), ([1, 1], [0]), ([0, 1, 0], [0])]:
        by_rule = np.zeros(len(start), dtype=np.int64)
        with pytest.raises(ValueError, match="condition"):
            match.first_rules_by_words(compiled(tests), np.array(start), np.array(ids), x, by_rule, out, True, 1)
    listed, two = (compiled(tests), np.array([0, 1]), np.array([0])), np.zeros(2, dtype=np.int64)
    for rows, by_rule in ((x[:, :3], two), (x, two[:1]), (x[:2], two)):
        with pytest.raises(ValueError, match="shapes"):
            match.first_rules_by_words(*listed, rows, by_rule, out, True, 1)
    with pytest.raises(ValueError, match="contiguous"):
        match.first_rules_by_words(*listed, np.zeros((3, 8))[:, :4], two, out, False, 1)


@given(lists(), st.sampled_from([np.nan, np.inf, -np.inf, 1.0]), st.integers(0, 2**32 - 1))
def test_values_are_checked_while_rows_are_matched(case, odd, seed):
    """The answers, and that all numbers are finite; or that one is not, wherever it is, tested or not."""
    tests, start, ids, rows = case
    rows = np.nan_to_num(rows)
    by_rule = np.arange(len(start))
    for x in (rows, rows.astype(np.float32)):
        if len(x) > 0:
            x[tuple(np.random.default_rng(seed).integers(0, x.shape))] = odd
        out = np.full(len(x), -7)
        finite = match.first_rules_by_words(compiled(tests), start, ids, x, by_rule, out, False, 2)
        assert finite == bool(np.isfinite(x).all())
        if finite:
            assert out.tolist() == answers(case, x).tolist()
