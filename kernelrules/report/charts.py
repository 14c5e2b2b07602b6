"""Charts of the report: scores, error against tree size, error against λ, and bar charts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelrules.report.study import Study
from kernelrules.report.svg import PALETTE, Axis, Drawing, text_width
from kernelrules.results import PruneCV, RidgePath
from kernelrules.results.show import short

__all__ = ["bars", "pruning_curve", "ridge_curve", "scores"]

_WIDTH = 520.0
_GREY, _INK, _LIGHT = "#8593a3", "#1d2733", "#e3e8ee"


def scores(study: Study) -> str:
    """Return a chart with one row per learner: the score with its standard error, and small circles for the folds.

    A baseline far from the other scores is drawn as an arrow with its value.
    """
    is_share = study.problem.classes is not None
    what = "accuracy" if is_share else "root mean squared error"
    ends = {
        name: (min(*o.score.by_fold, o.score.value - o.score.se), max(*o.score.by_fold, o.score.value + o.score.se))
        for name, o in study.outcomes.items()
    }
    learned = [ends[name] for name in ends if name != "baseline"] or [ends["baseline"]]
    low, high = min(end[0] for end in learned), max(end[1] for end in learned)
    is_near = low - (high - low) <= ends["baseline"][0] and ends["baseline"][1] <= high + (high - low)
    if is_near:
        low, high = min(low, ends["baseline"][0]), max(high, ends["baseline"][1])
    pad = 0.06 * (high - low or 1.0)
    bottom = 14 + 36 * len(ends)
    text = "; ".join(f"{o.title} {o.score.value:.4g}" for o in study.outcomes.values())
    drawing = Drawing(_WIDTH, bottom + 50, f"Held-out {what} of every learner", text)
    x = Axis(max(low - pad, 0.0), min(high + pad, 1.0) if is_share else high + pad, 190, _WIDTH - 40)
    for tick in x.ticks(5):
        drawing.line(x(tick), 8, x(tick), bottom, stroke=_LIGHT)
        drawing.text(
            x(tick), bottom + 15, _percent(tick) if is_share else _compact(tick), anchor="middle", class_="dim"
        )
    drawing.text((190 + _WIDTH - 40) / 2, bottom + 38, f"{what} of held-out rows", anchor="middle", class_="dim")
    for place, (name, outcome) in enumerate(study.outcomes.items()):
        y, score = 32 + 36 * place, outcome.score
        colour = _GREY if name == "baseline" else PALETTE[0]
        drawing.text(178, y, outcome.title, anchor="end", class_="strong" if name == study.best else None)
        if name == "baseline" and not is_near:
            value = _percent(score.value) if is_share else _compact(score.value)
            below = score.value < low
            place_of_arrow = 196 if below else _WIDTH - 28
            drawing.text(place_of_arrow, y, f"◂ {value}" if below else f"{value} ▸", class_="dim",
                         anchor="start" if below else "end")  # fmt: skip
            continue
        for value in score.by_fold:
            drawing.add("circle", cx=x(value), cy=y, r=3.6, fill="none", stroke=colour, stroke_opacity=0.6)
        drawing.line(x(score.value - score.se), y, x(score.value + score.se), y, stroke=colour, stroke_width=4)
        tip = f"{outcome.title}: {score.value:.4f} ± {score.se:.4f}"
        drawing.add("circle", tip=tip, cx=x(score.value), cy=y, r=7.5, fill=colour, stroke="#fff", stroke_width=2)
    return str(drawing)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _compact(number: float) -> str:
    """Format a number shortly: 0.25, 1200, 3.4e6."""
    return f"{number:.4g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


def _left(y: Axis, percent: bool) -> float:
    """Return the left edge of a chart that leaves space for the tick labels, also in the larger font of a phone."""
    longest = max(len(_percent(tick) if percent else _compact(tick)) for tick in y.ticks(5))
    return 18 + text_width("0" * longest, 18)


def _frame(drawing: Drawing, x: Axis, y: Axis, x_label: str, y_label: str, *, percent: bool = False) -> None:
    for tick in y.ticks(5):
        drawing.line(x.start, y(tick), x.end, y(tick), stroke=_LIGHT)
        label = _percent(tick) if percent else _compact(tick)
        drawing.text(x.start - 8, y(tick), label, anchor="end", class_="dim")
    for tick in x.ticks(6):
        drawing.line(x(tick), y.start, x(tick), y.start + 5, stroke=_GREY)
        drawing.text(x(tick), y.start + 17, _compact(tick), anchor="middle", class_="dim")
    drawing.line(x.start, y.start, x.end, y.start, stroke=_GREY)
    drawing.text((x.start + x.end) / 2, y.start + 38, x_label, anchor="middle", class_="dim")
    drawing.text(4, y.end - 20, y_label, class_="dim")


def pruning_curve(found: PruneCV) -> str:
    """Return a chart of the cross-validated error of nested trees, with standard errors and the selected size."""
    percent = found.measure == "zero_one"
    best = int(found.error.argmin())
    line = float(found.error[best] + found.se[best])
    n, error, se, risk = (values[::-1] for values in (found.n_leaves, found.error, found.se, found.risk))
    chosen = int(found.n_leaves[found.chosen])
    drawing = Drawing(
        _WIDTH, 330, "Error against the size of the tree",
        f"Cross-validated error falls from {error[0]:.4g} with one leaf to {error.min():.4g} with "
        f"{found.n_leaves[best]} leaves; {chosen} leaves were chosen, within one standard error of that.",
    )  # fmt: skip
    y = Axis(0.0, float((error + se).max()) * 1.15 or 1.0, 270, 34)
    x = Axis(1, int(n[-1]), _left(y, percent), _WIDTH - 18, log=True)
    what = "error of held-out rows" if percent else "squared error of held-out rows"
    _frame(drawing, x, y, "leaves", what, percent=percent)
    drawing.area(x(n), y(np.maximum(error - se, 0.0)), y(error + se), fill=PALETTE[0], fill_opacity=0.16)
    drawing.path(x(n), y(risk), stroke=_GREY, stroke_width=1.5, stroke_dasharray="2 3")
    drawing.path(x(n), y(error), stroke=PALETTE[0], stroke_width=2.5)
    drawing.line(x.start, y(line), x.end, y(line), stroke=PALETTE[1], stroke_dasharray="6 4", stroke_width=1.5)
    at, height = float(x(chosen)), float(y(found.error[found.chosen]))
    drawing.line(at, y.start, at, y.end, stroke=PALETTE[1], stroke_width=1.5)
    drawing.add("circle", tip=repr(found), cx=at, cy=height, r=6.5, fill=PALETTE[1], stroke="#fff", stroke_width=2)
    right = at < (x.start + x.end) / 2
    text = f"chosen: {chosen} leaves" if chosen > 1 else "chosen: 1 leaf"
    anchor = "start" if right else "end"
    drawing.text(at + (10 if right else -10), y.end + 10, text, anchor=anchor, class_="strong")
    return str(drawing)


def ridge_curve(path: RidgePath) -> str:
    """Return a chart of the leave-one-out error against λ."""
    drawing = Drawing(
        _WIDTH, 270, "Leave-one-out error against λ",
        f"Smallest at λ = {path.lams[path.best]:.2g}: {path.loo_errors[path.best]:.4g}",
    )  # fmt: skip
    order = np.argsort(path.lams)
    lams, errors = path.lams[order], path.loo_errors[order]
    spread = float(errors.max() - errors.min()) or float(errors.max()) or 1.0
    y = Axis(max(float(errors.min()) - 0.1 * spread, 0.0), float(errors.max()) + 0.05 * spread, 210, 34)
    x = Axis(float(lams[0]), float(lams[-1]), _left(y, percent=False), _WIDTH - 18, log=True)
    _frame(drawing, x, y, "λ", "leave-one-out squared error")
    drawing.path(x(lams), y(errors), stroke=PALETTE[0], stroke_width=2.5)
    at, height = float(x(path.lams[path.best])), float(y(path.loo_errors[path.best]))
    drawing.add("circle", cx=at, cy=height, r=6.5, fill=PALETTE[1], stroke="#fff", stroke_width=2)
    return str(drawing)


def bars(names: Sequence[str], values: Sequence[float], title: str) -> str:
    """Return a bar chart; bars of negative values point to the left."""
    numbers = np.asarray(values, dtype=np.float64)
    both = bool((numbers < 0).any())
    height = 14 + 26 * len(numbers)
    text = "; ".join(f"{name} {value:.3g}" for name, value in zip(names, numbers, strict=True))
    drawing = Drawing(_WIDTH, height, title, text)
    left = 216.0
    below, above = max(-float(numbers.min(initial=0.0)), 0.0), max(float(numbers.max(initial=0.0)), 0.0)
    scale = (_WIDTH - 96 - left) / (below + above or 1.0)
    zero = left + below * scale
    for place, (name, value) in enumerate(zip(names, numbers.tolist(), strict=True)):
        y = 20 + 26 * place
        end = zero + value * scale
        drawing.add("rect", tip=f"{name}: {value:.4g}", x=min(zero, end), y=y - 8, width=max(abs(end - zero), 1),
                    height=16, rx=3, fill=PALETTE[0] if value >= 0 else PALETTE[1])  # fmt: skip
        drawing.text(left - 10, y, short(name, 18), anchor="end")
        drawing.text(max(end, zero) + 7, y, _compact(float(f"{value:.3g}")), class_="dim")
    if both:
        drawing.line(zero, 4, zero, height - 4, stroke=_INK, stroke_opacity=0.4)
    return str(drawing)
