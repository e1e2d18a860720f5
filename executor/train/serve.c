/* executor/train/serve.c - see train/serve.h. */
#include "executor/train/serve.h"

#include "executor/mixing/mix_server.h"
#include "executor/train/session_plan.h"
#include "executor/train/stop.h"

/* Workers mix their weights with the server's. */
static enum ghp_status serve_mixes(struct ghp_setup *s, const struct ghp_session_plan *e)
{
    struct ghp_mix_server *server = NULL;
    struct ghp_server_programs programs;
    enum ghp_status status =
        ghp_rank_plan_lower_server(&s->exec, &e->rank_plan, s->server, &programs);

    if (status == GHP_OK)
        status = ghp_mix_server_open(&s->exec, &programs, e->rank_plan.run.fault, &server);
    GHP_TRY(ghp_setup_agree(s, status, "allocating"));
    ghp_stop_leave_to_workers();
    GHP_TRY(ghp_mix_server_connect(server));
    GHP_TRY(ghp_mix_server_run(server));
    ghp_mix_server_close(server);
    return GHP_OK;
}

/* The server updates its weights by all workers' gradients. */
static enum ghp_status serve_sums(struct ghp_setup *s, const struct ghp_session_plan *e)
{
    struct ghp_server *server = NULL;
    struct ghp_server_programs programs;
    enum ghp_status status =
        ghp_rank_plan_lower_server(&s->exec, &e->rank_plan, s->server, &programs);

    if (status == GHP_OK)
        status = ghp_server_open(&s->exec, &programs, e->rank_plan.run.fault, &server);
    GHP_TRY(ghp_setup_agree(s, status, "allocating"));
    ghp_stop_leave_to_workers();
    GHP_TRY(ghp_server_connect(server));
    GHP_TRY(ghp_server_run(server));
    ghp_server_close(server);
    return GHP_OK;
}

enum ghp_status ghp_session_plan_serve(struct ghp_setup *s, struct ghp_session_plan *e)
{
    ghp_session_plan_describe(s, e);
    return e->rank_plan.lowering.method.sync.ops->mixing != NULL ? serve_mixes(s, e)
                                                                 : serve_sums(s, e);
}
