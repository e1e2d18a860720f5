/* profiler/run/resume.c - which earlier measurements hold for this run. */
#include "profiler/run/resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum ghp_status differs(const char *path, const char *what, const char *was, const char *is)
{
    return GHP_FAIL(GHP_ERR_INPUT,
                    "cannot continue '%s': it was measured with %s %s, not %s; remove it, or give "
                    "another -o or --fresh, to measure again",
                    path, what, was, is);
}

static enum ghp_status differs_in_count(const char *path, const char *what, int was, int is)
{
    char a[16], b[16];

    snprintf(a, sizeof a, "%d", was);
    snprintf(b, sizeof b, "%d", is);
    return differs(path, what, a, b);
}

static enum ghp_status check_same(const char *path, const struct ghp_profile *old,
                                  const struct ghp_profile *fresh)
{
    if (strcmp(old->backend, fresh->backend) != 0)
        return differs(path, "backend", old->backend, fresh->backend);
    if (strcmp(old->numerics, fresh->numerics) != 0)
        return differs(path, "numerics", old->numerics, fresh->numerics);
    if (!ghp_precision_same(ghp_profile_precision(old), ghp_profile_precision(fresh)))
        return differs(path, "precision", ghp_precision_name(ghp_profile_precision(old)),
                       ghp_precision_name(ghp_profile_precision(fresh)));
    if (old->workers != fresh->workers)
        return differs_in_count(path, "ranks", old->workers, fresh->workers);
    if (old->threads > 0 && old->threads != fresh->threads)
        return differs_in_count(path, "threads a rank", old->threads, fresh->threads);
    if (fresh->machine.nodes > 0 && old->machine.nodes != fresh->machine.nodes)
        return differs_in_count(path, "nodes", old->machine.nodes, fresh->machine.nodes);
    if (old->machine.cores != fresh->machine.cores)
        return differs_in_count(path, "cores a node", old->machine.cores, fresh->machine.cores);
    if (strcmp(old->machine.name, fresh->machine.name) != 0)
        return differs(path, "processor", old->machine.name, fresh->machine.name);
    return GHP_OK;
}

static void drop_estimates(struct ghp_profile *profile)
{
    int kept = 0;

    for (int i = 0; i < profile->n_ops; i++) {
        if (profile->ops[i].source == GHP_SOURCE_MEASURED) {
            profile->ops[kept++] = profile->ops[i];
            continue;
        }
        free(profile->ops[i].key);
        free(profile->ops[i].algorithm);
    }
    profile->n_ops = kept;
    kept = 0;
    for (int i = 0; i < profile->n_comms; i++)
        if (profile->comms[i].source == GHP_SOURCE_MEASURED)
            profile->comms[kept++] = profile->comms[i];
    profile->n_comms = kept;
}

/* An earlier profile in the place of the fresh one, if it was measured alike. */
static enum ghp_status take_over(const char *path, struct ghp_profile *fresh)
{
    struct ghp_profile old = {0};
    enum ghp_status status = ghp_profile_load(path, &old);

    if (status != GHP_OK) {
        ghp_status_prefix("cannot continue '%s' (give --fresh to replace it)", path);
        return status;
    }
    status = check_same(path, &old, fresh);
    if (status != GHP_OK) {
        ghp_profile_release(&old);
        return status;
    }
    drop_estimates(&old);
    old.knows_has = fresh->knows_has; /* the backend of this build, which is what measures on */
    memcpy(old.has, fresh->has, sizeof old.has);
    old.vocabulary_multiple = fresh->vocabulary_multiple;
    ghp_profile_release(fresh);
    *fresh = old;
    return ghp_profile_finalize(fresh);
}

enum ghp_status ghp_resume_load(const char *path, struct ghp_profile *fresh, bool *resumed)
{
    struct stat info;

    *resumed = stat(path, &info) == 0 && S_ISREG(info.st_mode);
    return *resumed ? take_over(path, fresh) : GHP_OK;
}

enum ghp_status ghp_resume_like(const char *path, struct ghp_profile *fresh)
{
    struct ghp_machine own = {0};
    struct ghp_link intra = fresh->machine.intra, inter = fresh->machine.inter;
    int nodes = fresh->machine.nodes;

    GHP_TRY(ghp_machine_copy(&fresh->machine, &own));
    fresh->machine.nodes =
        0; /* how the ranks lie on nodes matters to collectives alone: any number will do */
    enum ghp_status status = take_over(path, fresh);
    if (status != GHP_OK) {
        fresh->machine.nodes = nodes;
        ghp_machine_release(&own);
        return status;
    }
    ghp_machine_release(&fresh->machine);
    fresh->machine = own;
    fresh->machine.intra = intra;
    fresh->machine.inter = inter;
    fresh->n_comms = 0;
    fresh->overlap = (struct ghp_overlap){0};
    return ghp_profile_finalize(fresh);
}

/* Whether this size was measured, or sizes on both sides as near to each other as a work list's are. */
static bool has_comm(const struct ghp_profile *profile, const struct ghp_worklist_comm *comm)
{
    int64_t below = 0, above = INT64_MAX;

    for (int i = 0; i < profile->n_comms; i++) {
        const struct ghp_comm_entry *entry = &profile->comms[i];

        if (entry->op != comm->op || entry->count != comm->count || entry->stride != comm->stride)
            continue;
        if (entry->bytes <= comm->bytes && entry->bytes > below) below = entry->bytes;
        if (entry->bytes >= comm->bytes && entry->bytes < above) above = entry->bytes;
    }
    return below > 0 && above <= GHP_COMM_GRID_STEP * below;
}

void ghp_resume_mark(const struct ghp_profile *profile, struct ghp_worklist *worklist)
{
    for (int i = 0; i < worklist->n_ops; i++)
        worklist->ops[i].kept =
            ghp_profile_find(profile, worklist->ops[i].key, worklist->ops[i].pass) != NULL;
    for (int i = 0; i < worklist->n_comms; i++)
        worklist->comms[i].kept = has_comm(profile, &worklist->comms[i]);
}
