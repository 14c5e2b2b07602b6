"""A small table with everything that real ones have, as the text of a CSV file."""

import csv
import io

import numpy as np

HOSTILE = '<script>alert("x")</script> & co'


def table(n=200, seed=0, kind="classes"):
    """Rows with numbers, categories, missing values, a hostile name, and columns that teach nothing."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n))
    colour = rng.choice(["red", "green", "<b>blue</b>"], size=n)
    signal = x + (colour == "red") + 0.4 * rng.normal(size=n)
    if kind == "classes":
        target = np.where(signal > 0.5, "yes", "no")
    elif kind == "three":
        target = np.array(["low", "middle", "high"])[np.digitize(signal, [-0.3, 0.8])]
    else:
        target = [f"{value:.4f}" for value in 10 * signal + 100]
    gone = rng.random(n) < 0.1
    columns = {
        HOSTILE: [f"{value:.3f}" for value in x],
        "colour": np.where(rng.random(n) < 0.05, "?", colour),
        "noise": np.where(gone, "NA", [f"{value:.3f}" for value in z]),
        "name": [f"person {i}" for i in range(n)],
        "unit": ["cm"] * n,
        "empty": [""] * n,
        "target": target,
    }
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
