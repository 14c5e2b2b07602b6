"""The compiled core: typed, without the GIL, without Python objects; it knows pointers, sizes and status codes.

all           types        the float types                           status       codes of api.h; a code to an exception
              machine      the SIMD level, OpenMP                    blocks       large arrays in memory that is kept
              finite       one pass over data before all else        fetch.h      memory that is needed soon
              pace         how much between two looks at signals     lists        lists that grow
              bits         sets as words of 64 bits
Gram          gram         of dense data                             gram_csr     of sparse data
              simd         the vectorised kernels: one body for every level and both float types, which simd_types.h,
                           simd_tables.h and simd_solver.h make tables of; targets.h: code for such a level
SVM           smo          the dual solver as the package calls it   smo_source   and as C callers do
              steps        steps on all variables                    working_set  which variables are worked on
              rows         where kernel rows come from
ridge, erm    cholesky     factors, by tiles                         apply        k(X, Z)·C without the matrix
              symmetric    K·C, each entry used twice                sweep        triangles of few diagonals (sweep.h)
graph         neighbours   the nearest, exactly (near.h)             multigrid    passes over matrices (beside.h)
tree          presort      columns sorted once                       criteria     sums of a node to a score
              scan         the best split of a column                judge        one way to divide (spread.h)
              scan_loops   its inner loops                           levels       subsets of categories
              absolute     splits by absolute error                  surrogate    splits that stand in
              node         a node, and its best split                split        making that split
              grower       loops over nodes                          grow         arrays in, a tree out
              walk         rows down a tree                          prune        passes over its nodes
              leaves       what a row's leaf answers                 tree_source  all this for C callers
rules         ranked       columns as ranks                          induce       a rule grown, test by test
              cover        what lists of rules cover                 length       description lengths
              match        which rows pass tests (words.h)           rule_tree    a list as a tree, for walk
              simplify     tests dropped
sums of rules coordinate   the L1 problem along λ (logistic.h)       descent      its working set
              terms        its columns (masked.h)                    score        scores of rows
              stumps       rules of one condition for residuals      weak         trees for them
              draw         rows at random
"""
