/* executor/state/tensors.h - the list of a model's named tensors: trained parameters in layer order, then
 * fixed ones, then running statistics.
 *
 * One list that initialisation, checkpoints, hashes and verification all walk. */
#ifndef GHP_EXECUTOR_STATE_TENSORS_H
#define GHP_EXECUTOR_STATE_TENSORS_H

#include "core/program/program.h"

struct ghp_tensor {
    const struct ghp_param *param; /* name, dims, elements; borrowed from the model */
    int layer, slot;
    bool is_state; /* running statistic; else a parameter */
    bool trains;   /* it has a gradient and moments */
    int ordinal;   /* among all tensors: what its random numbers are keyed by */
};

struct ghp_tensors_list {
    int n, n_trained; /* those that have gradients and moments come first */
    struct ghp_tensor *items;
};

enum ghp_status ghp_tensors_list_init(const struct ghp_model *model, struct ghp_tensors_list *list);
/* The kind of buffer that holds a worker's part of it: WEIGHT or STATE. */
enum ghp_buffer_kind ghp_tensor_buffer_kind(const struct ghp_tensor *tensor);
void ghp_tensors_release(struct ghp_tensors_list *list); /* accepts a zeroed one */

/* Refuses numbers of a file's tensor that are not finite: a training before ghp looked may have diverged.
 *
 * n   numbers, of `bytes` bytes each
 *
 * Returns   GHP_OK; GHP_ERR_FORMAT naming file and tensor
 * Local */
enum ghp_status ghp_tensors_check_finite(const char *path, const char *name, int64_t n, int bytes,
                                         const void *whole);

#endif
