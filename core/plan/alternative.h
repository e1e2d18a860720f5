/* core/plan/alternative.h - what a plan was chosen against: other splits of a layer, its second best, and when the
 * choice flips.
 *
 * A plan carries these numbers, so that its readers need neither solver nor profile. They are filled by
 * planner/alternatives/alternatives.h and planner/alternatives/break_even.h; nothing here computes.
 *
 * To add a quantity: a row in GHP_QUANTITY_LIST, and its scaling in planner/alternatives/quantity.c.
 *
 * Tested  tests/core/plan/test_plan.c */
#ifndef GHP_CORE_PLAN_ALTERNATIVE_H
#define GHP_CORE_PLAN_ALTERNATIVE_H

#include "core/sharding/split.h"

/* id, name in files, unit that tables show, shown value = value * scale */
#define GHP_QUANTITY_LIST(X)                                                                       \
    X(INTER_BANDWIDTH, "inter_bandwidth_Bps", "GB/s", 1e-9)                                        \
    X(INTER_LATENCY, "inter_latency_s", "us", 1e6)                                                 \
    X(INTRA_BANDWIDTH, "intra_bandwidth_Bps", "GB/s", 1e-9)                                        \
    X(INTRA_LATENCY, "intra_latency_s", "us", 1e6)                                                 \
    X(COMPUTE, "compute_factor", "x", 1)                                                           \
    X(BATCH, "global_batch", "samples", 1)                                                         \
    X(MEMORY, "memory_limit_bytes", "MiB", 1.0 / 1048576)

enum ghp_quantity {
#define GHP_QUANTITY_ENUM(id, text, unit, scale) GHP_QUANTITY_##id,
    GHP_QUANTITY_LIST(GHP_QUANTITY_ENUM)
#undef GHP_QUANTITY_ENUM
        GHP_QUANTITY_COUNT
};

#define GHP_QUANTITY_FACTOR 1000 /* how far from the nominal value anything is looked for */

/* One split of one layer, all other layers as planned. Seconds a step; each term alone, without slowdown. */
struct ghp_choice_cost {
    struct ghp_split split;
    double step_s; /* the whole simulated step */
    double forward_s, backward_s;
    double reshard_s; /* reshards before and after the layer, both ways */
    double reduce_s;  /* its part of the gradient reduction */
    double exposed_s; /* of that: computation waits for it */
    double update_s;
    int64_t peak_bytes; /* arena of a worker */
};

struct ghp_change { /* what a plan would have instead */
    int layer;
    struct ghp_split split;
};

/* The values of a quantity at which a plan and a second best are equally fast, all else fixed. */
struct ghp_break_even {
    enum ghp_quantity quantity;
    double nominal;   /* what the plan was made for; memory: 0 means no limit */
    double low, high; /* nearest value below and above; NAN: none within GHP_QUANTITY_FACTOR */
};

/* Second best for one layer: the best plan found without the layer's split. */
struct ghp_alternative {
    int layer;
    struct ghp_split split;
    double step_s;
    int n_changes; /* other layers that go along */
    struct ghp_change *changes;
    int n_choices; /* each split that the layer can take, the plan's own among them */
    struct ghp_choice_cost *choices;
    int n_break_even; /* 0: not searched */
    struct ghp_break_even break_even[GHP_QUANTITY_COUNT];
};

/* Whether plans tell a layer's other splits if it has any: of products with weights, tables and attention, and of
 * the loss of a sequence. */
bool ghp_layer_tells_splits(const struct ghp_layer *layer);

/* Whether a layer is one of a language model's ends: an embedding, or a linear layer that makes the loss's classes. */
bool ghp_layer_is_end(const struct ghp_model *model, const struct ghp_layer *layer);

const char *ghp_quantity_name(enum ghp_quantity quantity); /* "inter_bandwidth_Bps", ... */
const char *ghp_quantity_unit(enum ghp_quantity quantity); /* of tables */
double ghp_quantity_scale(enum ghp_quantity quantity);     /* shown = value * scale */

/* The splits of a second best: the plan's own, but for the layer and its changes.
 *
 * own, splits   one a layer; splits is filled */
void ghp_alternative_splits(const struct ghp_alternative *alternative, const struct ghp_split *own,
                            size_t n_layers, struct ghp_split *splits);

void ghp_alternative_release(struct ghp_alternative *alternative);

#endif
