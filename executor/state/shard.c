/* executor/state/shard.c - see shard.h. A whole tensor is rows of `tp_size` blocks, so the copies are pack.h's. */
#include "executor/state/shard.h"

#include "executor/backend/pack.h"

#include <string.h>

struct ghp_shard ghp_shard_of(struct ghp_split split, int rank, const struct ghp_param *tensor)
{
    struct ghp_shard shard = {.tp_size = 1,
                              .member = 0,
                              .elements = tensor->elements,
                              .rows = 1,
                              .run = tensor->elements};
    bool divided = split.kind == GHP_SPLIT_OUT || split.kind == GHP_SPLIT_IN ||
                   split.kind == GHP_SPLIT_CHANNEL;

    if (!divided) return shard;
    shard.tp_size = split.tp_size;
    shard.member = rank % split.tp_size;
    if (split.kind == GHP_SPLIT_IN) shard.rows = tensor->dims[0];
    shard.run = tensor->elements / shard.rows / split.tp_size;
    return shard;
}

int64_t ghp_shard_elements(struct ghp_shard shard)
{
    return shard.rows * shard.run;
}

static struct ghp_pack blocks(struct ghp_shard shard, int element_bytes)
{
    return (struct ghp_pack){
        .rows = shard.rows, .block_bytes = shard.run * element_bytes, .parts = shard.tp_size};
}

void ghp_shard_take(struct ghp_shard shard, int element_bytes, const void *whole, void *part)
{
    ghp_pack_take(blocks(shard, element_bytes), whole, shard.member, part);
}

void ghp_shard_put(struct ghp_shard shard, int element_bytes, const void *part, void *whole)
{
    ghp_pack_put(blocks(shard, element_bytes), part, shard.member, whole);
}
