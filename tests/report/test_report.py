"""The study behind the report, and the page: scores against a slow twin, nothing leaks, all text escaped."""

import math
import re
from dataclasses import replace
from datetime import datetime
from html.parser import HTMLParser

import numpy as np
import pytest
from csv_table import HOSTILE, table

from kernelrules import bounds, kernels, rules, svm, tree
from kernelrules.report import read_sheet, render, run_study
from kernelrules.report.models import LEARNERS, Settings, named, predict
from kernelrules.report.page import _n_copies
from kernelrules.report.problem import pose
from kernelrules.report.progress_display import Bar, Line, Silent, shown_progress
from kernelrules.report.reading import Sheet
from kernelrules.report.sections import _machine_bounds
from kernelrules.report.svg import Axis, Drawing
from kernelrules.report.tree_picture import draw_tree

NOW = datetime(2026, 1, 2, 3, 4)


def problem_of(folder, **options):
    path = folder / "small & <odd>.csv"
    path.write_text(table(**options), encoding="utf-8")
    return pose(read_sheet(path), "target")


@pytest.fixture(scope="module", params=["classes", "three", "numbers"])
def study(request, tmp_path_factory):
    n = {"classes": 200, "three": 90, "numbers": 90}[request.param]
    return run_study(problem_of(tmp_path_factory.mktemp("data"), kind=request.param, n=n), folds=3, seed=4)


@pytest.fixture(scope="module")
def page(study):
    return render(study, command='kernelrules report "<x>"', now=NOW)


# ---- the study ----------------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_held_out_predictions(study):
    y, n = study.problem.y, len(study.problem.y)
    for outcome in study.outcomes.values():
        score = outcome.score
        if study.problem.classes is not None:
            right = [float(a == b) for a, b in zip(outcome.predictions, y, strict=True)]
            share = sum(right) / n
            assert score.value == pytest.approx(share)
            assert score.se == pytest.approx(math.sqrt(share * (1 - share) / (n - 1)))
            found = [
                sum(r for r, label in zip(right, y, strict=True) if label == one) / sum(label == one for label in y)
                for one in study.problem.classes
            ]
            assert score.other == pytest.approx(sum(found) / len(found))
            sizes = [sum(label == one for label in y) for one in study.problem.classes]
            variances = [share * (1 - share) / (size - 1) for share, size in zip(found, sizes, strict=True)]
            assert score.other_se == pytest.approx(math.sqrt(sum(variances)) / len(found))
        else:
            squares = [(a - b) ** 2 for a, b in zip(outcome.predictions, y, strict=True)]
            assert score.value == pytest.approx(math.sqrt(sum(squares) / n))
            assert score.other == pytest.approx(1 - sum(squares) / n / y.var())
            spread = math.sqrt(sum((square - sum(squares) / n) ** 2 for square in squares) / (n - 1))
            assert score.other_se == pytest.approx(spread / math.sqrt(n) / y.var())
        assert len(score.by_fold) == 3
        assert score.behind >= 0
    assert study.outcomes[study.best].score.behind == 0


def test_learners_learn(study):
    """The signal is one column and one category: all but a linear model of thirds come near to the noise."""
    base = study.outcomes["baseline"].score
    for name in LEARNERS:
        score = study.outcomes[name].score
        better = score.value - base.value if study.problem.classes is not None else base.value - score.value
        assert better > 4 * score.se, name
    assert not study.remarks


def test_baseline_is_the_commonest_class_or_the_mean_of_the_other_folds(study):
    y, told = study.problem.y, study.outcomes["baseline"].predictions
    for fold in range(3):
        rest = y[study.folds != fold].tolist()
        if study.problem.classes is not None:
            expected = max(sorted(set(rest)), key=rest.count)
            assert set(told[study.folds == fold]) == {expected}
        else:
            np.testing.assert_allclose(told[study.folds == fold], sum(rest) / len(rest))


