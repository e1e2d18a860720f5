/* executor/state/migrate.c - see migrate.h. */
#include "executor/state/migrate.h"

#include "executor/state/parameters.h"

#include <stdlib.h>

bool ghp_state_can_migrate(const struct ghp_lowering *lowering)
{
    return ghp_sync_replicas(lowering->method.sync, lowering->problem.workers) == 1 &&
           lowering->method.sync.servers == 0 && !ghp_sync_runs_free(lowering->method.sync) &&
           lowering->method.scaling == NULL;
}

struct migration {
    struct ghp_worker *from, *to;
    struct ghp_tensors_list list;
    void *whole; /* room for one tensor */
};

static enum ghp_status migrate_one(struct migration *c, int i, enum ghp_buffer_kind kind)
{
    GHP_TRY(ghp_parameters_gather(c->from, &c->list.items[i], kind, c->whole));
    return ghp_parameters_scatter(c->to, &c->list.items[i], kind, c->whole);
}

static enum ghp_status migrate_all(struct migration *c)
{
    const struct ghp_optimizer *optimizer = ghp_worker_program(c->from)->optimizer;

    for (int i = 0; i < c->list.n; i++)
        GHP_TRY(migrate_one(c, i, ghp_tensor_buffer_kind(&c->list.items[i])));
    for (int m = 0; m < optimizer->n_moments; m++) {
        for (int i = 0; i < c->list.n_trained; i++)
            GHP_TRY(migrate_one(c, i, ghp_moment_kind(m)));
        GHP_TRY(ghp_worker_distribute(c->to, ghp_moment_kind(m)));
    }
    return GHP_OK;
}

enum ghp_status ghp_state_migrate(struct ghp_worker *from, struct ghp_worker *to)
{
    struct migration c = {.from = from, .to = to};
    int64_t largest = 0;
    enum ghp_status status = ghp_tensors_list_init(ghp_worker_program(from)->model, &c.list);

    for (int i = 0; status == GHP_OK && i < c.list.n; i++)
        if (c.list.items[i].param->elements > largest) largest = c.list.items[i].param->elements;
    if (status == GHP_OK)
        c.whole = ghp_alloc((size_t)largest + 1,
                            (size_t)ghp_parameter_bytes(ghp_worker_program(from)->element_bytes));
    if (status == GHP_OK) status = c.whole != NULL ? migrate_all(&c) : GHP_NO_MEMORY();
    free(c.whole);
    ghp_tensors_release(&c.list);
    return status;
}
