"""Every result shows itself: `repr` in a short line, and HTML that is well formed and escapes what data brought."""

import dataclasses
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse

from kernelrules import bounds, erm, graph, kernels, prune, results, ridge, rules, svm, tree
from kernelrules.results.show import Result, evenly_spaced, short, table, value_text

HOSTILE = "<script>alert('1 & 2')</script>\n\"x\" → y"
OTHER = "<img src=x onerror=alert(2)>"
ALLOWED = {"div", "b", "table", "tr", "th", "td", "ul", "li", "span"}


def made():
    """One of each type, with names and labels that try to break out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, HOSTILE, OTHER)
    X[:3, 0] = np.nan
    grown = dataclasses.replace(
        tree.grow(X, y, missing="surrogate", max_leaves=5), feature_names=(HOSTILE, OTHER), surrogates=None
    )
    with_surrogates = tree.grow(X, y, missing="surrogate", max_leaves=5)
    X[:3, 0] = 0.0
    model = svm.svc(X, y)
    listed = rules.induce(X, y, feature_names=[HOSTILE, OTHER], rng=0)
    fitted = ridge.fit(X, X[:, 1], 0.1, kernels.RBF(1.0))
    cv = prune.cross_validate(X, y, folds=3, rng=0)
    additive = rules.additive(
        X, y, feature_names=[HOSTILE, OTHER], linear=True, max_rules=20, lams=[0.1, 0.01], folds=None, rng=0
    )
    found = [
        grown, with_surrogates.surrogates, model, model.certificate, listed, listed[0], listed[0].conditions[0],
        rules.coverage(listed, X), svm.slacks(model, X, y), svm.calibrate(model, X, y),
        svm.tune(X, y, Cs=[1, 10], gammas=[0.1, 1.0], folds=2, rng=0), fitted, ridge.posterior(fitted, X),
        ridge.path(X, X[:, 1], [0.1, 1.0], kernels.RBF(1.0)), erm.fit(X, y, 0.1, kernels.RBF(1.0)),
        graph.fit(graph.knn_graph(X, 3), y[:9], 0.1, np.arange(9)), cv, prune.cost_complexity_path(cv.grown),
        bounds.of_tree(grown, X, y), results.Estimate(0.5, 0.1, 10), additive, additive.linear[0],
        ridge.fit_blocks([(X, X[:, 1])], 0.1), results.LinearFunction((0, 1), (1.0, -2.0), 3.0, 4.0),
    ]  # fmt: skip
    return {type(each).__name__: each for each in found}


MADE = made()


class Reader(HTMLParser):
    """Tags as they open and close, and the text between them."""

    def __init__(self, source):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert {name for name, _ in attrs} <= {"style", "colspan"}
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("name", sorted(set(results.__all__) - {"ConvergenceWarning", "TableModel"}))  # see test_cli
def test_every_type_shows_itself(name):
    kind = getattr(results, name)
    assert issubclass(kind, (Result, tuple)), f"{name} must be a subclass of results.show.Result (with repr=False)"
    assert "_repr_html_" in dir(kind)
    line = repr(MADE[name])
    assert line.startswith(f"{name}(")
    assert len(line) < 200
    assert len(line.splitlines()) == 1
    read = Reader(MADE[name]._repr_html_())
    assert read.open == []
    assert read.seen <= ALLOWED
    assert read.text.startswith(line)


def test_one_is_singular():
    x = np.arange(8.0)[:, None]
    whole, stump = tree.grow(x, x[:, 0] > 3), tree.grow(x, x[:, 0] > 3, max_depth=0)
    assert repr(whole) == "Tree(gini, 2 leaves, depth 1, 1 feature)"
    assert repr(stump) == "Tree(gini, 1 leaf, depth 0, 1 feature)"
    listed = dataclasses.replace(MADE["RuleList"], rules=MADE["RuleList"].rules[:1])
    assert repr(listed).startswith("RuleList(1 ordered rule, ")
    many = MADE["AdditiveRules"]
    first = np.arange(many.coefficients.shape[-1]) == 0
    single = dataclasses.replace(many, coefficients=np.ones_like(many.coefficients) * first, n_features=1)
    assert "1 term at lam" in repr(single)
    assert "1 feature" in repr(single)
    assert f"{len(many)} terms at lam" in repr(many)


@pytest.mark.parametrize("name", ["Tree", "RuleList", "PruneCV", "SVMModel", "ErmFit"])
def test_hostile_labels_arrive_as_text(name):
    """The label is there for the reader to see, and is no tag."""
    shown = MADE[name]._repr_html_()
    assert "alert(" in Reader(shown).text
    assert "<script" not in shown
    assert "<img" not in shown


def test_hostile_column_names_arrive_as_text():
    for name in ("Tree", "RuleList"):
        asked = Reader(MADE[name]._repr_html_()).text
        assert "alert('1 & 2')" in asked


def test_a_tree_is_a_nested_list_of_its_leaves():
    grown = MADE["Tree"]
    shown = grown._repr_html_()
    assert shown.count("<li>") == grown.n_nodes - 1
    assert shown.count("<b>") == grown.n_leaves + 1
    root = prune.to_size(grown, 1)
    assert "ALWAYS" in root._repr_html_()


def test_of_a_deep_tree_the_first_splits_are_listed_and_leaves_counted():
    x = np.arange(400.0)[:, None]
    grown = tree.grow(x, (np.arange(400) % 2).astype(str))
    shown = grown._repr_html_()
    listed = Reader(shown)
    assert listed.open == []
    below = [int(part.split("… ")[1].split(" ")[0]) for part in shown.split("<li>") if "… " in part]
    named = shown.count("<b>") - 1
    assert named + sum(below) == grown.n_leaves
    assert len(shown) < 40_000


def test_a_rule_list_is_a_table_with_support():
    listed = MADE["RuleList"]
    shown = listed._repr_html_()
    assert shown.count("<tr") == 1 + len(listed) + (not listed.complete)
    for rule in listed:
        assert f"{rule.support:.3f}" in shown


def test_long_lists_say_how_many_more():
    rule = MADE["RuleList"][0]
    many = dataclasses.replace(MADE["RuleList"], rules=(rule,) * 70)
    assert "… 20 more" in many._repr_html_()


def test_cross_validation_marks_what_was_chosen():
    cv = MADE["PruneCV"]
    assert f"<b>{cv.n_leaves[cv.chosen]}</b>" in cv._repr_html_()


def test_lines_say_what_matters():
    model, cv = MADE["SVMModel"], MADE["PruneCV"]
    assert f"{len(model.support)} of 40 points support" in repr(model)
    assert f"{cv.n_leaves[cv.chosen]} of {cv.grown.n_leaves} leaves" in repr(cv)
    stopped = dataclasses.replace(model.certificate, converged=False)
    assert "not converged" in repr(dataclasses.replace(model, certificate=stopped))
    assert "not converged" in repr(stopped)


def test_a_condition_is_written_as_it_is_made():
    for condition in (
        results.Condition(3),
        results.Condition(0, 0.1 + 0.2, 2.5, missing=True),
        results.Condition(1, categories=(-1, 2)),
    ):
        assert eval(repr(condition), {"Condition": results.Condition}) == condition
    assert len(repr(results.Condition(0, categories=tuple(range(20_000))))) < 200


def test_a_kernel_with_a_long_name_is_cut():
    class Wordy:
        def __repr__(self):
            return "wordy " * 200

    model = dataclasses.replace(MADE["SVMModel"], kernel=Wordy())
    assert len(repr(model)) < 200
    assert Reader(model._repr_html_()).open == []


def test_values_in_a_table():
    assert value_text(np.array([1, 2])) == "[1, 2]"
    assert value_text(np.arange(12.0).reshape(3, 4)) == "float64 3 × 4, 0 to 11"
    assert value_text(np.full((3, 4), np.nan)) == "float64 3 × 4, all nan"
    assert value_text(np.zeros((0, 3))) == "float64 0 × 3"
    assert value_text(sparse.csr_array(np.eye(2))) == "csr_array 2 × 2, 2 entries"
    assert value_text(True) == "yes"
    assert value_text(None) == "None"
    assert value_text(("a",) * 9) == "9 entries"
    assert value_text({"C": 10.0}) == "C = 10"
    assert short("a\nb" * 50, 10) == "a ba ba b…"
    assert short("one two three", 5) == "one…"
    assert table((), []) == ""
    assert evenly_spaced(3) == [0, 1, 2]
    places = evenly_spaced(1000, 17)
    assert {0, 17, 999} <= set(places)
    assert len(places) <= 31


def test_a_type_that_says_nothing_of_itself_shows_its_fields():
    @dataclasses.dataclass(frozen=True, repr=False)
    class Plain(Result):
        size: int
        name: str
        grid: np.ndarray
        nothing: object = None
        large: np.ndarray = dataclasses.field(default=None, repr=False)

    plain = Plain(3, "<i>" * 99, np.arange(12), large=np.zeros(9))
    assert repr(plain).startswith("Plain(size 3, name <i><i>")
    assert len(repr(plain)) < 200
    read = Reader(plain._repr_html_())
    assert "i" not in read.seen
    assert "int64 12, 0 to 11" in read.text
    assert "nothing" not in read.text
    assert "large" not in read.text
