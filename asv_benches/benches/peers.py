"""Compare this library with others in one process: tables of ratios, goals and verdicts.

    python -m asv_benches.benches.peers [--only WORD ...] [--rounds N] [--format markdown|rst] [--memory]

--only takes names of groups (gram, ridge, svm, erm, graph, tree, prune, rules, additive, busy) and parts of case
names. A case is measured if its group is named, or no group is, and if its name contains one of the parts, or none is
given. `--only svm spam MNIST` is an example.

Method. All contenders of a row run alternately, round after round, on two threads, for trees on one; the best round
of each counts. Threads of OpenBLAS and OpenMP keep spinning for some tens of milliseconds after a call and would
occupy the second core, so 0.1 s of sleep precede every timed call. Results are freed outside the timed part, and are
compared with those of kernelrules. The files peers_*.py, one per group, describe the contenders and their tasks.

Reliability. On other machines only ratios within a row are meaningful. "unsettled" lists contenders whose two best
rounds differ by more than a fifth: something else was running. Steady load does not show there, and penalises
contenders that use both cores: the second line has the load before the start, which should be near 0.

--memory measures peak memory instead, each call in a fresh process.
"""

import argparse

from . import (
    peers_additive,
    peers_busy,
    peers_erm,
    peers_gram,
    peers_graph,
    peers_prune,
    peers_ridge,
    peers_rules,
    peers_svm,
    peers_tree,
)
from ._peers import announce, facts, formatted

GROUPS = {
    "gram": peers_gram,
    "ridge": peers_ridge,
    "svm": peers_svm,
    "erm": peers_erm,
    "graph": peers_graph,
    "tree": peers_tree,
    "prune": peers_prune,
    "rules": peers_rules,
    "additive": peers_additive,
    "busy": peers_busy,
}


def main():
    """Measure, and print each table as soon as it is complete."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="WORD", help=f"groups ({', '.join(GROUPS)}) and parts of cases' names"
    )
    parser.add_argument(
        "--rounds",
        type=positive,
        metavar="N",
        help="instead of " + ", ".join(f"{group.ROUNDS} for {name}" for name, group in GROUPS.items()),
    )
    parser.add_argument("--format", choices=("markdown", "rst"), default="markdown")
    parser.add_argument("--memory", action="store_true", help="peak memory instead of times")
    parser.add_argument(
        "--cache-mb", type=positive, metavar="MB", help="for all who train an SVM; without it each has its own default"
    )
    parser.add_argument(
        "--limit",
        type=positive,
        default=900,
        metavar="SECONDS",
        help="for a fit in a process of its own (default 900)",
    )
    options = parser.parse_args()
    parts = [word for word in options.only if word not in GROUPS]
    groups = [name for name in GROUPS if name in options.only] or GROUPS

    def wanted(case):
        return not parts or any(part in case for part in parts)

    print("\n".join(f"- {fact}" for fact in facts()), flush=True)
    for table in (table for name in groups for table in GROUPS[name].tables(options, wanted)):
        rows = []
        for row in table.rows():
            announce("  " + ", ".join(f"{name}: {cell}" for name, cell in zip(table.header[1:], row[1:], strict=True)))
            rows.append(row)
        if rows:
            print(f"\n**{table.title}**\n\n{formatted(table.header, rows, options.format)}", flush=True)


def positive(given):
    """Return an integer of at least 1, for argparse."""
    number = int(given)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{given} is not at least 1")
    return number


if __name__ == "__main__":
    main()
