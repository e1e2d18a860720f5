/* planner/search/prefix_bound.h - private to planner/search/prefix*.c: a prefix's partial paths, and how short its best
 * end can be.
 *
 * Taking a layer lengthens five partial paths (struct ghp_prefix). The bound of the ends is a weighted sum of these
 * and the least weighted sum of the layers to come, from the frontier's tables; it holds for any weights, and
 * several are tried: the dual's, and the same leaning to constraints that turn early or late. */
#ifndef GHP_PLANNER_SEARCH_PREFIX_BOUND_H
#define GHP_PLANNER_SEARCH_PREFIX_BOUND_H

#include "planner/search/dual.h"

/* Longest partial paths [s]. A path begins at an update that waits, goes forward to its turn, a layer's weight
 * gradient, and back by the reductions; layers after the turn count forward and backward, those before it forward
 * and reduction. -INFINITY: none, or one that is never the longest, whatever follows. */
struct ghp_prefix {
    double all;      /* all computation */
    double reduced;  /* all reductions */
    double open;     /* begun, its turn still to come */
    double closed;   /* begun, past its turn */
    double metric;   /* past its turn; the loss will close it by waiting for the metrics */
    double weighted; /* the mix of constraints by the dual's weights, exactly */
};

struct
    ghp_prefix_piece { /* what a choice of a layer adds, its edges from earlier layers included [s] */
    double edges_forward, forward, before, backward, reduce, weighted;
    double metric; /* the last layer's: the reduction of the metrics; 0: nobody waits for one */
    bool waits;    /* its update waits for its reduction */
    bool loss;     /* the last layer, which waits for the metrics */
};

enum { GHP_PREFIX_LEANS = 9 };

struct ghp_prefix_bound {
    const struct ghp_instance *in;
    struct ghp_weights weights;
    double *weight;                                      /* scratch: a constraint of the dual */
    double *block;                                       /* the lists below, one a lean and layer */
    double *open, *closed, *metric_open, *metric_closed; /* [lean * n_layers + v]: after layer v */
    double all[GHP_PREFIX_LEANS], reduced[GHP_PREFIX_LEANS];
    double metric_most_s; /* the longest that the metrics and the loss's forward pass can last */
    double *to_go;        /* [lean * room + state]: the least weighted sum of what follows */
    int64_t room;
};

enum ghp_status ghp_prefix_bound_init(const struct ghp_instance *in,
                                      struct ghp_prefix_bound *bound);
void ghp_prefix_bound_release(struct ghp_prefix_bound *bound);

/* Fills the tables for a domain, whose choices the frontier has in play; at the end the frontier's costs are by the
 * dual's own weights. */
enum ghp_status ghp_prefix_bound_set(struct ghp_prefix_bound *bound, const struct ghp_dual *dual,
                                     const struct ghp_domain *domain,
                                     struct ghp_frontier *frontier);

/* The prefix that extends another one: its longest paths, without those that can never be the longest. */
struct ghp_prefix ghp_prefix_extend(const struct ghp_prefix *prefix,
                                    const struct ghp_prefix_piece *piece, double metric_most_s);

/* No plan that begins so is faster, or `enough` if that is reached; `state` counts over all tables. */
double ghp_prefix_bound_of(const struct ghp_prefix_bound *bound, const struct ghp_prefix *prefix,
                           int v, int64_t state, double enough);

#endif
