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

const char *ghp_sync_equality_text(enum ghp_sync_equality equality)
{
    switch (equality) {
    case GHP_SYNC_EQUALS_ONE_WORKER: return "equal to one worker";
    }
    return NULL;
}
