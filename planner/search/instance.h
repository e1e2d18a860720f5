/* planner/search/instance.h - a planning problem in numbers: what each (layer, split) and each (edge, pair of splits)
 * costs.
 *
 * Every cost comes from the instructions that core/program/lower emits for that piece, so the sum over a plan's
 * pieces is the program that will run. Not a solver: an instance is filled once and then only read.
 *
 * Choices of layer v are numbered 0 .. n_choices[v] - 1; flat index first_choice[v] + i. The cost of an edge does not
 * depend on how parameters are sharded. So choices that differ only in this are one *class*, and pairs are of classes:
 * those of edge e from u to v are a * n_classes[v] + b; flat index first_pair[e] + that.
 *
 * A *slot* is a stretch of the compute stream in program order, 2 * point + half (core/program/program.h has the
 * points): a layer's backward point has two halves, before and after its reduction becomes ready; all others use half
 * 0. An
 * *item* is a reduction on the communication stream in its order: the layers from the last to the first, then the
 * metrics, then, with a synchroniser that gathers weights, the layers' gathers from the first to the last. Constraints
 * (planner/search/constraints.h) are sums over slots and items.
 *
 * With micro-batches (docs/explanation/stages.md) the forward slots are the first one's (with the updates), the
 * backward slots the last one's (with the reductions), and between them lies one slot a stage, the *steady phase*: all
 * its other work. If weight gradients are deferred, those that a stage may compute after its last backward step are in
 * one more slot of that stage, its *tail*. No other stage waits for it. A *p2p transfer* is an edge that carries a
 * tensor to another stage: its transfers both ways are on neither stream.
 *
 * Tested  tests/planner/search/test_exact.c, test_constraints.c */
#ifndef GHP_PLANNER_SEARCH_INSTANCE_H
#define GHP_PLANNER_SEARCH_INSTANCE_H

#include "core/cost/profile.h"
#include "core/program/lower/lower.h"
#include "planner/labelling/frontier.h"

enum ghp_work {
    GHP_WORK_COMPUTE,
    GHP_WORK_LINK,
    GHP_WORK_COUNT
}; /* which slowdown meets it (core/cost/profile.h) */

struct ghp_layer_cost {               /* seconds */
    double forward_s[GHP_WORK_COUNT]; /* load, update, statistics, pass */
    double before_s[GHP_WORK_COUNT];  /* backward, until the reduction is ready */
    double after_s[GHP_WORK_COUNT];   /* backward, the rest */
    double steady_s[GHP_WORK_COUNT];  /* the other micro-batches' forward and backward */
    double tail_s[GHP_WORK_COUNT]; /* weight gradients that may be made after all data gradients */
    double reduce_s;               /* the gradients' reduction, alone */
    double start_s;                /* the update of an optimizer shard, at the start of the step */
    /* the gather of updated weights, alone: at the start of a step, or before their use */
    double gather_s;
    bool reduces; /* there is one, so the update waits */
};

struct ghp_edge_cost { /* seconds */
    double forward_s[GHP_WORK_COUNT];
    double backward_s[GHP_WORK_COUNT];
};

struct ghp_p2p_transfer { /* of one micro-batch */
    int edge;             /* the first reader of the tensor in its stage */
    int from, to;         /* stages */
    int first_pair;       /* cost of pair k: seconds[k], k as for edges */
    bool back;            /* a gradient goes back */
};

struct ghp_p2p_transfer_cost { /* seconds */
    double forward_s, backward_s;
};

struct ghp_route { /* of a stage: the way through later stages and back */
    int first_layer, end_layer;
    int next; /* the stage that first reads its last layer's output and sends a gradient back; -1: none */
    int p2p_transfer; /* by which */
};

struct ghp_span { /* bytes that live from one point to another, both included */
    int64_t bytes;
    int first, last;
};

struct ghp_spans { /* flat list: spans of index k are first[k] .. first[k + 1] - 1 */
    int *first;
    struct ghp_span *span;
    int n, max;
};

