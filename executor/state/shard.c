/* executor/state/shard.c - see shard.h. A whole tensor is rows of `tp_size` blocks, so the copies are pack.h's. */
#include "executor/state/shard.h"

#include "executor/backend/pack.h"

#include <string.h>

struct ghp_shard ghp_shard_member(struct ghp_shard shard, int member)
{
    int64_t left = shard.apart - member * shard.run;

    shard.member = member;
    shard.valid = left < 0 ? 0 : left < shard.run ? left : shard.run;
    return shard;
}

struct ghp_shard ghp_shard_of(const struct ghp_op_param *kind, const struct ghp_local *local,
                              struct ghp_split split, int number, const struct ghp_param *whole)
{
    struct ghp_shard shard = {.tp_size = 1, .elements = whole->elements, .rows = 1, .run = 1};
    int n = ghp_local_param_dims(local, kind, shard.dims);
    bool divides_padded = (ghp_op_of(local->op)->pads >> split.kind & 1u) != 0;
    int64_t before = 1, held = 1; /* of dimensions before this one: of the whole, of the part */

    for (int i = 0; i < n; i++) {
        if (shard.dims[i] != whole->dims[i]) {
            if (shard.dims[i] < whole->dims[i] || divides_padded) shard.tp_size = split.tp_size;
            shard.rows = before;
            shard.padding = held - before;
            shard.run = 1;
        }
        shard.run *= shard.dims[i];
        before *= whole->dims[i];
        held *= shard.dims[i];
    }
    shard.apart = whole->elements / shard.rows;
    return ghp_shard_member(shard, number % shard.tp_size);
}

int64_t ghp_shard_elements(struct ghp_shard shard)
{
    return (shard.rows + shard.padding) * shard.run;
}

bool ghp_shard_is_whole(struct ghp_shard shard)
{
    return shard.tp_size == 1 && ghp_shard_elements(shard) == shard.elements;
}

static struct ghp_pack blocks(struct ghp_shard shard, int element_bytes)
{
    return (struct ghp_pack){.rows = shard.rows,
                             .block_bytes = shard.run * element_bytes,
                             .parts = shard.tp_size,
                             .row_bytes = shard.apart * element_bytes};
}

void ghp_shard_take(struct ghp_shard shard, int element_bytes, const void *whole, void *part)
{
    int64_t bytes = shard.run * element_bytes;

    ghp_pack_take(blocks(shard, element_bytes), whole, shard.member, part);
    memset((char *)part + shard.rows * bytes, 0, (size_t)(shard.padding * bytes));
}

void ghp_shard_put(struct ghp_shard shard, int element_bytes, const void *part, void *whole)
{
    ghp_pack_put(blocks(shard, element_bytes), part, shard.member, whole);
}
