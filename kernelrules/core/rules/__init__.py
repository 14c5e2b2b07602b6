"""Rules: conjunctions of conditions on single columns, and lists of them.

    ranks               columns as ranks of their values
    grow_rule           one rule, grown condition by condition
    cover               the rows that the rules of a list cover, and the split into growing and pruning set
    description_length  bits of a rule list and of its exceptions
    match               which rows satisfy which conditions (threshold_masks.h), and which rule holds first
    condition_masks     rows of conditions and of rules as bit sets
    rule_tree           a rule list as a decision tree, for prediction by core.tree.predict
    simplify            conditions that a rule can lose
    box_overlap         conditions that earlier rules of an ordered list imply

Cohen (1995), "Fast effective rule induction" (RIPPER); Quinlan (1990), "Learning logical definitions from relations"
(FOIL's gain); Quinlan (1993), "C4.5: Programs for Machine Learning", chapter 5.
"""
