/* THE table of split criteria. The scanner, both builders, pruning, C callers and the documentation read it.
 *
 * A criterion gives a set of rows the loss W·Q, its weight W times its impurity Q. A split is worth its gain,
 *
 *     gain = loss(all) - loss(left) - loss(right) >= 0 .
 *
 * Losses are functions of sums over the rows of a node: sums[0] = W, then
 *
 *     KR_CLASS_WEIGHTS     the weight of each class
 *     KR_TARGET_SUMS       the sum of w·y of each target; loss = sum of w·row_term(y) - sum_term(W, sums)
 *     KR_SORTED_TARGETS    no sums: absolute.pyx scans the node's targets in ascending order
 *
 * A criterion of classes needs its number, its name and its loss. The other members are for more speed or exactness.
 * Invariant: `score` rises with the gain, and is `score_scale` times the gain.
 *
 * References: Breiman, Friedman, Olshen and Stone (1984), "Classification and Regression Trees" (gini, squared and
 * absolute error); Quinlan (1986), "Induction of decision trees", Machine Learning 1 (entropy); Quinlan (1993), "C4.5:
 * Programs for Machine Learning" (gain ratio).
 */
#ifndef KERNELRULES_CRITERIA_H
#define KERNELRULES_CRITERIA_H

#include <math.h>
#include <stddef.h>

#include "kernelrules/api.h"
#include "tree/gini_score.h"

/* Numbers below KR_PACKAGE_ONLY are those of kr_criterion_kind in api.h; C callers cannot use the others. */
enum { KR_PACKAGE_ONLY = 64, KR_GAIN_RATIO = 64, KR_ABSOLUTE_ERROR = 65 };

enum { KR_CLASS_WEIGHTS, KR_TARGET_SUMS, KR_SORTED_TARGETS };  /* which sums */
enum { KR_AS_GIVEN, KR_SUBTRACT_MEAN, KR_DIVIDE_BY_MEAN };     /* how targets may be normalised without loss */

typedef struct kr_split_criterion kr_split_criterion;

typedef struct {
    int number;
    const char *name;         /* in Python; NULL: for C callers only */
    int sums;                 /* KR_CLASS_WEIGHTS, ... */
    double (*loss)(const kr_split_criterion *criterion, const double *sums);        /* W·Q of class weights */
    double (*share_loss)(const kr_split_criterion *criterion, const double *sums);  /* W·Q with errors of eps W; NULL: loss */
    double (*base)(const kr_split_criterion *criterion, const double *all);         /* what `score` subtracts */
    double (*score)(const kr_split_criterion *criterion, const double *left, const double *all, double base);
                              /* NULL: minus the losses of both sides, minus base = -loss(all) */
    int has_exact_scores;     /* no logarithms: equal splits have equal scores if sums are exact */
    int scaled_by_weight;     /* score = W · gain; otherwise score = gain */
    int needs_logs;           /* the loss is made of c log2 c */
    int by_ratio;             /* columns are compared by gain over split information */
    int ties_by_gini;         /* of equal scores the one with the larger gini score wins */
    double (*row_loss)(double weight, double y, double value);  /* of one row whose leaf predicts `value` */
    double (*row_term)(double y);
    double (*sum_term)(double weight, const double *sums, const double *units, ptrdiff_t n);
    int normalisation;        /* of targets: KR_SUBTRACT_MEAN, ... */
    int degree;               /* the loss of c·y is c^degree times the loss of y */
    int needs_nonnegative;    /* y >= 0 */
} kr_criterion_row;

/* A criterion together with the data that one tree evaluates it on. */
struct kr_split_criterion {
    const kr_criterion_row *row;
    int number;               /* of the row */
    int ties_by_gini;
    ptrdiff_t n_sums;         /* 1 + number of classes or targets */
    int of_classes;           /* sums are weights of classes, */
    int counts;               /* and weights are numbers of rows */
    int sorts_targets;        /* KR_SORTED_TARGETS */
    const double *logs;       /* c log2 c of whole numbers c; NULL: weights are not whole, or not `needs_logs` */
    double (*own_loss)(void *state, const double *class_weights, Py_ssize_t n_classes);  /* KR_OWN */
    void *state;
};

