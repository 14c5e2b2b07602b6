"""The dual of soft-margin machines, by sequential minimal optimisation (SMO).

    smo          many machines on the same rows, for the package: slices of work, pauses, threads
    smo_source   one machine, for C callers
    working_set  which variables are worked on at a time; shrinking
    steps        steps on pairs of variables: second-order working-set selection, and the update
    gradient     the gradient, and its change by kernel rows
    rows         kernel rows: a whole matrix, computed rows that are cached, or rows from the caller's function

A call goes from smo (or smo_source) through working_set to steps, whose passes over kernel rows are in simd/solver.h.

References
----------
- J. C. Platt (1998). Sequential minimal optimization: a fast algorithm for training support vector machines. Microsoft
  Research technical report MSR-TR-98-14.
- R.-E. Fan, P.-H. Chen and C.-J. Lin (2005). Working set selection using second order information for training support
  vector machines. Journal of Machine Learning Research 6, 1889-1918.
- T. Joachims (1998). Making large-scale SVM learning practical. In Advances in Kernel Methods, MIT Press, 169-184.
  Working sets and shrinking.
- C.-C. Chang and C.-J. Lin (2011). LIBSVM: a library for support vector machines. ACM Transactions on Intelligent
  Systems and Technology 2, 27:1-27:27. One solver for all kinds of machines, and its notation.
"""
