/* executor/state/checkpoint_mixing.c - see checkpoint_private.h: a number of each worker's own by which weights mix on
 * (executor/mixing/mixer.h), as one text of the metadata: worker by worker, in hexadecimal, to the bit. */
#include "executor/state/checkpoint_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char ghp_checkpoint_mixing_key[] = "mixing";

enum { VALUE_BYTES = 32 };

enum ghp_status ghp_checkpoint_mixing_text(struct ghp_worker *worker, struct ghp_comm *world,
                                           char **text)
{
    const double *mine = ghp_worker_mix_number(worker);
    int workers = world->ranks.count;
    size_t room = ((size_t)workers + 1) * VALUE_BYTES, used = 0;
    enum ghp_status status = GHP_OK;
    double *all;

    *text = NULL;
    if (mine == NULL || workers == 1) return GHP_OK;
    GHP_TRY(ghp_worker_settle_mixes(worker));
    all = ghp_alloc((size_t)workers, sizeof *all);
    *text = ghp_alloc(room, 1);
    if (all == NULL || *text == NULL) status = GHP_NO_MEMORY();
    status = ghp_control_agree(ghp_worker_exec_context(worker)->transport->control, world, status);
    if (status == GHP_OK) status = world->ops->all_gather(world, mine, all, sizeof *all);
    for (int i = 0; i < workers && status == GHP_OK; i++)
        used += (size_t)snprintf(*text + used, room - used, "%s%a", i > 0 ? " " : "", all[i]);
    free(all);
    return status;
}

enum ghp_status ghp_checkpoint_read_mixing(const char *path, const struct ghp_safetensors *file,
                                           struct ghp_worker *worker)
{
    const char *at = ghp_safetensors_metadata(file, ghp_checkpoint_mixing_key);
    const struct ghp_program *program = ghp_worker_program(worker);
    double *mine = ghp_worker_mix_number(worker);
    bool good = at != NULL;

    if (mine == NULL || program->problem.workers == 1) return GHP_OK;
    for (int i = 0; i < program->problem.workers && good; i++) {
        char *end = NULL;
        double value = strtod(at, &end);

        good = end != at && isfinite(value);
        at = end;
        if (good && i == program->rank) *mine = value;
    }
    if (good && *at == '\0') return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_FORMAT,
        "'%s': '%s' in its metadata does not have a number for each of %d worker(s); use a "
        "checkpoint that ghp-run wrote",
        path, ghp_checkpoint_mixing_key, program->problem.workers);
}
