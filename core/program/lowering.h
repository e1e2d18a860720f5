/* core/program/lowering.h - what a program is lowered from: one value, which the planner makes of a plan. The splits
 * are passed separately, since a search changes them alone. */
#ifndef GHP_CORE_PROGRAM_LOWERING_H
#define GHP_CORE_PROGRAM_LOWERING_H

#include "core/program/method.h"
#include "core/sharding/local.h"

/* What the kernels at hand can do with blocked tensors. */
struct ghp_format_source {
    /* whether an operation's kernels take blocked x and y; NULL: none does */
    bool (*can)(void *context, const struct ghp_local *local);
    void *context;
};

/* Scratch bytes of one pass, as the profile or the backend says. */
struct ghp_scratch_source {
    enum ghp_status (*bytes)(void *context, const struct ghp_local *local, enum ghp_pass pass,
                             int64_t *bytes);
    void *context; /* bytes == NULL: no scratch */
};

struct ghp_lowering {
    const struct ghp_model *model;
    struct ghp_problem problem;
    int element_bytes; /* 2, 4 or 8: core/model/precision.h */
    struct ghp_method method;
    struct ghp_scratch_source scratch;
    bool forward_only; /* evaluation: no backward, no updates; batch_norm on running statistics */
    bool unplaced;     /* only to be costed: buffers have no offsets, peak_bytes is 0 */
    /* Bits of enum ghp_param_sharding that a search may choose from for a layer; 0: NONE alone. */
    unsigned shardings;
    /* only to be costed: bytes of one number of a gradient where it is reduced; 0: as of the parameter */
    int reduced_bytes;
    /* in bf16: what products read of the weights has a copy in bfloat16, which updates write; on devices */
    bool bf16_weights;
    /* products of one tensor may run at once, so that their results lie in rows (program/fuse.h); on devices */
    bool joins_products;
    /* workers that load samples have a buffer for the next load's; not with forward_only */
    bool prefetch;
    /* stages and micro-batches; NULL: none; outlives the program */
    const struct ghp_staging *staging;
    /* one a layer: whether its output lies blocked (planner/labelling/memory_format.h); NULL: nobody says; outlives the
     * program */
    const bool *nchw16c;
    /* of the kernels at hand; zeroed: buffers lie plain, and costs are by `nchw16c` alone */
    struct ghp_format_source formats;
};

#endif