struct ghp_instance {
    const struct ghp_lowering *lowering; /* borrowed */
    const struct ghp_profile *profile;   /* borrowed, finalized */
    int n_layers, n_edges;
    /* Chunks of all stages if these have several (core/sharding/stage.h): chunk c is of stage c mod n_owners. */
    int n_stages, n_owners, micro_batches;
    int *stage;                                 /* a layer */
    int rank[GHP_MAX_CHUNKS];                   /* whose program stands for a stage's */
    double speed[GHP_MAX_CHUNKS];               /* of that worker; struct ghp_placement */
    struct ghp_problem problem[GHP_MAX_CHUNKS]; /* of a stage: its workers, one micro-batch */
    struct ghp_route route[GHP_MAX_CHUNKS];
    int n_p2p_transfers;
    struct ghp_p2p_transfer *p2p_transfer;
    int *p2p_transfer_of;                            /* an edge: its p2p transfer, -1: none */
    struct ghp_p2p_transfer_cost *p2p_transfer_cost; /* flat */
    int first_steady; /* a stage's steady phase is slot first_steady + stage; -1: there are none */
    int first_tail;   /* its tail is slot first_tail + stage; -1: there are none */
    const struct ghp_edge *edges; /* of the model; ascending by consumer */
    int *n_choices;               /* a layer */
    int *first_choice;            /* n_layers + 1 */
    int *n_classes;               /* a layer */
    int *class_of;                /* flat choice: its class, ascending from 0 in each layer */
    int *first_pair;              /* n_edges + 1 */
    struct ghp_split *choices;    /* flat */
    struct ghp_layer_cost *layer; /* flat */
    struct ghp_edge_cost *edge;   /* flat */
    double *metric_s;             /* a choice of the last layer: the metrics' reduction */
    double *most_reduce_s;        /* a layer: the longest of its choices' reductions */
    double *most_gather_s;        /* and gathers */
    bool alone; /* each layer's reduction is costed alone; false: as a part of a bucket */
    int n_slots, n_items, n_points;
    int first_use;  /* the first item that gathers weights before their use; n_items: none does */
    int *wait_slot; /* an item: if the step's next round waits for it */
    int *
        ready_slot; /* an item: the last slot before it may start; -1: a gather, if no path starts */
    int start_slot[GHP_MAX_CHUNKS]; /* of optimizer shards' updates */
    int *edge_slot;                 /* 2 e: the edge's slot forward; 2 e + 1: backward */
    bool has_memory;                /* the spans below are filled */
    /* flat choice: receive segment that its reduction (or the metrics') asks for */
    int64_t *receive_bytes;
    struct ghp_spans layer_spans; /* flat choice */
    struct ghp_spans edge_spans;  /* flat pair */
};

/* The item of a layer's gather by a flat choice. Gathers at the start of a step and before uses are posted in the order
 * of layers, each kind by itself: so no path goes through both. */
static inline int ghp_instance_gather_item(const struct ghp_instance *in, int v, int flat)
{
    return v +
           (ghp_sharding_gathers(in->choices[flat].sharding) ? in->first_use : in->n_layers + 1);
}

/* The first item after `from` that is on no path from there to `to`, and the first that is again; both to + 1: all
 * are. */
static inline void ghp_instance_aside(const struct ghp_instance *in, int from, int to, int aside[2])
{
    bool passes = from <= in->n_layers && to >= in->first_use;

    aside[0] = passes ? in->n_layers + 1 : to + 1;
    aside[1] = passes ? in->first_use : to + 1;
}

/* Costs all pieces.
 *
 * how       model, problem, element bytes; bucket_bytes 0 costs each layer's reduction alone; > 0 costs it as a
 *           part of the cheapest bucket that could hold it, which no program undercuts
 * tp_sizes  only splits whose TP size divides this are offered (N: all); with stages those that the stage takes
 * profile   finalized; borrowed with `lowering` until release
 * instance  filled on success, zeroed on failure
 *
 * Returns   GHP_OK; GHP_ERR_MISSING (no cost for a piece: the message names it); GHP_ERR_INPUT; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_instance_init(const struct ghp_lowering *lowering,
                                  const struct ghp_profile *profile, int tp_sizes,
                                  struct ghp_instance *instance);
void ghp_instance_release(struct ghp_instance *instance);

/* Its layers, edges and choices as a graph; borrows from the instance. */
struct ghp_frontier_graph ghp_instance_graph(const struct ghp_instance *instance);

/* The splits of a plan, given as one choice a layer, and back (-1 if the instance has no such choice). */
void ghp_instance_splits(const struct ghp_instance *instance, const int *choice,
                         struct ghp_split *splits);
int ghp_instance_find(const struct ghp_instance *instance, int layer, struct ghp_split split);

/* The choice of another layer with the same owner of parameters by which both hold the same parts of them; -1: there is
 * none. */
int ghp_instance_tied_choice(const struct ghp_instance *instance, int layer, int i, int other);

/* Gives a layer of a plan its choice i, and the layers that it shares parameters with the choices that go with it. */
void ghp_instance_choose(const struct ghp_instance *instance, int layer, int i, int *choice);

/* A choice of a layer, as a flat index, that stands for its class. */
static inline int ghp_instance_of_class(const struct ghp_instance *instance, int layer, int class)
{
    int flat = instance->first_choice[layer] + class; /* no class is without choices */

    while (instance->class_of[flat] < class)
        flat++;
    return flat;
}

/* The flat pair index of an edge under a plan. */
int ghp_instance_pair(const struct ghp_instance *instance, int edge, const int *choice);

#endif
