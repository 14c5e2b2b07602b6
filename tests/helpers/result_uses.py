"""Everything that can be done with a result, by its type: what a file that was loaded may lead astray."""

import warnings
from functools import partial

import numpy as np
from saved_results import (
    GRAM,
    HOLES,
    MIXED,
    NEW,
    NEW_GRAM,
    NEW_HOLES,
    NEW_MIXED,
    NEW_SPARSE,
    SPARSE,
    N,
    X,
    Y,
)

from kernelrules import bounds, erm, export, kernels, prune, results, ridge, rules, svm, tree
from kernelrules.report.models import named
from kernelrules.report.models import predict as predict_table

DATA = {  # by what an example was fitted to: its rows, and new ones
    "gram": (GRAM, NEW_GRAM),
    "sparse": (SPARSE, NEW_SPARSE),
    "mixed": (MIXED, NEW_MIXED),
    "holes": (HOLES, NEW_HOLES),
    "numbers": (X, NEW),
}


def data_of(name):
    """The data that suit an example of saved_results.py."""
    for words, kind in (
        (("precomputed",), "gram"),
        (("sparse",), "sparse"),
        (("of categories", "many rules"), "mixed"),
        (("surrogates", "fractions", "linear leaves", "additive rules of numbers"), "holes"),
    ):
        if any(word in name for word in words) and not name.startswith("many rules of"):
            return DATA[kind]
    return DATA["mixed"] if name == "additive rules" else DATA["numbers"]


def labels_for(found, n=N):
    """Labels, or numbers, that a model may have been fitted to."""
    if getattr(found, "classes", None) is not None:
        return found.classes[np.arange(n) % len(found.classes)]
    return Y[:n] if getattr(found, "n_outputs", 1) == 1 else np.column_stack([Y[:n]] * found.n_outputs)


def shown(found):
    """As text and in a notebook."""
    return repr(found), str(found), found._repr_html_() if hasattr(found, "_repr_html_") else ""


def of_tree(t, rows, new):
    """Of a tree."""
    y = labels_for(t)
    uses = {
        "predict": lambda: tree.predict(t, new),
        "predict_proba": lambda: tree.predict_proba(t, new),
        "apply": lambda: tree.apply(t, new),
        "decision_path": lambda: tree.decision_path(t, new),
        "importance": lambda: tree.importance(t),
        "depth": lambda: (t.depth, t.n_leaves, t.n_nodes),
        "left_levels": lambda: [t.left_levels(node) for node in np.flatnonzero(t.subset_start >= 0)],
        "chi2": lambda: prune.chi2(t, 0.1),
        "cost_complexity_path": lambda: shown(prune.cost_complexity_path(t)),
        "cost_complexity": lambda: prune.cost_complexity(t, 0.01),
        "to_size": lambda: prune.to_size(t, 2),
        "snip": lambda: prune.snip(t, [0]),
        "mdl": lambda: prune.mdl(t),
        "pessimistic": lambda: prune.pessimistic(t),
        "raising": lambda: prune.pessimistic(t, raising=True, X=rows, y=y),
        "reduced_error": lambda: prune.reduced_error(t, rows, y),
        "extract": lambda: of_rules_all(rules.extract(t), new),
        "extract, approximately": lambda: rules.extract(t, approximate=True),
        "of_tree": lambda: bounds.of_tree(t, rows, y),
    }
    return uses | exported(t)


def of_rules_all(rs, new):
    """All that a list is good for, at once."""
    return rules.predict(rs, new), rules.coverage(rs, new), str(rs)


def exported(t):
    """Of a tree or a list."""
    writers = (
        export.to_json, export.to_text, export.to_dot, export.to_mermaid, export.to_python, export.to_sql,
    )  # fmt: skip
    return {write.__name__: partial(write, t) for write in writers}


def of_rules(rs, rows, new):
    """Of a rule list."""
    uses = {
        "predict": lambda: rules.predict(rs, new),
        "predict_proba": lambda: rules.predict_proba(rs, new),
        "coverage": lambda: rules.coverage(rs, new),
        "decision_list": lambda: rules.decision_list(rs),
        "simplify": lambda: rules.simplify(rs, rows, labels_for(rs)),
        "parts": lambda: (rs[:1], list(rs), rs.n_conditions),
    }
    return uses | exported(rs)


def of_additive(found, rows, new):
    """Of additive rules."""
    return {
        "predict": lambda: rules.predict(found, new),
        "predict_proba": lambda: rules.predict_proba(found, new),
        "decision": lambda: rules.decision(found, new),
        "at": lambda: str(found.at(0)),
        "sizes": lambda: (found.importance, found.n_conditions, found.n_terms, len(found)),
    }


