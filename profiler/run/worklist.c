/* profiler/run/worklist.c - what is known from an earlier file, how fast the workers are, and what is to be measured
 * by both. */
#include "profiler/run/run_private.h"

#include "core/base/log.h"
#include "core/cost/missing.h"
#include "executor/engine/kernel_spec.h"
#include "profiler/measure/speed.h"
#include "profiler/run/resume.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The key that measurements are kept by: all that they depend on, except for the operation or the collective. */
static void cache_key(const struct ghp_profiling *run, char *key, size_t n)
{
    const struct ghp_machine *machine = &run->profile->machine;
    const struct ghp_profiling_request *request = run->request;

    snprintf(key, n,
             "%s; %d nodes of %d cores, %d threads; %s, %s, %s; %d ranks, %d a node, %d threads "
             "each, %s, bind %s; %s",
             machine->name, machine->nodes, machine->cores, machine->threads,
             request->backend_ops->name, run->profile->numerics,
             ghp_precision_name(request->precision), run->m.size, run->ranks_per_node,
             run->m.threads, run->m.shares_cores ? "sharing cores" : "a core or more each",
             ghp_bind_names[request->bind], request->libraries);
}

/* Opens the cache on rank 0, for equally fast workers that compute on processors. Kept measurements are used unless all
 * is to be measured again.
 *
 * known   the profile has an earlier file's rates */
static enum ghp_status open_cache(struct ghp_profiling *run, bool known)
{
    char key[1024];

    if (run->m.rank != 0 || run->request->cache == NULL || run->profile->speeds.n > 0 ||
        ghp_measure_device(&run->m).ops != NULL)
        return GHP_OK;
    cache_key(run, key, sizeof key);
    GHP_TRY(ghp_cache_open(run->request->cache, key, &run->cache));
    if (run->cache.path != NULL)
        snprintf(run->result->cache, sizeof run->result->cache, "%s", run->cache.path);
    if (run->request->fresh || known) return GHP_OK;
    return ghp_cache_take_rates(&run->cache, run->profile);
}

/* An earlier file's measurements on rank 0 in the place of the blank profile; whether there are any, to all. */
static enum ghp_status take_earlier(struct ghp_profiling *run, bool *taken)
{
    const struct ghp_profiling_request *request = run->request;
    enum ghp_status status = GHP_OK;
    bool resumed = false;

    *taken = false;
    if (run->m.rank == 0 && !request->fresh)
        status = ghp_resume_load(request->output, run->profile, &resumed);
    if (status == GHP_OK && run->m.rank == 0 && !resumed && request->like != NULL)
        status = ghp_resume_like(request->like, run->profile);
    if (status == GHP_OK && resumed) ghp_note("continuing '%s'", request->output);
    *taken = resumed || request->like != NULL;
    return ghp_measure_broadcast(&run->m, status, taken, (int64_t)sizeof *taken);
}

/* Whether the workers are equally fast: if each has a place of its own, and all are there. */
static enum ghp_status measure_speeds(struct ghp_profiling *run)
{
    const struct ghp_measure *m = &run->m;

    if (run->request->alike || m->shares_cores || m->size < 2 || m->size != run->result->workers)
        return GHP_OK;
    return ghp_measure_speed(m, &run->profile->speeds);
}

/* The profile's speeds, perhaps an earlier file's, to all: what it has and gets is the slowest worker's by these. */
static enum ghp_status broadcast_speeds(struct ghp_profiling *run)
{
    struct ghp_measure *m = &run->m;
    const struct ghp_speeds *own = &run->profile->speeds;
    int n = own->n;
    double *of;

    GHP_TRY(ghp_measure_broadcast(m, GHP_OK, &n, (int64_t)sizeof n));
    if (n != m->size) return GHP_OK;
    of = ghp_alloc((size_t)n, sizeof *of);
    if (of != NULL && m->rank == 0) memcpy(of, own->of, (size_t)n * sizeof *of);
    run->speeds = (struct ghp_speeds){.n = of != NULL ? n : 0, .of = of};
    GHP_TRY(ghp_measure_broadcast(m, of != NULL ? GHP_OK : GHP_NO_MEMORY(), of,
                                  n * (int64_t)sizeof *of));
    m->speed = of[m->rank];
    for (int r = 0; r < n; r++)
        m->fastest = fmax(m->fastest, of[r]);
    return GHP_OK;
}

