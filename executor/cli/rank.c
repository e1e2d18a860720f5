/* executor/cli/rank.c - see executor/cli/rank.h. */
#include "executor/cli/rank.h"

#include "core/base/log.h"
#include "core/base/opts.h"
#include "executor/cli/session.h"
#include "executor/platform/failpoint.h"
#include "executor/platform/launch.h"
#include "executor/train/agreement.h"

#include <stdio.h>
#include <unistd.h>

static const double line_s = 5; /* between two lines about a training */

int ghp_rank_fail(enum ghp_status status, bool speaks)
{
    ghp_progress_end();
    if (speaks) fprintf(stderr, "ghp-run: %s\n", ghp_status_message());
    return ghp_status_exit_code(status);
}

/* A mistake in any worker's command line ends all, and so does another command line. */
static enum ghp_status agree_on_options(struct ghp_session *session, enum ghp_status status)
{
    struct ghp_ranks all = {.count = session->transport->control->size, .stride = 1};
    struct ghp_comm *world = NULL;

    GHP_TRY(ghp_collectives_group(session->transport->host, all, GHP_STREAM_COMPUTE, &world));
    world->label = "reading the command line";
    GHP_TRY(ghp_control_agree(session->transport->control, world, status));
    return ghp_agree_on_command(
        (struct ghp_agreeing){.control = session->transport->control, .comm = world}, session->tool,
        session->options->n_plans);
}

/* The one place where a failure of one worker ends all. Rank 0 speaks first; others give it a moment, since all may
 * have seen the same. */
static int abort_all(struct ghp_session *session, enum ghp_status status)
{
    int rank = session->transport->control->rank;
    int code = ghp_status_exit_code(status);

    if (rank != 0) sleep(1);
    ghp_rank_fail(status, true);
    fflush(NULL);
    session->transport->control->ops->abort(session->transport->control, code);
    return code;
}

/* What a command line without a mistake asks for. */
static enum ghp_status do_work(struct ghp_session *session, bool speaks)
{
    if (!ghp_opts_done()) return ghp_session_run(session);
    return speaks ? ghp_opts_answer(session->tool) : GHP_OK;
}

int ghp_rank_run(struct ghp_session *session, enum ghp_status status)
{
    bool speaks = session->transport->control->rank == 0;
    int result = 0;

    ghp_log_open(session->tool->name, speaks);
    ghp_progress_open(
        (struct ghp_progress){.look = (enum ghp_progress_look)session->options->progress,
                              .every_s = line_s,
                              .terminal = ghp_launched_terminal()});
    if (!speaks && freopen("/dev/null", "w", stdout) == NULL) return 1; /* rank 0 speaks */
    status = agree_on_options(session, status);
    if (status == GHP_OK) status = do_work(session, speaks);
    if (status != GHP_OK && (session->in_loop || !session->transport->control->ops->settled(
                                                     session->transport->control)))
        return abort_all(session, status);
    ghp_failpoint_reach(GHP_FAILPOINT_END);
    if (status != GHP_OK)
        result = ghp_rank_fail(status, speaks);
    else
        result = session->exit_code;
    ghp_transport_end(session->transport);
    return result;
}
