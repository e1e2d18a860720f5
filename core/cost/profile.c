/* core/cost/profile.c - the table of measurements: adding, replacing, sorting, finding.
 *
 * Knows no cost (cost/profile_cost.c, profile_comm.c) and no file (profile_io.c, which finalizes). */
#include "core/cost/profile.h"

#include "core/base/array.h"
#include "core/cost/profile_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *ghp_source_name(enum ghp_source source)
{
    static const char *const names[] = {"measured", "interpolated", "analytic"};

    GHP_ASSERT((int)source >= 0 && source < GHP_SOURCE_COUNT);
    return names[source];
}

double ghp_overlap_comm(const struct ghp_overlap *overlap, int64_t bytes)
{
    const double first = log(GHP_OVERLAP_BYTES), last = log(GHP_OVERLAP_LONG_BYTES);
    double part;

    if (!(overlap->comm_long > 0) || bytes <= GHP_OVERLAP_BYTES) return overlap->comm;
    if (bytes >= GHP_OVERLAP_LONG_BYTES) return overlap->comm_long;
    part = (log((double)bytes) - first) / (last - first);
    return overlap->comm + part * (overlap->comm_long - overlap->comm);
}

struct ghp_sharing ghp_overlap_sharing(const struct ghp_overlap *overlap, double alone_s)
{
    double reshard = overlap->link + (alone_s > 0 ? overlap->queueing_delay_s / alone_s : 0);

    return (struct ghp_sharing){.reshard = reshard,
                                .reduction = reshard / (reshard - overlap->link + 1)};
}

double ghp_overlap_least_comm(const struct ghp_overlap *overlap)
{
    return overlap->comm_long > 0 ? fmin(overlap->comm, overlap->comm_long) : overlap->comm;
}

enum ghp_status ghp_profile_init(struct ghp_profile *profile, const char *backend,
                                 const char *numerics, int element_bytes)
{
    *profile = (struct ghp_profile){.element_bytes = element_bytes,
                                    .joins = strcmp(backend, "cuda") == 0,
                                    .overlap = {.compute = 1, .comm = 1, .link = 1}};
    profile->backend = strdup(backend);
    profile->numerics = strdup(numerics);
    profile->created = strdup("");
    profile->host = strdup("");
    profile->machine.name = strdup("");
    profile->machine.nodes = profile->machine.packages = profile->machine.cores =
        profile->machine.threads = 1;
    profile->machine.pus = ghp_alloc(1, sizeof *profile->machine.pus);
    profile->machine.n_pus = 1;
    if (profile->backend != NULL && profile->numerics != NULL && profile->created != NULL &&
        profile->host != NULL && profile->machine.name != NULL && profile->machine.pus != NULL)
        return GHP_OK;
    ghp_profile_release(profile);
    return GHP_NO_MEMORY();
}

void ghp_profile_release(struct ghp_profile *profile)
{
    if (profile == NULL) return;
    for (int i = 0; i < profile->n_ops; i++) {
        free(profile->ops[i].key);
        free(profile->ops[i].algorithm);
    }
    free(profile->ops);
    free(profile->comms);
    free(profile->backend);
    free(profile->numerics);
    free(profile->created);
    free(profile->host);
    free(profile->data);
    ghp_machine_release(&profile->machine);
    ghp_speeds_release(&profile->speeds);
    *profile = (struct ghp_profile){0};
}

int64_t ghp_profile_device_limit(const struct ghp_profile *profile, int workers)
{
    const struct ghp_gpus *gpus = &profile->machine.gpus;
    int here = ghp_machine_workers_per_node(&profile->machine, workers), sharing;
    int64_t least = 1;

    if (!profile->on_device || gpus->count == 0 || gpus->memory_bytes == 0) return 0;
    sharing = (here + gpus->count - 1) / gpus->count;
    if (gpus->memory_bytes / sharing - profile->reserved_bytes < least) return least;
    return gpus->memory_bytes / sharing - profile->reserved_bytes;
}

int64_t ghp_profile_memory_per_worker(const struct ghp_profile *profile, int workers)
{
    const struct ghp_machine *m = &profile->machine;
    int here = ghp_machine_workers_per_node(m, workers);
    int64_t bytes = m->memory_bytes / here;

    if (strcmp(profile->backend, "analytic") == 0 && m->gpus.count > 0 && m->gpus.memory_bytes > 0)
        bytes = m->gpus.memory_bytes / ((here + m->gpus.count - 1) / m->gpus.count);
    return bytes > 0 || m->memory_bytes == 0 ? bytes : 1;
}

static int compare_ops(const void *a, const void *b)
{
    const struct ghp_op_entry *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order != 0 ? order : (int)x->pass - (int)y->pass;
}