/* What rank 0's profile has, to all. */
static enum ghp_status broadcast_kept(struct ghp_profiling *run)
{
    struct ghp_worklist *worklist = &run->worklist;
    size_t n = (size_t)worklist->n_ops + (size_t)worklist->n_comms + 1;
    unsigned char *flags = ghp_alloc(n, 1);
    enum ghp_status status = flags != NULL ? GHP_OK : GHP_NO_MEMORY();

    if (status == GHP_OK && run->m.rank == 0 && !run->request->fresh)
        status = ghp_cache_take(&run->cache, &run->m, worklist, run->profile);
    if (run->m.rank == 0) ghp_resume_mark(run->profile, worklist);
    for (int i = 0; i < worklist->n_ops && status == GHP_OK; i++)
        flags[i] = worklist->ops[i].kept;
    for (int i = 0; i < worklist->n_comms && status == GHP_OK; i++)
        flags[worklist->n_ops + i] = worklist->comms[i].kept;
    status = ghp_measure_broadcast(&run->m, status, flags, (int64_t)n);
    for (int i = 0; i < worklist->n_ops && status == GHP_OK; i++)
        worklist->ops[i].kept = flags[i] != 0;
    for (int i = 0; i < worklist->n_comms && status == GHP_OK; i++)
        worklist->comms[i].kept = flags[worklist->n_ops + i] != 0;
    free(flags);
    return status;
}

/* The collectives that a file of ghp-plan --wanted names, which rank 0 reads, to all.
 *
 * named   owned by the caller; n of them */
static enum ghp_status read_named(const struct ghp_profiling *run, struct ghp_worklist_comm **named,
                                  int *n)
{
    struct ghp_missing missing = {0};
    enum ghp_status status = GHP_OK;

    if (run->request->only == NULL || strcmp(run->request->only, "data") == 0) return GHP_OK;
    if (run->m.rank == 0) status = ghp_missing_load(run->request->only, &missing);
    for (int i = 0; i < missing.n; i++)
        *n += missing.items[i].is_comm;
    GHP_TRY(ghp_measure_broadcast(&run->m, status, n, (int64_t)sizeof *n));
    *named = ghp_alloc((size_t)*n + 1, sizeof **named);
    if (*named == NULL) status = GHP_NO_MEMORY();
    for (int i = 0, k = 0; i < missing.n && *named != NULL; i++) {
        const struct ghp_missing_item *item = &missing.items[i];

        if (item->is_comm)
            (*named)[k++] = (struct ghp_worklist_comm){
                .op = item->op, .count = item->count, .stride = item->stride, .bytes = item->bytes};
    }
    ghp_missing_release(&missing);
    return ghp_measure_broadcast(&run->m, status, *named, (*n + 1) * (int64_t)sizeof **named);
}

enum ghp_status ghp_profiling_collect(struct ghp_profiling *run)
{
    struct ghp_worklist_comm *named = NULL;
    const struct ghp_profiling_request *request = run->request;
    bool fuses[GHP_OP_COUNT];
    struct ghp_worklist_request wanted = {.models = request->models,
                                          .n_models = request->n_models,
                                          .batches = request->batches,
                                          .n_batches = request->n_batches,
                                          .workers = run->result->workers,
                                          .ranks = run->m.size,
                                          .element_bytes = request->precision.element_bytes,
                                          .bucket_bytes = request->bucket_bytes,
                                          .speeds = &run->speeds,
                                          .fuses = fuses,
                                          .masks = ghp_backend_fuses(run->m.backend_ops,
                                                                     run->m.backend, GHP_OP_CONV2D,
                                                                     GHP_PASS_BACKWARD_DATA)};
    enum ghp_status status;
    double unused = 0;
    bool taken;

    for (int op = 0; op < GHP_OP_COUNT; op++)
        fuses[op] = ghp_backend_fuses(run->m.backend_ops, run->m.backend, (enum ghp_op)op,
                                      GHP_PASS_FORWARD);
    GHP_TRY(take_earlier(run, &taken));
    if (!taken) GHP_TRY(ghp_measure_max(&run->m, measure_speeds(run), &unused));
    GHP_TRY(broadcast_speeds(run));
    GHP_TRY(ghp_measure_max(&run->m, open_cache(run, taken), &unused));
    status = read_named(run, &named, &wanted.n_named);
    wanted.named = named;
    if (status == GHP_OK)
        status = ghp_measure_max(&run->m, ghp_worklist_collect(&wanted, &run->worklist), &unused);
    free(named);
    GHP_TRY(status);
    GHP_TRY(ghp_measure_max(&run->m, ghp_profiling_memory_formats(run), &unused));
    GHP_TRY(broadcast_kept(run));
    return ghp_profiling_choose_missing(run);
}
