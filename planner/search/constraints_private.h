/* planner/search/constraints_private.h - private to planner/search/constraints*.c: what loads, rows and weights all know of an instance with stages. */
#ifndef GHP_PLANNER_SEARCH_CONSTRAINTS_PRIVATE_H
#define GHP_PLANNER_SEARCH_CONSTRAINTS_PRIVATE_H

#include "planner/search/constraints.h"

/* What a hop costs with a pair of the edge's choices. */
static inline const struct ghp_hop_price *ghp_rows_hop_price(const struct ghp_instance *in, int e,
                                                             int pair)
{
    return &in->hop_price[in->hop[in->hop_of[e]].first_pair + pair - in->first_pair[e]];
}

struct ghp_slot_range { /* of slots, both included; none where first > last */
    int first, last;
};

/* What a path covers: at most two ranges a stage, a middle, and hops both ways. */
struct ghp_cover {
    int n;
    struct ghp_slot_range range[2 * GHP_MAX_STAGES + 1];
    int n_hops, hop[GHP_MAX_STAGES];
};

/* The last slot of a stage's forward part, and the first of its backward part. */
static inline int ghp_rows_forward_end(const struct ghp_instance *in, int stage)
{
    return in->wait_slot[in->n_layers - in->route[stage].end_layer];
}

static inline int ghp_rows_backward_begin(const struct ghp_instance *in, int stage)
{
    return in->ready_slot[in->n_layers - in->route[stage].end_layer];
}

/* ---- search/accumulated_cost.c ---- */

/* The most that reductions of these items can take. */
double ghp_rows_most_between(const struct ghp_instance *in, int from_item, int to_item);

/* ---- search/constraints_stages.c ---- */

/* What a time row covers that has a path. */
struct ghp_cover ghp_cover_of(const struct ghp_instance *in, const struct ghp_row *row);
/* As ghp_row_value, of a time row. */
double ghp_stage_row_value(const struct ghp_row *row, const struct ghp_instance *in,
                           const struct ghp_load *load);
/* The largest row of a base: its own loop through the excursion, its reductions, its sends, or a wait. */
double ghp_stage_row_longest(const struct ghp_instance *in, const struct ghp_load *load,
                             struct ghp_row *row);
/* The fullest point of each stage with the largest segment of its own layers; row: a memory row to start from. */
double ghp_stage_row_fullest(const struct ghp_instance *in, const struct ghp_load *load,
                             struct ghp_row *row);

#endif