static int compare_comms(const void *a, const void *b)
{
    const struct ghp_comm_entry *x = a, *y = b;

    if (x->op != y->op) return x->op < y->op ? -1 : 1;
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    if (x->stride != y->stride) return x->stride < y->stride ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

enum ghp_status ghp_profile_check_model(const struct ghp_profile *profile,
                                        const struct ghp_model *model)
{
    for (int l = 0; profile->knows_has && l < model->n_layers; l++) {
        const struct ghp_layer *layer = &model->layers[l];

        if (profile->has[layer->op]) continue;
        return GHP_FAIL(GHP_ERR_INPUT,
                        "backend '%s' of the profile has no '%s', which layer '%s' is; make a "
                        "profile with another --backend, or leave the layer out",
                        profile->backend, ghp_op_name(layer->op), layer->name);
    }
    return GHP_OK;
}

const struct ghp_op_entry *ghp_profile_find(const struct ghp_profile *profile, const char *key,
                                            enum ghp_pass pass)
{
    struct ghp_op_entry wanted = {.pass = pass};
    int low = 0, high = profile->n_ops;

    if (!profile->finalized) {
        for (int i = 0; i < profile->n_ops; i++)
            if (profile->ops[i].pass == pass && strcmp(profile->ops[i].key, key) == 0)
                return &profile->ops[i];
        return NULL;
    }
    wanted.key = (char *)(uintptr_t)key; /* only compared */
    while (low < high) {
        int mid = low + (high - low) / 2, order = compare_ops(&profile->ops[mid], &wanted);

        if (order == 0) return &profile->ops[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

static bool is_duration(double seconds, double spread)
{
    return seconds >= 0 && seconds < 1e12 && spread >= 0 && spread < 1e12;
}

enum ghp_status ghp_profile_add_op(struct ghp_profile *profile, const struct ghp_op_entry *entry)
{
    const struct ghp_op_entry *old = ghp_profile_find(profile, entry->key, entry->pass);
    struct ghp_op_entry copy = *entry;

    if (!is_duration(entry->seconds, entry->spread) || entry->scratch_bytes < 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the entry of '%s' (%s) has a negative or endless value; measure it again",
                        entry->key, ghp_pass_name(entry->pass));
    if (old == NULL) GHP_TRY_ROOM(profile->ops, profile->n_ops, profile->max_ops);
    copy.key = strdup(entry->key);
    copy.algorithm = strdup(entry->algorithm != NULL ? entry->algorithm : "");
    if (copy.key == NULL || copy.algorithm == NULL) {
        free(copy.key);
        free(copy.algorithm);
        return GHP_NO_MEMORY();
    }
    if (old != NULL) {
        struct ghp_op_entry *place = &profile->ops[old - profile->ops];

        free(place->key);
        free(place->algorithm);
        *place = copy;
    } else {
        profile->ops[profile->n_ops++] = copy;
    }
    profile->finalized = false;
    return GHP_OK;
}

enum ghp_status ghp_profile_add_comm(struct ghp_profile *profile,
                                     const struct ghp_comm_entry *entry)
{
    if (!is_duration(entry->seconds, entry->spread) || entry->bytes < 1 || entry->count < 2 ||
        entry->stride < 1)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the entry of %s over %d ranks at stride %d has a size or time that cannot "
                        "be; measure it again",
                        ghp_comm_name(entry->op), entry->count, entry->stride);
    profile->finalized = false;
    for (int i = 0; i < profile->n_comms; i++) {
        if (compare_comms(&profile->comms[i], entry) != 0) continue;
        profile->comms[i] = *entry;
        return GHP_OK;
    }
    GHP_TRY_ROOM(profile->comms, profile->n_comms, profile->max_comms);
    profile->comms[profile->n_comms++] = *entry;
    return GHP_OK;
}

enum ghp_status ghp_profile_sort(struct ghp_profile *profile)
{
    if (profile->n_ops > 0)
        qsort(profile->ops, (size_t)profile->n_ops, sizeof *profile->ops, compare_ops);
    if (profile->n_comms > 0)
        qsort(profile->comms, (size_t)profile->n_comms, sizeof *profile->comms, compare_comms);
    for (int i = 1; i < profile->n_ops; i++)
        if (compare_ops(&profile->ops[i - 1], &profile->ops[i]) == 0)
            return GHP_FAIL(GHP_ERR_INPUT, "the profile has two entries of '%s' (%s); remove one",
                            profile->ops[i].key, ghp_pass_name(profile->ops[i].pass));
    for (int i = 1; i < profile->n_comms; i++)
        if (compare_comms(&profile->comms[i - 1], &profile->comms[i]) == 0)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "the profile has two entries of %s over %d ranks at stride %d with "
                            "%lld bytes; remove one",
                            ghp_comm_name(profile->comms[i].op), profile->comms[i].count,
                            profile->comms[i].stride, (long long)profile->comms[i].bytes);
    return GHP_OK;
}