def of_machine(model, rows, new):
    """Of a support vector machine."""
    uses = {
        "decision": lambda: svm.decision(model, new),
        "predict": lambda: svm.predict(model, new),
        "margin": lambda: svm.margin(model),
        "slacks": lambda: svm.slacks(model, rows, labels_for(model)),
        "calibrate": lambda: svm.calibrate(model, rows, labels_for(model)),
        "of_model": lambda: bounds.of_model(model, rows, labels_for(model)),
    }
    if model.classes is not None:
        uses["warm start"] = lambda: svm.svc(
            rows, labels_for(model), kernel=model.kernel, multiclass=model.multiclass, warm_start=model, max_iter=50
        )
    return uses


def of_ridge(fit, rows, new):
    """Of a ridge regression."""
    return {
        "predict": lambda: ridge.predict(fit, new),
        "posterior": lambda: shown(ridge.posterior(fit, new)),
        "log_marginal_likelihood": lambda: ridge.log_marginal_likelihood(fit),
    }


def of_erm(fit, rows, new):
    """Of a machine for a smooth loss."""
    return {
        "decision": lambda: erm.decision(fit, new),
        "predict": lambda: erm.predict(fit, new),
        "predict_proba": lambda: erm.predict_proba(fit, new),
        "of_model": lambda: bounds.of_model(fit, rows, labels_for(fit)),
    }


def of_prune_cv(cv, rows, new):
    """Of a tree chosen by cross-validation."""
    return {
        "table": lambda: (cv.cp, cv.rel_error, cv.xerror, cv.xstd),
        "tree": lambda: tree.predict(cv.tree, new),
        "grown": lambda: prune.to_size(cv.grown, 2),
    }


def of_table(model, rows, new):
    """Of a model of a table; its columns as the command line codes them."""
    coded = np.zeros((5, len(model.columns)))
    uses = {"predict": lambda: predict_table(model, coded)}
    return uses | {"named": lambda: export.to_text(named(model))} if model.learner in ("tree", "rules") else uses


_BY_TYPE = {
    results.Tree: of_tree,
    results.RuleList: of_rules,
    results.AdditiveRules: of_additive,
    results.SVMModel: of_machine,
    results.RidgeFit: of_ridge,
    results.ErmFit: of_erm,
    results.PruneCV: of_prune_cv,
    results.TableModel: of_table,
    results.CalibratedSVM: lambda found, rows, new: {"predict_proba": lambda: svm.predict_proba(found, new)},
    results.TuneResult: lambda found, rows, new: {"model": lambda: svm.predict(found.model, new)},
    results.FeatureRidge: lambda fit, rows, new: {"predict": lambda: ridge.predict(fit, new)},
    results.RidgePath: lambda path, rows, new: {
        "at": lambda: [ridge.predict(ridge.at(path, place), new) for place in range(len(path.lams))],
        "best": lambda: ridge.at(path),
    },
}


def uses_of(found, rows, new):
    """{name: function without arguments} of all that can be done with a result, or with several in a collection."""
    if isinstance(found, (tuple, list, dict)):
        entries = found.items() if isinstance(found, dict) else enumerate(found)
        return {f"{i}: {name}": use for i, one in entries for name, use in uses_of(one, rows, new).items()}
    uses = {"shown": lambda: shown(found)}
    if isinstance(found, kernels.FeatureMap):
        uses["transform"] = lambda: found.transform(new)
    if type(found) in _BY_TYPE:
        uses |= _BY_TYPE[type(found)](found, rows, new)
    return uses


def clear(use):
    """Whether a function answers, or says what is wrong with a ValueError; what it raises otherwise."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use()
    except ValueError:
        return None
    except Exception as error:
        return error
    return None


def pictures_of(found, rows):
    """The same of all that can be drawn of a result; empty without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return {}
    from kernelrules import plot

    def drawn(draw, *data, **options):
        figure = Figure()
        draw(found, *data, ax=figure.add_subplot(), **options)

    kinds = {
        plot.tree: (results.Tree, results.PruneCV),
        plot.importances: (results.Tree, results.PruneCV),
        plot.rules: (results.RuleList,),
        plot.cv_curve: (results.PruneCV, results.TuneResult, results.AdditiveRules),
        plot.path: (results.PrunePath, results.RidgePath, results.AdditiveRules),
    }
    pictures = {draw.__name__: partial(drawn, draw) for draw, drawable in kinds.items() if isinstance(found, drawable)}
    if isinstance(found, (results.Tree, results.RuleList, results.SVMModel, results.RidgeFit, results.ErmFit)):
        pictures["regions"] = lambda: drawn(plot.regions, rows, columns=(0, 1), n_grid=5)
    return {f"plot.{name}": draw for name, draw in pictures.items()}
