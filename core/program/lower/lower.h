/* core/program/lower/lower.h - (model, splits, worker) -> program.
 *
 * The program is made of pieces: one per layer under its split, one per edge under the splits at its two ends. The
 * planner costs pieces alone; ghp_lower strings all pieces together, resolves which buffers share memory, forms
 * buckets and places the arena. */
#ifndef GHP_CORE_PROGRAM_LOWER_LOWER_H
#define GHP_CORE_PROGRAM_LOWER_LOWER_H

#include "core/program/program.h"

/* The whole program of one worker. `splits` has one entry a layer (the input's says how samples are loaded).
 * Returns GHP_ERR_INPUT for a split that a layer cannot take, and what the scratch source returns.
 * Local. Tested tests/core/program/lower/test_lower.c */
enum ghp_status ghp_lower(const struct ghp_lowering *lowering, const struct ghp_split *splits,
                          int rank, struct ghp_program *program);

/* The program of a server: what it does in one step of a worker, or of all workers if it waits for all. Its list is
 * in the order in which gradients come in the steady state; a bucket's UPDATE waits for its PUSH, its PULL for that.
 *
 * server   0 .. lowering->sync.servers - 1
 *
 * Returns as ghp_lower. Local. Tested tests/core/program/test_sync.c */
enum ghp_status ghp_lower_server(const struct ghp_lowering *lowering,
                                 const struct ghp_split *splits, int server,
                                 struct ghp_program *program);

/* The programs of one worker of each stage (ghp_stage_representative), which stand for all; and of a server. */
struct ghp_programs {
    int n;
    struct ghp_program of[GHP_MAX_STAGES];
    /* the arena of a worker with more samples than the one that stands for its stage; 0: none */
    int64_t fullest_bytes;
    struct ghp_program server; /* which stands for all servers; no instructions: there are none */
};
enum ghp_status ghp_lower_all(const struct ghp_lowering *lowering, const struct ghp_split *splits,
                              struct ghp_programs *programs);
void ghp_programs_release(struct ghp_programs *programs); /* accepts a zeroed one */
/* Names all lists together. */
uint64_t ghp_programs_hash(const struct ghp_programs *programs);
int64_t
ghp_programs_peak_bytes(const struct ghp_programs *programs); /* of the worker that needs most */
int64_t
ghp_programs_sent_bytes(const struct ghp_programs *programs); /* of the one that sends most */

/* Pieces, appended to `piece` (instructions with points and bytes; operands unresolved, -1): the forward part of the
 * first micro-batch and the backward part of the last, as `rank` runs them. The rank's stage owns the layer, or the
 * edge's consumer; an edge from another stage has the sends both ways, of whichever worker. */
enum ghp_status ghp_lower_layer(const struct ghp_lowering *lowering, int layer,
                                struct ghp_split split, int rank, struct ghp_program *piece);
enum ghp_status ghp_lower_edge(const struct ghp_lowering *lowering, int edge, struct ghp_split from,
                               struct ghp_split to, int rank, struct ghp_program *piece);

#endif
