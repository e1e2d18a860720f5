/* executor/state/init_hash.c - a number by which workers tell whether they start from the same file. */
#include "core/base/hash.h"
#include "executor/state/init.h"

#include <stdlib.h>
#include <string.h>

/* The most bytes read of one tensor, and of all together: more would read a large file twice. */
static const int64_t most_bytes = 16 << 20, most_bytes_in_all = 64 << 20;

/* Counts the numbers of a tensor, up to what is read of one. */
static int64_t elements_of(const struct ghp_init_tensor *tensor)
{
    int64_t n = 1, most = most_bytes / (int64_t)sizeof(float) + 1;

    for (int i = 0; i < tensor->n_dims; i++)
        n = tensor->dims[i] > most ? most : tensor->dims[i] * n < most ? tensor->dims[i] * n : most;
    return n;
}

static enum ghp_status hash_items(const struct ghp_init_choice *choice, void *file, float *values,
                                  uint64_t *hash)
{
    int64_t left = most_bytes_in_all;

    for (int i = 0; i < choice->ops->count(file); i++) {
        struct ghp_init_tensor tensor = choice->ops->item(file, i);
        int64_t bytes = elements_of(&tensor) * (int64_t)sizeof(float);

        *hash = ghp_hash(tensor.name, strlen(tensor.name) + 1, *hash);
        *hash = ghp_hash(tensor.dims, (size_t)tensor.n_dims * sizeof *tensor.dims, *hash);
        if (tensor.is_filled || bytes > most_bytes || bytes > left) continue;
        GHP_TRY(choice->ops->read(file, i, sizeof(float), values));
        *hash = ghp_hash(values, (size_t)bytes, *hash);
        left -= bytes;
    }
    return GHP_OK;
}

enum ghp_status ghp_init_hash(const struct ghp_init_choice *choice, uint64_t *hash)
{
    void *file = NULL;
    float *values = NULL;
    enum ghp_status status;

    *hash = GHP_HASH_SEED;
    GHP_TRY_GOTO(status, choice->ops->open(choice->path, &file), done);
    values = ghp_alloc((size_t)most_bytes, 1);
    if (values == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), done);
    status = hash_items(choice, file, values, hash);
done:
    free(values);
    choice->ops->close(file);
    return status;
}
