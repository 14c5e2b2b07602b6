# The table of split criteria (criteria.h) for the modules of this folder. criteria.pyx is its view for Python.

cdef extern from "tree/gini_score.h" nogil:
    const double KR_MAX_SQUARED_ROWS
    double kr_gini_score_of_two(double of_left, double of_all, double left, double all)


cdef extern from "tree/criteria.h" nogil:
    int GINI "KR_GINI"                                  # criteria that have loops of their own
    int SQUARED_ERROR "KR_SQUARED_ERROR"
    int PACKAGE_ONLY "KR_PACKAGE_ONLY"
    int CLASS_WEIGHTS "KR_CLASS_WEIGHTS"
    int SORTED_TARGETS "KR_SORTED_TARGETS"
    int SUBTRACT_MEAN "KR_SUBTRACT_MEAN"
    int DIVIDE_BY_MEAN "KR_DIVIDE_BY_MEAN"
    int N_CRITERIA "KR_N_CRITERIA"

    ctypedef struct CriterionRow "kr_criterion_row":
        int number
        const char *name
        int sums
        double (*loss)(const Criterion *, const double *) noexcept nogil
        double (*share_loss)(const Criterion *, const double *) noexcept nogil
        double (*row_loss)(double, double, double) noexcept nogil
        double (*row_term)(double) noexcept nogil
        double (*sum_term)(double, const double *, const double *, Py_ssize_t) noexcept nogil
        bint has_exact_scores
        bint needs_logs
        bint by_ratio
        bint ties_by_gini
        int normalisation
        int degree
        bint needs_nonnegative

    ctypedef struct Criterion "kr_split_criterion":
        const CriterionRow *row
        int number
        bint ties_by_gini
        Py_ssize_t n_sums
        bint of_classes
        bint counts
        bint sorts_targets
        const double *logs
        double (*own_loss)(void *, const double *, Py_ssize_t) noexcept nogil
        void *state

    const CriterionRow *KR_CRITERIA
    const CriterionRow *criterion_row_of "kr_criterion_row_of"(int number)
    Criterion make_criterion "kr_make_criterion"(const CriterionRow *row, Py_ssize_t n_others, bint weighted)
    double base_of "kr_base_of"(const Criterion *criterion, const double *all)
    double spread_score "kr_spread_score"(const Criterion *criterion, const double *left, const double *all)
    double score_of "kr_score_of"(const Criterion *criterion, const double *left, const double *all, double base,
                                  double *right)
    double score_scale "kr_score_scale"(const Criterion *criterion, double weight)
    double row_loss "kr_row_loss"(const CriterionRow *row, double weight, double y, double value)


cdef inline double gain_of(const Criterion *criterion, double score, double weight) noexcept nogil:
    """Loss that a split of this score removes from a node of this weight."""
    return score / score_scale(criterion, weight)
