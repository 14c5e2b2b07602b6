# Nodes that grow: what is known of one, and what is needed to grow more. See node.pyx.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from kernelrules.core.tree.criteria cimport Criterion
from kernelrules.core.tree.presort cimport SampleArena, PresortedTable
from kernelrules.core.tree.scan cimport BestSplit, SplitRules, ScanBuffers, NodeView
from kernelrules.core.tree.surrogate cimport SubsetFlags, SurrogateList

cdef enum:
    MIN_SHARED_ENTRIES = 100000     # of a node that threads share: fewer are not worth waking them
    HISTOGRAM_MIN_ROWS = 600        # below, counting bins column by column is faster


cdef struct GrowthLimits:
    Py_ssize_t max_depth
    Py_ssize_t max_leaves           # 0: no limit, depth-first
    Py_ssize_t min_split
    Py_ssize_t min_leaf
    double min_weight               # of a leaf
    double min_gain                 # over the weight of all rows
    double weight                   # of all rows
    const double *critical          # of chi2, by degrees of freedom; NULL: no test
    Py_ssize_t max_features
    uint64_t seed
    bint exact                      # sums are of whole numbers: differences of histograms are exact


cdef struct Node:                   # small: there may be twice as many as rows, which are fewer than 2³¹
    double threshold
    double loss
    double gain
    double value                    # of one target
    Py_ssize_t subset               # where the flags of a subset start, -1: none
    Py_ssize_t surrogates            # where its surrogates start
    int n_surrogates
    int feature                     # -1: a leaf
    unsigned int left
    unsigned int right
    unsigned int n
    int task                        # a subtree grown apart, -1: none
    bint missing_left
    bint pure


cdef struct PendingNode:                   # a node that may be split
    Py_ssize_t node
    Py_ssize_t start
    Py_ssize_t m
    Py_ssize_t depth
    int arena
    void *histogram
    uint32_t *known
    double low
    double high
    uint64_t key
    Py_ssize_t column               # best-first: its split
    BestSplit found
    double gain


cdef struct TreeBuilder:
    const PresortedTable *table
    const Criterion *criterion
    const SplitRules *rules
    const GrowthLimits *limits
    SampleArena *arenas[3]
    int n_arenas
    bint own_first                  # the first arena is ours to free
    ScanBuffers **scratch
    int n_threads
    uint32_t *number                # room for new numbers, of the first arena's size
    BestSplit *found
    Py_ssize_t *columns
    double *shift
    uint8_t *left_of
    uint32_t *rank
    double *sorted_y
    double *sorted_w
    Node *nodes
    double *sums
    Py_ssize_t n_nodes
    Py_ssize_t room
    SubsetFlags flags
    SurrogateList surrogates
    PendingNode *stack
    Py_ssize_t n_stack
    Py_ssize_t stack_capacity
    void **spare                    # histograms that are free
    Py_ssize_t n_spare
    Py_ssize_t spare_capacity
    Py_ssize_t max_subtree_rows                # rows up to which a subtree is put off
    Py_ssize_t entry_cost           # work of a row of a column, and what a node costs besides
    Py_ssize_t node_cost
    PendingNode *tasks
    Py_ssize_t n_tasks
    Py_ssize_t task_capacity
    int status


cdef Py_ssize_t new_node(TreeBuilder *builder) noexcept nogil
cdef int push(PendingNode **list, Py_ssize_t *n, Py_ssize_t *room, const PendingNode *pending) noexcept nogil
cdef void *new_histogram(TreeBuilder *builder) noexcept nogil
cdef void drop_histogram(TreeBuilder *builder, void *histogram) noexcept nogil
cdef void describe(const TreeBuilder *builder, const SampleArena *arena, Py_ssize_t start, Py_ssize_t m,
                   Py_ssize_t number) noexcept nogil
cdef void describe_children(const TreeBuilder *builder, const SampleArena *arena, const PendingNode *pending,
                            Py_ssize_t m_left, Py_ssize_t first, Py_ssize_t second) noexcept nogil
cdef bint is_final(const TreeBuilder *builder, Py_ssize_t number, Py_ssize_t depth) noexcept nogil
cdef uint64_t mixed_key(uint64_t key) noexcept nogil
cdef void set_view(TreeBuilder *builder, const PendingNode *pending, NodeView *view) noexcept nogil
cdef void centre(TreeBuilder *builder, NodeView *view) noexcept nogil
cdef int find_split(TreeBuilder *builder, PendingNode *pending) noexcept nogil
