/* tests/executor/cases.h - plans of every kind for a model, made from splits alone, without a planner. */
#ifndef GHP_TESTS_EXECUTOR_CASES_H
#define GHP_TESTS_EXECUTOR_CASES_H

#include "core/sharding/stage.h"

enum case_kind {
    CASE_DATA,  /* every layer by data */
    CASE_OUT,   /* weighted layers by output channels, the largest degree that fits */
    CASE_IN,    /* by input channels */
    CASE_OWT,   /* convolutions by data, linear layers by output */
    CASE_MIXED, /* each layer any split that it can take, drawn by the seed */
    CASE_COUNT
};

const char *case_name(enum case_kind kind);

/* Splits of a model, one a layer; the caller frees them. most: largest degree. */
struct ghp_split *case_splits(const struct ghp_model *model, struct ghp_problem problem,
                              enum case_kind kind, unsigned seed, int most);

/* Tensor and sequence parallelism over m workers: products by outputs and then by inputs, attention by heads, and what
 * is between pairs of products by positions. One split a layer; the caller frees them. */
struct ghp_split *case_sequence_splits(const struct ghp_model *model, struct ghp_problem problem,
                                       int m);
/* By position wherever a layer takes it, others by their first choice, which is data. */
struct ghp_split *case_position_splits(const struct ghp_model *model, struct ghp_problem problem,
                                       int m);

/* Stages of the given worker counts (0 ends the list), none for an empty list, cut by what the seed draws. */
struct ghp_staging case_staging(const struct ghp_model *model, const int *counts, int micro_batches,
                                unsigned seed);
/* Stages of those worker counts with as many chunks each, interleaved; none if the model has too few cuts. */
struct ghp_staging case_interleaved(const struct ghp_model *model, const int *counts, int chunks,
                                    int micro_batches, unsigned seed);
/* Whether the stages can be; deals samples unequally if equal shares do not come out. */
bool case_staging_fits(const struct ghp_model *model, struct ghp_problem whole,
                       struct ghp_staging *staging);
/* Marks some layers that make a tensor of their own.
 *
 * recomputed   one a layer */
void case_recomputed(const struct ghp_model *model, unsigned seed, bool *recomputed);

/* Splits of each layer inside its stage, one a layer; the caller frees them. NULL if a layer can take none.
 *
 * seed   draws them; 0: the first of each, data */
struct ghp_split *case_staged_splits(const struct ghp_model *model,
                                     const struct ghp_staging *staging, struct ghp_problem whole,
                                     unsigned seed);

/* Shards the parameters of each layer that can be: by this, or (GHP_SHARDING_COUNT) by what the seed draws, none too.
 *
 * problem   of all workers, or of a micro-batch; without stages */
void case_shard(const struct ghp_model *model, struct ghp_problem problem,
                enum ghp_param_sharding sharding, unsigned seed, struct ghp_split *splits);

/* The same inside stages, where each layer's sharding is drawn among those that it can take. */
void case_shard_staged(const struct ghp_model *model, const struct ghp_staging *staging,
                       struct ghp_problem whole, unsigned seed, struct ghp_split *splits);

/* Clears what cannot be of the layers whose outputs are to lie in blocks: what is loaded, passes between stages, or has
 * one pixel a channel; and of an operation that does not choose, what has to lie as another tensor that lies plain.
 *
 * nchw16c   one a layer */
void case_formats(const struct ghp_model *model, const struct ghp_staging *staging, bool *nchw16c);

/* A model by its file; ends the test program on failure. */
void case_model(const char *path, struct ghp_model *model);

#endif
