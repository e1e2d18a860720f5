/* core/sharding/neighbours.h - who is a neighbour of whom, and the matrix P by which neighbours mix: P = I - (D - A) /
 * (dmax + 1), A the graph's matrix, D its degrees, dmax their largest. Rows and columns of P sum to 1.
 *
 *     ring       each worker next to the following one
 *     torus      workers fill a grid row by row, as near to a square as they allow, and each row and column is a ring
 *     complete   all are neighbours: P = 1 / N
 *     0-1,1-2    edges between workers by number
 *
 * Two workers are neighbours once, however often a name says so (a ring of two).
 *
 * Source   Richards, Rebeschini, Rosasco, ICML 2020
 * Tested   tests/core/sharding/test_neighbours.c */
#ifndef GHP_CORE_SHARDING_NEIGHBOURS_H
#define GHP_CORE_SHARDING_NEIGHBOURS_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ghp_neighbours_kind {
    GHP_NEIGHBOURS_RING,
    GHP_NEIGHBOURS_TORUS,
    GHP_NEIGHBOURS_COMPLETE,
    GHP_NEIGHBOURS_EDGES,
    GHP_NEIGHBOURS_KINDS
};

enum {
    GHP_NEIGHBOURS_EDGES_MOST = 32,
    GHP_NEIGHBOURS_NUMBER_MOST = 999,
    GHP_NEIGHBOURS_TEXT_BYTES = 320
};

struct ghp_neighbours { /* zeroed: a ring */
    enum ghp_neighbours_kind kind;
    int n_edges; /* of GHP_NEIGHBOURS_EDGES, else 0 */
    int16_t edges[GHP_NEIGHBOURS_EDGES_MOST][2];
};

/* Reads a graph by name or by edges. Returns whether the text is one */
bool ghp_neighbours_parse(const char *text, struct ghp_neighbours *graph);
void ghp_neighbours_format(const struct ghp_neighbours *graph,
                           char text[GHP_NEIGHBOURS_TEXT_BYTES]);

/* Whether the graph can have `workers` vertices, each of which reaches every other one.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming the graph and the worker */
enum ghp_status ghp_neighbours_check(const struct ghp_neighbours *graph, int workers);

/* Whether two workers are neighbours; nobody is its own. */
bool ghp_neighbours_joins(const struct ghp_neighbours *graph, int workers, int u, int v);
int ghp_neighbours_degree(const struct ghp_neighbours *graph, int workers, int v);
int ghp_neighbours_most_degree(const struct ghp_neighbours *graph, int workers);

/* P_uv. */
double ghp_neighbours_weight(const struct ghp_neighbours *graph, int workers, int u, int v);

#endif