def test_held_out_rows_decide_nothing(tmp_path):
    """Other targets and values in one fold: the models that predict this fold stay the same, bit by bit."""
    problem = problem_of(tmp_path, n=80)
    folds = np.arange(80) % 3
    held = folds == 1
    before = run_study(problem, folds=folds)
    X, y = problem.X.copy(), problem.y.copy()
    y[held] = np.where(y[held] == "yes", "no", "yes")
    X[held, 2] = 1000 + np.arange(held.sum())
    changed = replace(problem, y=y)
    after = run_study(changed, folds=folds)
    for name in before.outcomes:
        np.testing.assert_array_equal(before.outcomes[name].predictions[held], after.outcomes[name].predictions[held])
    models = [
        [LEARNERS[name].fit(replace(problem, X=data), np.flatnonzero(~held), Settings(0)).model for name in LEARNERS]
        for data in (problem.X, X)
    ]
    for one, other in zip(*models, strict=True):
        np.testing.assert_array_equal(predict(one, X), predict(other, X))


def test_seed_and_threads(tmp_path):
    problem = problem_of(tmp_path, n=60)
    pages = [
        re.sub(
            r"[\d.]+ s<|threads</th><td>\d",
            "",
            render(run_study(problem, folds=2, seed=seed, n_threads=threads), now=NOW),
        )
        for seed, threads in ((0, 1), (0, 2), (1, 1))
    ]
    assert pages[0] == pages[1]
    assert pages[0] != pages[2]


def test_named_models_speak_of_words_and_answer_the_same(study):
    """With words in place of codes, the tree and the rules say for words what they said for codes."""
    problem = study.problem
    words = np.empty(problem.X.shape, dtype=object)
    for place, column in enumerate(problem.used):
        for i, value in enumerate(problem.X[:, place]):
            known = not math.isnan(value)
            words[i, place] = (column.levels[int(value)] if column.levels else value) if known else None
    for name, ask in (("tree", tree.predict), ("rules", rules.predict)):
        model = study.outcomes[name].fitted.model
        told = named(model)
        told = replace(told, feature_names=None) if name == "tree" else told
        np.testing.assert_array_equal(ask(told, words), predict(model, problem.X))


def test_many_rows_are_thinned_for_the_svm(monkeypatch, tmp_path):
    from kernelrules.report import models

    monkeypatch.setattr(models, "SVM_ROWS", 60)
    monkeypatch.setattr(models, "TUNING_ROWS", 30)
    problem = problem_of(tmp_path, kind="three", n=120)
    fitted = LEARNERS["svm"].fit(problem, np.arange(120), Settings(0))
    assert 55 <= len(fitted.rows) <= 66
    assert fitted.model.n_train == len(fitted.rows)
    assert set(problem.y[fitted.rows]) == set(problem.classes)


def test_a_class_of_three_rows():
    """A fold then has two of them to learn from, the fewest that can be divided once more."""
    x = np.random.default_rng(0).normal(size=63).tolist()
    y = ["rare"] * 3 + ["a" if value > 0 else "b" for value in x[3:]]
    problem = pose(Sheet("s", ("x", "t"), ([repr(value) for value in x], y), ()), "t")
    study = run_study(problem, folds=3)
    assert study.outcomes["tree"].score.value > 0.8
    assert "rare" in render(study)
    assert "rare" not in pose(Sheet("s", ("x", "t"), ([repr(value) for value in x], y), ()), "t", folds=2).classes


