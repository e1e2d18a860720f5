/* core/sharding/index_table.c - see sharding/index_table.h. */
#include "core/sharding/index_table.h"

void ghp_index_map_table(const struct ghp_local *local, int32_t *table)
{
    const struct ghp_op_facts *facts = ghp_op_of(local->op);

    for (int64_t k = 0; k < local->k; k++)
        for (int64_t p = 0; p < local->p; p++)
            for (int64_t q = 0; q < local->q; q++)
                table[(p * local->q + q) * local->k + k] =
                    facts->source(local, (int64_t[3]){k, p, q});
}
