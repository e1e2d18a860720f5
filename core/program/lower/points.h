/* core/program/lower/points.h - where in a step things happen (program.h's points), and the ranks that a TP size puts
 * together. */
#ifndef GHP_CORE_PROGRAM_LOWER_POINTS_H
#define GHP_CORE_PROGRAM_LOWER_POINTS_H

#include "core/program/program.h"

/* Points (program.h). */
int ghp_point_forward(const struct ghp_model *model, int layer);
int ghp_point_forward_edge(const struct ghp_model *model, int edge);
int ghp_point_backward(const struct ghp_model *model, int layer);
int ghp_point_backward_edge(const struct ghp_model *model, int edge);
int ghp_point_count(const struct ghp_model *model);

struct ghp_ranks ghp_ranks_subgroup(int rank, int tp_size); /* TP size consecutive ranks */
struct ghp_ranks ghp_ranks_replica(int rank, int tp_size,
                                   int workers); /* the N / TP size workers of a replica group */
/* A replica group comes in parts of `shards` neighbours. The first function gives the part with the rank, the second
 * the workers at the rank's place in all parts. */
struct ghp_ranks ghp_ranks_shards(int rank, int tp_size, int shards);
struct ghp_ranks ghp_ranks_copies(int rank, int tp_size, int shards, int workers);

#endif
