"""What every picture begins with: matplotlib, loaded when it is needed, the axes to draw on, and the colours.

Axes that a caller gives are drawn on and given back; without any, pyplot makes a figure, as people expect of a
function that plots. Nothing here shows, closes or saves a figure, or changes matplotlib's settings.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

__all__ = [
    "BLUE",
    "DARK",
    "GREEN",
    "GREY",
    "MARKERS",
    "RED",
    "axes_for",
    "class_colours",
    "frameless",
    "matplotlib",
    "one_line",
]

BLUE, RED, GREEN, DARK, GREY = "#1f5fa8", "#c44e52", "#2e8b57", "#333333", "#888888"
MARKERS = "os^Dv<>pP*"
_CLASSES = (BLUE, RED, GREEN, "#e08e2b", "#8a5fa8", "#4fa3a5", "#a8763e", "#d36fa4", "#7f7f7f", "#a5b334")


def matplotlib(module: str) -> Any:
    """Import a module of matplotlib, such as "patches"."""
    try:
        return importlib.import_module(f"matplotlib.{module}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "matplotlib":
            raise
        raise ImportError("kernelrules.plot draws with matplotlib: pip install 'kernelrules[plot]'") from error


def axes_for(ax: Any, size: tuple[float, float] = (5.2, 3.9), *, bare: bool = False) -> Any:
    """Return the given axes, or those of a new figure; with `bare`, they fill the figure."""
    if ax is None:
        pyplot = matplotlib("pyplot")
        if bare:
            return pyplot.figure(figsize=size).add_axes((0.0, 0.0, 1.0, 1.0))
        return pyplot.subplots(figsize=size, layout="constrained")[1]
    if not isinstance(ax, matplotlib("axes").Axes):
        raise TypeError(f"ax must be an Axes of matplotlib or None, got {type(ax).__name__}")
    if "top" not in ax.spines or hasattr(ax, "get_zlim"):  # polar ones, maps; three dimensions
        raise ValueError(f'ax must have two straight axes, got axes of the projection "{ax.name}"')
    return ax


def frameless(ax: Any) -> None:
    """Remove the upper and the right line of the frame."""
    ax.spines[["top", "right"]].set_visible(False)


def class_colours(n: int) -> np.ndarray:
    """Return a colour for each of n classes, (n, 3); after ten they repeat in paler tones."""
    to_rgb = matplotlib("colors").to_rgb
    colours = np.array([to_rgb(_CLASSES[k % len(_CLASSES)]) for k in range(n)]).reshape(n, 3)
    rounds = np.arange(n) // len(_CLASSES)
    return 1 - (1 - colours) * (0.6**rounds)[:, None]


def one_line(text: str, most: int = 40) -> str:
    """Return a text without unprintable characters, shortened in the middle if it is long.

    What a rule predicts, and the threshold of a question, stand at the end.
    """
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    end = most // 3
    return line if len(line) <= most else f"{line[: most - end - 1]}…{line[-end:]}"
