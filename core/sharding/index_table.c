/* core/sharding/index_table.c - see sharding/index_table.h. */
#include "core/sharding/index_table.h"

void ghp_index_map_table(const struct ghp_local *local, int64_t run, int32_t *table)
{
    const struct ghp_op_facts *facts = ghp_op_of(local->op);

    for (int64_t p = 0; p < local->p; p++)
        for (int64_t q = 0; q < local->q; q++)
            for (int64_t k = 0; k < local->k; k += run)
                *table++ = facts->source(local, (int64_t[3]){k, p, q});
}

int64_t ghp_index_map_run(const struct ghp_local *local)
{
    const struct ghp_op_facts *facts = ghp_op_of(local->op);

    return facts->run != NULL ? facts->run(local) : 1;
}