def test_targets_that_are_all_the_same_outside_of_a_fold():
    """What predicts the first fold has a target without any deviation to learn from."""
    rng = np.random.default_rng(0)
    x, folds = rng.normal(size=30), np.arange(30) % 3
    y = np.where(folds == 0, np.arange(30) + 0.5, 7.0)
    problem = pose(Sheet("s", ("x", "t"), ([*map(repr, x.tolist())], [*map(repr, y.tolist())]), ()), "t")
    assert problem.classes is None
    study = run_study(problem, folds=folds)
    for outcome in study.outcomes.values():
        np.testing.assert_allclose(outcome.predictions[folds == 0], 7.0, rtol=1e-6)
    assert "R²" in render(study)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_numbers_near_the_largest_there_are(kind):
    """A column up to ±1e308: its sums and squares overflow."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    y = np.where(x > 0, "up", "down") if kind == "classes" else np.where(x > 0, 5.0, 1.0) + 0.1 * rng.normal(size=60)
    cells = [repr(value) for value in (4e307 * x).tolist()]
    study = run_study(pose(Sheet("s", ("x", "t"), (cells, [str(value) for value in y.tolist()]), ()), "t"), folds=3)
    for name in ("tree", "svm", "ridge"):
        score, base = study.outcomes[name].score, study.outcomes["baseline"].score
        assert abs(score.value - base.value) > 2 * score.se, name
    text = "".join(outline_of(render(study)).text)
    assert not re.search(r"\b(nan|inf)\b", text)


@pytest.mark.parametrize("kind", ["classes", "three"])
def test_the_page_takes_no_more_threads_than_it_was_given(kind, tmp_path, monkeypatch):
    from kernelrules.report import sections

    study = run_study(problem_of(tmp_path, kind=kind, n=60), folds=2, n_threads=1, learners=["svm"])
    taken = []
    for module, name in ((sections.bounds, "of_model"), (sections.svm, "decision"), (sections.svm, "svc")):
        real = getattr(module, name)

        def noted(*given, real=real, **options):
            taken.append(options.get("n_threads"))
            return real(*given, **options)

        monkeypatch.setattr(module, name, noted)
    sections.describe(study, "svm")
    assert taken
    assert set(taken) == {1}


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_bounds_of_several_machines_are_those_of_each_by_itself(multiclass):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    options = {"C": 0.5, "kernel": kernels.RBF(0.5), "tol": 1e-6}
    found = _machine_bounds(svm.svc(X, y, multiclass=multiclass, **options), X, y)
    assert len(found) == 3
    if multiclass == "ovo":
        name, mine, sides = "a or c", y != "b", y
    else:
        name, mine, sides = "b or not", np.full(120, True), y == "b"
    alone = bounds.of_model(svm.svc(X[mine], sides[mine], **options), X[mine], sides[mine])
    assert found[name].n == alone.n
    assert found[name].total == pytest.approx(alone.total, rel=1e-4)
    assert found[name].complexity == pytest.approx(alone.complexity)


# ---- the page -----------------------------------------------------------------------------------------------------

VOID = {"meta", "link", "br"}


class Outline(HTMLParser):
    """Tags opened and closed, attributes, text; refuses what does not nest."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.attributes, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def outline_of(page):
    outline = Outline()
    outline.feed(page)
    outline.close()
    assert not outline.open
    return outline


def test_page_is_one_well_formed_document(page):
    outline = outline_of(page)
    assert outline.seen.count("h1") == 1
    assert outline.seen.count("h2") == 7
    assert ("html", "lang", "en") in outline.attributes
    assert outline.seen.count("title") >= 1
    links = {value for tag, name, value in outline.attributes if (tag, name) == ("a", "href")}
    targets = {f"#{value}" for tag, name, value in outline.attributes if name == "id"}
    assert links <= targets
    assert all(value for tag, name, value in outline.attributes if (tag, name) == ("svg", "aria-label"))


def test_page_needs_nothing_from_elsewhere(page):
    outline = outline_of(page)
    assert not {"script", "img", "iframe", "object"} & set(outline.seen)
    for _, name, value in outline.attributes:
        assert not name.startswith("on")
        if name in ("src", "href"):
            assert value.startswith(("#", "data:"))
    assert "url(" not in page
    assert "@import" not in page


def test_hostile_names_are_text(page):
    assert "<script" not in page
    assert "<b>blue</b>" not in page
    text = "".join(outline_of(page).text)
    assert HOSTILE in text
    assert "<b>blue</b>" in text
    assert "small & <odd>.csv" in text
    assert 'kernelrules report "<x>"' in text


def test_page_tells_everything(page, study):
    text = " ".join("".join(outline_of(page).text).split())
    is_classes = study.problem.classes is not None
    for outcome in study.outcomes.values():
        assert outcome.title in text
        if is_classes:
            assert f"{100 * outcome.score.value:.1f} ± {100 * outcome.score.se:.1f} %" in text
    for words in (
        "text or names", "every value is missing", "constant: always “cm”", "missing written as “?”", "seed 4", "NumPy",
        "SciPy", "time taken", "leave-one-out", "support vectors", "dual objective", "otherwise", "chosen:",
    ):  # fmt: skip
        assert words in text, words
    assert ("Margin bound" in text) == is_classes
    assert ("There is no margin bound for regression" in text) != is_classes
    behind = [outcome.score for name, outcome in study.outcomes.items() if name != study.best]
    if is_classes:
        assert all(f"{100 * score.behind:.1f} ± {100 * score.behind_se:.1f} points" in text for score in behind)
    assert ("balanced accuracy" in text) == is_classes
    assert ("R²" in text) != is_classes
    assert page.count("<svg") == 6