/* ---- gini and squared error: one formula ---------------------------------------------------------------------
 *
 * score = sum_k (left_k W - W_left all_k)² / (W_left W_right), a single division, so that equal splits of whole weights
 * have equal bits. For classes without weights gini_score.h computes it: scans get the same bits from running sums. */

static inline double kr_gini_loss(const kr_split_criterion *criterion, const double *sums)
{
    double squares = 0;
    for (ptrdiff_t k = 1; k < criterion->n_sums; k++)
        squares += sums[k] * sums[k];
    return sums[0] > 0 ? sums[0] - squares / sums[0] : sums[0];
}

static inline double kr_spread_score(const kr_split_criterion *criterion, const double *left, const double *all)
{
    double total = 0, squares_left = 0, squares_right = 0;
    if (criterion->counts) {
        for (ptrdiff_t k = 1; k < criterion->n_sums; k++) {
            squares_left += left[k] * left[k];
            squares_right += (all[k] - left[k]) * (all[k] - left[k]);
            total += all[k] * all[k];
        }
        return kr_gini_score(squares_left, squares_right, total, left[0], all[0]);
    }
    for (ptrdiff_t k = 1; k < criterion->n_sums; k++) {
        double cross = left[k] * all[0] - left[0] * all[k];
        total += cross * cross;
    }
    return total / (left[0] * (all[0] - left[0]));
}

static inline double kr_score_by_spread(const kr_split_criterion *criterion, const double *left, const double *all,
                                        double base)
{
    (void)base;
    return kr_spread_score(criterion, left, all);
}

static inline double kr_squared_row_loss(double weight, double y, double value)
{
    return weight * (y - value) * (y - value);
}

static inline double kr_squared_row_term(double y)
{
    return y * y;
}

static inline double kr_squared_sum_term(double weight, const double *sums, const double *units, ptrdiff_t n)
{
    double squares = 0;
    (void)units;
    for (ptrdiff_t k = 0; k < n; k++)
        squares += sums[k] * sums[k];
    return weight > 0 ? squares / weight : 0;
}

/* ---- entropy -------------------------------------------------------------------------------------------------- */

/* c log2 c, 0 at 0. */
static inline double kr_weight_log(const kr_split_criterion *criterion, double weight)
{
    if (criterion->logs != NULL)
        return criterion->logs[(ptrdiff_t)weight];
    return weight > 0 ? weight * log2(weight) : 0;
}

/* sum_k c_k log2 c_k - W log2 W of the weights all - less; less NULL: of all. */
static inline double kr_weight_logs(const kr_split_criterion *criterion, const double *all, const double *less)
{
    double total = 0;
    for (ptrdiff_t k = 1; k < criterion->n_sums; k++)
        total += kr_weight_log(criterion, less != NULL ? all[k] - less[k] : all[k]);
    return total - kr_weight_log(criterion, less != NULL ? all[0] - less[0] : all[0]);
}

static inline double kr_entropy_loss(const kr_split_criterion *criterion, const double *sums)
{
    return -kr_weight_logs(criterion, sums, NULL);
}

static inline double kr_entropy_base(const kr_split_criterion *criterion, const double *all)
{
    return kr_weight_logs(criterion, all, NULL);
}

static inline double kr_entropy_score(const kr_split_criterion *criterion, const double *left, const double *all,
                                      double base)
{
    return kr_weight_logs(criterion, left, NULL) + kr_weight_logs(criterion, all, left) - base;
}

/* The same loss as W sum_k -p_k log2 p_k: the sums of c log2 c lose log2 W bits to cancellation. */
static inline double kr_entropy_share_loss(const kr_split_criterion *criterion, const double *sums)
{
    double total = 0;
    for (ptrdiff_t k = 1; k < criterion->n_sums; k++) {
        double share = sums[0] > 0 ? sums[k] / sums[0] : 0;
        total += sums[0] * (share > 0 ? -share * log(share) : 0);
    }
    return total / 0.6931471805599453094; /* ln 2 */
}

/* ---- misclassification ---------------------------------------------------------------------------------------- */

