/* core/program/sync.c - all synchronisers, by name. */
#include "core/program/sync.h"

static const struct ghp_sync_ops *const all[] = {&ghp_sync_allreduce, &ghp_sync_sharded};
enum { N_SYNCS = sizeof all / sizeof all[0] };

const char *const ghp_sync_names[N_SYNCS + 1] = {"allreduce", "sharded", NULL};

const struct ghp_sync_ops *ghp_sync_at(int index)
{
    GHP_ASSERT(index >= 0 && index < N_SYNCS);
    return all[index];
}

int ghp_sync_index(const struct ghp_sync_ops *sync)
{
    int index = 0;

    while (all[index] != sync)
        index++;
    return index;
}
