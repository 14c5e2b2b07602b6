"""Linear algebra that LAPACK and SciPy do not have, or do more slowly; the first lines of each file give the figure.

    cholesky    A = L·Lᵀ by tiles on the team of threads, and solves with L: ridge regression, Newton steps of SVMs
    banded      solves with banded triangular matrices: leave-one-out errors of ridge paths (banded_solve.h)
    multigrid   passes over sparse matrices with several right-hand sides: learning on graphs (csr_multivector.h)

Other factorisations of the package are LAPACK's: LDLᵀ of indefinite matrices, LU and eigenvectors in ridge/factor.py,
banded Cholesky (dpbtrf) in ridge/band.py, and SciPy's `cho_factor` for systems with one unknown per column in
svm/low_rank_qp.py and svm/hard_margin.

Golub and Van Loan (2013), "Matrix Computations", 4th edition, sections 4.2 and 4.3; Briggs, Henson and McCormick
(2000), "A Multigrid Tutorial", 2nd edition.
"""