def test_the_page_has_the_parameters_of_the_model(page, study):
    """C too, of numbers in their units: as `kernelrules info` says them of a saved model."""
    fitted = study.outcomes["svm"].fitted
    model, grid = fitted.model.model, fitted.choice
    assert (grid.best["C"], grid.best["gamma"]) == (model.C, model.kernel.gamma)
    text = "".join(outline_of(page).text)
    assert f"γ = {model.kernel.gamma:.3g} and C = {model.C:g}, chosen" in text
    assert all(f"C = {cost:g}" in text for cost in grid.Cs)
    if study.problem.classes is None:
        np.testing.assert_allclose(grid.Cs, np.array([1, 10, 100]) * study.problem.y.std())
    assert page.count("font-weight:700;background") == 1


def test_copies_are_counted():
    X = np.array([[1.0, np.nan], [1.0, np.nan], [0.0, 2.0], [-0.0, 2.0], [1.0, 3.0]])
    assert _n_copies(X) == 2
    assert _n_copies(np.asfortranarray(X[[0, 2, 4]])) == 0


def test_rules_of_the_page_are_the_rules(page, study):
    found = study.outcomes["rules"].fitted.model.model
    text = "".join(outline_of(page).text)
    for rule in found.rules:
        assert f"{100 * rule.support:.1f} %" in text
    if found.classes is not None:
        assert f"{len(found)} rules with {found.n_conditions} conditions" in text or len(found) < 2


# ---- pictures -----------------------------------------------------------------------------------------------------


def test_a_large_tree_is_drawn_in_part():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    big = tree.grow(X, rng.choice(["a", "b"], size=400))
    drawn, whole = draw_tree(big, "big")
    assert not whole
    assert drawn.count("<path") <= 26
    drawn, whole = draw_tree(tree.grow(X, X[:, 0] > 0), "small")
    assert whole
    assert drawn.count("<path") == 2
    drawn, whole = draw_tree(tree.grow(X, X[:, 0], criterion="squared_error", max_depth=0), "one leaf")
    assert whole
    assert "<path" not in drawn


@pytest.mark.parametrize(
    ("low", "high", "log"), [(0, 1, False), (0.913, 0.947, False), (-3, 1e6, False), (1, 300, True), (1e-6, 100, True),
                             (2, 2, False), (1, 1, True)]
)  # fmt: skip
def test_axes_have_round_numbers_inside(low, high, log):
    axis = Axis(low, high, 0, 100, log=log)
    ticks = axis.ticks(6)
    assert 1 <= len(ticks) <= 6
    places = axis(ticks)
    assert (places >= -0.2).all()
    assert (places <= 100.2).all()
    assert (np.diff(places) > 0).all()
    assert all(len(f"{tick:.6g}") <= 6 for tick in ticks)


def test_drawings_escape_everything():
    drawing = Drawing(10, 10, '"<t>"', "&d")
    drawing.text(0, 0, "<script>", class_='"x')
    drawing.add("circle", tip="</title><b>", r=1)
    outline = outline_of(str(drawing))
    assert set(outline.seen) == {"svg", "text", "circle", "title"}


# ---- progress -----------------------------------------------------------------------------------------------------


class Screen:
    def __init__(self, is_terminal):
        self.is_terminal, self.said = is_terminal, ""

    def isatty(self):
        return self.is_terminal

    def write(self, text):
        self.said += text

    def flush(self):
        pass


@pytest.mark.parametrize("is_terminal", [False, True])
def test_plain_line(is_terminal, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "tqdm", None)  # as if it were not installed
    screen = Screen(is_terminal)
    progress = shown_progress(stream=screen)
    assert type(progress) is Line
    progress.begin(2)
    progress.step("first, a long one")
    progress.step("second")
    progress.end()
    assert "[1/2] first, a long one" in screen.said
    assert "[2/2] second" in screen.said
    assert screen.said.count("\n") == (1 if is_terminal else 3)


def test_bar():
    pytest.importorskip("tqdm")
    screen = Screen(True)
    progress = shown_progress(stream=screen)
    assert type(progress) is Bar
    progress.begin(2)
    progress.step("first")
    progress.callback(None)
    progress.step("second")
    progress.end()
    assert "first" in screen.said
    assert "100%" in screen.said


def test_quiet():
    assert type(shown_progress(quiet=True)) is Silent