static inline double kr_largest_class(const kr_split_criterion *criterion, const double *sums)
{
    double most = sums[1];
    for (ptrdiff_t k = 2; k < criterion->n_sums; k++)
        most = sums[k] > most ? sums[k] : most;
    return most;
}

static inline double kr_misclassification_loss(const kr_split_criterion *criterion, const double *sums)
{
    return sums[0] - kr_largest_class(criterion, sums);
}

static inline double kr_misclassification_score(const kr_split_criterion *criterion, const double *left,
                                                const double *all, double base)
{
    double most_left = 0, most_right = 0;
    for (ptrdiff_t k = 1; k < criterion->n_sums; k++) {
        double right = all[k] - left[k];
        most_left = left[k] > most_left ? left[k] : most_left;
        most_right = right > most_right ? right : most_right;
    }
    return most_left + most_right - base;
}

/* ---- Poisson deviance and absolute error ---------------------------------------------------------------------- */

static inline double kr_poisson_part(double weight, double sum)
{
    return sum > 0 ? sum * log(sum / weight) : 0;
}

static inline double kr_poisson_sum_term(double weight, const double *sums, const double *units, ptrdiff_t n)
{
    double total = 0;
    for (ptrdiff_t k = 0; k < n; k++)
        total += (units != NULL ? units[k] : 1) * (weight > 0 ? kr_poisson_part(weight, sums[k]) : 0);
    return total;
}

static inline double kr_poisson_base(const kr_split_criterion *criterion, const double *all)
{
    return kr_poisson_sum_term(all[0], all + 1, NULL, criterion->n_sums - 1);
}

static inline double kr_poisson_score(const kr_split_criterion *criterion, const double *left, const double *all,
                                      double base)
{
    double total = 0;
    for (ptrdiff_t k = 1; k < criterion->n_sums; k++)
        total += kr_poisson_part(left[0], left[k]) + kr_poisson_part(all[0] - left[0], all[k] - left[k]);
    return total - base;
}

static inline double kr_poisson_row_loss(double weight, double y, double value)
{
    if (y == 0)
        return weight * value;
    return value > 0 ? weight * (y * log(y / value) - (y - value)) : INFINITY;
}

static inline double kr_poisson_row_term(double y)
{
    return y > 0 ? y * log(y) : 0;
}

static inline double kr_absolute_row_loss(double weight, double y, double value)
{
    return weight * fabs(y - value);
}

/* ---- a criterion of a C caller -------------------------------------------------------------------------------- */

static inline double kr_own_loss(const kr_split_criterion *criterion, const double *sums)
{
    return criterion->own_loss(criterion->state, sums + 1, criterion->n_sums - 1);
}

/* ---- the table ------------------------------------------------------------------------------------------------ */

static const kr_criterion_row KR_CRITERIA[] = {
    {.number = KR_GINI, .name = "gini", .sums = KR_CLASS_WEIGHTS, .loss = kr_gini_loss,
     .score = kr_score_by_spread, .has_exact_scores = 1, .scaled_by_weight = 1},
    {.number = KR_ENTROPY, .name = "entropy", .sums = KR_CLASS_WEIGHTS, .loss = kr_entropy_loss,
     .share_loss = kr_entropy_share_loss, .base = kr_entropy_base, .score = kr_entropy_score,
     .needs_logs = 1},
    {.number = KR_MISCLASSIFICATION, .name = "misclassification", .sums = KR_CLASS_WEIGHTS,
     .loss = kr_misclassification_loss, .base = kr_largest_class, .score = kr_misclassification_score,
     .has_exact_scores = 1, .ties_by_gini = 1},
    {.number = KR_GAIN_RATIO, .name = "gain_ratio", .sums = KR_CLASS_WEIGHTS, .loss = kr_entropy_loss,
     .share_loss = kr_entropy_share_loss, .base = kr_entropy_base, .score = kr_entropy_score,
     .needs_logs = 1, .by_ratio = 1},
    {.number = KR_SQUARED_ERROR, .name = "squared_error", .sums = KR_TARGET_SUMS, .score = kr_score_by_spread,
     .has_exact_scores = 1, .scaled_by_weight = 1, .row_loss = kr_squared_row_loss, .row_term = kr_squared_row_term,
     .sum_term = kr_squared_sum_term, .normalisation = KR_SUBTRACT_MEAN, .degree = 2},
    {.number = KR_ABSOLUTE_ERROR, .name = "absolute_error", .sums = KR_SORTED_TARGETS, .has_exact_scores = 1,
     .row_loss = kr_absolute_row_loss, .degree = 1},
    {.number = KR_POISSON, .name = "poisson", .sums = KR_TARGET_SUMS, .base = kr_poisson_base,
     .score = kr_poisson_score, .row_loss = kr_poisson_row_loss, .row_term = kr_poisson_row_term,
     .sum_term = kr_poisson_sum_term, .normalisation = KR_DIVIDE_BY_MEAN, .degree = 1, .needs_nonnegative = 1},
    {.number = KR_OWN, .name = NULL, .sums = KR_CLASS_WEIGHTS, .loss = kr_own_loss},
    /* a new criterion: a row above this line, with a number from 66 */
};

