# Nodes that grow: what is known of one, and what is needed to grow more. See node.pyx.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from kernelrules.core.criteria cimport Criterion
from kernelrules.core.presort cimport Arena, Table
from kernelrules.core.scan cimport Found, Rules, Scratch, View
from kernelrules.core.surrogate cimport Flags, StandIns

cdef enum:
    SHARED = 100000         # entries of a node that are worth waking threads for
    FEW = 600               # rows below which bins are counted column by column


cdef struct Limits:
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
    Py_ssize_t stand_ins            # where its surrogates start
    int n_stand_ins
    int feature                     # -1: a leaf
    unsigned int left
    unsigned int right
    unsigned int n
    int task                        # a subtree grown apart, -1: none
    bint missing_left
    bint pure


cdef struct Work:                   # a node that may be split
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
    Found found
    double gain


cdef struct Grower:
    const Table *table
    const Criterion *criterion
    const Rules *rules
    const Limits *limits
    Arena *arenas[3]
    int n_arenas
    bint own_first                  # the first arena is ours to free
    Scratch **scratch
    int n_threads
    uint32_t *number                # room for new numbers, of the first arena's size
    Found *found
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
    Flags flags
    StandIns stand_ins
    Work *stack
    Py_ssize_t n_stack
    Py_ssize_t stack_room
    void **spare                    # histograms that are free
    Py_ssize_t n_spare
    Py_ssize_t spare_room
    Py_ssize_t alone                # rows up to which a subtree is put off
    Py_ssize_t entry_cost           # work of a row of a column, and what a node costs besides
    Py_ssize_t node_cost
    Work *tasks
    Py_ssize_t n_tasks
    Py_ssize_t task_room
    int status


cdef Py_ssize_t new_node(Grower *grower) noexcept nogil
cdef int push(Work **list, Py_ssize_t *n, Py_ssize_t *room, const Work *work) noexcept nogil
cdef void *new_histogram(Grower *grower) noexcept nogil
cdef void drop_histogram(Grower *grower, void *histogram) noexcept nogil
cdef void describe(const Grower *grower, const Arena *arena, Py_ssize_t start, Py_ssize_t m,
                   Py_ssize_t number) noexcept nogil
cdef void describe_children(const Grower *grower, const Arena *arena, const Work *work, Py_ssize_t m_left,
                            Py_ssize_t first, Py_ssize_t second) noexcept nogil
cdef bint is_final(const Grower *grower, Py_ssize_t number, Py_ssize_t depth) noexcept nogil
cdef uint64_t mixed(uint64_t key) noexcept nogil
cdef void view_of(Grower *grower, const Work *work, View *view) noexcept nogil
cdef void centre(Grower *grower, View *view) noexcept nogil
cdef int find_split(Grower *grower, Work *work) noexcept nogil
