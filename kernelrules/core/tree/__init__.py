"""Decision trees from columns that are sorted once.

Growing, in the order of the flow:

    tree_arrays        what tree.grow calls: arrays in, the arrays of a tree out
    presort            columns sorted once; a node is a range of every column
    builder            the loops over nodes, depth-first and best-first
    node               one node: its sums, its loss, its best split over all columns
    scan               the best split of one column (scan_loops.h: its inner loops)
    category_subsets   the best subset of categories
    absolute           splits by absolute error, which no sum describes
    candidate          the better of two splits, ties included (gini_score.h: scores from running sums)
    criteria           THE table of criteria (criteria.h): loss of a node, score of a split
    surrogate          splits on other columns for rows whose value is missing
    split              applying a split: rows and columns divided, order kept
    source             sorting, scanning and prediction for C callers

Using a tree: predict (rows down to leaves), fractional (rows divided among leaves if a value is missing), leaf_values
(paths and linear models of leaves) and prune (passes over nodes).

Breiman, Friedman, Olshen and Stone (1984), "Classification and Regression Trees"; Quinlan (1993), "C4.5: Programs for
Machine Learning"; presorting after Mehta, Agrawal and Rissanen (1996), "SLIQ: A fast scalable classifier for data
mining".
"""
