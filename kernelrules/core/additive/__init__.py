"""L1-regularised sums of rules, along the path of the penalty λ.

    sample_rows     random rows on which a tree is grown
    binned_columns  columns as codes of bins, and histograms of residuals
    residual_tree   small trees on residuals, whose nodes become rules
    stumps          rules of one condition
    rule_columns    rules as sparse columns of a design matrix (masked_sums.h)
    descent         the quadratic model of a Newton step, minimised by coordinate descent on a working set
    l1_solver       the problem for one λ, with its duality gap; the logistic loss is in logistic.h
    score           scores of rows

The path over λ is in rules/l1_path.py, which calls these.

Friedman and Popescu (2008), "Predictive learning via rule ensembles"; Friedman, Hastie and Tibshirani (2010),
"Regularization paths for generalized linear models via coordinate descent"; Fercoq, Gramfort and Salmon (2015), "Mind
the duality gap: safer rules for the Lasso", for screening.
"""