enum { KR_N_CRITERIA = sizeof(KR_CRITERIA) / sizeof(KR_CRITERIA[0]) };

/* ---- what the scanner and the builder call -------------------------------------------------------------------- */

/* The row of a number; NULL if there is none. */
static inline const kr_criterion_row *kr_criterion_row_of(int number)
{
    for (int i = 0; i < KR_N_CRITERIA; i++)
        if (KR_CRITERIA[i].number == number)
            return KR_CRITERIA + i;
    return NULL;
}

/* A criterion on data of so many classes, or targets. */
static inline kr_split_criterion kr_make_criterion(const kr_criterion_row *row, ptrdiff_t n_classes_or_targets,
                                                   int weighted)
{
    kr_split_criterion criterion = {.row = row, .number = row->number, .n_sums = 1 + n_classes_or_targets};
    criterion.ties_by_gini = row->ties_by_gini;
    criterion.of_classes = row->sums == KR_CLASS_WEIGHTS;
    criterion.counts = criterion.of_classes && !weighted;
    criterion.sorts_targets = row->sums == KR_SORTED_TARGETS;
    return criterion;
}

/* What every score of a node subtracts: the score of not dividing it. */
static inline double kr_base_of(const kr_split_criterion *criterion, const double *all)
{
    const kr_criterion_row *row = criterion->row;
    if (row->base != NULL)
        return row->base(criterion, all);
    return row->score == NULL && row->loss != NULL ? -row->loss(criterion, all) : 0;
}

/* Score of dividing `all` into `left` and the rest; `right` is a buffer of n_sums numbers. The cases inline functions of
 * the table: through the pointer, a tree of four classes by entropy takes 15 % longer. */
static inline double kr_score_of(const kr_split_criterion *criterion, const double *left, const double *all,
                                 double base, double *right)
{
    switch (criterion->number) {
    case KR_GINI:
    case KR_SQUARED_ERROR:
        return kr_spread_score(criterion, left, all);
    case KR_ENTROPY:
    case KR_GAIN_RATIO:
        return kr_entropy_score(criterion, left, all, base);
    case KR_POISSON:
        return kr_poisson_score(criterion, left, all, base);
    }
    if (criterion->row->score != NULL)
        return criterion->row->score(criterion, left, all, base);
    for (ptrdiff_t k = 0; k < criterion->n_sums; k++)
        right[k] = all[k] - left[k];
    return -criterion->row->loss(criterion, left) - criterion->row->loss(criterion, right) - base;
}

/* Score of a gain of 1 in a node of this weight. */
static inline double kr_score_scale(const kr_split_criterion *criterion, double weight)
{
    return criterion->row->scaled_by_weight ? weight : 1;
}

/* Loss of one row; the branch is invariant in loops over rows, so the compiler inlines squared error. */
static inline double kr_row_loss(const kr_criterion_row *row, double weight, double y, double value)
{
    return row->number == KR_SQUARED_ERROR ? kr_squared_row_loss(weight, y, value) : row->row_loss(weight, y, value);
}

#endif
