"""Grow one tree with rpart in R, for peers_tree.py; the time is R's elapsed time of the call, data in memory."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

# Columns of doubles one after the other, the target last. Without cross-validation, surrogates and competing splits,
# rpart does the same work as the others.
GROW = """
library(rpart)
given <- commandArgs(TRUE)
n <- as.integer(given[2]); p <- as.integer(given[3])
d <- as.data.frame(matrix(readBin(given[1], "double", n * (p + 1)), nrow = n))
names(d)[p + 1] <- "y"
if (given[4] == "class") d$y <- factor(d$y)
how <- rpart.control(cp = -1, minsplit = 2, minbucket = 1, maxdepth = as.integer(given[5]), xval = 0, maxsurrogate = 0,
                     maxcompete = 0)
best <- Inf
for (i in 1:as.integer(given[6])) {
  best <- min(best, system.time(m <- rpart(y ~ ., d, method = given[4], control = how))[["elapsed"]])
}
cat(sprintf('{"seconds": %.6f, "leaves": %d}', best, sum(m$frame$var == "<leaf>")))
"""


def is_there():
    """Return whether R and rpart are installed."""
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(rpart)"], capture_output=True, check=False).returncode == 0


def grown(X, y, max_depth, classes, rounds):
    """Return {"seconds": best time, "leaves": number of leaves}."""
    target = np.unique(y, return_inverse=True)[1] if classes else y
    with tempfile.TemporaryDirectory() as folder:
        script, table = Path(folder) / "grow.R", Path(folder) / "table"
        script.write_text(GROW)
        np.column_stack([X, target]).astype(np.float64).T.tofile(table)
        numbers = [str(number) for number in X.shape]
        command = ["Rscript", script, table, *numbers, "class" if classes else "anova", str(max_depth), str(rounds)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
